"""Speed of NASM on WikiQA: training beside a plain PyTorch NASM, ranking 1,000 candidates, size of the model folder.

The plain NASM has the same sizes and batches of as many pairs. Epochs take turns, each in a process of its own; pairs
that an epoch leaves out are not counted.
"""

import multiprocessing
import os
import statistics
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from lab.speed.plain_nasm import PlainNASM
from lab.speed.timing import median_seconds, seconds_of
from varitext.answers.fitting import new_trainer, training_threads
from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerSettings
from varitext.answers.training_data import learn_from
from varitext.batches.pairs import FIRST_WORD, PairBatches, padded
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.vocabulary import learn_words

THREADS = 2
CANDIDATES = 1000


class PlainFit:
    """Adam on shuffled pairs, each with its own copy of the question."""

    def __init__(self, train: QuestionAnswers, settings: AnswerSettings, seed: int = 0):
        torch.manual_seed(seed)
        words = learn_words(train, settings.vectors, settings.embedding_dim, settings.seed, settings.unseen_words)
        vectors = torch.empty(FIRST_WORD + len(words.vocabulary), words.vectors.shape[1])
        vectors.uniform_(-0.25, 0.25)[FIRST_WORD:] = torch.from_numpy(words.vectors)
        vectors[0] = 0
        self.vocabulary, self.batch_size = words.vocabulary, settings.batch_size
        self.model = PlainNASM(vectors)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3)
        self.questions, self.answers, self.labels = self.pairs(train)

    def pairs(self, corpus: QuestionAnswers) -> tuple[list[np.ndarray], list[np.ndarray], torch.Tensor]:
        read = PairBatches(corpus, self.vocabulary)
        questions = [read.questions[place] for place in corpus.groups]
        answers = [answer for answers in read.answers for answer in answers]
        return questions, answers, torch.from_numpy(corpus.labels.astype(np.float32))

    def epoch(self) -> None:
        self.model.train()
        for rows in torch.randperm(len(self.labels)).split(self.batch_size):
            questions, answers = (padded([many[i] for i in rows]).tokens for many in (self.questions, self.answers))
            loss = self.model.loss(questions, answers, self.labels[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def map(self, corpus: QuestionAnswers) -> float:
        self.model.eval()
        questions, answers, _ = self.pairs(corpus)
        parts = [slice(start, start + self.batch_size) for start in range(0, len(answers), self.batch_size)]
        scores = [self.model.predict(padded(questions[one]).tokens, padded(answers[one]).tokens) for one in parts]
        return ranking_record(torch.cat(scores).numpy(), corpus.labels, corpus.groups).map


def plain_process(turns: Connection, train: QuestionAnswers, dev: QuestionAnswers, settings: AnswerSettings) -> None:
    """The plain NASM in a process of its own: an epoch and a dev MAP whenever it is its turn."""
    torch.set_num_threads(THREADS)
    plain = PlainFit(train, settings)
    while turns.recv():
        turns.send((seconds_of(plain.epoch), plain.map(dev)))


def train_side_by_side(train: QuestionAnswers, dev: QuestionAnswers, epochs: int | None) -> dict[str, float]:
    """Seconds of an epoch, ours and the plain one's, taking turns; the best dev MAP of either."""
    settings = AnswerSettings("nasm", threads=THREADS, epochs=epochs)
    here, there = multiprocessing.Pipe()
    # it updates the vectors of all its words: with unseen ones it would be slower and the comparison unfair
    given = (there, train, dev, AnswerSettings("nasm", epochs=epochs, unseen_words=0))
    plain = multiprocessing.get_context("spawn").Process(target=plain_process, args=given, daemon=True)
    plain.start()
    data = learn_from(settings, train, dev)
    trainer = new_trainer(settings, data)
    ours, theirs = [], []  # seconds and MAP of every epoch
    for epoch in range(data.epochs):
        trainer.model.train()
        with training_threads(settings):
            seconds = seconds_of(lambda epoch=epoch: [trainer._step(batch) for batch in trainer.task.batches(epoch)])
            ours.append((seconds, trainer._score().metrics["dev_map"]))
        here.send(True)
        theirs.append(here.recv())
    here.send(False)
    plain.join()
    read = int(trainer.task.train_batches.sizes_in_training.sum())
    pass_seconds, plain_pass_seconds = (statistics.median(one[0] for one in both[1:]) for both in (ours, theirs))
    rate, plain_rate = read / pass_seconds, train.n_pairs / plain_pass_seconds
    return {
        "pass_seconds": pass_seconds,
        "plain_pass_seconds": plain_pass_seconds,
        "pass_speed_up": plain_pass_seconds / pass_seconds,
        "pairs_per_second": rate,
        "plain_pairs_per_second": plain_rate,
        "training_speed_up": rate / plain_rate,
        "batch_size": settings.batch_size,
        "epochs": data.epochs,
        "dev_map": max(one[1] for one in ours),
        "plain_dev_map": max(one[1] for one in theirs),
    }


def rank_side_by_side(ranker: AnswerRanker, corpus: QuestionAnswers, repeats: int = 3) -> dict[str, float]:
    """Ranking 1,000 candidates at once, and each as a question of its own with one candidate."""
    texts = [one.text for question in corpus.questions for one in question.candidates][:CANDIDATES]
    question = corpus.questions[0].text
    few = texts[:: max(1, len(texts) // 50)]
    at_once, some = median_seconds(
        lambda: ranker.rank(question, texts), lambda: [ranker.rank(question, [text]) for text in few], repeats=repeats
    )
    one_by_one = some * len(texts) / len(few)
    return {
        "candidates": len(texts),
        "seconds_at_once": at_once,
        "seconds_one_by_one": one_by_one,
        "ranking_speed_up": one_by_one / at_once,
    }


def folder_size(ranker: AnswerRanker) -> dict[str, float]:
    """MB of the model folder, with its word vectors and without."""
    with TemporaryDirectory() as place:
        ranker.save(Path(place) / "model")
        whole = sum(file.stat().st_size for file in (Path(place) / "model").iterdir())
    vectors = ranker.fitted_.network.word_vectors
    in_vectors = 2 * vectors.fixed.numel() + 4 * vectors.weight.numel()
    return {"folder_mb": whole / 1e6, "folder_without_vectors_mb": (whole - in_vectors) / 1e6}


def measure(quick: bool) -> dict[str, float]:
    torch.set_num_threads(THREADS)
    train, dev = (subset(load_questions("wikiqa", part), "answerable") for part in ("train", "dev"))
    if quick:
        train = QuestionAnswers(train.name, train.part, train.files, train.questions[:60])
    found = {"threads": THREADS, "cores": os.cpu_count()}
    found |= train_side_by_side(train, dev, epochs=2 if quick else None)
    ranker = AnswerRanker("nasm", threads=THREADS, epochs=1 if quick else None)
    found |= {"fit_seconds": seconds_of(lambda: ranker.fit(train, dev))} | folder_size(ranker)
    return found | rank_side_by_side(ranker, load_questions("wikiqa", "test"))
