"""What the charts of an answer model show: every counted pair with what the model says of it, and plain rankings."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import AnswerEvaluation, question_ids
from varitext.corpora.question_answers import Question, QuestionAnswers, canonical_order, protocol_named, subset
from varitext.evaluation.calibration import TopAnswers, top_answers
from varitext.evaluation.ranking import RankingRecord, counted_rows, ranking_record


@dataclass(frozen=True, eq=False)
class EvaluatedAnswers:
    """One entry per pair of the questions that count, question after question."""

    ranker: AnswerRanker
    questions: QuestionAnswers
    evaluation: AnswerEvaluation
    ids: np.ndarray  # [P] of the question, as in `evaluation.ranking`
    probability: np.ndarray  # [P] of being right
    best: np.ndarray  # [P] of being the best right answer, given that there is one

    @cached_property
    def question_by_id(self) -> dict[object, Question]:
        every = (self.questions.questions[group] for group in self.questions.groups)
        return dict(zip(self.ids.tolist(), every, strict=True))

    @cached_property
    def top(self) -> TopAnswers:
        return top_answers(self.probability, self.questions.labels, self.ids)

    @property
    def has_latent(self) -> bool:
        return self.ranker.fitted_.network.has_latent


class Baseline(NamedTuple):
    """A ranking that reads no sentence."""

    name: str
    ranking: RankingRecord


def evaluate_answers(ranker: AnswerRanker, question_answers: QuestionAnswers, protocol: str) -> EvaluatedAnswers:
    """The evaluation is that of `AnswerRanker.evaluate`, to the bit."""
    arranged = canonical_order(question_answers).question_answers
    evaluation, posterior = ranker.evaluate(arranged, protocol), ranker.ranking_posterior(arranged)
    given = posterior.given_answer()
    said = given if protocol_named(protocol).needs_right else posterior
    counted, rows = subset(arranged, protocol), counted_rows(arranged.labels, arranged.groups, protocol)
    return EvaluatedAnswers(
        ranker, counted, evaluation, question_ids(arranged)[rows], said.right[rows], given.best[rows]
    )


def baselines(evaluated: EvaluatedAnswers) -> list[Baseline]:
    """What no ranking should fall below, on the same questions under the same protocol."""
    questions = evaluated.questions
    features = evaluated.ranker.fitted_.overlap.features(questions)
    column = dict(zip(features.columns, features.values.T, strict=True))
    scores = {
        "random order": np.zeros(questions.n_pairs),
        "word count": column["word_overlap_all"],
        "word count weighed by idf": column["idf_overlap_all"],
        "place in its document": -column["log_position"],
    }
    protocol = evaluated.evaluation.ranking.protocol
    return [
        Baseline(name, ranking_record(values, questions.labels, evaluated.ids, protocol))
        for name, values in scores.items()
        if np.isfinite(values).all()
    ]


def is_best(evaluated: EvaluatedAnswers) -> np.ndarray:
    """Whether each candidate is the most probable of the right ones of its question; of equal ones the first is."""
    labels, groups = evaluated.questions.labels, evaluated.questions.groups
    right = np.flatnonzero(labels)
    surest_first = right[np.lexsort((right, -evaluated.probability[right], groups[right]))]
    best = np.zeros(len(labels), np.int8)
    best[surest_first[np.unique(groups[surest_first], return_index=True)[1]]] = 1
    return best
