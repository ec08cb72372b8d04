"""Lists of 50, 500 and 2,000 candidates, where the truth is known: are P(right), P(none) and rank intervals calibrated?

A dev question's own candidates are joined by sentences of other dev questions, those that BM25 finds first. The joint
model is fitted on the ordinary lists of three quarters of the questions and measured on the others, with the weights of
candidates by rank (`answers/joint.py`) and without them. Needs the extra `minilm`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from varitext.answers import joint as joint_model
from varitext.answers.copies import distinct_candidates
from varitext.answers.index import CandidateIndex
from varitext.answers.joint import JointModel
from varitext.answers.prediction import Prediction
from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import RankingPosterior, ranking_posterior
from varitext.corpora import load_questions
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers, canonical_order
from varitext.evaluation.calibration import calibration_record, no_answer_calibration
from varitext.evaluation.posterior_ranks import RankIntervals, rank_calibration

CORPORA = ("wikiqa", "qasent")
LENGTHS = (0, 50, 500, 2000)  # 0: the list as it is
FOLDS = 4


class Scored(NamedTuple):
    """One question with a list of some length."""

    corpus: QuestionAnswers
    prediction: Prediction


def measure(quick: bool) -> dict[str, Any]:
    parts = {name: canonical_order(load_questions(name, "dev")).question_answers for name in CORPORA}
    lengths, pool = LENGTHS[:2] if quick else LENGTHS, Pool.of(list(parts.values()))
    found: dict[str, Any] = {}
    for model, ranker in rankers(quick):
        for name, part in parts.items():
            chosen = part.questions[:: 10 if quick else 2]
            lists = {n: [scored(ranker, one, part, pool, n) for one in chosen] for n in lengths}
            for weighted in (False, True):
                with weights(weighted):
                    models = [fit(lists[0], fold) for fold in range(FOLDS)]
                    for n in lengths:
                        key = f"{model}, {name}, {'weighted' if weighted else 'unweighted'}, {n}"
                        found[key] = measured(models, lists[n])
    return found


def rankers(quick: bool) -> Iterator[tuple[str, AnswerRanker]]:
    yield "minilm, untrained", AnswerRanker("minilm", threads=1)
    if not quick:
        train, dev = load_questions("wikiqa", "train"), load_questions("wikiqa", "dev")
        yield "overlap", AnswerRanker("overlap", vectors="random", threads=1).fit(train, dev)


@contextmanager
def weights(on: bool) -> Iterator[None]:
    kept = joint_model.FULL_LENGTHS
    joint_model.FULL_LENGTHS = kept if on else np.inf
    yield
    joint_model.FULL_LENGTHS = kept


class Pool(NamedTuple):
    """Every sentence of the dev questions."""

    candidates: list[Candidate]
    index: CandidateIndex

    @classmethod
    def of(cls, parts: list[QuestionAnswers]) -> "Pool":
        every = {one.words: one for part in parts for asked in part.questions for one in asked.candidates}
        return cls(list(every.values()), CandidateIndex([one.text for one in every.values()]))

    def others(self, question: Question, n: int) -> list[Candidate]:
        """`n` candidates that are not the question's own: those that BM25 finds, then any."""
        own = {one.words for one in question.candidates}
        found = self.index.search(question.text, n + len(own)).tolist() if n else []
        rest = np.random.default_rng(0).permutation(len(self.candidates)).tolist()
        other = (self.candidates[place] for place in dict.fromkeys([*found, *rest]))
        return [one._replace(label=0, position=None) for one in other if one.words not in own][:n]


def scored(ranker: AnswerRanker, question: Question, part: QuestionAnswers, pool: Pool, length: int) -> Scored:
    added = pool.others(question, max(0, length - len(question.candidates)))
    listed = question._replace(candidates=(*question.candidates, *added))
    corpus = canonical_order(replace(part, questions=(listed,))).question_answers
    return Scored(corpus, ranker._predict(corpus, None))


def fit(lists: list[Scored], fold: int) -> JointModel:
    parts = [
        distinct_candidates(one.prediction, one.corpus) for place, one in enumerate(lists) if place % FOLDS != fold
    ]
    question_of = np.repeat(np.arange(len(parts)), [len(one.scores) for one in parts])
    scores, labels = (np.concatenate([getattr(one, name) for one in parts]) for name in ("scores", "labels"))
    return JointModel.fit(scores, labels, question_of)


def measured(models: list[JointModel], lists: list[Scored]) -> dict[str, Any]:
    """Every question by the model of the other folds."""
    pairs = [(models[place % FOLDS], one) for place, one in enumerate(lists)]
    posteriors = [ranking_posterior(model, one.prediction, one.corpus) for model, one in pairs]
    likelihoods = [log_likelihood(model, one) for model, one in pairs]
    labels = [one.corpus.labels for one in lists]
    question_of = np.repeat(np.arange(len(lists)), list(map(len, labels)))
    right, best, none = (joined(posteriors, name) for name in ("right", "best", "none"))
    first = [posterior.right.argmax() for posterior in posteriors]
    without = np.array([not one.any() for one in labels])
    intervals = RankIntervals(*map(np.concatenate, zip(*(one.intervals for one in posteriors), strict=True)))
    truth, scores = np.concatenate(labels), np.concatenate([one.prediction.probability for one in lists])
    ranks = rank_calibration(scores, best / (1 - none[question_of]), intervals, truth, question_of)
    return {
        "n_questions": len(lists),
        "log_likelihood": float(np.mean(likelihoods)),
        "ece": calibration_record(right, truth, question_of).ece,
        "first_probability": float(np.mean([one.right.max() for one in posteriors])),
        "first_is_right": float(np.mean([one[place] for one, place in zip(labels, first, strict=True)])),
        "right_expected": float(right.sum() / len(lists)),
        "right": float(truth.sum() / len(lists)),
        "mean_probability_none": float(none.mean()),
        "share_without": float(without.mean()),
        "none_ece": no_answer_calibration(none, without).none_ece,
        "rank_interval_coverage": ranks.rank_interval_coverage,
        "nominal_coverage": ranks.nominal_coverage,
        "first_interval_width": float(np.mean([width(one) for one in posteriors])),
    }


def joined(posteriors: list[RankingPosterior], name: str) -> np.ndarray:
    return np.concatenate([getattr(one, name) for one in posteriors])


def width(posterior: RankingPosterior) -> int:
    """Of the rank interval of the first candidate."""
    place = posterior.right.argmax()
    return int(posterior.intervals.high[place] - posterior.intervals.low[place] + 1)


def log_likelihood(model: JointModel, one: Scored) -> float:
    found = distinct_candidates(one.prediction, one.corpus)
    return float(model.log_likelihood(found.scores, found.labels, np.zeros(len(found.scores), int))[0])
