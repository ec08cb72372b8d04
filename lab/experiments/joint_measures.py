"""What one joint model of a question's candidates says better than a probability for each of them (`answers/joint.py`).

The baseline treats candidates as independent: the ranker's log odds, calibrated on the pairs of all dev questions.
"""

from typing import Any, NamedTuple

import numpy as np

from varitext.answers.joint import JointModel
from varitext.answers.prediction import Calibration, Prediction, log_odds
from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import AnswerEvaluation, RankingPosterior, answer_evaluation, label_draws, rows_of
from varitext.answers.training_data import question_folds
from varitext.corpora.question_answers import QuestionAnswers, canonical_order
from varitext.errors import InputError
from varitext.evaluation.calibration import expected_calibration_error, no_answer_calibration, top_answers
from varitext.evaluation.posterior_ranks import RankIntervals, best_probability, rank_intervals
from varitext.reproduce.engine import rounded

FOLDS = 10
PRECISIONS = (0.5, 0.6, 0.7)


class _Scored(NamedTuple):
    """Every pair of a corpus."""

    probability: np.ndarray  # [P] the ranker's, of each pair by itself
    labels: np.ndarray  # [P]
    question_of: np.ndarray  # [P]

    def part(self, chosen: np.ndarray) -> "_Scored":
        """The pairs of chosen questions, [Q]."""
        return _Scored(*(values[chosen[self.question_of]] for values in self))

    def joint_log_likelihood(self, model: JointModel) -> np.ndarray:
        return model.log_likelihood(log_odds(self.probability), self.labels, self.question_of)  # [Q]

    def independent_log_likelihood(self, calibration: Calibration) -> np.ndarray:
        right = calibration.probability(self.probability)
        each = np.log(np.where(self.labels == 1, right, 1 - right))
        return np.bincount(np.unique(self.question_of, return_inverse=True)[1], each)  # [Q]


def joint_measures(ranker: AnswerRanker, dev: QuestionAnswers, test: QuestionAnswers, protocol: str) -> dict[str, Any]:
    """The joint model beside independent candidates, and abstention. `protocol` is of rank intervals and log loss."""
    dev, test = (canonical_order(part).question_answers for part in (dev, test))
    on_dev, on_test = (_Scored(ranker.predict_proba(part), part.labels, part.groups) for part in (dev, test))
    calibration = _calibration(on_dev)
    independent = _independent_evaluation(calibration.probability(on_test.probability), test, protocol)
    return {
        "dev_nll": _cross_validated(on_dev, question_folds(dev, FOLDS, seed=0)),
        "test_nll": {
            "independent": _nats(on_test.independent_log_likelihood(calibration)),
            "joint": _nats(on_test.joint_log_likelihood(ranker.fitted_.joint)),
        },
        "joint": _said(ranker.evaluate(test, protocol)) | _best(ranker, test),
        "independent": _said(independent) | _none_of_independent(calibration.probability(on_test.probability), on_test),
        "abstaining": _abstaining(ranker, test),
        "triggering": _triggering(ranker, dev, test),
    }


def _calibration(scored: _Scored) -> Calibration:
    found = Calibration.fit(scored.probability, scored.labels)
    if found is None:
        raise InputError("the dev questions have no right answer, or no wrong one")
    return found


def _cross_validated(scored: _Scored, fold_of: np.ndarray) -> dict[str, float]:
    """Each question by models that were fitted on the questions of other folds; nats per question."""
    independent, joint = [], []
    for fold in np.unique(fold_of):  # fewer than `FOLDS` if there are fewer questions
        seen, held_out = scored.part(fold_of != fold), scored.part(fold_of == fold)
        model = JointModel.fit(log_odds(seen.probability), seen.labels, seen.question_of)
        joint.append(held_out.joint_log_likelihood(model))
        independent.append(held_out.independent_log_likelihood(_calibration(seen)))
    return {"independent": _nats(np.concatenate(independent)), "joint": _nats(np.concatenate(joint))}


def _nats(log_likelihood: np.ndarray) -> float:
    return round(float(-log_likelihood.mean()), 4)


