"""CalibratedRanker: probabilities, abstention and answer sets for the scores of any ranker.

Scores are standardised robustly, by their median and the distance of their 5th and 95th percentiles, and then
calibrated as `recalibration.py` does. The order of the scores is never changed.
"""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from varitext.answers.copies import copies_of, highest_of_copies
from varitext.answers.input import QuestionSource, as_corpus, as_questions
from varitext.answers.joint import JointModel
from varitext.answers.prediction import Calibration, Prediction
from varitext.answers.ranking import AnswerSet, Ranking, answer_set, ranking_posterior, rankings_of
from varitext.answers.recalibration import LabelledScores, ProbabilityQuality, ScoreModel, cross_validated
from varitext.corpora.own_questions import USUAL_COLUMNS, QuestionColumns
from varitext.corpora.own_scores import scores_of_table
from varitext.corpora.question_answers import CanonicalOrder
from varitext.errors import InputError
from varitext.evaluation.columns import SharedRanks, binary_labels, numbers, question_index, same_length
from varitext.evaluation.conformal import HeldOutQuestions, mass_above
from varitext.layers.functions import expit
from varitext.store import CALIBRATED_RANKER, StoredModel, load_one_of, save_model
from varitext.text import Vocabulary

ScoreFunction = Callable[[str, Sequence[str]], ArrayLike]
CENTRAL = (0.05, 0.95)  # quantiles of the scores
CENTRAL_WIDTH = 3.29  # their distance for a normal distribution, in standard deviations


class RobustScale(NamedTuple):
    centre: float
    spread: float

    @classmethod
    def of(cls, scores: np.ndarray) -> "RobustScale":
        low, high = np.quantile(scores, CENTRAL)
        spread = (high - low) / CENTRAL_WIDTH or scores.std() or 1.0
        return cls(float(np.median(scores)), float(spread))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return (scores - self.centre) / self.spread


@dataclass(frozen=True)
class FittedScores:
    """The fitted state of a `CalibratedRanker`."""

    standardise: RobustScale
    model: ScoreModel
    held_out: HeldOutQuestions
    quality: ProbabilityQuality  # cross-validated
    n_questions: int
    n_without_answer: int
    corpus: dict[str, str]  # name and SHA-256 of the questions


class CalibratedScores(NamedTuple):
    """Predictions for candidates, [P], in the order given."""

    right: np.ndarray  # P(right)
    best: np.ndarray  # P(highest-ranked right answer)
    none: np.ndarray  # P(no candidate of its question is right)
    rank: np.ndarray  # among the candidates of its question; tied ones share a rank
    answered: np.ndarray  # whether P(right) of the question's first candidate reaches `abstain`
    in_set: np.ndarray  # whether it is in the answer set
    none_in_set: np.ndarray  # whether "no candidate is right" remains possible


