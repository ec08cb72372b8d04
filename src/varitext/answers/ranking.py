"""What comes out of an answer ranker: a ranking that knows how sure it is, and the record of an evaluation.

And what goes in for one: a question and its candidates, as texts, become a corpus.
"""

import dataclasses
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from varitext.batches.pairs import UNKNOWN, PairBatches
from varitext.corpora.arranged import Arranged
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers, sentence_words
from varitext.errors import InputError
from varitext.evaluation.calibration import CalibrationRecord, calibration_record
from varitext.evaluation.posterior_ranks import RankCalibration, best_probability, rank_calibration, rank_intervals
from varitext.evaluation.question_words import QuestionWordRanking, ranking_by_question_word
from varitext.evaluation.ranking import RankingRecord, counted_rows, ranking_record
from varitext.text import Vocabulary


@dataclasses.dataclass(frozen=True)
class RankedCandidate:
    text: str
    place: int  # in the list that was given, from 0
    rank: int  # 1 is the best; tied candidates share one
    probability: float  # of being a right answer
    probability_best: float  # of being the best right answer, if there is one; over all candidates these sum to one
    rank_interval: tuple[int, int]  # holds its rank under known labels with 90 %: see `posterior_ranks.py`
    words: tuple[str, ...]
    attention_mean: tuple[float, ...] | None  # per word, over samples; None for a model without attention
    attention_std: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True)
class Ranking:
    question: str
    candidates: tuple[RankedCandidate, ...]  # the most probable first
    n_samples: int

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


# In: texts


def as_corpus(question: str, candidates: Sequence[str], positions: Sequence[int | None] | None) -> QuestionAnswers:
    """One question as a corpus, or one line that says what is wrong with it."""
    if not isinstance(question, str) or not (question_words := sentence_words(question)):
        raise InputError("the question is empty")
    _check_candidates(candidates)
    positions = [None] * len(candidates) if positions is None else positions
    _check_positions(positions, len(candidates))
    listed = tuple(
        Candidate(str(place), sentence_words(text), text, 0, position)
        for place, (text, position) in enumerate(zip(candidates, positions, strict=True))
    )
    return QuestionAnswers("question", "all", (), (Question("0", question_words, question, listed),))


def _check_candidates(candidates: Sequence[str]) -> None:
    if isinstance(candidates, str) or not all(isinstance(one, str) for one in candidates):
        raise InputError("candidates are a list of texts")
    if not len(candidates):
        raise InputError("there are no candidates")


def _check_positions(positions: Sequence[int | None], n_candidates: int) -> None:
    if len(positions) != n_candidates:
        raise InputError(f"there are {n_candidates} candidates and {len(positions)} positions")
    if any(one is not None and one < 0 for one in positions):
        raise InputError("positions count from 0: none is negative")


def check_known(corpus: QuestionAnswers, vocabulary: Vocabulary) -> None:
    """The question and at least one of its candidates have a word of the vocabulary."""
    batch = PairBatches(corpus, vocabulary).batch([0])
    if not (batch.questions.tokens > UNKNOWN).any():
        raise InputError("the question has no word that the model knows; the training questions had none of them")
    if not (batch.answers.tokens > UNKNOWN).any():
        raise InputError("no candidate has a word that the model knows")


# Out: a ranking


def ranked(
    arranged: Arranged, probability: np.ndarray, sampled: np.ndarray, attention: np.ndarray | None
) -> tuple[RankedCandidate, ...]:
    """The candidates of one question, best first, by `probability` [P]; how sure that is, by `sampled` [S, P].

    `attention` is the weight of each word of each candidate in each sample, [S, P, T].
    """
    question = arranged.question_answers.questions[0]
    candidates, best = question.candidates, best_probability(sampled)
    low, high = rank_intervals(sampled, _draws_for(question)).tolist()
    ranks = rankdata(-probability, "min")
    return tuple(
        RankedCandidate(
            candidates[row].text,
            int(arranged.place[row]),
            int(ranks[row]),
            float(probability[row]),
            float(best[row]),
            (low[row], high[row]),
            candidates[row].words,
            *_over_samples(attention, row, len(candidates[row].words)),
        )
        for row in np.lexsort((np.arange(len(ranks)), ranks))
    )


def _draws_for(question: Question) -> np.random.Generator:
    """Of labels; the same for the same question."""
    return np.random.default_rng(zlib.crc32(" ".join(question.words).encode()))


def _over_samples(attention: np.ndarray | None, row: int, n_words: int) -> tuple[tuple[float, ...] | None, ...]:
    """Mean and standard deviation of the weight of each word of one candidate."""
    if attention is None:
        return None, None
    weights = attention[:, row, :n_words]  # [S, T]
    return tuple(weights.mean(0).tolist()), tuple(weights.std(0).tolist())


# Out: an evaluation


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
