"""The output of an answer ranker: the posterior of a ranking, rankings of candidates, records of an evaluation."""

import dataclasses
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from varitext.answers.baselines import Baseline
from varitext.answers.copies import distinct_candidates
from varitext.answers.familiarity import NONE, WEIGHT
from varitext.answers.joint import JointModel, JointPosterior
from varitext.answers.matches import Match, matched_words
from varitext.answers.prediction import Prediction
from varitext.answers.windows import Span, Window
from varitext.corpora.question_answers import Candidate, CanonicalOrder, Question, QuestionAnswers, protocol_named
from varitext.evaluation.calibration import (
    CalibrationRecord,
    NoAnswerCalibration,
    calibration_record,
    no_answer_calibration,
)
from varitext.evaluation.columns import SharedRanks
from varitext.evaluation.conformal import HeldOutQuestions, mass_above
from varitext.evaluation.posterior_ranks import (
    RankCalibration,
    RankIntervals,
    draws_for,
    intervals_of,
    rank_calibration,
    ranks_given,
)
from varitext.evaluation.ranking import (
    QuestionWordRanking,
    RankingRecord,
    counted_rows,
    ranking_by_question_word,
    ranking_record,
)

# Records for users


@dataclass(frozen=True)
class RankedCandidate:
    """One candidate of a `Ranking`.

    Attributes
    ----------
    text : str
        The candidate as it was given.
    place : int
        Its index in the list that was given, or in the index that was searched.
    rank : int
        1 is the best; tied candidates share a rank.
    probability : float
        Probability that it is a right answer.
    probability_best : float
        Probability that it is the highest-ranked right answer. Over all candidates, and with `probability_none`, these
        sum to one: copies share theirs equally.
    rank_interval : tuple of (int, int)
        Interval of its rank once it is known which candidates are right, given that one is: about 90 %.
    rank_interval_probability : float
        The exact probability of that interval.
    known : bool
        Whether it has a word that the model knows. If not, it comes last and both probabilities are 0.
    words : tuple of str
        Its words, as the model reads them: of a long candidate those of `window`, of a copy those of the one read.
    attention_mean, attention_std : tuple of float, or None
        Attention on each word, mean and standard deviation over samples. None for a model without attention.
    id : str, or None
        Its id in the index that was searched.
    metadata : dict, or None
        Its metadata in the index that was searched.
    window : tuple of (int, int), or None
        Begin and end, in characters of `text`, of the passage that scored best. None if it was read whole.
    same_as : int or None
        The first `place` with the same words, or nearly so. These share one probability and one rank. None for the
        first itself, and without copies.
    matches : tuple of (str, float)
        Words that it shares with the question, and the share of each in its BM25 among these candidates.
    """

    text: str
    place: int
    rank: int
    probability: float
    probability_best: float
    rank_interval: tuple[int, int]
    rank_interval_probability: float
    known: bool
    words: tuple[str, ...]
    attention_mean: tuple[float, ...] | None
    attention_std: tuple[float, ...] | None
    id: str | None = None
    metadata: dict[str, Any] | None = None
    window: tuple[int, int] | None = None
    same_as: int | None = None
    matches: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Ranking:
    """The candidates of a question, best first, with the posterior of their order.

    Attributes
    ----------
    question : str
    candidates : tuple of RankedCandidate
        The most probable first.
    n_samples : int
        Samples of h that the probabilities are averaged over.
    joint : bool
        True: all probabilities come from one joint model of the question's candidates.
    probability_none : float
        Probability that no candidate is right.
    probability_top : float
        Probability that the first candidate is right.
    answered : bool
        False if `abstain` was given and `probability_top` is below it.
    unfamiliar : str or None
        Why the question and its candidates look unlike those that the ranker was fitted on, if they do; then the
        probabilities are nearer to chance. None for a ranker that needs no fit.
    """

    question: str
    candidates: tuple[RankedCandidate, ...]
    n_samples: int
    joint: bool
    probability_none: float
    probability_top: float
    answered: bool
    unfamiliar: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The record and its candidates as plain dictionaries, for JSON."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class AnswerSet:
    """Candidates of a ranking that include a right answer with a stated probability.

    Attributes
    ----------
    candidates : tuple of RankedCandidate
        The first candidates of the ranking, at least one. Of the questions that have a right answer, a share
        `coverage` have one in this set.
    none : bool
        Whether "no candidate is right" remains possible: true for a share `coverage` of the questions without one.
    coverage : float
        The stated probability.
    """

    candidates: tuple[RankedCandidate, ...]
    none: bool
    coverage: float


