"""What comes out of an answer ranker: a ranking that knows how sure it is, and the record of an evaluation."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from varitext.answers.prediction import Prediction
from varitext.answers.ranking_posterior import RankingPosterior
from varitext.corpora.question_answers import CanonicalOrder, QuestionAnswers, protocol_named
from varitext.evaluation.calibration import (
    CalibrationRecord,
    NoAnswerCalibration,
    calibration_record,
    no_answer_calibration,
)
from varitext.evaluation.posterior_ranks import RankCalibration, RankIntervals, rank_calibration
from varitext.evaluation.ranking import (
    QuestionWordRanking,
    RankingRecord,
    counted_rows,
    ranking_by_question_word,
    ranking_record,
)


@dataclasses.dataclass(frozen=True)
class RankedCandidate:
    text: str
    place: int  # in the list that was given, from 0
    rank: int  # 1 is the best; tied candidates share one
    probability: float  # of being a right answer
    probability_best: float  # of being the best right answer; over all candidates, with that of none, these sum to one
    rank_interval: tuple[int, int]  # of its rank once it is known which are right, if any is: about 90 %, and exactly
    rank_interval_probability: float  # with this probability (`posterior_ranks.py`)
    known: bool  # whether it has a word that the model knows; if not, it comes last, with both probabilities 0
    words: tuple[str, ...]
    attention_mean: tuple[float, ...] | None  # per word, over samples; None for a model without attention
    attention_std: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True)
class Ranking:
    question: str
    candidates: tuple[RankedCandidate, ...]  # the most probable first
    n_samples: int
    joint: bool = False  # whether all probabilities come from one joint model (`joint.py`); if not, they are of each
    # candidate by itself, and `probability_best` is given that one is right: so it is in folders of version 0.1
    probability_none: float | None = None  # that no candidate is right; None without a joint model
    probability_top: float | None = None  # that the first candidate is right; None without a joint model
    answered: bool = True  # false if `abstain` was asked for and `probability_top` lies below

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class AnswerEvaluation:
    """How good the ranking is and how honest the probabilities, on the questions that the protocol counts."""

    ranking: RankingRecord
    calibration: CalibrationRecord
    uncertainty: RankCalibration
    by_question_word: tuple[QuestionWordRanking, ...]
    no_answer: NoAnswerCalibration | None  # over all questions, whatever the protocol; None without a joint model
    corpus: str
    part: str
    corpus_sha256: str
    n_samples: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON, in one level."""
        named = {name: getattr(self, name) for name in ("corpus", "part", "corpus_sha256", "n_samples")}
        by_question_word = {"by_question_word": [one._asdict() for one in self.by_question_word]}
        records = self.ranking.as_dict() | self.calibration.as_dict() | self.uncertainty._asdict()
        no_answer = {} if self.no_answer is None else self.no_answer._asdict()
        return records | no_answer | by_question_word | named


# A ranking


def ranked(
    arranged: CanonicalOrder, prediction: Prediction, posterior: RankingPosterior, known: np.ndarray
) -> tuple[RankedCandidate, ...]:
    """The candidates of one question, best first; `known` says which have a known word, [P]."""
    candidates = arranged.question_answers.questions[0].candidates
    low, high, held = (values.tolist() for values in posterior.intervals)
    ranks = rankdata(-prediction.probability, "min")
    attention = _over_samples(prediction.attention, len(candidates))
    return tuple(
        RankedCandidate(
            candidates[row].text,
            int(arranged.place[row]),
            int(ranks[row]),
            float(posterior.right[row]),
            float(posterior.best[row]),
            (low[row], high[row]),
            held[row],
            bool(known[row]),
            candidates[row].words,
            attention[row].mean,
            attention[row].std,
        )
        for row in np.lexsort((np.arange(len(ranks)), ranks))
    )


def ranking_of(
    question: str,
    candidates: tuple[RankedCandidate, ...],
    posterior: RankingPosterior,
    n_samples: int,
    abstain: float | None = None,
) -> Ranking:
    """Of one question, with what is posterior of it as a whole."""
    if posterior.none is None:
        return Ranking(question, candidates, n_samples)
    none, top = float(posterior.none[0]), candidates[0].probability
    return Ranking(question, candidates, n_samples, True, none, top, abstain is None or top >= abstain)


class _Attention(NamedTuple):
    """The weight of each word of one candidate, over samples."""

    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def _over_samples(attention: list[np.ndarray] | None, n_candidates: int) -> list[_Attention]:
    if attention is None:
        return [_Attention(None, None)] * n_candidates
    return [_Attention(tuple(one.mean(0).tolist()), tuple(one.std(0).tolist())) for one in attention]


# An evaluation


def answer_evaluation(
    question_answers: QuestionAnswers, prediction: Prediction, posterior: RankingPosterior, protocol: str, seed: int
) -> AnswerEvaluation:
    """`seed` is of the bootstrap.

    A protocol that counts only questions with a right answer tells so: then probabilities are given that there is one.
    """
    labels, ids = question_answers.labels, question_ids(question_answers)
    rows = counted_rows(labels, ids, protocol)
    given = posterior.given_answer()
    said = given if protocol_named(protocol).needs_right else posterior
    ranking = ranking_record(prediction.probability, labels, ids, protocol, seed)
    texts = (question_answers.questions[group].text for group in question_answers.groups)
    return AnswerEvaluation(
        ranking,
        calibration_record(said.right[rows], labels[rows], ids[rows]),
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
