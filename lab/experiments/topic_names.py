"""Names of topics: among four names, does that of a held-out document's topic share the most words with it?

The topic of a document is the one that the model finds most probable. The three other names are those of other topics,
drawn at random or of the nearest topics. The score of a name is the number of its words in the document; names with
equal scores are chosen with equal probability, so chance is 25 %.

Corpora are the raw articles of 20 Newsgroups and, where apt has them, descriptions of Debian packages.
"""

import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varitext.documents.model import DocumentModel
from varitext.evaluation.vectors import unit_rows
from varitext.reproduce.document_fits import ARTICLES, QUICK_DOCUMENTS, QUICK_EPOCHS, is_here, load_part, short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results
from varitext.text import tokenise

PACKAGES = "debian-packages"
TOPICS = {ARTICLES: 50, PACKAGES: 60}
N_PACKAGES = {"train": 15_000, "test": 3_000}
MIN_LINES = 2  # of a description: apt has only titles if it is configured to omit translations
NAMES_PER_QUESTION = 4
SEEDS = 3


class Names(NamedTuple):
    """Accuracy in per cent."""

    random: float  # beside three other topics
    near: float  # beside the three nearest topics
    documents: int


def runs(plan: Plan) -> Iterator[Run]:
    here = {ARTICLES: is_here(ARTICLES, plan), PACKAGES: has_packages()}
    for corpus, missing in ((ARTICLES, "no raw articles"), (PACKAGES, "apt-cache has no descriptions of packages")):
        for seed in plan.seeds_or(SEEDS):
            settings = {"corpus": corpus, "topics": TOPICS[corpus], "seed": seed}
            yield Run(settings, partial(measure, corpus, seed, plan), None if here[corpus] else missing)


def measure(corpus: str, seed: int, plan: Plan) -> dict[str, Any]:
    train, test = (texts_of_part(corpus, part, plan) for part in ("train", "test"))
    epochs = QUICK_EPOCHS if plan.quick else None
    model = DocumentModel(threads=plan.threads, epochs=epochs, seed=seed, n_topics=TOPICS[corpus]).fit(train)
    return short(names_chosen(model, test, seed)._asdict() | {"names": [topic.name for topic in model.topics()]})


def names_chosen(model: DocumentModel, texts: Sequence[str], seed: int) -> Names:
    topics, known = model.topic_memberships(texts).argmax(1), np.flatnonzero(model.count(texts).getnnz(1))
    names = [set(tokenise(topic.name, model.fitted_.token_rules)) for topic in model.topics()]
    words = [set(tokenise(text, model.fitted_.token_rules)) for text in texts]
    scores = np.array([[len(name & words[row]) for name in names] for row in known])  # [documents, topics]
    generator = np.random.default_rng(seed)
    centres = unit_rows(model.fitted_.regions.group_centres())
    by_likeness = np.argsort(-(centres @ centres.T), axis=1, kind="stable")
    random, near = [], []
    for row, topic in zip(scores, topics[known], strict=True):
        others = np.delete(np.arange(len(names)), topic)
        random.append(share_right(row, topic, generator.permutation(others)[: NAMES_PER_QUESTION - 1]))
        nearest = by_likeness[topic][by_likeness[topic] != topic]
        near.append(share_right(row, topic, nearest[: NAMES_PER_QUESTION - 1]))
    return Names(100 * float(np.mean(random)), 100 * float(np.mean(near)), len(known))


def share_right(scores: np.ndarray, own: int, others: np.ndarray) -> float:
    """Probability that a document's own name is chosen among the best."""
    best = max(scores[own], scores[others].max())
    return float(scores[own] == best) / (int(scores[own] == best) + np.count_nonzero(scores[others] == best))


def texts_of_part(corpus: str, part: str, plan: Plan) -> Sequence[str]:
    if corpus == ARTICLES:
        return load_part(corpus, part, plan).texts or ()
    texts = package_descriptions()
    start, number = (0 if part == "train" else N_PACKAGES["train"]), N_PACKAGES[part]
    order = np.random.default_rng(0).permutation(len(texts))[start : start + number]
    return [texts[place] for place in order][: QUICK_DOCUMENTS[part] if plan.quick else None]


# Descriptions of packages


def has_packages() -> bool:
    try:
        return len(_descriptions(["bash"])[0].splitlines()) >= MIN_LINES
    except (OSError, subprocess.CalledProcessError, IndexError):
        return False


def package_descriptions() -> list[str]:
    """Of every package that apt knows, one text each."""
    names = sorted(subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout.split())
    return [text for start in range(0, len(names), 5000) for text in _descriptions(names[start : start + 5000])]


def _descriptions(names: Sequence[str]) -> list[str]:
    command = ["apt-cache", "-o", "Acquire::Languages=en", "--no-all-versions", "show", *names]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # virtual packages have none
    found = []
    for package in shown.split("\n\n"):
        lines = iter(package.splitlines())
        title = next((line for line in lines if line.startswith("Description") and "-md5" not in line[:16]), "")
        rest = [line.strip() for line in _indented(lines)]
        found.append("\n".join([title.partition(":")[2].strip(), *("" if line == "." else line for line in rest)]))
    return [text for text in found if text.strip()]


def _indented(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith(" "):
            return
        yield line


def table(records: list[Record]) -> str:
    """Means over seeds."""
    rows = []
    for corpus, topics in TOPICS.items():
        if found := results(records, corpus=corpus):
            values = [mean(found, name, ".1f") for name in ("random", "near")]
            rows.append([corpus, str(topics), *values, str(found[0]["documents"]), str(len(found))])
    head = ["corpus", "topics", "other names at random, %", "names of the nearest topics, %", "documents", "seeds"]
    return markdown_table(head, rows)


EXPERIMENT = Experiment("topic-names", "is the name of a document's topic the one whose words it has?", runs, table)