def _independent_evaluation(probability: np.ndarray, test: QuestionAnswers, protocol: str) -> AnswerEvaluation:
    prediction = Prediction(probability, probability[None])
    parts = [prediction.sampled[:, rows] for rows in rows_of(test.groups)]
    best = np.concatenate([best_probability(part) for part in parts])
    drawn = [rank_intervals(part, label_draws(one)) for part, one in zip(parts, test.questions, strict=True)]
    intervals = RankIntervals(*(np.concatenate(values) for values in zip(*drawn, strict=True)))
    posterior = RankingPosterior(probability, best, None, intervals, test.groups)
    return answer_evaluation(test, prediction, posterior, protocol, seed=0)


def _said(evaluation: AnswerEvaluation) -> dict[str, float]:
    names = ("log_loss", "rank_interval_coverage", "nominal_coverage")
    of_none = ("share_without_answer", "mean_probability_none", "none_ece", "none_ece_by_chance")
    found = evaluation.as_dict()
    return {name: round(found[name], 4) for name in (*names, *of_none) if name in found}


def _none_of_independent(probability: np.ndarray, scored: _Scored) -> dict[str, float]:
    none = np.exp(np.bincount(scored.question_of, np.log1p(-probability)))  # [Q]
    found = no_answer_calibration(none, np.bincount(scored.question_of, scored.labels) == 0)._asdict()
    return {name: round(found[name], 4) for name in ("mean_probability_none", "none_ece")}


def _best(ranker: AnswerRanker, test: QuestionAnswers) -> dict[str, float]:
    """P(best), over all questions."""
    posterior, probability = ranker.ranking_posterior(test), ranker.predict_proba(test)
    order = np.lexsort((-probability, -test.labels, test.groups))  # of each question the highest right one, if any is
    highest = order[np.unique(test.groups[order], return_index=True)[1]]
    is_best = np.zeros(len(probability), np.int8)
    is_best[highest] = test.labels[highest]
    top = top_answers(posterior.best, is_best, test.groups)
    return {
        "best_ece": round(expected_calibration_error(posterior.best, is_best), 4),
        "top_probability_best": round(float(top.confidence.mean()), 4),
        "top_is_best": round(float(top.right.mean()), 4),
    }


def _abstaining(ranker: AnswerRanker, test: QuestionAnswers) -> dict[str, dict[str, float]]:
    """For every precision asked for that dev questions reach: that on test, and the share of questions answered."""
    top = top_answers(ranker.ranking_posterior(test).right, test.labels, test.groups)
    found = {}
    for asked in PRECISIONS:
        try:
            answered = top.confidence >= ranker.abstention_threshold(asked)
        except InputError:
            continue
        if answered.any():
            shares = rounded([top.right[answered].mean(), answered.mean()])
            found[str(asked)] = dict(zip(("precision", "share_answered"), shares, strict=True))
    return found


def _triggering(ranker: AnswerRanker, dev: QuestionAnswers, test: QuestionAnswers) -> dict[str, float]:
    """Precision, recall and F1 of answering at all, at the threshold of the best F1 on dev."""
    top = top_answers(ranker.ranking_posterior(dev).right, dev.labels, dev.groups)
    thresholds = np.unique(top.confidence)
    f1 = [_precision_recall_f1(dev, top.right, top.confidence >= one)[2] for one in thresholds]
    threshold = thresholds[int(np.argmax(f1))]
    top = top_answers(ranker.ranking_posterior(test).right, test.labels, test.groups)
    found = _precision_recall_f1(test, top.right, top.confidence >= threshold)
    return dict(zip(("precision", "recall", "f1"), rounded(found), strict=True))


def _precision_recall_f1(
    corpus: QuestionAnswers, right: np.ndarray, answered: np.ndarray
) -> tuple[float, float, float]:
    answerable = (np.bincount(corpus.groups, corpus.labels) > 0).sum()
    well = right[answered].sum()
    precision, recall = well / max(1, answered.sum()), well / answerable
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-12)
