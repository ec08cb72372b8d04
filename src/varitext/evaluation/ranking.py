"""MAP, MRR, precision at 1 and nDCG over questions, with tied candidates in expectation over all their orders.

Tied are candidates of one question whose scores `columns.py::merge_ties` makes equal. Let a group of n tied
candidates, r of them right, come after N others, R of them right. Over all n! orders of the group, its place i = 1..n
is right with probability r/n, and then

average precision   E = 1/(right answers) sum_groups sum_i  r/n  [R + 1 + (i-1)(r-1)/(n-1)] / (N + i)
reciprocal rank     E = sum_i  C(n-i, r-1) / C(n, r)  1/(N + i)          in the first group that holds a right answer
precision at 1      E = r/n                                              in the first group
nDCG                E = 1/(ideal) sum_groups sum_i  (mean gain of the group) / log2(N + i + 1)

So the order of rows in a file can neither help nor hurt, and a constant score gets what a random ranking gets.
Without ties these are the plain measures, equal to trec_eval's `map`, `recip_rank` and `ndcg` (a grade is its gain).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from varitext.corpora.question_answers import protocol_named
from varitext.errors import InputError
from varitext.evaluation.columns import binary_labels, merge_ties, numbers, question_index, same_length
from varitext.evaluation.significance import PairedTest, bootstrap_interval, paired_randomisation_test


class QuestionValues(NamedTuple):
    """One value per question, in the order of the sorted ids."""

    question_ids: np.ndarray
    average_precision: np.ndarray
    reciprocal_rank: np.ndarray
    first_right: np.ndarray  # whether the first candidate is right
    n_right: np.ndarray
    n_candidates: np.ndarray


@dataclass(frozen=True)
class RankingRecord:
    """MAP, MRR and precision at 1 under a named protocol: means over questions.

    The values per question are kept for tests of significance.
    """

    map: float
    mrr: float
    precision_at_1: float
    map_interval_95: tuple[float, float]
    mrr_interval_95: tuple[float, float]
    protocol: str
    questions: str
    n_questions: int
    n_pairs: int
    n_questions_left_out: int
    ties: str = "expectation over all orders"
    ndcg: float | None = None  # if the answers have gains: grades or counts
    question_ids: np.ndarray = field(kw_only=True, repr=False, compare=False)
    average_precision: np.ndarray = field(kw_only=True, repr=False, compare=False)  # scaled as the protocol says
    reciprocal_rank: np.ndarray = field(kw_only=True, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: without the values per question."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.compare}


class RankingComparison(NamedTuple):
    """Two models on the same questions: the differences, and whether chance alone explains them."""

    map: PairedTest
    mrr: PairedTest


def ranking_record(
    scores: ArrayLike,
    labels: ArrayLike,
    question_ids: ArrayLike,
    protocol: str = "answerable",
    seed: int = 0,
    gains: ArrayLike | None = None,
) -> RankingRecord:
    """MAP and MRR of scores, higher is better; rows in any order, those of one question need not be neighbours.

    With `gains` also nDCG.
    """
    values = question_values(scores, labels, question_ids)
    rule = protocol_named(protocol)
    counts = rule.counts(values.n_right, values.n_candidates)
    if not counts.any():
        raise InputError(f"none of {len(counts)} questions counts under the protocol {protocol!r} ({rule.questions})")
    precision, reciprocal = rule.scale * values.average_precision[counts], rule.scale * values.reciprocal_rank[counts]
    return RankingRecord(
        map=float(precision.mean()),
        mrr=float(reciprocal.mean()),
        precision_at_1=float(rule.scale * values.first_right[counts].mean()),
        map_interval_95=bootstrap_interval(precision, seed=seed).bounds,
        mrr_interval_95=bootstrap_interval(reciprocal, seed=seed).bounds,
        protocol=protocol,
        questions=rule.questions,
        n_questions=int(counts.sum()),
        n_pairs=int(values.n_candidates[counts].sum()),
        n_questions_left_out=int((~counts).sum()),
        ndcg=None if gains is None else float(rule.scale * ndcg_values(scores, gains, question_ids)[counts].mean()),
        question_ids=values.question_ids[counts],
        average_precision=precision,
        reciprocal_rank=reciprocal,
    )


def compare_rankings(first: RankingRecord, second: RankingRecord, seed: int = 0) -> RankingComparison:
    """Paired randomisation tests, question by question; positive differences are in favour of the first."""
    if first.protocol != second.protocol or not np.array_equal(first.question_ids, second.question_ids):
        raise InputError("two rankings are compared on the same questions under the same protocol")
    return RankingComparison(
        paired_randomisation_test(first.average_precision, second.average_precision, seed=seed),
        paired_randomisation_test(first.reciprocal_rank, second.reciprocal_rank, seed=seed),
    )


def question_values(scores: ArrayLike, labels: ArrayLike, question_ids: ArrayLike) -> QuestionValues:
    """Expected average precision, reciprocal rank and precision at 1 of every question; 0 if no answer is right."""
    scores, labels = numbers(scores, "scores"), binary_labels(labels)
    ids, question = question_index(question_ids)
    same_length(scores=scores, labels=labels, question_ids=question)
    scores = merge_ties(scores, question)
    order = np.lexsort((-scores, question))
    places = _places(scores[order], labels[order], question[order])
    n_right = np.bincount(question, labels).astype(int)
    i, n, r, before, right_before = places
    parts = r / n * (right_before + 1 + (i - 1) * (r - 1) / np.maximum(n - 1, 1)) / (before + i)
    precision = np.bincount(question[order], parts) / np.maximum(n_right, 1)
    reciprocal = np.bincount(question[order], _reciprocal_parts(places))
    first = np.bincount(question[order], np.where((before == 0) & (i == 1), r / n, 0.0))
    return QuestionValues(ids, precision, reciprocal, first, n_right, np.bincount(question))


def ndcg_values(scores: ArrayLike, gains: ArrayLike, question_ids: ArrayLike) -> np.ndarray:
    """Expected normalised discounted cumulative gain of every question, in the order of the sorted ids, [Q]."""
    scores, gains = numbers(scores, "scores"), numbers(gains, "gains")
    _, question = question_index(question_ids)
    same_length(scores=scores, gains=gains, question_ids=question)
    scores = merge_ties(scores, question)

    def discounted(keys: np.ndarray) -> np.ndarray:
        order = np.lexsort((-keys, question))
        places = _places(keys[order], np.zeros(len(order), int), question[order])
        group = np.cumsum(places.within == 1) - 1
        shared = (np.bincount(group, gains[order]) / np.bincount(group))[group]
        return np.bincount(question[order], shared / np.log2(places.before + places.within + 1))  # [Q]

    ideal = discounted(gains)
    return np.where(ideal > 0, discounted(scores) / np.where(ideal > 0, ideal, 1), 0.0)


def counted_rows(labels: ArrayLike, question_ids: ArrayLike, protocol: str) -> np.ndarray:
    """Whether each row's question counts: to measure calibration on the same rows as MAP."""
    labels, (_, question) = binary_labels(labels), question_index(question_ids)
    same_length(labels=labels, question_ids=question)
    counts: np.ndarray = protocol_named(protocol).counts(np.bincount(question, labels), np.bincount(question))[question]
    return counts


