"""Candidates of a question that say the same: copies, and near-copies that only add a few words.

A candidate is a copy of another if its words, without case, punctuation and articles, are all among the other's words
and in the same order, the other has only a few more words, and none of these is a number or a negation. So changing a
word, or exchanging two, makes a different candidate: the changed word may be the answer.

Each candidate is compared with the longest of a group only, so that a group does not drift from copy to copy, and only
with candidates that have its rarest word, so that long lists are quick.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from varitext.answers.prediction import Prediction, log_odds
from varitext.corpora.question_answers import Question, QuestionAnswers
from varitext.models.answers.features.overlap import is_word

MIN_SHARE = 0.8  # of the words of the longer one that the shorter one must have: `python -m lab copies`
ARTICLES = frozenset({"a", "an", "the"})
MARKS = "'\"`“”‘’.,:;!?()[]{}*_-"  # around a word
_NEGATIONS = "no not n't never none nobody nothing nor neither cannot without except hardly few false denied denies"
_NUMBERS = """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion first second third
    fourth fifth half twice
"""
CHANGING = frozenset((_NEGATIONS + _NUMBERS).split())  # words that change the meaning


def copies_of(question_answers: QuestionAnswers) -> np.ndarray:
    """For each candidate the row of the one that represents its group, [P]; its own row if it has no copy."""
    found, begun = [], 0
    for question in question_answers.questions:
        found.append(begun + _representatives(question))
        begun += len(question.candidates)
    return np.concatenate(found)


def without_copies(question_answers: QuestionAnswers, copy_of: np.ndarray) -> QuestionAnswers:
    """Only the candidates that represent a group. Models read these, so a copy affects no other candidate."""
    kept = iter((copy_of == np.arange(len(copy_of))).tolist())
    return replace(
        question_answers,
        questions=tuple(
            question._replace(candidates=tuple(one for one in question.candidates if next(kept)))
            for question in question_answers.questions
        ),
    )


def highest_of_copies(scores: np.ndarray, copy_of: np.ndarray) -> np.ndarray:
    """The highest score among each candidate and its copies, [P], given a score for each of them."""
    highest = np.full(len(scores), -np.inf)
    np.maximum.at(highest, copy_of, scores)
    return np.asarray(highest[copy_of])


class DistinctCandidates(NamedTuple):
    """One entry for each candidate and all its copies: what the joint model sees."""

    scores: np.ndarray  # [G] log odds
    labels: np.ndarray  # [G] 1 if any of them is right
    question_of: np.ndarray  # [G]
    of_pair: np.ndarray  # [P] the entry of each candidate


def distinct_candidates(prediction: Prediction, question_answers: QuestionAnswers) -> DistinctCandidates:
    """The distinct candidates of these questions, with the log odds predicted for them."""
    rows = np.arange(question_answers.n_pairs) if prediction.copy_of is None else prediction.copy_of
    first, of_pair = np.unique(rows, return_inverse=True)
    labels = (np.bincount(of_pair, question_answers.labels) > 0).astype(np.int8)
    return DistinctCandidates(log_odds(prediction.probability[first]), labels, question_answers.groups[first], of_pair)


def _representatives(question: Question) -> np.ndarray:
    """For each candidate of one question, [n]: the first one with the same words as the longest of its group."""
    said = [_compared_words(candidate.words) for candidate in question.candidates]
    first: dict[tuple[str, ...], int] = {}
    for row, words in enumerate(said):
        first.setdefault(words, row)
    chosen = _longer_copies(list(first))
    return np.array([first[chosen.get(words, words)] if words else row for row, words in enumerate(said)])


def _longer_copies(every: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The near-copies among distinct sequences of words, and the longer one that represents each."""
    frequency = Counter(word for words in every for word in set(words))
    longer_with: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    found = {}
    for words in sorted(every, key=len, reverse=True):
        rarest = min(words, key=frequency.__getitem__, default="")
        copied = next((other for other in longer_with[rarest] if _is_copy(words, other)), None)
        if copied is not None:
            found[words] = copied
        else:
            for word in set(words):
                longer_with[word].append(words)
    return found


def _is_copy(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    if len(short) < MIN_SHARE * len(long):
        return False
    rest = iter(long)
    more: list[str] = []
    for word in short:
        for other in rest:
            if other == word:
                break
            more.append(other)
        else:
            return False
    return not any(map(_changes_the_meaning, (*more, *rest)))


def _compared_words(words: Sequence[str]) -> tuple[str, ...]:
    bare = (word.lower().strip(MARKS) for word in words if is_word(word))
    return tuple(word for word in bare if word not in ARTICLES)


def _changes_the_meaning(word: str) -> bool:
    return word in CHANGING or any(map(str.isdigit, word))
