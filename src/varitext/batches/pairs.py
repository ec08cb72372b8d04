"""Batches of questions with their candidate answers, as padded sequences of word numbers.

A batch holds whole questions with all their candidates, so that each question is encoded once. Word numbers: 0 is
padding, 1 any unknown word, and the vocabulary starts at 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from varitext.batches.tokens import PairPieces, PieceBatch, TokenBatch
from varitext.corpora.question_answers import QuestionAnswers, reading_form
from varitext.errors import InputError
from varitext.text import Vocabulary

PADDING = 0
UNKNOWN = 1
FIRST_WORD = 2


class PairWordFeatures(NamedTuple):
    """Features of every word besides its number, for one candidate of a question."""

    question: np.ndarray  # [Tq, F]
    answer: np.ndarray  # [Ta, F]


class PairInputs(NamedTuple):
    """Inputs of every pair besides word numbers, in the order of the corpus; None if a network has no such input."""

    columns: np.ndarray | None = None  # [pairs, F]
    words: list[PairWordFeatures] | None = None  # of each pair
    question_states: list[np.ndarray] | None = None  # [T, H] of each question's words, by a pretrained encoder
    answer_states: list[np.ndarray] | None = None  # the same for each pair's answer
    pieces: list[PairPieces] | None = None  # of each pair


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Q questions and their P candidates."""

    questions: TokenBatch  # [Q, T]
    answers: TokenBatch  # [P, T]
    question_of: Tensor  # [P] which question each answer belongs to
    labels: Tensor  # [P] 1 for a right answer, 0 for a wrong one
    weights: Tensor  # [P] number of candidates each represents: above 1 if only some were drawn
    gains: Tensor | None = None  # [P] weights of right answers, zero for wrong ones; None: all the same
    features: Tensor | None = None  # [P, F] columns of `overlap.py`, for networks that use them
    question_words: Tensor | None = None  # [n, F] features of the words of each pair's question, one after another
    answer_words: Tensor | None = None  # [m, F] the same for its answer
    question_states: Tensor | None = None  # [n, H] states of the questions' words, one after another
    answer_states: Tensor | None = None  # [m, H] the same for the answers' words
    pieces: PieceBatch | None = None  # [P, T] word pieces of question and answer together

    def __len__(self) -> int:
        return len(self.answers)

    def to(self, device: torch.device | str) -> "PairBatch":
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: value.to(device) for name, value in values.items() if value is not None})