def answer_set(ranking: Ranking, held_out: HeldOutQuestions, coverage: float) -> AnswerSet:
    """The set whose limits were learned from the `held_out` questions (`evaluation/conformal.py`)."""
    best = np.array([one.probability_best for one in ranking.candidates])
    rank, none = np.array([one.rank for one in ranking.candidates]), np.array([ranking.probability_none])
    chosen = mass_above(best, none, -rank, np.zeros(len(best), np.int64)) <= held_out.set_limit(coverage)
    candidates = tuple(one for one, is_in in zip(ranking.candidates, chosen.tolist(), strict=True) if is_in)
    return AnswerSet(candidates, ranking.probability_none >= held_out.none_limit(coverage), coverage)


@dataclass(frozen=True)
class AnswerEvaluation:
    """Quality of the ranking and calibration of the probabilities, on the questions that the protocol counts.

    Attributes
    ----------
    ranking : RankingRecord
        MAP, MRR, precision at 1, and confidence intervals.
    calibration : CalibrationRecord
        Log loss, Brier score and expected calibration error of P(right).
    uncertainty : RankCalibration
        Coverage of the rank intervals and calibration of P(best).
    by_question_word : tuple of QuestionWordRanking
        MAP and MRR by the question's interrogative.
    no_answer : NoAnswerCalibration or None
        Calibration of P(none) over all questions, whatever the protocol.
    corpus, part, corpus_sha256 : str
        The questions that were ranked.
    n_samples : int
        Samples of h.
    baselines : tuple of Baseline
        Word count, BM25 and untrained MiniLM on the same questions, each with a paired test.
    n_unfamiliar : int
        Number of questions, of all, that look unlike those that the ranker was fitted on (`Ranking.unfamiliar`).
    """

    ranking: RankingRecord
    calibration: CalibrationRecord
    uncertainty: RankCalibration
    by_question_word: tuple[QuestionWordRanking, ...]
    no_answer: NoAnswerCalibration | None
    corpus: str
    part: str
    corpus_sha256: str
    n_samples: int
    baselines: tuple[Baseline, ...] = ()
    n_unfamiliar: int = 0

    def as_dict(self) -> dict[str, Any]:
        """All records as one flat dictionary, for JSON."""
        named = {name: getattr(self, name) for name in ("corpus", "part", "corpus_sha256", "n_samples", "n_unfamiliar")}
        by_question_word = {"by_question_word": [one._asdict() for one in self.by_question_word]}
        records = self.ranking.as_dict() | self.calibration.as_dict() | self.uncertainty._asdict()
        no_answer = {} if self.no_answer is None else self.no_answer._asdict()
        baselines = {"baselines": [one.as_dict() for one in self.baselines]} if self.baselines else {}
        return records | no_answer | by_question_word | baselines | named


# The posterior of a ranking


@dataclass(frozen=True, eq=False)
class RankingPosterior:
    """Posterior probabilities of the pairs and questions of a corpus, in its order."""

    right: np.ndarray  # [P] P(right)
    best: np.ndarray  # [P] P(highest-ranked right answer); with `none` it sums to one over a question's candidates
    none: np.ndarray | None  # [Q] P(no candidate is right); None where it is given that one is right
    intervals: RankIntervals  # [P] of ranks, given that some candidate is right
    question_of: np.ndarray  # [P]
    unfamiliar: tuple[str | None, ...] = ()  # of questions: as in `Ranking`; empty: none is

    def given_answer(self) -> "RankingPosterior":
        """The posterior given that every question has a right answer among its candidates."""
        if self.none is None:
            return self
        some = np.maximum(1 - self.none, np.finfo(float).tiny)[self.question_of]
        right, best = (np.minimum(values / some, 1.0) for values in (self.right, self.best))
        return replace(self, right=right, best=best, none=None)


