"""Topics of raw 20 Newsgroups by the protocol of turftopic's author: ours, LDA, BERTopic, KeyNMF, a Gaussian mixture.

The words of every system are those of `CountVectorizer(min_df=10, stop_words="english")`, turftopic's default. The
coherence of ten words per topic is gensim's c_npmi over the training corpus in these tokens; diversity is the share of
unique words.
Sentence vectors are all-MiniLM-L6-v2 by varitext's encoder. Every run finds its topics in a process of its own.

KeyNMF and the mixture need the package `turftopic`, BERTopic the package `bertopic` (`make peers`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer

from lab.child import in_child, is_available
from lab.experiments.topic_systems import BERTOPIC, WORDS, Task, sentence_vectors
from varitext.documents.model import DocumentModel
from varitext.evaluation import coherence_record, diversity_record
from varitext.reproduce.document_fits import ARTICLES, QUICK_EPOCHS, is_here, load_part, short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results
from varitext.runtime.devices import running_on

TOPICS, SEEDS, MIN_DOCUMENTS = 50, 3, 10
TURFTOPIC = ("keynmf", "gmm")
SYSTEMS = {
    "regions_dcm": "NVDM-DCM (the default), topics",
    "lda": "LDA (tomotopy)",
    "bertopic": "BERTopic",
    "bertopic_kmeans": "BERTopic, k-means",
    "keynmf": "KeyNMF (turftopic)",
    "gmm": "Gaussian mixture (turftopic)",
}


def runs(plan: Plan) -> Iterator[Run]:
    for system in SYSTEMS:
        package = package_of(system)
        missing = f"{package} is not available: run `make peers`" if package and not is_available(package) else None
        for seed in plan.seeds_or(SEEDS):
            settings = {"system": system, "topics": TOPICS, "seed": seed}
            here = missing if is_here(ARTICLES, plan) else "no raw articles"
            yield Run(settings, partial(measure, system, seed, plan), here)


def package_of(system: str) -> str | None:
    return "turftopic" if system in TURFTOPIC else "bertopic" if system in BERTOPIC else None


def measure(system: str, seed: int, plan: Plan) -> dict[str, Any]:
    data_dir, models = (str(folder) if folder else None for folder in (plan.data_dir, plan.models))
    task = Task(ARTICLES, system, TOPICS, seed, plan.quick, data_dir, models, plan.threads)
    threads = plan.threads or torch.get_num_threads()
    topics = in_child("lab.experiments.turftopic_protocol:find_topics", asdict(task), threads, package_of(system))
    analyse = new_vectorizer().build_analyzer()
    reference = [analyse(text) for text in load_part(ARTICLES, "train", plan).texts or ()]
    found = {"topics": topics["topics"], "npmi": coherence_record(topics["topics"], reference, "npmi").coherence}
    return short(found | {"diversity": diversity_record(topics["topics"]).unique_words})


def new_vectorizer() -> CountVectorizer:
    return CountVectorizer(min_df=MIN_DOCUMENTS, stop_words="english")


def find_topics(**settings: Any) -> dict[str, Any]:
    """The words of each topic; run in a process of its own."""
    task = Task(**settings)
    texts = list(load_part(task.corpus, "train", task.plan).texts or ())
    with running_on(task.threads):
        if task.system in TURFTOPIC:
            return {"topics": _by_turftopic(task, texts)}
        if task.system in BERTOPIC:
            return {"topics": _by_bertopic(task, texts)}
        return {"topics": _by_varitext(task, texts)}


def _by_varitext(task: Task, texts: Sequence[str]) -> list[Sequence[str]]:
    vectorizer = new_vectorizer()
    counts = vectorizer.fit_transform(texts)
    kind, size = ("lda", task.topics) if task.system == "lda" else (None, 50)
    epochs = QUICK_EPOCHS if task.quick else None
    model = DocumentModel(kind, size, epochs=epochs, threads=task.threads, seed=task.seed, n_topics=task.topics)
    model.fit(counts.astype(np.float32), vocabulary=vectorizer.get_feature_names_out())
    found = model.latent_dimensions(WORDS) if task.system == "lda" else model.topics(WORDS)
    return [topic.words for topic in found]


def _by_bertopic(task: Task, texts: list[str]) -> list[list[str]]:
    from lab.experiments.bertopic_pipeline import new_pipeline, topics_of

    words = new_vectorizer().fit(texts).get_feature_names_out()
    pipeline = new_pipeline(task.system, task.topics, task.seed, words)
    return topics_of(pipeline, texts, sentence_vectors(task, texts), task.topics).topics


def _by_turftopic(task: Task, texts: list[str]) -> list[list[str]]:
    import turftopic

    kind = turftopic.KeyNMF if task.system == "keynmf" else turftopic.GMM
    model = kind(task.topics, encoder=Encoder(), vectorizer=new_vectorizer(), random_state=task.seed)
    model.fit(texts, embeddings=sentence_vectors(task, texts))
    return [[str(word) for word, _ in words] for _, words in model.get_topics(WORDS)]


class Encoder:
    """Sentence vectors by varitext's encoder, for turftopic to call."""

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        from varitext.models.answers.pretrained import pretrained

        return pretrained().sentence_vectors([sentence.split() for sentence in sentences])


def table(records: list[Record]) -> str:
    """Means over seeds."""
    rows = []
    for system, title in SYSTEMS.items():
        if found := results(records, system=system):
            rows.append([title, mean(found, "npmi", ".3f"), mean(found, "diversity", ".3f"), str(len(found))])
    return markdown_table(["", "NPMI", "diversity", "seeds"], rows)


EXPERIMENT = Experiment("turftopic-protocol", "topics by the protocol of turftopic's author", runs, table)
