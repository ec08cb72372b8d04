"""Topics as regions of NVDM's latent space beside its axes and beside LDA: coherence, diversity, agreement over seeds.

Not a table of the paper. Ten words a topic; the raw training articles say which words belong together. Documents are
those that the models were fitted on, labels the newsgroups: the counts of the paper, and the raw articles over 10,000
words, if they are here. All numbers of topics are given, not chosen.
"""

from collections.abc import Iterator
from functools import partial
from statistics import mean
from typing import Any

import numpy as np

from varitext.documents.model import DocumentModel
from varitext.evaluation import coherence_record, diversity_record, topic_stability_record
from varitext.evaluation.clustering import clustering_record
from varitext.experiments.document_fits import (
    ARTICLES,
    NEWSGROUPS,
    Setting,
    coherence_reference,
    fitted_model,
    hashes,
    is_here,
    load_part,
    short,
)
from varitext.experiments.runs import Experiment, Plan, Record, Run, markdown_table
from varitext.runtime.threads import running_on

WORDS = 10
SEEDS = 3
SYSTEMS = {"regions": "NVDM, regions", "axes": "NVDM, latent dimensions", "lda": "LDA (tomotopy)"}
MEASURES = {"npmi": "NPMI", "c_v": "C_V", "unique_words": "unique words", "purity": "purity", "nmi": "NMI"}


def runs(plan: Plan) -> Iterator[Run]:
    kinds = [(NEWSGROUPS, system, 50) for system in SYSTEMS]
    if is_here(ARTICLES, plan):
        kinds += [(ARTICLES, system, number) for number in (20, 50) for system in ("regions", "lda")]
    for corpus, system, number in kinds:
        for seed in plan.seeds_or(SEEDS):
            settings = {"corpus": corpus, "system": system, "topics": number, "seed": seed}
            yield Run(settings, partial(measure, corpus, system, number, seed, plan))


def measure(corpus: str, system: str, number: int, seed: int, plan: Plan) -> dict[str, Any]:
    train = load_part(corpus, "train", plan)
    setting = Setting("lda", number) if system == "lda" else Setting("nvdm")
    model = fitted_model(corpus, setting, seed, plan)
    with running_on(plan.threads):
        topics, groups = _topics(model, system, number, train)
        found = {"topics": topics} | _coherence(topics, plan) | {"unique_words": diversity_record(topics).unique_words}
    if groups is not None and train.labels is not None:
        found |= clustering_record(groups, train.labels).as_dict()
    return short(found) | hashes(corpus, plan)


def _topics(model: DocumentModel, system: str, number: int, train: Any) -> tuple[list[list[str]], np.ndarray | None]:
    """Words, and the topic of every document; an axis has two ends, and no documents."""
    if system == "regions":
        model.find_topics(train, number)
        return [list(topic.words) for topic in model.topics(WORDS)], model.topic_memberships(train).argmax(1)
    words = [list(topic.words) for topic in model.latent_dimensions(WORDS)]
    return words, model.transform(train).argmax(1) if system == "lda" else None


def _coherence(topics: list[list[str]], plan: Plan) -> dict[str, Any]:
    reference = coherence_reference(plan)
    windows = "document" if reference.texts is None else None  # counts have no order of words
    c_v = coherence_record(topics, reference, "c_v") if reference.texts is not None else None
    return {
        "npmi": coherence_record(topics, reference, "npmi", window=windows).coherence,
        "c_v": c_v and c_v.coherence,
        "reference": reference.name,
        "reference_sha256": reference.sha256,
    }


def table(records: list[Record]) -> str:
    """Means over seeds; alike is the rank-biased overlap of matched topics, the mean over pairs of seeds."""
    head = ["corpus", "", "topics", *MEASURES.values(), "alike over seeds", "seeds"]
    kinds = sorted(
        {_kind(record) for record in records}, key=lambda kind: (kind[0], kind[2], [*SYSTEMS].index(kind[1]))
    )
    return markdown_table(head, [_row(kind, [one for one in records if _kind(one) == kind]) for kind in kinds])


def _kind(record: Record) -> tuple[str, str, int]:
    settings = record["settings"]
    return settings["corpus"], settings["system"], settings["topics"]


def _row(kind: tuple[str, str, int], records: list[Record]) -> list[str]:
    found = [record["result"] for record in records]
    values = [[one[name] for one in found if one.get(name) is not None] for name in MEASURES]
    alike = f"{topic_stability_record([one['topics'] for one in found]).rbo:.3f}" if len(found) > 1 else ""
    return [
        kind[0],
        SYSTEMS[kind[1]],
        str(kind[2]),
        *(f"{mean(several):.3f}" if several else "" for several in values),
        alike,
        str(len(found)),
    ]


EXPERIMENT = Experiment("topics", "topics as regions beside latent dimensions and LDA", runs, table)
