"""What comes out of an answer ranker: a ranking that knows how sure it is, and the record of an evaluation."""

import dataclasses
import zlib
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from varitext.answers.prediction import Prediction
from varitext.corpora.arranged import Arranged
from varitext.corpora.question_answers import Question, QuestionAnswers
from varitext.evaluation.calibration import CalibrationRecord, calibration_record
from varitext.evaluation.posterior_ranks import RankCalibration, best_probability, rank_calibration, rank_intervals
from varitext.evaluation.question_words import QuestionWordRanking, ranking_by_question_word
from varitext.evaluation.ranking import RankingRecord, counted_rows, ranking_record


@dataclasses.dataclass(frozen=True)
class RankedCandidate:
    text: str
    place: int  # in the list that was given, from 0
    rank: int  # 1 is the best; tied candidates share one
    probability: float  # of being a right answer
    probability_best: float  # of being the best right answer, if there is one; over all candidates these sum to one
    rank_interval: tuple[int, int]  # holds its rank under known labels with 90 %: see `posterior_ranks.py`
    known: bool  # whether it has a word that the model knows; if not, it comes last, with both probabilities 0
    words: tuple[str, ...]
    attention_mean: tuple[float, ...] | None  # per word, over samples; None for a model without attention
    attention_std: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True)
class Ranking:
    question: str
    candidates: tuple[RankedCandidate, ...]  # the most probable first
    n_samples: int
    probability_none: float | None = None  # that no candidate is right: see `joint.py`; None in folders without it
    probability_top: float | None = None  # by the same joint picture, that the first candidate is right
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
    corpus: str
    part: str
    corpus_sha256: str
    n_samples: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON, in one level."""
        named = {name: getattr(self, name) for name in ("corpus", "part", "corpus_sha256", "n_samples")}
        by_question_word = {"by_question_word": [one._asdict() for one in self.by_question_word]}
        records = self.ranking.as_dict() | self.calibration.as_dict() | self.uncertainty._asdict()
        return records | by_question_word | named


# A ranking


def ranked(arranged: Arranged, prediction: Prediction, known: np.ndarray) -> tuple[RankedCandidate, ...]:
    """The candidates of one question, best first, by their probability; how sure that is, by the samples.

    `known` says which have a known word, [P].
    """
    question = arranged.question_answers.questions[0]
    candidates, best = question.candidates, best_probability(prediction.sampled)
    low, high = rank_intervals(prediction.sampled, _draws_for(question)).tolist()
    ranks = rankdata(-prediction.probability, "min")
    attention = _over_samples(prediction.attention, len(candidates))
    return tuple(
        RankedCandidate(
            candidates[row].text,
            int(arranged.place[row]),
            int(ranks[row]),
            float(prediction.probability[row]),
            float(best[row]),
            (low[row], high[row]),
            bool(known[row]),
            candidates[row].words,
            attention[row].mean,
            attention[row].std,
        )
        for row in np.lexsort((np.arange(len(ranks)), ranks))
    )


def _draws_for(question: Question) -> np.random.Generator:
    """Of labels; the same for the same question."""
    return np.random.default_rng(zlib.crc32(" ".join(question.words).encode()))


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
    question_answers: QuestionAnswers, probability: np.ndarray, sampled: np.ndarray, protocol: str, seed: int
) -> AnswerEvaluation:
    """`probability` is of each pair, in the order of the corpus, and `sampled` that of each sample, [S, P].

    `seed` is of the bootstrap and of drawn labels.
    """
    labels, ids = question_answers.labels, question_ids(question_answers)
    rows = counted_rows(labels, ids, protocol)
    ranking = ranking_record(probability, labels, ids, protocol, seed)
    texts = (question_answers.questions[group].text for group in question_answers.groups)
    return AnswerEvaluation(
        ranking,
        calibration_record(probability[rows], labels[rows], ids[rows]),
        rank_calibration(sampled[:, rows], labels[rows], np.unique(ids[rows], return_inverse=True)[1], seed),
        ranking_by_question_word(ranking, dict(zip(ids.tolist(), texts, strict=True))),
        question_answers.name,
        question_answers.part,
        question_answers.sha256,
        len(sampled),
    )


def question_ids(question_answers: QuestionAnswers) -> np.ndarray:
    """The questions' own ids, to compare models question by question; their places where ids repeat."""
    ids = np.array([question.id for question in question_answers.questions])
    return ids[question_answers.groups] if len(set(ids.tolist())) == len(ids) else question_answers.groups
