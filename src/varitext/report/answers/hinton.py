"""Hinton diagrams (paper, Figure 5): how wide p(h | q) is on every dimension, by the word a question starts with."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from varitext.batches.pairs import PairBatches
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.question_words import question_words
from varitext.report.drawing.shapes import Drawing

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker

GROUPS = ("how", "what", "who", "when", "where")
PER_GROUP = 10  # questions of each, as in the paper: 50 distributions
CELL = 9  # pixels
LARGEST = 0.9  # of a cell: the ground shows between two squares


def prior_log_std(ranker: "AnswerRanker", question_answers: QuestionAnswers) -> np.ndarray:
    """The log standard deviations of p(h | q), [questions, K], in the order of the corpus."""
    network = ranker.network_
    batches = PairBatches(question_answers, ranker.vocabulary_, 512).in_order()
    return np.concatenate([network.prior_by_question(network.encode(batch)).log_std.cpu().numpy() for batch in batches])


def rows_by_group(questions: Iterable[str]) -> dict[str, np.ndarray]:
    """Which questions start with each of the words; words that none starts with are left out."""
    words = question_words(questions, leading=True)
    rows = {group: np.flatnonzero(words == group) for group in GROUPS}
    return {group: found for group, found in rows.items() if len(found)}


def shown_log_std(ranker: "AnswerRanker", question_answers: QuestionAnswers) -> dict[str, np.ndarray]:
    """Of the first `PER_GROUP` questions that start with each word."""
    log_std = prior_log_std(ranker, question_answers)
    rows = rows_by_group(question.text for question in question_answers.questions)
    return {group: log_std[chosen[:PER_GROUP]] for group, chosen in rows.items()}


def hinton_drawing(values: Mapping[str, np.ndarray]) -> Drawing:
    """A square per question and dimension: as large as its log std is far from zero; white above zero, black below.

    `values` are [questions, K] for each word.
    """
    dims = max((array.shape[1] for array in values.values()), default=1)
    height = sum(len(array) * CELL + 22 for array in values.values()) + 10
    drawing = Drawing(70 + dims * CELL, height, "Log standard deviations of p(h | q)")
    largest, top = max((np.abs(array).max() for array in values.values()), default=1.0), 10.0
    for group, array in values.items():
        drawing.text(8, top + len(array) * CELL / 2, group, 13)
        drawing.rectangle(60, top, dims * CELL, len(array) * CELL, "#8b949e")
        for (row, column), value in np.ndenumerate(array):
            side = LARGEST * CELL * np.sqrt(abs(value) / largest) if largest > 0 else 0.0
            x, y = 60 + (column + 0.5) * CELL - side / 2, top + (row + 0.5) * CELL - side / 2
            drawing.rectangle(x, y, side, side, "white" if value > 0 else "black")
        top += len(array) * CELL + 22
    return drawing
