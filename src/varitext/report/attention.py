"""Attention of an answer model on words, and Hinton diagrams of the width of p(h | q) (paper, Figure 5)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import RankedCandidate
from varitext.batches.pairs import PairBatches
from varitext.charts.colours import INK, MIDDLE_INK
from varitext.charts.records import printable
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.attention import strength
from varitext.evaluation.ranking import question_words
from varitext.models.answers.network import AnswerNetwork
from varitext.report.drawing import Axes, Figure, canvas, drawing_style, rectangles, shortened, text_width

# Attention


class WordHeat(NamedTuple):
    word: str
    mean: float  # attention weight, over samples of h
    std: float
    heat: float  # how far the mean exceeds an equal weight: 0 if it does not, 1 at eight times an equal weight
    spread: float  # the standard deviation relative to the mean, at most 1


class AnswerHeat(NamedTuple):
    candidate: RankedCandidate
    right: bool
    with_spread: bool = True  # over samples of h; False if the latent variable has collapsed

    @property
    def about(self) -> str:
        one, (low, high) = self.candidate, self.candidate.rank_interval
        ranks = f"{low}" if low == high else f"{low} to {high}"
        kind = "right answer" if self.right else "wrong answer"
        interval = f"rank {one.rank} ({one.rank_interval_probability:.0%} interval: {ranks})"
        return f"{kind} · {interval} · P(right) {one.probability:.2f} · P(best) {one.probability_best:.2f}"

    @property
    def words(self) -> list[WordHeat]:
        mean, std = self.candidate.attention_mean or (), self.candidate.attention_std or ()
        return word_heats(self.candidate.words, mean, std if self.with_spread else (0.0,) * len(std))


class QuestionHeat(NamedTuple):
    question: str
    answers: tuple[AnswerHeat, ...]


def word_heats(
    words: Sequence[str], mean: Sequence[float], std: Sequence[float], relative: bool = False
) -> list[WordHeat]:
    """The heat of each word; `relative` heats range from 0 for the sentence's lowest weight to 1 for its highest."""
    low, high = min(mean, default=0.0), max(mean, default=0.0)
    heats = [(one - low) / max(high - low, 1e-12) for one in mean] if relative else strength(mean)
    return [
        WordHeat(word, weight, spread, heat, min(1.0, spread / max(weight, 1e-9)))
        for word, weight, spread, heat in zip(words, mean, std, heats, strict=True)
    ]


# Attention as a figure

HEAT_COLOUR, SPREAD_COLOUR = "#1f6feb", "#d29922"
SIZE = 12
WORD_GAP, PADDING = 3.0, 4.0  # pixels between two words, and around each
LINE = 36.0  # from one row of words to the next
WIDTH, MARGIN = 900.0, 24.0


def heat_figure(heats: Sequence[QuestionHeat]) -> Figure | None:
    """The questions with their answers; None if there are none."""
    if not heats:
        return None
    rows = [[_rows(answer.words, WIDTH - 2 * MARGIN) for answer in heat.answers] for heat in heats]
    height = 46.0 + sum(26 + sum(30 + LINE * len(lines) for lines in of_question) for of_question in rows)
    with drawing_style():
        figure, axes = canvas(WIDTH, height, "Attention on the words of answers")
        top = 54.0
        reading = (
            "Highlighted words get more than an equal share of the attention; the bar shows its spread over samples"
        )
        axes.text(MARGIN, 24, reading, color=MIDDLE_INK)
        for heat, of_question in zip(heats, rows, strict=True):
            question = shortened(printable(heat.question), 15, 0.9 * WIDTH)  # bold type is wider
            axes.text(MARGIN, top, question, fontsize=14, fontweight="bold")
            for answer, lines in zip(heat.answers, of_question, strict=True):
                axes.text(MARGIN, top + 24, answer.about, fontsize=11, color=MIDDLE_INK)
                for row in lines:
                    draw_words(axes, row, MARGIN, top + 32)
                    top += LINE
                top += 30
            top += 26
    return figure


def draw_words(axes: Axes, words: Sequence[WordHeat], left: float, top: float) -> None:
    """Draw one row of words."""
    bars = []
    for one in words:
        width = _width(one)
        rectangles(axes, [(left, top, width, 24)], HEAT_COLOUR, 0.75 * one.heat)
        axes.text(left + PADDING, top + 17, printable(one.word), fontsize=SIZE, color=INK)
        if one.spread > 0:
            bars.append((left, top + 26, width * one.spread, 4.0))
        left += width + WORD_GAP
    rectangles(axes, bars, SPREAD_COLOUR)


def width_of_words(words: Sequence[WordHeat]) -> float:
    """Pixels that a row of words takes, gaps included."""
    return sum(_width(one) + WORD_GAP for one in words)


def _width(one: WordHeat) -> float:
    return text_width(printable(one.word), SIZE) + 2 * PADDING


def _rows(words: Sequence[WordHeat], width: float) -> list[list[WordHeat]]:
    """Break the words into as many rows as they need."""
    rows: list[list[WordHeat]] = [[]]
    for one in words:
        if rows[-1] and width_of_words([*rows[-1], one]) > width:
            rows.append([])
        rows[-1].append(one)
    return rows