def ranking_posterior(
    joint: JointModel,
    prediction: Prediction,
    question_answers: QuestionAnswers,
    unfamiliar: Sequence[str | None] = (),
) -> RankingPosterior:
    """The posterior by the joint model of the labels. A candidate with probability 0 cannot be right.

    The model counts copies as one candidate: they have the same P(right) and share its P(best) equally. The posterior
    of questions that are `unfamiliar`, [Q], is widened.
    """
    question_of, distinct = question_answers.groups, distinct_candidates(prediction, question_answers)
    possible = np.bincount(distinct.of_pair, prediction.probability) > 0
    scores = np.where(possible, distinct.scores, -np.inf)  # [G]
    weight = WEIGHT * np.array([one is not None for one in unfamiliar or [None] * question_answers.n_questions])  # [Q]
    found = _mixed_with_chance(joint.posterior(scores, distinct.question_of), scores, distinct.question_of, weight)
    entry = distinct.of_pair
    intervals = []
    every = joint.label_distributions(scores, distinct.question_of)
    entries = rows_of(distinct.question_of)
    for question, rows, own, labels_of in zip(
        question_answers.questions, rows_of(question_of), entries, every, strict=True
    ):
        generator, of_rows = label_draws(question), entry[rows] - own.start
        labels = labels_of.sample(draws_for(len(of_rows)), generator, answerable=True)
        intervals.append(intervals_of(ranks_given(scores[own][of_rows], labels[:, of_rows], generator)))
    joined = RankIntervals(*(np.concatenate(values) for values in zip(*intervals, strict=True)))
    best = (found.best / np.bincount(entry))[entry]
    wider = _wider(joined, scores[entry], question_of, weight)
    return RankingPosterior(found.right[entry], best, found.none, wider, question_of, tuple(unfamiliar))


def _mixed_with_chance(
    found: JointPosterior, scores: np.ndarray, question_of: np.ndarray, weight: np.ndarray
) -> JointPosterior:
    """With probability `weight`, [Q], nothing is known: no candidate is right, or any one of those that can be."""
    possible = np.isfinite(scores)
    number = np.bincount(question_of, possible)  # [Q]
    weight = weight * (number > 0)
    of_candidate = np.where(possible, weight[question_of], 0.0)  # [G]
    chance = (1 - NONE) / np.maximum(number, 1)[question_of]
    right, best = ((1 - of_candidate) * values + of_candidate * chance for values in (found.right, found.best))
    return JointPosterior(right, best, (1 - weight) * found.none + weight * NONE)


def _wider(intervals: RankIntervals, scores: np.ndarray, question_of: np.ndarray, weight: np.ndarray) -> RankIntervals:
    """If any one candidate may be right, the others keep their rank or fall by one: intervals include both."""
    low, high, share = (values.copy() for values in intervals)
    rows = rows_of(question_of)
    for question in np.flatnonzero(weight):
        chosen = rows[question]
        number, ranks = chosen.stop - chosen.start, SharedRanks.of(scores[chosen])
        low[chosen] = np.minimum(low[chosen], ranks.best)
        high[chosen] = np.maximum(high[chosen], np.minimum(ranks.worst + 1, number))
        share[chosen] = (1 - weight[question]) * share[chosen] + weight[question] * (1 - 1 / number)
    return RankIntervals(low, high, share)


def rows_of(question_of: np.ndarray) -> list[slice]:
    """The pairs of each question."""
    ends = np.cumsum(np.bincount(question_of)).tolist()
    return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


def label_draws(question: Question) -> np.random.Generator:
    """Random numbers that depend on the question's words only."""
    return np.random.default_rng(zlib.crc32(" ".join(question.words).encode()))


# Rankings


def rankings_of(
    ordered: CanonicalOrder,
    prediction: Prediction,
    posterior: RankingPosterior,
    known: np.ndarray,
    abstain: float | None,
) -> list[Ranking]:
    """One ranking per question, in the order in which they were given; the other arguments are in canonical order."""
    found: list[tuple[int, Ranking]] = []
    assert posterior.none is not None  # not conditioned on an answer
    rows, questions = rows_of(ordered.question_answers.groups), ordered.question_answers.questions
    unfamiliar = posterior.unfamiliar or (None,) * len(questions)
    for question, chosen, none, why in zip(questions, rows, posterior.none.tolist(), unfamiliar, strict=True):
        first = int(ordered.place[chosen].min())
        candidates = _ranked(question, ordered.place[chosen] - first, prediction.rows(chosen), posterior, chosen, known)
        top = candidates[0].probability
        answered = abstain is None or top >= abstain
        n_samples = len(prediction.sampled)
        found.append((first, Ranking(question.text, candidates, n_samples, True, none, top, answered, why)))
    return [ranking for _, ranking in sorted(found, key=lambda one: one[0])]