class PairBatches:
    """Questions as batches of about `batch_size` pairs each: shuffled for training, in order for evaluation."""

    def __init__(
        self,
        question_answers: QuestionAnswers,
        vocabulary: Vocabulary,
        batch_size: int = 128,
        device: torch.device | str = "cpu",
        most_wrong: int | None = None,
        inputs: PairInputs | None = None,
    ):
        """A pass of `shuffled` uses at most `most_wrong` wrong answers of each question, drawn again every time."""
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {batch_size}")
        if not question_answers.questions:
            raise InputError(f"{question_answers.name} ({question_answers.part}): no questions")
        questions = question_answers.questions
        self.device = device
        self.questions = [word_numbers(question.words, vocabulary) for question in questions]
        self.answers = [
            [word_numbers(candidate.words, vocabulary) for candidate in question.candidates] for question in questions
        ]
        self.labels = [np.array([one.label for one in question.candidates], np.float32) for question in questions]
        gains = question_answers.gains
        self.gains = None if gains is None else (gains * question_answers.labels).astype(np.float32)  # [pairs]
        self.sizes = np.array([len(answers) for answers in self.answers])
        self.inputs = inputs or PairInputs()
        self.first_pair = np.cumsum(self.sizes) - self.sizes  # of each question
        self.most_wrong = most_wrong
        n_wrong = self.sizes - np.array([round(float(labels.sum())) for labels in self.labels])
        self.sizes_in_training = self.sizes - np.maximum(0, n_wrong - (most_wrong if most_wrong else n_wrong))
        pairs = int(self.sizes_in_training.sum())
        self.number_of_batches = min(len(questions), max(1, round(pairs / batch_size)))

    def __len__(self) -> int:
        """The number of batches in a pass, which is the same in every pass."""
        return self.number_of_batches

    def shuffled(self, seed: Sequence[int]) -> Iterator[PairBatch]:
        """One pass in an order that depends only on `seed`, so that a resumed run sees the same batches."""
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(self.questions))
        for part in np.split(order, _cuts(self.sizes_in_training[order], self.number_of_batches)):
            yield self.batch(np.sort(part), None if self.most_wrong is None else generator)

    def in_order(self) -> Iterator[PairBatch]:
        """The pairs in the order of the corpus, its `labels` and its `groups`."""
        for part in np.split(np.arange(len(self.questions)), _cuts(self.sizes, self.number_of_batches)):
            yield self.batch(part)

    def batch(self, chosen: Sequence[int] | np.ndarray, fewer: np.random.Generator | None = None) -> PairBatch:
        """The questions at these indices, with all their candidates, or with `fewer` of the wrong ones."""
        kept = [self._kept(place, fewer) for place in chosen]
        pairs = list(zip(chosen, kept, strict=True))
        numbers = np.concatenate([self.first_pair[place] + rows for place, rows in pairs])
        batch = PairBatch(
            questions=TokenBatch.from_lists([self.questions[place] for place in chosen]),
            answers=TokenBatch.from_lists([self.answers[place][one] for place, rows in pairs for one in rows]),
            question_of=torch.from_numpy(np.repeat(np.arange(len(chosen)), [len(rows) for rows in kept])),
            labels=torch.from_numpy(np.concatenate([self.labels[place][rows] for place, rows in pairs])),
            weights=torch.from_numpy(np.concatenate([self._weights(place, rows) for place, rows in pairs])),
            gains=None if self.gains is None else torch.from_numpy(self.gains[numbers]),
            pieces=None if self.inputs.pieces is None else PieceBatch.of([self.inputs.pieces[one] for one in numbers]),
            **self._inputs(chosen, numbers),
        )
        return batch if str(self.device) == "cpu" else batch.to(self.device)

    def _kept(self, place: int, fewer: np.random.Generator | None) -> np.ndarray:
        labels = self.labels[place]
        wrong = np.flatnonzero(labels == 0)
        if fewer is None or self.most_wrong is None or len(wrong) <= self.most_wrong:
            return np.arange(len(labels))
        drawn = fewer.choice(wrong, self.most_wrong, replace=False)
        return np.sort(np.concatenate([np.flatnonzero(labels == 1), drawn]))

    def _inputs(self, questions: Sequence[int] | np.ndarray, pairs: np.ndarray) -> dict[str, Tensor]:
        """The inputs of the questions and pairs at these positions of the corpus."""
        columns, words, of_questions, of_answers, _ = self.inputs
        found = {}
        if columns is not None:
            found["features"] = columns[pairs]
        if words is not None:
            found["question_words"] = np.concatenate([words[pair].question for pair in pairs])
            found["answer_words"] = np.concatenate([words[pair].answer for pair in pairs])
        if of_questions is not None and of_answers is not None:
            found["question_states"] = np.concatenate([of_questions[place] for place in questions])
            found["answer_states"] = np.concatenate([of_answers[pair] for pair in pairs])
        return {name: torch.from_numpy(values.astype(np.float32)) for name, values in found.items()}

    def _weights(self, place: int, rows: np.ndarray) -> np.ndarray:
        """Weights by which drawn wrong answers represent the others, so that the expected loss is that of all pairs."""
        labels = self.labels[place]
        drawn = labels[rows] == 0
        each = (labels == 0).sum() / max(1, drawn.sum())
        return np.where(drawn, each, 1).astype(np.float32)


def word_numbers(words: Sequence[str], vocabulary: Vocabulary) -> np.ndarray:
    """The number of each word's `reading_form`; all unknown words share one."""
    index, missing = vocabulary.index, UNKNOWN - FIRST_WORD
    return np.array([index.get(reading_form(word), missing) for word in words], np.int64) + FIRST_WORD  # [T]


def _cuts(sizes: np.ndarray, parts: int) -> np.ndarray:
    """Where to divide questions of these sizes into parts with about the same number of pairs, none of them empty."""
    ends = np.cumsum(sizes)
    number = np.arange(1, parts)
    cuts: np.ndarray = np.searchsorted(ends, ends[-1] * number / parts, side="left") + 1
    cuts = np.maximum.accumulate(cuts - number) + number  # strictly increasing, even with one huge question ...
    cuts = np.minimum(cuts, len(sizes) - parts + number)  # ... and with enough questions left for the other parts
    return cuts