# Hinton diagrams

GROUPS = ("how", "what", "who", "when", "where")
PER_GROUP = 10  # questions of each, as in the paper: 50 distributions
CELL, GAP, LEFT = 9, 22, 60  # pixels: size of a cell, gap between two words, left edge of the squares
HEADING = 36  # pixels from the top, if models have names
KEY, BETWEEN = 30, 24  # pixels: of the key under a model, and between two models
LARGEST = 0.9  # of a cell, so that the background shows between two squares
GROUND, ABOVE, BELOW = "#8b949e", "#ffffff", "#0b0d10"


def prior_log_std(ranker: AnswerRanker, question_answers: QuestionAnswers) -> np.ndarray:
    """The log standard deviations of p(h | q), [questions, K], in the order of the corpus."""
    network = ranker.fitted_.network
    assert isinstance(network, AnswerNetwork)  # a scorer has no latent
    batches = PairBatches(question_answers, ranker.fitted_.vocabulary, 512).in_order()
    return np.concatenate([network.prior_by_question(network.encode(batch)).log_std.cpu().numpy() for batch in batches])


def rows_by_group(questions: Iterable[str]) -> dict[str, np.ndarray]:
    """The rows of the questions that start with each question word; words without a question are left out."""
    words = question_words(questions, leading=True)
    rows = {group: np.flatnonzero(words == group) for group in GROUPS}
    return {group: found for group, found in rows.items() if len(found)}


def first_log_std(ranker: AnswerRanker, question_answers: QuestionAnswers) -> dict[str, np.ndarray]:
    """Log standard deviations for the first `PER_GROUP` questions that start with each word."""
    log_std = prior_log_std(ranker, question_answers)
    rows = rows_by_group(question.text for question in question_answers.questions)
    return {group: log_std[chosen[:PER_GROUP]] for group, chosen in rows.items()}


def hinton_figure(models: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """A square per question and dimension, sized by the distance of its log std from the dimension's mean.

    White is above the mean and black below. Each model has its own scale, shown in a key under it. `models` has
    [questions, K] for each question word of each model; models are side by side, each under its name.
    """
    first = HEADING if any(models) else 10
    shown = {name: _from_mean(values) for name, values in models.items()}
    tallest = max((sum(len(array) * CELL + GAP for array in values.values()) for values in shown.values()), default=0)
    widths = [_width_of(name, values) for name, values in shown.items()]
    with drawing_style():
        width = LEFT + sum(one + BETWEEN for one in widths)
        figure, axes = canvas(width, first + tallest + KEY, "Log standard deviations of p(h | q)")
        left = float(LEFT)
        for (name, values), wide in zip(shown.items(), widths, strict=True):
            if name:
                axes.text(left, HEADING - 14, name, fontsize=13)
            _draw(axes, values, left, first)
            _draw_key(axes, values, left, first + tallest)
            left += wide + BETWEEN
    return figure


def _width_of(name: str, values: Mapping[str, np.ndarray]) -> float:
    squares = max((array.shape[1] * CELL for array in values.values()), default=CELL)
    return max(squares, text_width(name, 13), 4 * CELL + text_width(_key(values), 11))


def _from_mean(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every log std as its distance from the mean of its dimension over all questions."""
    if not values:
        return {}
    mean = np.concatenate([*values.values()]).mean(0)  # [K]
    return {group: array - mean for group, array in values.items()}


def _largest(values: Mapping[str, np.ndarray]) -> float:
    return max((float(np.abs(array).max()) for array in values.values() if array.size), default=0.0)


def _draw(axes: Axes, values: Mapping[str, np.ndarray], left: float, top: float) -> None:
    largest = max(_largest(values), np.finfo(float).tiny)
    for group, array in values.items():
        high = len(array) * CELL
        if left == LEFT:
            axes.text(8, top + high / 2, group, fontsize=13, va="center")
        rectangles(axes, [(left, top, array.shape[1] * CELL, high)], GROUND)
        for colour, kept in ((ABOVE, array > 0), (BELOW, array < 0)):
            side = LARGEST * CELL * np.sqrt(np.abs(array[kept]) / largest)
            row, column = np.nonzero(kept)
            x, y = left + (column + 0.5) * CELL - side / 2, top + (row + 0.5) * CELL - side / 2
            rectangles(axes, np.stack([x, y, side, side], 1).tolist(), colour)
        top += high + GAP


def _key(values: Mapping[str, np.ndarray]) -> str:
    return f"{_largest(values):.2g} above or below the dimension's mean"


def _draw_key(axes: Axes, values: Mapping[str, np.ndarray], left: float, top: float) -> None:
    """The largest square in either colour, and what it stands for."""
    rectangles(axes, [(left, top, 3 * CELL, 2 * CELL)], GROUND)
    side = LARGEST * CELL
    for place, colour in enumerate((ABOVE, BELOW)):
        rectangles(axes, [(left + (0.5 + place) * CELL, top + CELL - side / 2, side, side)], colour)
    axes.text(left + 4 * CELL, top + CELL, _key(values), fontsize=11, va="center")
