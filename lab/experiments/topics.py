"""Topics of NVDM beside its latent dimensions, LDA and BERTopic: coherence, diversity, agreement of seeds, cost.

Ten words per topic; co-occurrence is counted in the raw training articles. Corpora are the counts of the paper and, if
available, the raw articles over 10,000 words; labels are the newsgroups. Numbers of topics are given, not chosen. Every
run finds its topics in a process of its own, which gives its processor time and peak memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from lab.child import in_child, is_available
from lab.experiments.topic_systems import BERTOPIC, WITH_VECTORS, Task
from varitext.evaluation import diversity_record, topic_stability_record
from varitext.reproduce.document_fits import ARTICLES, NEWSGROUPS, coherence, hashes, is_here, load_part, short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results
from varitext.runtime.devices import running_on

SEEDS = 3
SYSTEMS = {
    WITH_VECTORS: "NVDM-DCM with sentence vectors, topics",
    "regions_dcm": "NVDM-DCM (the default), topics",
    "regions": "NVDM, topics",
    "axes": "NVDM, latent dimensions",
    "lda": "LDA (tomotopy)",
    "bertopic": "BERTopic",
    "bertopic_kmeans": "BERTopic, k-means",
}
COUNT_SYSTEMS = ("regions_dcm", "regions", "axes", "lda")
ARTICLE_SYSTEMS = (WITH_VECTORS, "regions_dcm", "regions", "lda", *BERTOPIC)
MEASURES = {  # what each is called, and digits
    "npmi": ("NPMI", 3),
    "c_v": ("C_V", 3),
    "unique_words": ("unique words", 3),
    "purity": ("purity", 3),
    "nmi": ("NMI", 3),
    "processor_seconds": ("processor seconds", 0),
    "peak_memory_mb": ("peak memory, MB", 0),
}
NO_BERTOPIC = "BERTopic is not available: run `make peers`, and set VARITEXT_PEERS to the folder that it prints"


def runs(plan: Plan) -> Iterator[Run]:
    kinds = [(NEWSGROUPS, system, 50) for system in COUNT_SYSTEMS]
    if is_here(ARTICLES, plan):
        kinds += [(ARTICLES, system, number) for number in (20, 50) for system in ARTICLE_SYSTEMS]
    for corpus, system, number in kinds:
        missing = NO_BERTOPIC if system in BERTOPIC and not is_available("bertopic") else None
        for seed in plan.seeds_or(SEEDS):
            settings = {"corpus": corpus, "system": system, "topics": number, "seed": seed}
            yield Run(settings, partial(measure, corpus, system, number, seed, plan), missing)


def measure(corpus: str, system: str, number: int, seed: int, plan: Plan) -> dict[str, Any]:
    data_dir, models = (str(folder) if folder else None for folder in (plan.data_dir, plan.models))
    task = Task(corpus, system, number, seed, plan.quick, data_dir, models, plan.threads)
    package, threads = "bertopic" if system in BERTOPIC else None, plan.threads or torch.get_num_threads()
    found = in_child("lab.experiments.topic_systems:find_topics_of", asdict(task), threads, package)
    groups, labels = found.pop("groups"), load_part(corpus, "train", plan).labels
    with running_on(plan.threads):
        found |= coherence(found["topics"], plan)
    found["unique_words"] = diversity_record(found["topics"]).unique_words
    if groups is not None and labels is not None:
        found |= agreement_with_labels(groups, labels)
    return short(found) | hashes(corpus, plan)


def agreement_with_labels(groups: Sequence[int], labels: Sequence[str]) -> dict[str, float]:
    """Purity, the share of documents with the most frequent label of their group, which grows with more groups; and
    NMI, the mutual information of groups and labels over the mean of their entropies."""
    together = contingency_matrix(labels, groups)  # [labels, groups]
    purity, nmi = together.max(0).sum() / together.sum(), normalized_mutual_info_score(labels, groups)
    sizes = {"n_documents": len(labels), "n_groups": together.shape[1], "n_labels": together.shape[0]}
    return {"purity": float(purity), "nmi": float(nmi)} | sizes


def table(records: list[Record]) -> str:
    """Means over seeds; agreement is the rank-biased overlap of matched topics, a mean over pairs of seeds."""
    head = ["corpus", "", "topics", *(name for name, _ in MEASURES.values()), "agreement of seeds", "seeds"]
    kinds = {(one["settings"]["corpus"], one["settings"]["topics"]) for one in records}
    rows = []
    for corpus, topics in sorted(kinds):
        for system, title in SYSTEMS.items():
            if found := results(records, corpus=corpus, system=system, topics=topics):
                values = [mean(found, name, f".{digits}f") for name, (_, digits) in MEASURES.items()]
                topic_words = [one["topics"] for one in found]
                agreement = f"{topic_stability_record(topic_words).rbo:.3f}" if len(found) > 1 else ""
                rows.append([corpus, title, str(topics), *values, agreement, str(len(found))])
    return markdown_table(head, rows)


EXPERIMENT = Experiment("topics", "topics of NVDM beside its latent dimensions, LDA and BERTopic", runs, table)
