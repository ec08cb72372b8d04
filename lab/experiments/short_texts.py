"""Topics of short texts with classes: words alone, sentence vectors alone, and both in one model.

Corpora are titles of Debian packages (`titles.py`) and the subject lines of 20 Newsgroups. All systems
that use vectors use MiniLM's. The numbers of topics are given. NPMI is computed on the texts themselves, with ten words
per topic. For k-means, words are chosen as for our regions (`documents/topics.py`). Every run is a separate process.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.cluster import KMeans

from lab.child import in_child, is_available
from lab.experiments.generality import titles as subject_lines
from lab.experiments.titles import debian_titles, has_apt
from lab.experiments.topic_systems import BERTOPIC, SAME_TEXT_AS_PEERS, WORDS, Found
from lab.experiments.topics import NO_BERTOPIC, agreement_with_labels
from varitext.corpora import load_documents
from varitext.documents.model import DocumentModel
from varitext.documents.topic_words import DEFAULT_WORDING, WordCounts, documents_having
from varitext.documents.vectors import encode_texts
from varitext.evaluation import coherence_record, diversity_record
from varitext.files import atomic_file
from varitext.reproduce.document_fits import ARTICLES, QUICK_DOCUMENTS, QUICK_EPOCHS, is_here, short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results
from varitext.runtime.devices import running_on
from varitext.text import count_texts

SEEDS, NUMBERS = 3, (10, 20)
DEBIAN, SUBJECTS = "debian-titles", "subject-lines"
SYSTEMS = {
    "nvdm_vectors": "NVDM-DCM with sentence vectors",
    "nvdm_dcm": "NVDM-DCM (the default)",
    "kmeans": "k-means on the vectors",
    "bertopic": "BERTopic",
    "bertopic_kmeans": "BERTopic, k-means",
    "lda": "LDA (tomotopy)",
}
MEASURES = {"nmi": "NMI", "purity": "purity", "npmi": "NPMI", "unique_words": "unique words"}
NO_APT = "the titles come from apt: run this on Debian after `apt-get update`"


class ShortTexts(NamedTuple):
    texts: list[str]
    classes: list[str]

    @property
    def sha256(self) -> str:
        return hashlib.sha256("\n".join(self.texts + self.classes).encode()).hexdigest()


def short_texts(corpus: str, plan: Plan) -> ShortTexts:
    if corpus == DEBIAN:
        pairs = debian_titles()
    else:
        labels = load_documents(ARTICLES, "train", plan.data_dir).labels or ()
        cleaned = (" ".join(subject.split()) for subject in subject_lines(plan.data_dir))
        pairs = list(dict(zip(cleaned, labels, strict=True)).items())
    pairs = pairs[: QUICK_DOCUMENTS["train"] if plan.quick else None]
    return ShortTexts([text for text, _ in pairs], [label for _, label in pairs])


def sentence_vectors(corpus: str, texts: list[str], plan: Plan) -> np.ndarray:
    """Encoded once for all runs."""
    kept = plan.models and plan.models.parent / f"{corpus}-minilm{'-quick' * plan.quick}.npy"
    if kept and kept.exists():
        return np.asarray(np.load(kept))
    vectors = encode_texts(texts)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(kept) as temporary, temporary.open("wb") as stream:
            np.save(stream, vectors)
    return vectors


def missing_corpus(corpus: str, plan: Plan) -> str | None:
    if corpus == DEBIAN:
        return None if has_apt() else NO_APT
    return None if is_here(ARTICLES, plan) else f"{ARTICLES} is not here: varitext data get {ARTICLES}"


def runs(plan: Plan) -> Iterator[Run]:
    for corpus in (DEBIAN, SUBJECTS):
        for system in SYSTEMS:
            missing = missing_corpus(corpus, plan)
            missing = NO_BERTOPIC if system in BERTOPIC and not is_available("bertopic") else missing
            for seed in plan.seeds_or(SEEDS):
                settings = {"corpus": corpus, "system": system, "seed": seed}
                yield Run(settings, partial(measure, corpus, system, seed, plan), missing)


@dataclass(frozen=True)
class Task:
    corpus: str
    system: str
    seed: int
    quick: bool
    data_dir: str | None
    models: str | None
    threads: int

    @property
    def plan(self) -> Plan:
        data_dir, models = (Path(folder) if folder else None for folder in (self.data_dir, self.models))
        return Plan(self.quick, None, data_dir, models, self.threads)


def measure(corpus: str, system: str, seed: int, plan: Plan) -> dict[str, Any]:
    """Measure all numbers of topics; varitext needs only one fit for them."""
    data_dir, models = (str(folder) if folder else None for folder in (plan.data_dir, plan.models))
    threads = plan.threads or torch.get_num_threads()
    task = Task(corpus, system, seed, plan.quick, data_dir, models, threads)
    package = "bertopic" if system in BERTOPIC else None
    return in_child("lab.experiments.short_texts:measured", asdict(task), threads, package)


def measured(**settings: Any) -> dict[str, Any]:
    task = Task(**settings)
    given = short_texts(task.corpus, task.plan)
    with running_on(task.threads):
        find = finder(task, given)
        by_number = {str(number): _measures(find(number), given) for number in NUMBERS}
    return {"by_number": by_number, "n_documents": len(given.texts), "sha256": given.sha256}


def _measures(found: Found, given: ShortTexts) -> dict[str, Any]:
    values = {
        "npmi": coherence_record(found["topics"], given.texts, "npmi", window="document").coherence,
        "unique_words": diversity_record(found["topics"]).unique_words,
        **agreement_with_labels(found["groups"], given.classes),
        **{name: found[name] for name in ("topics", "perplexity", "outliers") if name in found},
    }
    return short(values)


def finder(task: Task, given: ShortTexts) -> Callable[[int], Found]:
    """A function from a number of topics to their words and the topic of every text."""
    if task.system == "lda":
        return partial(_by_lda, task, given.texts)
    if task.system == "nvdm_dcm":
        return _by_regions(task, given.texts, None)
    vectors = sentence_vectors(task.corpus, given.texts, task.plan)
    if task.system == "nvdm_vectors":
        return _by_regions(task, given.texts, vectors)
    return partial(_by_kmeans if task.system == "kmeans" else _by_bertopic, task, given.texts, vectors)


def _by_lda(task: Task, texts: list[str], number: int) -> Found:
    model = DocumentModel("lda", number, seed=task.seed, threads=task.threads, **SAME_TEXT_AS_PEERS).fit(texts)
    words = [dimension.words for dimension in model.latent_dimensions(WORDS)]
    return {"topics": words, "groups": model.transform(texts).argmax(1).tolist()}


def _by_regions(task: Task, texts: list[str], vectors: np.ndarray | None) -> Callable[[int], Found]:
    epochs = QUICK_EPOCHS if task.quick else None
    model = DocumentModel(
        epochs=epochs, n_topics=NUMBERS[0], seed=task.seed, threads=task.threads, **SAME_TEXT_AS_PEERS
    ).fit(texts, vectors=vectors)

    def find(number: int) -> Found:
        model.refit_topics(texts, number, vectors=vectors)
        groups = model.topic_memberships(texts, vectors).argmax(1).tolist()
        words = [topic.words for topic in model.topics(WORDS)]
        return {"topics": words, "groups": groups, "perplexity": model.fitted_.dev_perplexity}

    return find


def _by_kmeans(task: Task, texts: list[str], vectors: np.ndarray, number: int) -> Found:
    groups = KMeans(number, n_init=1, random_state=task.seed).fit_predict(vectors)
    counted = count_texts(texts)
    having, sizes = documents_having(counted.counts, groups, number), np.bincount(groups, minlength=number)
    counts = WordCounts(counted.vocabulary.words, having, sizes, having.sum(0), len(texts))
    words = [[counts.terms[column] for column in row] for row in counts.best(WORDS, DEFAULT_WORDING)]
    return {"topics": words, "groups": groups.tolist()}


def _by_bertopic(task: Task, texts: list[str], vectors: np.ndarray, number: int) -> Found:
    from lab.experiments.bertopic_pipeline import new_pipeline, topics_of

    pipeline = new_pipeline(task.system, number, task.seed, count_texts(texts).vocabulary.words)
    return topics_of(pipeline, texts, vectors, number)._asdict()


def table(records: list[Record]) -> str:
    """Means over seeds."""
    head = ["", "", *(f"{name}, {number} topics" for number in NUMBERS for name in MEASURES.values()), "seeds"]
    rows = []
    for corpus in (DEBIAN, SUBJECTS):
        for system, title in SYSTEMS.items():
            if found := results(records, corpus=corpus, system=system):
                by_number = [[one["by_number"][str(number)] for one in found] for number in NUMBERS]
                values = [mean(each, name, ".3f") for each in by_number for name in MEASURES]
                rows.append([corpus, title, *values, str(len(found))])
    return markdown_table(head, rows)


EXPERIMENT = Experiment("short-texts", "topics of short texts: words, sentence vectors, and both", runs, table)
