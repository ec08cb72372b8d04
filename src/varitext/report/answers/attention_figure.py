"""Attention as a picture: words on grounds, bars for the spread below them."""

from collections.abc import Sequence

from varitext.report.answers.attention import QuestionHeat, WordHeat
from varitext.report.drawing.canvas import Axes, Figure, canvas, drawing_style, rectangles, shortened, text_width
from varitext.report.drawing.style import INK, MIDDLE_INK
from varitext.report.escaping import printable

GROUND, SPREAD = "#1f6feb", "#d29922"
SIZE = 12
GAP, PADDING = 3.0, 4.0  # pixels between two words, and around each
LINE = 36.0  # from one row of words to the next
WIDTH, LEFT = 900.0, 24.0


def heat_figure(heats: Sequence[QuestionHeat]) -> Figure:
    """The questions with their answers; the height is known once the words are laid out."""
    height = 46.0
    for heat in heats:
        height += 26 + sum(30 + LINE * len(_rows(answer.words, WIDTH - 2 * LEFT)) for answer in heat.answers)
    with drawing_style():
        figure, axes = canvas(WIDTH, height, "Attention on the words of answers")
        top = 54.0
        reading = "The darker a word, the more attention above equal weights; the bar below is its spread over samples"
        axes.text(LEFT, 24, reading, color=MIDDLE_INK)
        for heat in heats:
            question = shortened(printable(heat.question), 15, 0.9 * WIDTH)  # bold type is wider
            axes.text(LEFT, top, question, fontsize=14, fontweight="bold")
            for answer in heat.answers:
                axes.text(LEFT, top + 24, answer.about, fontsize=11, color=MIDDLE_INK)
                for row in _rows(answer.words, WIDTH - 2 * LEFT):
                    draw_words(axes, row, LEFT, top + 32)
                    top += LINE
                top += 30
            top += 26
    return figure


def draw_words(axes: Axes, words: Sequence[WordHeat], left: float, top: float) -> None:
    """One row of words."""
    bars = []
    for one in words:
        width = _width(one)
        rectangles(axes, [(left, top, width, 24)], GROUND, 0.75 * one.heat)
        axes.text(left + PADDING, top + 17, printable(one.word), fontsize=SIZE, color=INK)
        if one.spread > 0:
            bars.append((left, top + 26, width * one.spread, 4.0))
        left += width + GAP
    rectangles(axes, bars, SPREAD)


def width_of_words(words: Sequence[WordHeat]) -> float:
    """Pixels that a row of words takes, gaps included."""
    return sum(_width(one) + GAP for one in words)


def _width(one: WordHeat) -> float:
    return text_width(printable(one.word), SIZE) + 2 * PADDING


def _rows(words: Sequence[WordHeat], width: float) -> list[list[WordHeat]]:
    """As many rows as the words need."""
    rows: list[list[WordHeat]] = [[]]
    for one in words:
        if rows[-1] and width_of_words([*rows[-1], one]) > width:
            rows.append([])
        rows[-1].append(one)
    return rows
