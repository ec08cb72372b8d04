"""Speed of NASM on WikiQA: an epoch, a fit, ranking 1,000 candidates, and the size of the model folder."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from lab.speed.timing import median_seconds, seconds_of
from varitext.answers.fitting import new_trainer, training_threads
from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerSettings
from varitext.answers.training_data import learn_from
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, subset

THREADS, CANDIDATES = 2, 1000


def measure(quick: bool) -> dict[str, Any]:
    torch.set_num_threads(THREADS)
    train, dev = (subset(load_questions("wikiqa", part), "answerable") for part in ("train", "dev"))
    if quick:
        train = QuestionAnswers(train.name, train.part, train.files, train.questions[:60])
    found = {"threads": THREADS, "cores": os.cpu_count()} | epoch(train, dev, repeats=1 if quick else 5)
    ranker = AnswerRanker("nasm", threads=THREADS, epochs=1 if quick else None)
    found |= {"fit_seconds": seconds_of(lambda: ranker.fit(train, dev))} | folder_size(ranker)
    return found | ranking(ranker, load_questions("wikiqa", "test"), repeats=1 if quick else 3)


def epoch(train: QuestionAnswers, dev: QuestionAnswers, repeats: int) -> dict[str, float]:
    """Median seconds of an epoch, and pairs read per second; pairs that an epoch leaves out are not counted."""
    settings = AnswerSettings("nasm", threads=THREADS)
    trainer = new_trainer(settings, learn_from(settings, train, dev))
    trainer.model.train()
    epochs = iter(range(repeats + 1))

    def one_epoch() -> None:
        with training_threads(settings):
            for batch in trainer.task.batches(next(epochs)):
                trainer._step(batch)

    (seconds,) = median_seconds(one_epoch, repeats=repeats, warm_up=1)
    read = int(trainer.task.train_batches.sizes_in_training.sum())
    return {"pass_seconds": seconds, "pairs_per_second": read / seconds, "batch_size": settings.batch_size}


def ranking(ranker: AnswerRanker, corpus: QuestionAnswers, repeats: int) -> dict[str, float]:
    """1,000 candidates at once, and as questions with one candidate each, extrapolated from 50 of them."""
    texts = [one.text for question in corpus.questions for one in question.candidates][:CANDIDATES]
    question, few = corpus.questions[0].text, texts[:: max(1, len(texts) // 50)]
    at_once, some = median_seconds(
        lambda: ranker.rank(question, texts), lambda: [ranker.rank(question, [text]) for text in few], repeats=repeats
    )
    one_by_one = some * len(texts) / len(few)
    seconds = {"seconds_at_once": at_once, "seconds_one_by_one": one_by_one}
    return {"candidates": len(texts), **seconds, "ranking_speed_up": one_by_one / at_once}


def folder_size(ranker: AnswerRanker) -> dict[str, float]:
    with TemporaryDirectory() as place:
        ranker.save(Path(place) / "model")
        whole = sum(file.stat().st_size for file in (Path(place) / "model").iterdir())
    vectors = ranker.fitted_.network.word_vectors
    in_vectors = 2 * vectors.fixed.numel() + 4 * vectors.weight.numel()
    return {"folder_mb": whole / 1e6, "folder_without_vectors_mb": (whole - in_vectors) / 1e6}
