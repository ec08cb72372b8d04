"""Batches of questions with their candidate answers, as padded sequences of word numbers.

A batch holds whole questions with all their candidates, so that each question is read once however many answers it
has. Word numbers: 0 is padding, 1 any word that the vocabulary does not have, and the vocabulary starts at 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from varitext.batches import TokenBatch
from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError
from varitext.text import Vocabulary

PADDING = 0
UNKNOWN = 1
FIRST_WORD = 2


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Q questions and their P candidates."""

    questions: TokenBatch  # [Q, T]
    answers: TokenBatch  # [P, T]
    question_of: Tensor  # [P] which question each answer belongs to
    labels: Tensor  # [P] 1 for a right answer, 0 for a wrong one
    features: Tensor | None = None  # [P, F] columns of `overlap.py`, for networks that ask for them

    def __len__(self) -> int:
        return len(self.answers)

    def to(self, device: torch.device | str) -> "PairBatch":
        questions = TokenBatch(self.questions.tokens.to(device), self.questions.mask.to(device))
        answers = TokenBatch(self.answers.tokens.to(device), self.answers.mask.to(device))
        features = None if self.features is None else self.features.to(device)
        return PairBatch(questions, answers, self.question_of.to(device), self.labels.to(device), features)


class PairBatches:
    """Questions as batches of about `batch_size` pairs each: shuffled for training, in order for evaluation."""

    def __init__(
        self,
        question_answers: QuestionAnswers,
        vocabulary: Vocabulary,
        batch_size: int = 128,
        device: torch.device | str = "cpu",
        lowercase: bool = True,
        features: np.ndarray | None = None,  # [pairs, F]
    ):
        if batch_size < 1:
            raise InputError(f"batch_size must be above zero, not {batch_size}")
        if not question_answers.questions:
            raise InputError(f"{question_answers.name} ({question_answers.part}): there are no questions")
        questions = question_answers.questions
        self.device = device
        self.questions = [word_numbers(question.words, vocabulary, lowercase) for question in questions]
        self.answers = [
            [word_numbers(candidate.words, vocabulary, lowercase) for candidate in question.candidates]
            for question in questions
        ]
        self.labels = [np.array([one.label for one in question.candidates], np.float32) for question in questions]
        self.sizes = np.array([len(answers) for answers in self.answers])
        self.features = None  # of each question
        if features is not None:
            self.features = np.split(np.ascontiguousarray(features, np.float32), np.cumsum(self.sizes)[:-1])
        self.number_of_batches = min(len(questions), max(1, round(int(self.sizes.sum()) / batch_size)))

    def __len__(self) -> int:
        """The number of batches in a pass: the same in every pass, as training counts on it."""
        return self.number_of_batches

    def shuffled(self, seed: Sequence[int]) -> Iterator[PairBatch]:
        """One pass in an order that depends on `seed` alone, so that a resumed run sees the same batches."""
        order = np.random.default_rng(seed).permutation(len(self.questions))
        for part in np.split(order, _cuts(self.sizes[order], self.number_of_batches)):
            yield self.batch(np.sort(part))

    def in_order(self) -> Iterator[PairBatch]:
        """The pairs in the order of the corpus: results, one after another, belong to its `labels` and `groups`."""
        for part in np.split(np.arange(len(self.questions)), _cuts(self.sizes, self.number_of_batches)):
            yield self.batch(part)

    def batch(self, chosen: Sequence[int] | np.ndarray) -> PairBatch:
        """The questions at these places, with all their candidates."""
        batch = PairBatch(
            questions=padded([self.questions[place] for place in chosen]),
            answers=padded([answer for place in chosen for answer in self.answers[place]]),
            question_of=torch.from_numpy(np.repeat(np.arange(len(chosen)), self.sizes[chosen])),
            labels=torch.from_numpy(np.concatenate([self.labels[place] for place in chosen])),
            features=self.features and torch.from_numpy(np.concatenate([self.features[place] for place in chosen])),
        )
        return batch if str(self.device) == "cpu" else batch.to(self.device)


def word_numbers(words: Sequence[str], vocabulary: Vocabulary, lowercase: bool = True) -> np.ndarray:
    """Each word's number; all words that the vocabulary does not have share one."""
    index, missing = vocabulary.index, UNKNOWN - FIRST_WORD
    columns = [index.get(word.lower() if lowercase else word, missing) for word in words]
    return np.array(columns, np.int64) + FIRST_WORD  # [T]


def padded(sentences: Sequence[np.ndarray]) -> TokenBatch:
    """All sentences side by side, each filled up with padding; at least one place wide."""
    lengths = np.array([len(sentence) for sentence in sentences])
    mask = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]  # [B, T]
    tokens = np.full(mask.shape, PADDING, np.int64)
    if sentences:
        tokens[mask] = np.concatenate(sentences)
    return TokenBatch(torch.from_numpy(tokens), torch.from_numpy(mask))


def _cuts(sizes: np.ndarray, parts: int) -> np.ndarray:
    """Where to cut questions of these sizes into parts with about as many pairs each, none of them empty."""
    ends = np.cumsum(sizes)
    number = np.arange(1, parts)
    cuts = np.searchsorted(ends, ends[-1] * number / parts, side="left") + 1
    cuts = np.maximum.accumulate(cuts - number) + number  # strictly rising, were it for one huge question ...
    return np.minimum(cuts, len(sizes) - parts + number)  # ... and enough left for the parts to come