class CalibratedRanker:
    """Probabilities for the scores of any ranker: a cross-encoder, an LLM judge, BM25.

    Parameters
    ----------
    score_function : callable, default=None
        ``score_function(question, candidates)`` returns one score per candidate; higher is better, on any scale. None:
        scores are given to `fit_scores` and `rank_scores`.

    Attributes
    ----------
    fitted_ : FittedScores
        The fitted state; `fitted_.quality` has log loss and calibration errors, cross-validated.

    Examples
    --------
    >>> import numpy as np
    >>> from varitext import CalibratedRanker
    >>> scores, question_ids = np.random.default_rng(0).normal(size=300), np.repeat(np.arange(60), 5)
    >>> labels = scores + np.random.default_rng(1).normal(size=300) > 1.5
    >>> ranker = CalibratedRanker().fit_scores(scores, labels, question_ids)
    >>> ranking = ranker.rank_scores("who wrote Emma", ["Joyce", "Austen"], [-0.4, 1.9])
    >>> ranking.candidates[0].text, ranking.probability_none < 0.5
    ('Austen', True)
    """

    fitted_: FittedScores

    def __init__(self, score_function: ScoreFunction | None = None):
        self.score_function = score_function

    # Learning

    def fit(
        self, questions: QuestionSource, columns: QuestionColumns = USUAL_COLUMNS, scores: str | None = None
    ) -> "CalibratedRanker":
        """Learn from labelled questions, some 50 or more, like those that will be asked.

        Parameters
        ----------
        questions : QuestionAnswers or DataFrame
            Labelled questions: a corpus, or a table with one row per candidate.
        columns : QuestionColumns, default=USUAL_COLUMNS
            Column names of a table.
        scores : str, default=None
            Column of the scores in a table. None: `score_function` is called for every question.

        Returns
        -------
        self : CalibratedRanker
        """
        if scores is not None:
            table = scores_of_table(questions, columns, scores)
            return self.fit_scores(table.scores, table.labels, table.question_ids, {"name": "table"})
        corpus = as_questions(questions, columns, labelled=True)
        found = [self._scores(one.text, [two.text for two in one.candidates]) for one in corpus.questions]
        source = {"name": corpus.name, "part": corpus.part, "sha256": corpus.sha256}
        return self.fit_scores(np.concatenate(found), corpus.labels, corpus.groups, source)

    def fit_scores(
        self, scores: ArrayLike, labels: ArrayLike, question_ids: ArrayLike, corpus: dict[str, str] | None = None
    ) -> "CalibratedRanker":
        """Learn from scores, one per candidate.

        Parameters
        ----------
        scores : array-like of shape (candidates,)
            Higher is better.
        labels : array-like of shape (candidates,)
            1 for a right answer, 0 for a wrong one.
        question_ids : array-like of shape (candidates,)
            Which question each candidate belongs to.
        corpus : dict, default=None
            Name and SHA-256 of the questions, for the model folder.

        Returns
        -------
        self : CalibratedRanker
        """
        given, question_of = _checked(scores, question_ids)
        right = binary_labels(np.asarray(labels, float))
        same_length(scores=given, labels=right)
        standardise = RobustScale.of(given)
        data = LabelledScores(standardise(given), right, question_of)
        data.check()
        _warn_of_reversed(data)
        quality, held_out = cross_validated(data)
        counts = len(data.answerable), int((~data.answerable).sum())
        self.fitted_ = FittedScores(standardise, ScoreModel.fit(data), held_out, quality, *counts, corpus or {})
        return self

    # Ranking

    def rank(self, question: str, candidates: Sequence[str], abstain: float | None = None) -> Ranking:
        """Rank the candidates of one question by `score_function`.

        Parameters
        ----------
        question : str
            The question.
        candidates : sequence of str
            The texts to rank.
        abstain : float, default=None
            Probability of the first candidate below which the ranking is not `answered`; see `abstention_threshold`.

        Returns
        -------
        Ranking
            The candidates, best first.
        """
        return self.rank_scores(question, candidates, self._scores(question, candidates), abstain)

    def rank_scores(
        self, question: str, candidates: Sequence[str], scores: ArrayLike, abstain: float | None = None
    ) -> Ranking:
        """Rank the candidates of one question by their scores.

        Parameters
        ----------
        scores : array-like of shape (candidates,)
            One per candidate, from the same source as the scores of the fit.
        question, candidates, abstain
            As for `rank`.

        Returns
        -------
        Ranking
            The candidates, best first.
        """
        corpus, (given, _) = as_corpus(question, candidates, None), _checked(scores, np.zeros(len(candidates)))
        copy_of = copies_of(corpus)
        probability = expit(self._log_odds(highest_of_copies(given, copy_of)))
        prediction = Prediction(probability, probability[None], copy_of=copy_of)
        posterior = ranking_posterior(self._fitted.model.joint, prediction, corpus)
        ordered = CanonicalOrder(corpus, np.arange(len(given)))
        return rankings_of(ordered, prediction, posterior, np.ones(len(given), bool), abstain)[0]

    def predict(
        self, scores: ArrayLike, question_ids: ArrayLike, abstain: float | None = None, coverage: float = 0.9
    ) -> CalibratedScores:
        """Probabilities of many questions' candidates, as arrays.

        Parameters
        ----------
        scores, question_ids
            As for `fit_scores`.
        abstain : float, default=None
            As for `rank`.
        coverage : float, default=0.9
            Coverage of the answer sets, as for `answer_set`.

        Returns
        -------
        CalibratedScores
            P(right), P(best), P(none), rank, whether it is answered, and what is in the answer set.
        """
        given, question_of = _checked(scores, question_ids)
        found = self._fitted.model.posterior(self._fitted.standardise(given), question_of)
        above = mass_above(found.best, found.none, given, question_of)
        top, rank = np.zeros(len(found.none)), np.empty(len(given), np.int64)
        np.maximum.at(top, question_of, found.right)
        for rows in np.split(np.argsort(question_of, kind="stable"), np.cumsum(np.bincount(question_of))[:-1]):
            rank[rows] = SharedRanks.of(given[rows]).best
        answered = (top >= (abstain or 0.0))[question_of]
        held_out, none = self._fitted.held_out, found.none[question_of]
        in_set, none_in_set = above <= held_out.set_limit(coverage), none >= held_out.none_limit(coverage)
        return CalibratedScores(found.right, found.best, none, rank, answered, in_set, none_in_set)

    def abstention_threshold(self, precision: float, confidence: float | None = None) -> float:
        """The value of `abstain` at which the first candidate is right in a share `precision` of answered questions.

        Parameters
        ----------
        precision : float
            Between 0 and 1.
        confidence : float, default=None
            None: a point estimate, from at least 20 answered questions of the fit (cross-validated). 0.9: the true
            precision is at least `precision` with this confidence (learn then test); stricter.

        Returns
        -------
        float
            InputError if no threshold reaches it.
        """
        threshold = self._fitted.held_out.abstention_threshold(precision, confidence)
        if threshold is None:
            sure = "" if confidence is None else f" with confidence {confidence}"
            n_questions = self._fitted.n_questions
            raise InputError(f"no threshold reaches a precision of {precision}{sure} on the {n_questions} questions")
        return threshold

    def answer_set(self, ranking: Ranking, coverage: float = 0.9) -> AnswerSet:
        """The first candidates of a ranking, as many as the coverage requires.

        Parameters
        ----------
        ranking : Ranking
            A ranking by this ranker.
        coverage : float, default=0.9
            The share of questions with a right answer whose set holds one.

        Returns
        -------
        AnswerSet
        """
        return answer_set(ranking, self._fitted.held_out, coverage)

    # Model folders

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model folder: plain files, without the score function.

        Parameters
        ----------
        folder : str or Path
            Folder to write.
        overwrite : bool, default=False
            Whether to replace an existing model.
        """
        config: dict[str, Any] = dataclasses.asdict(self._fitted)
        save_model(Path(folder), StoredModel(CALIBRATED_RANKER, {"fitted": config}, {}, Vocabulary(()), []), overwrite)

    @classmethod
    def load(cls, folder: str | Path, score_function: ScoreFunction | None = None) -> "CalibratedRanker":
        """The ranker in a model folder.

        Parameters
        ----------
        folder : str or Path
            A folder that `save` or `varitext calibrate --scores` wrote.
        score_function : callable, default=None
            The function whose scores it was fitted to.

        Returns
        -------
        CalibratedRanker
        """
        return load_one_of(Path(folder), {CALIBRATED_RANKER: partial(cls._from_stored, score_function)})

    # Inside

    @classmethod
    def _from_stored(
        cls, score_function: ScoreFunction | None, stored: StoredModel, folder: Path
    ) -> "CalibratedRanker":
        ranker, values = cls(score_function), dict(stored.config["fitted"])
        platt, joint = (values["model"][name] for name in ("platt", "joint"))
        joint["parameters"] = tuple(joint["parameters"])
        values["standardise"] = RobustScale(*values["standardise"])
        values["model"] = ScoreModel(Calibration(**platt), JointModel(**joint))
        values["held_out"] = HeldOutQuestions(**{name: tuple(one) for name, one in values["held_out"].items()})
        values["quality"] = ProbabilityQuality(**values["quality"])
        ranker.fitted_ = FittedScores(**values)
        return ranker

    @property
    def _fitted(self) -> FittedScores:
        if not hasattr(self, "fitted_"):
            raise InputError("fit the ranker first: fit(questions) or fit_scores(scores, labels, question_ids)")
        return self.fitted_

    def _scores(self, question: str, candidates: Sequence[str]) -> np.ndarray:
        if self.score_function is None:
            raise InputError("there is no score function: name one, CalibratedRanker(score_function), or give scores")
        found = numbers(self.score_function(question, list(candidates)), "scores")
        if len(found) != len(candidates):
            raise InputError(f"the score function gave {len(found)} scores for {len(candidates)} candidates")
        return found

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        return self._fitted.model.platt.log_odds(self._fitted.standardise(scores))


def _checked(scores: ArrayLike, question_ids: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    given, (_, question_of) = numbers(scores, "scores"), question_index(question_ids)
    same_length(scores=given, question_ids=question_of)
    if not np.isfinite(given).all():
        raise InputError(f"scores must be finite; row {np.flatnonzero(~np.isfinite(given))[0]} is not")
    return given, question_of


def _warn_of_reversed(data: LabelledScores) -> None:
    """Warn if right answers do not have the higher scores within questions."""
    means = np.bincount(data.question_of, data.scores) / np.bincount(data.question_of)
    if (data.labels * (data.scores - means[data.question_of])).sum() < 0:
        warnings.warn(
            "right answers have lower scores than wrong ones. If lower is better, negate scores", stacklevel=3
        )
