"""The topics that one system finds in a corpus: words, the topic of every document, and the cost.

`topics.py` runs it in a process of its own.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.memory import watched
from varitext.corpora.documents import Documents
from varitext.documents.model import DocumentModel
from varitext.files import atomic_file
from varitext.reproduce.document_fits import QUICK_EPOCHS, Setting, fitted_model, load_part
from varitext.reproduce.engine import Plan
from varitext.runtime.devices import running_on
from varitext.text import count_texts

WORDS = 10
MODELS = {"regions": "nvdm", "regions_dcm": "nvdm_dcm", "axes": "nvdm"}
BERTOPIC = ("bertopic", "bertopic_kmeans")
WITH_VECTORS = "regions_vectors"
SAME_TEXT_AS_PEERS = {"keep_boilerplate": True, "keep_duplicates": True}
Found = dict[str, Any]  # topics: the words of each; groups: the topic of every document, if they have one


@dataclass(frozen=True)
class Task:
    corpus: str
    system: str
    topics: int
    seed: int
    quick: bool = False
    data_dir: str | None = None
    models: str | None = None
    threads: int | None = None

    @property
    def plan(self) -> Plan:
        data_dir, models = (Path(folder) if folder else None for folder in (self.data_dir, self.models))
        return Plan(self.quick, None, data_dir, models, self.threads)

    @property
    def setting(self) -> Setting:
        return Setting("lda", self.topics) if self.system == "lda" else Setting(MODELS[self.system])

    @property
    def kept(self) -> Path | None:
        """What an earlier run may have stored: the fitted model or the sentence vectors."""
        if self.system in (*MODELS, "lda"):
            return self.plan.model_folder(self.corpus, *self.setting, self.seed)
        ending = "-quick" if self.quick else ""
        return Path(self.models, f"{self.corpus}-minilm{ending}.npy") if self.models else None


def find_topics_of(**settings: Any) -> Found:
    """Find topics and measure the cost, unless part of the work was reused from an earlier run."""
    task = Task(**settings)
    train = load_part(task.corpus, "train", task.plan)
    from_the_start = task.kept is None or not task.kept.exists()
    system = {WITH_VECTORS: _by_words_and_vectors, **dict.fromkeys(BERTOPIC, _by_bertopic)}.get(
        task.system, _by_varitext
    )
    with running_on(task.threads), watched() as peak:
        before = sum(os.times()[:4])  # of this process and of those it started and waited for
        found = system(task, train)
        seconds = sum(os.times()[:4]) - before
    return found | ({"processor_seconds": seconds, "peak_memory_mb": peak.above} if from_the_start else {})


def _by_varitext(task: Task, train: Documents) -> Found:
    model = fitted_model(task.corpus, task.setting, task.seed, task.plan)
    if task.system in ("lda", "axes"):
        words = [topic.words for topic in model.latent_dimensions(WORDS)]
        return {"topics": words, "groups": model.transform(train).argmax(1).tolist() if task.system == "lda" else None}
    model.refit_topics(train, task.topics)
    words = [topic.words for topic in model.topics(WORDS)]
    return {"topics": words, "groups": model.topic_memberships(train).argmax(1).tolist()}


def _by_words_and_vectors(task: Task, train: Documents) -> Found:
    vectors = sentence_vectors(task, list(train.texts or ()))
    epochs = QUICK_EPOCHS if task.quick else None
    model = DocumentModel(
        epochs=epochs, n_topics=task.topics, seed=task.seed, threads=task.threads, **SAME_TEXT_AS_PEERS
    ).fit(train, vectors=vectors)
    words = [topic.words for topic in model.topics(WORDS)]
    groups = model.topic_memberships(train, vectors).argmax(1).tolist()
    return {"topics": words, "groups": groups, "dev_perplexity": model.fitted_.dev_perplexity}


def _by_bertopic(task: Task, train: Documents) -> Found:
    from lab.experiments.bertopic_pipeline import new_pipeline, topics_of

    texts = list(train.texts or ())
    pipeline = new_pipeline(task.system, task.topics, task.seed, count_texts(texts).vocabulary.words)
    found = topics_of(pipeline, texts, sentence_vectors(task, texts), task.topics)
    return {"topics": found.topics, "groups": found.groups, "outliers": found.outliers}


def sentence_vectors(task: Task, texts: list[str]) -> np.ndarray:
    """By all-MiniLM-L6-v2; kept for other runs."""
    from varitext.models.answers.pretrained import pretrained

    if task.kept is not None and task.kept.exists():
        return np.asarray(np.load(task.kept))
    vectors = pretrained().sentence_vectors([text.split() for text in texts])
    if task.kept is not None:
        with atomic_file(task.kept) as temporary:
            np.save(temporary, vectors)
    return vectors
