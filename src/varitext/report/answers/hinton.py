"""Hinton diagrams (paper, Figure 5): how wide p(h | q) is on every dimension, by the word a question starts with."""

from collections.abc import Iterable, Mapping

import numpy as np

from varitext.answers.ranker import AnswerRanker
from varitext.batches.pairs import PairBatches
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.ranking import question_words
from varitext.models.answers.network import AnswerNetwork
from varitext.report.drawing.canvas import Axes, Figure, canvas, drawing_style, rectangles, text_width

GROUPS = ("how", "what", "who", "when", "where")
PER_GROUP = 10  # questions of each, as in the paper: 50 distributions
CELL, GAP, LEFT = 9, 22, 60  # pixels: of a dimension, between two words, where squares begin
HEADING = 36  # pixels from the top, where models have names
LARGEST = 0.9  # of a cell: the ground shows between two squares
GROUND, ABOVE, BELOW = "#8b949e", "#ffffff", "#0b0d10"


def prior_log_std(ranker: AnswerRanker, question_answers: QuestionAnswers) -> np.ndarray:
    """The log standard deviations of p(h | q), [questions, K], in the order of the corpus."""
    network = ranker.fitted_.network
    assert isinstance(network, AnswerNetwork)  # a scorer has no latent
    batches = PairBatches(question_answers, ranker.fitted_.vocabulary, 512).in_order()
    return np.concatenate([network.prior_by_question(network.encode(batch)).log_std.cpu().numpy() for batch in batches])


def rows_by_group(questions: Iterable[str]) -> dict[str, np.ndarray]:
    """Which questions start with each of the words; words that none starts with are left out."""
    words = question_words(questions, leading=True)
    rows = {group: np.flatnonzero(words == group) for group in GROUPS}
    return {group: found for group, found in rows.items() if len(found)}


def first_log_std(ranker: AnswerRanker, question_answers: QuestionAnswers) -> dict[str, np.ndarray]:
    """Of the first `PER_GROUP` questions that start with each word."""
    log_std = prior_log_std(ranker, question_answers)
    rows = rows_by_group(question.text for question in question_answers.questions)
    return {group: log_std[chosen[:PER_GROUP]] for group, chosen in rows.items()}


def hinton_figure(values: Mapping[str, np.ndarray]) -> Figure:
    """A square per question and dimension: as large as its log std is far from zero; white above zero, black below.

    `values` are [questions, K] for each word.
    """
    return hinton_figures({"": values})


def hinton_figures(models: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """The same for several models beside each other, on one scale, each under its name."""
    arrays = [array for values in models.values() for array in values.values()]
    largest = max((float(np.abs(array).max()) for array in arrays), default=1.0)
    first = HEADING if any(models) else 10
    tallest = max((sum(len(array) * CELL + GAP for array in values.values()) for values in models.values()), default=0)
    widths = [max((array.shape[1] * CELL for array in values.values()), default=CELL) for values in models.values()]
    width = LEFT + sum(max(one, text_width(name, 13)) + 10 for one, name in zip(widths, models, strict=True))
    with drawing_style():
        figure, axes = canvas(width, first + tallest, "Log standard deviations of p(h | q)")
        left = float(LEFT)
        for (name, values), wide in zip(models.items(), widths, strict=True):
            if name:
                axes.text(left, HEADING - 14, name, fontsize=13)
            _draw(axes, values, largest, left, first)
            left += max(wide, text_width(name, 13)) + 10
    return figure


def _draw(axes: Axes, values: Mapping[str, np.ndarray], largest: float, left: float, top: float) -> None:
    for group, array in values.items():
        high = len(array) * CELL
        if left == LEFT:
            axes.text(8, top + high / 2, group, fontsize=13, va="center")
        rectangles(axes, [(left, top, array.shape[1] * CELL, high)], GROUND)
        rectangles(axes, _squares(array, largest, left, top, positive=True), ABOVE)
        rectangles(axes, _squares(array, largest, left, top, positive=False), BELOW)
        top += high + GAP


def _squares(
    array: np.ndarray, largest: float, left: float, top: float, positive: bool
) -> list[tuple[float, float, float, float]]:
    squares = []
    for (row, column), value in np.ndenumerate(array):
        if value and (value > 0) == positive:
            side = LARGEST * CELL * float(np.sqrt(abs(value) / largest))
            x, y = left + (column + 0.5) * CELL - side / 2, top + (row + 0.5) * CELL - side / 2
            squares.append((x, y, side, side))
    return squares