# Inside


class _Places(NamedTuple):
    """Each row's place in the ranking: the letters of the formulas above, one value per row."""

    within: np.ndarray  # i
    tied: np.ndarray  # n
    right: np.ndarray  # r
    before: np.ndarray  # N
    right_before: np.ndarray  # R


def _places(scores: np.ndarray, labels: np.ndarray, question: np.ndarray) -> _Places:
    """From rows sorted by question, then by falling score."""
    new_question = np.diff(question, prepend=-1) != 0
    new_group = new_question.copy()
    new_group[1:] |= scores[1:] != scores[:-1]
    group_starts, group = np.flatnonzero(new_group), np.cumsum(new_group) - 1
    row, question_start = np.arange(len(scores)), np.flatnonzero(new_question)[question]
    right_above = np.cumsum(labels) - labels  # in all rows above, other questions too
    start = group_starts[group]
    return _Places(
        within=row - start + 1,
        tied=np.bincount(group)[group],
        right=np.add.reduceat(labels, group_starts)[group],
        before=start - question_start,
        right_before=right_above[start] - right_above[question_start],
    )


def _reciprocal_parts(places: _Places) -> np.ndarray:
    i, n, r, before, right_before = places
    first = (right_before == 0) & (r > 0) & (i <= n - r + 1)
    i, n, r, before = i[first], n[first], r[first], before[first]
    parts = np.zeros(len(first))
    parts[first] = np.exp(_log_choose(n - i, r - 1) - _log_choose(n, r)) / (before + i)
    return parts


def _log_choose(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    from scipy.special import gammaln  # slow to import, and not needed to rank

    logarithm: np.ndarray = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return logarithm


# By question word: the first question word of a question decides. Words are runs of letters in lower case, so that
# "What's", "whats" and "In what year" are all `what`; `who` includes whom and whose. A question without one is `other`.
# The paper groups by the word a question *starts* with: `leading=True`, which leaves "In what year" to `other`.


QUESTION_WORDS = ("how", "what", "who", "when", "where", "which", "why", "other")

_GROUP_OF = {word: word for word in QUESTION_WORDS[:-1]} | {"whom": "who", "whose": "who"}
# Written without an apostrophe, as people type into a search box.
_GROUP_OF |= {f"{word}s": word for word in ("how", "what", "who", "when", "where", "why")}
_LETTERS = re.compile(r"[^\W\d_]+")


class QuestionWordRanking(NamedTuple):
    """MAP and MRR of the questions of one word."""

    question_word: str
    map: float
    mrr: float
    n_questions: int


def question_word(question: str, leading: bool = False) -> str:
    """The group of a question: one of `QUESTION_WORDS`."""
    words = _LETTERS.findall(question.lower())
    return next((_GROUP_OF[word] for word in words[: 1 if leading else None] if word in _GROUP_OF), "other")


def question_words(questions: Iterable[str], leading: bool = False) -> np.ndarray:
    return np.array([question_word(question, leading) for question in questions])


def ranking_by_question_word(
    record: RankingRecord, questions: Mapping[Any, str], leading: bool = False
) -> tuple[QuestionWordRanking, ...]:
    """MAP and MRR within each group that has a question; `questions` maps ids to texts."""
    missing = [one for one in record.question_ids.tolist() if one not in questions]
    if missing:
        raise InputError(f"{len(missing)} ranked questions have no text, the first is {missing[0]!r}")
    words = question_words((questions[one] for one in record.question_ids.tolist()), leading)
    found = []
    for word in (one for one in QUESTION_WORDS if (words == one).any()):
        precision, reciprocal = record.average_precision[words == word], record.reciprocal_rank[words == word]
        found.append(QuestionWordRanking(word, float(precision.mean()), float(reciprocal.mean()), len(precision)))
    return tuple(found)
