"""Damaged folders of document models, rankers, shards and checkpoints.

Each must be refused in one line, an `InputError`, or behave as if undamaged.
"""

import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.faults import corpora
from lab.faults.damage import damage
from lab.faults.tally import Fault, Tally
from varitext import AnswerRanker, DocumentModel, load_questions
from varitext.corpora import load_documents
from varitext.corpora.prepare import prepare
from varitext.corpora.sharded_counts import ShardedCounts
from varitext.corpora.shards import ShardSizes
from varitext.errors import InputError

SENTENCES = ["the king was old", "near a lake with care", "in that year of the rocket"]


class Subject(NamedTuple):
    """A folder to damage, another of its kind to take files from, and a query."""

    folder: Path
    other: Path
    ask: Callable[[Path], Any]


def measure(tally: Tally, times: int, folder: Path) -> None:
    makers = {"documents": documents, "rankers": rankers, "shards": shards, "checkpoints": checkpoints}
    for part, make in makers.items():
        (place := folder / part).mkdir()
        subject = make(place)
        expected = _plain(subject.ask(subject.folder))
        tally.run(part, times, partial(damaged, subject, expected))


def damaged(subject: Subject, expected: object, number: int) -> str:
    copy = subject.folder.with_name("damaged")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(subject.folder, copy)
    how = damage(copy, subject.other, np.random.default_rng(number))
    try:
        with warnings.catch_warnings(action="ignore"):
            found = _plain(subject.ask(copy))
    except InputError as error:
        if "\n" in str(error).strip():
            raise Fault(f"{how}: more than a line: {error}") from None
        return "refused in one line"
    except Exception as error:
        raise Fault(f"{how}: {type(error).__name__}: {error}") from None
    if found != expected:
        raise Fault(f"{how}: accepted, with different results")
    return "as if undamaged"


def _plain(value: Any) -> object:
    """Comparable values: arrays as bytes."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


# The subjects


def documents(place: Path) -> Subject:
    for name, seed in (("model", 0), ("other", 1)):
        fitted_documents(seed).save(place / name)
    return Subject(place / "model", place / "other", ask_documents)


def fitted_documents(seed: int, model: str | None = None, **options: Any) -> DocumentModel:
    return DocumentModel(model, 2, epochs=2, threads=1, seed=seed).fit(corpora.texts(60), **options)


def ask_documents(folder: Path) -> Any:
    model = DocumentModel.load(folder)
    posterior, topics = model.posterior(SENTENCES), [topic.words for topic in model.topics(4)]
    similar = [word for word, _ in model.similar_words("rocket", 3)]
    return [posterior.mean, posterior.std, topics, similar, model.perplexity(corpora.texts(4), samples=2)]


def rankers(place: Path) -> Subject:
    questions = load_questions(corpora.write_questions(place / "questions.jsonl", 24))
    for name, seed in (("model", 0), ("other", 1)):
        options = {"latent_dim": 2, "embedding_dim": 4, "epochs": 1, "vectors": "random", "threads": 1}
        AnswerRanker("nasm", counts=True, seed=seed, **options).fit(questions, questions).save(place / name)
    return Subject(place / "model", place / "other", ask_ranker)


def ask_ranker(folder: Path) -> Any:
    ranking = AnswerRanker.load(folder).rank("who was the old king", SENTENCES)
    return [(each.text, each.probability, each.probability_best) for each in ranking.candidates]


def shards(place: Path) -> Subject:
    for name, seed in (("shards", 0), ("other", 1)):
        written = corpora.write_documents(place / f"{name}.jsonl", seed)
        prepare([load_documents(written)], place / name, sizes=ShardSizes(documents=60))
    return Subject(place / "shards", place / "other", ask_shards)


def ask_shards(folder: Path) -> Any:
    record = load_documents(folder)
    if not isinstance(record.counts, ShardedCounts):
        raise InputError(f"{folder} is not read as shards")
    rows = record.counts[np.arange(record.counts.shape[0])]
    return [list(record.counts.vocabulary.words), rows.indptr, rows.indices, rows.data]


def checkpoints(place: Path) -> Subject:
    for name, seed in (("run", 0), ("other", 1)):
        (place / name).mkdir()
        fitted_documents(seed, checkpoint=place / name / "checkpoint.safetensors")
    return Subject(place / "run", place / "other", resume)


def resume(folder: Path) -> Any:
    """The result of the checkpoint's run; without a checkpoint the run starts from the beginning."""
    model = fitted_documents(0, checkpoint=folder / "checkpoint.safetensors", resume=True)
    return [tensor.numpy() for tensor in model.fitted_.network.state_dict().values()]
