"""Measures of a complete ranker: ranking, cost, and the joint model of a question's candidates.

The joint model is compared with independent probabilities: the ranker's log odds, scaled and shifted on dev pairs.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from lab.independent_ranks import best_probability, rank_intervals
from varitext.answers.joint import JointModel
from varitext.answers.prediction import Calibration, Prediction, log_odds
from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import AnswerEvaluation, RankingPosterior, answer_evaluation, label_draws, rows_of
from varitext.answers.training_data import question_folds
from varitext.corpora.question_answers import QuestionAnswers, canonical_order
from varitext.errors import InputError
from varitext.evaluation.calibration import expected_calibration_error, no_answer_calibration, top_answers
from varitext.evaluation.posterior_ranks import RankIntervals
from varitext.reproduce.answer_fits import DATA, fit_ranker, load_part, record_of
from varitext.reproduce.engine import Plan, mean, rounded

FOLDS = 10
PRECISIONS = (0.5, 0.6, 0.7)


class _Scored(NamedTuple):
    probability: np.ndarray  # [P] of each pair
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
    """The joint model beside independent probabilities, and abstention."""
    dev, test = (canonical_order(part).question_answers for part in (dev, test))
    on_dev, on_test = (_Scored(ranker.predict_proba(part), part.labels, part.groups) for part in (dev, test))
    calibration = _calibration(on_dev)
    calibrated = calibration.probability(on_test.probability)
    independent = _independent_evaluation(calibrated, test, protocol)
    return {
        "dev_nll": _cross_validated(on_dev, question_folds(dev, FOLDS, seed=0)),
        "test_nll": {
            "independent": _nats(on_test.independent_log_likelihood(calibration)),
            "joint": _nats(on_test.joint_log_likelihood(ranker.fitted_.joint)),
        },
        "joint": _calibration_of(ranker.evaluate(test, protocol, baselines=False)) | _best(ranker, test),
        "independent": _calibration_of(independent) | _none_of_independent(calibrated, on_test),
        "abstaining": _abstaining(ranker, test),
        "triggering": _triggering(ranker, dev, test),
    }


def _calibration(scored: _Scored) -> Calibration:
    found = Calibration.fit(scored.probability, scored.labels)
    if found is None:
        raise InputError("the dev questions have no correct answer, or no incorrect one")
    return found


def _cross_validated(scored: _Scored, fold_of: np.ndarray) -> dict[str, float]:
    """Nats per question, each from models fitted to the questions of the other folds."""
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


def _calibration_of(evaluation: AnswerEvaluation) -> dict[str, float]:
    names = ("log_loss", "rank_interval_coverage", "nominal_coverage")
    of_none = ("share_without_answer", "mean_probability_none", "none_ece", "none_ece_by_chance")
    found = evaluation.as_dict()
    return {name: round(found[name], 4) for name in (*names, *of_none) if name in found}


def _none_of_independent(probability: np.ndarray, scored: _Scored) -> dict[str, float]:
    none = np.exp(np.bincount(scored.question_of, np.log1p(-probability)))  # [Q]
    found = no_answer_calibration(none, np.bincount(scored.question_of, scored.labels) == 0)._asdict()
    return {name: round(found[name], 4) for name in ("mean_probability_none", "none_ece")}


def _best(ranker: AnswerRanker, test: QuestionAnswers) -> dict[str, float]:
    posterior, probability = ranker.ranking_posterior(test), ranker.predict_proba(test)
    order = np.lexsort((-probability, -test.labels, test.groups))  # first: the best right candidate, if any
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
    """Precision and share of questions answered on test, for every requested precision that dev questions reach."""
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
    correct = right[answered].sum()
    precision, recall = correct / max(1, answered.sum()), correct / answerable
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-12)


COLUMNS = ("dev MAP", "MAP", "MRR", "calibration error", "CPU seconds")


def measure(corpus: str, model: str, seed: int, plan: Plan, **settings: Any) -> dict[str, Any]:
    started = time.process_time()
    ranker = fit_ranker(corpus, model, seed, plan, **settings)
    seconds = time.process_time() - started
    comparison = ranker.fitted_.comparison
    assert comparison is not None  # of a ranker that was just fitted
    dev, test, protocol = load_part(corpus, "dev", plan), load_part(corpus, "test", plan), DATA[corpus].protocol
    found = {
        "dev_map": round(ranker.fitted_.dev_map, 5),
        "dev_floors": {"word_count": round(comparison.word_count, 5), "bm25": round(comparison.bm25, 5)},
        "fit_cpu_seconds": round(seconds, 1),  # of all threads, reading data and vectors included
        "joint": joint_measures(ranker, dev, test, protocol) if corpus == "wikiqa" else None,
    }
    return record_of(ranker.evaluate(test, protocol, baselines=False), per_question=True) | found


def columns(found: list[dict[str, Any]]) -> list[str]:
    """`COLUMNS` of a row, from the results of its seeds."""
    ranked = [mean(found, name, spread=True) for name in ("dev_map", "map", "mrr")]
    return [*ranked, mean(found, "ece", ".3f"), mean(found, "fit_cpu_seconds", ".0f")]