def _ranked(
    question: Question,
    places: np.ndarray,
    prediction: Prediction,
    posterior: RankingPosterior,
    chosen: slice,
    known: np.ndarray,
) -> tuple[RankedCandidate, ...]:
    """The candidates of one question, best first; `chosen` are its rows of the posterior and of `known`."""
    right, best, is_known = (values[chosen].tolist() for values in (posterior.right, posterior.best, known))
    low, high, held = (values[chosen].tolist() for values in posterior.intervals)
    ranks = SharedRanks.of(prediction.probability).best
    first_row = np.arange(len(ranks)) if prediction.copy_of is None else prediction.copy_of - chosen.start
    shown = [question.candidates[row] for row in first_row]  # the one that was read
    attention, read = prediction.attention, prediction.read or [None] * len(ranks)
    words = [one.words if window is None else window.words for one, window in zip(shown, read, strict=True)]
    same_as, matches = _first_copies(places, first_row), _matches_by_row(question, words, first_row)
    return tuple(
        RankedCandidate(
            text=question.candidates[row].text,
            place=int(places[row]),
            rank=int(ranks[row]),
            probability=right[row],
            probability_best=best[row],
            rank_interval=(low[row], high[row]),
            rank_interval_probability=held[row],
            known=is_known[row],
            words=words[row],
            attention_mean=None if attention is None else tuple(attention[row].mean(0).tolist()),
            attention_std=None if attention is None else tuple(attention[row].std(0).tolist()),
            window=_own_span(question.candidates[row], shown[row], read[row]),
            same_as=same_as[row],
            matches=matches[row],
        )
        for row in np.lexsort((places, first_row, ranks))  # of tied ones, copies together
    )


def _own_span(candidate: Candidate, shown: Candidate, window: Window | None) -> Span | None:
    """The window in the candidate's own text; None for a copy with another text."""
    return None if window is None or candidate.text != shown.text else window.span


def _first_copies(places: np.ndarray, copy_of: np.ndarray) -> list[int | None]:
    """The lowest place among each candidate's copies; None if it is its own."""
    first = np.full(len(places), np.iinfo(np.int64).max)
    np.minimum.at(first, copy_of, places)
    return [
        None if own == other else other for own, other in zip(places.tolist(), first[copy_of].tolist(), strict=True)
    ]


def _matches_by_row(question: Question, words: list[tuple[str, ...]], copy_of: np.ndarray) -> list[tuple[Match, ...]]:
    """What each candidate shares with the question, among the candidates without copies."""
    distinct, entry = np.unique(copy_of, return_inverse=True)
    matches = matched_words(question.words, [words[row] for row in distinct])
    return [matches[one] for one in entry]


# An evaluation


def answer_evaluation(
    question_answers: QuestionAnswers, prediction: Prediction, posterior: RankingPosterior, protocol: str, seed: int
) -> AnswerEvaluation:
    """The record of an evaluation; `seed` is that of the bootstrap.

    Under a protocol that counts only questions with a right answer, probabilities are conditioned on there being one.
    """
    labels, ids = question_answers.labels, question_ids(question_answers)
    rows = counted_rows(labels, ids, protocol)
    given = posterior.given_answer()
    reported = given if protocol_named(protocol).needs_right else posterior
    ranking = ranking_record(prediction.probability, labels, ids, protocol, seed, question_answers.gains)
    texts = (question_answers.questions[group].text for group in question_answers.groups)
    return AnswerEvaluation(
        ranking,
        calibration_record(reported.right[rows], labels[rows], ids[rows]),
        rank_calibration(
            prediction.probability[rows],
            given.best[rows],
            RankIntervals(*(values[rows] for values in posterior.intervals)),
            labels[rows],
            np.unique(ids[rows], return_inverse=True)[1],
        ),
        ranking_by_question_word(ranking, dict(zip(ids.tolist(), texts, strict=True))),
        _no_answer(question_answers, posterior),
        question_answers.name,
        question_answers.part,
        question_answers.sha256,
        len(prediction.sampled),
        n_unfamiliar=sum(one is not None for one in posterior.unfamiliar),
    )


def _no_answer(question_answers: QuestionAnswers, posterior: RankingPosterior) -> NoAnswerCalibration | None:
    if posterior.none is None:
        return None
    has_none = np.bincount(question_answers.groups, question_answers.labels) == 0
    return no_answer_calibration(posterior.none, has_none)


def question_ids(question_answers: QuestionAnswers) -> np.ndarray:
    """The questions' own ids, to compare models question by question; their places where ids repeat."""
    ids = np.array([question.id for question in question_answers.questions])
    return ids[question_answers.groups] if len(set(ids.tolist())) == len(ids) else question_answers.groups
