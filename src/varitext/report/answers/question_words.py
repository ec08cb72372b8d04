"""How well questions of each kind are answered, by their question word."""

from typing import NamedTuple

import numpy as np

from varitext.evaluation.ranking import QUESTION_WORDS, question_words
from varitext.evaluation.significance import Interval, bootstrap_interval
from varitext.report.answers.evaluated import EvaluatedAnswers
from varitext.report.drawing.charts import Axis, Intervals
from varitext.report.drawing.style import ACCENT


class WordResult(NamedTuple):
    question_word: str
    n_questions: int
    average_precision: Interval


def results_by_word(evaluated: EvaluatedAnswers) -> list[WordResult]:
    """MAP and its interval over questions, for every question word that is there, the most frequent first."""
    ranking = evaluated.evaluation.ranking
    words = question_words(evaluated.question_by_id[one].text for one in ranking.question_ids.tolist())
    found = [
        WordResult(
            word,
            int((words == word).sum()),
            bootstrap_interval(ranking.average_precision[words == word], seed=evaluated.ranker.seed),
        )
        for word in QUESTION_WORDS
        if (words == word).any()
    ]
    return sorted(found, key=lambda one: -one.n_questions)


def question_word_chart(results: list[WordResult]) -> Intervals:
    """One line per question word, with its 95 % interval."""
    values = [one.average_precision for one in results]
    return Intervals(
        [f"{one.question_word} ({one.n_questions:,})" for one in results],
        np.array([value.mean for value in values]),
        np.array([value.low for value in values]),
        np.array([value.high for value in values]),
        [ACCENT] * len(results),
        [f"MAP {value.mean:.4f} ({value.low:.3f} to {value.high:.3f})" for value in values],
        Axis("MAP", (0, 1.02)),
    )
