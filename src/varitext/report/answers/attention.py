"""Where a model looks: the words of an answer on a ground that darkens with attention, a bar for how unsure that is."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from varitext.answers.ranking import RankedCandidate
from varitext.corpora.question_answers import Question
from varitext.errors import InputError
from varitext.report.answers.evaluated import JudgedAnswers
from varitext.report.drawing.shapes import Drawing, shortened
from varitext.report.escaping import for_html

QUESTIONS = 6
FIRST_ANSWERS = 3
GROUND, SPREAD = "#1f6feb", "#d29922"
GAP = 3.0  # pixels between two words
LINE = 38.0  # from one row of words to the next
WIDTH, LEFT = 900.0, 24.0
RULE = (
    f"{QUESTIONS} questions, evenly spaced from the one whose first answer is most probable to the one whose is least; "
    f"the first {FIRST_ANSWERS} answers of each, and the first right one if it is not among them"
)


class AnswerHeat(NamedTuple):
    candidate: RankedCandidate
    right: bool


class QuestionHeat(NamedTuple):
    question: str
    answers: tuple[AnswerHeat, ...]


def attention_heat(judged: JudgedAnswers, number: int = QUESTIONS) -> list[QuestionHeat]:
    """Questions that count, chosen by `RULE`; none for a model without attention."""
    surest_first = np.argsort(-judged.top.confidence, kind="stable")
    places = np.unique(np.linspace(0, len(surest_first) - 1, min(number, len(surest_first))).round().astype(int))
    ids = judged.top.question_ids[surest_first[places]].tolist()
    return list(_heats(judged, [judged.question_by_id[one] for one in ids]))


def heat_cards(heats: Sequence[QuestionHeat]) -> str:
    """As HTML: the words wrap on a phone."""
    return f'<div class="heats">{"".join(map(_card, heats))}</div>'


def heat_drawing(heats: Sequence[QuestionHeat]) -> Drawing:
    """The same as a picture."""
    drawing, top = Drawing(WIDTH, 0, "Attention on the words of answers"), 52.0
    drawing.text(
        LEFT, 22, "The darker a word, the more attention; the bar below it is the spread over samples of h", 12
    )
    for heat in heats:
        drawing.text(LEFT, top, shortened(heat.question, 15, WIDTH - 2 * LEFT), 15, "bold")
        for answer in heat.answers:
            drawing.text(LEFT, top + 22, _about(answer), 11.5, fill="#57606a")
            one = answer.candidate
            top = draw_words(drawing, one.words, one.attention_mean, one.attention_std, LEFT, top + 30, WIDTH - LEFT)
        top += 34
    drawing.height = top
    return drawing


def draw_words(
    drawing: Drawing,
    words: Sequence[str],
    mean: Sequence[float],
    std: Sequence[float],
    left: float,
    top: float,
    right: float = np.inf,
) -> float:
    """A row of words from `left`, and more rows where they would pass `right`; gives where the last one begins."""
    x, highest = left, max(mean, default=1.0)
    for word, weight, spread in zip(words, mean, std, strict=True):
        width = width_of_words([word]) - GAP
        if x > left and x + width > right:
            x, top = left, top + LINE
        drawing.rectangle(x, top, width, 24, GROUND, weight / highest * 0.75)
        drawing.text(x + 4, top + 17, word)
        if spread > 0:
            drawing.rectangle(x, top + 26, width * _relative(spread, weight), 4, SPREAD)
        x += width + GAP
    return top + LINE - 8 if np.isfinite(right) else top


def width_of_words(words: Sequence[str]) -> float:
    """Pixels that a row of words takes, gaps included."""
    return sum(8 + 7.2 * len(word) + GAP for word in words)


# Inside


def _heats(judged: JudgedAnswers, questions: Sequence[Question]) -> Iterator[QuestionHeat]:
    for question in questions:
        texts = [one.text for one in question.candidates]
        positions = [one.position for one in question.candidates] if judged.ranker.reads_positions_ else None
        try:
            ranking = judged.ranker.rank(question.text, texts, positions=positions)
        except InputError:  # no word that the model knows: there is nothing to look at
            continue
        answers = [AnswerHeat(one, bool(question.candidates[one.place].label)) for one in ranking.candidates]
        shown = [answer for answer in _first_ones(answers) if answer.candidate.attention_mean]
        if shown:
            yield QuestionHeat(question.text, tuple(shown))


def _first_ones(answers: list[AnswerHeat]) -> list[AnswerHeat]:
    first, others = answers[:FIRST_ANSWERS], answers[FIRST_ANSWERS:]
    if not any(answer.right for answer in first):
        first += [answer for answer in others if answer.right][:1]
    return first


def _about(answer: AnswerHeat) -> str:
    one, (low, high) = answer.candidate, answer.candidate.rank_interval
    held = f"{low}" if low == high else f"{low} to {high}"
    return (
        f"{'right' if answer.right else 'wrong'} · rank {one.rank} ({held} with 90 %) · "
        f"probability {one.probability:.2f} · of being best {one.probability_best:.2f}"
    )


def _card(heat: QuestionHeat) -> str:
    answers = "".join(_answer(answer) for answer in heat.answers)
    title = f'<figcaption class="title" dir="auto">{for_html(heat.question)}</figcaption>'
    return f"<figure>{title}<ol>{answers}</ol></figure>"


def _answer(answer: AnswerHeat) -> str:
    one = answer.candidate
    highest = max(one.attention_mean)
    words = " ".join(
        f'<span style="--heat:{mean / highest:.3f};--spread:{_relative(std, mean):.3f}" '
        f'title="{mean:.3f} ± {std:.3f}">{for_html(word)}</span>'
        for word, mean, std in zip(one.words, one.attention_mean, one.attention_std, strict=True)
    )
    kind = "right" if answer.right else "wrong"
    return f'<li class="{kind}"><p class="note">{_about(answer)}</p><p class="heat" dir="auto">{words}</p></li>'


def _relative(spread: float, weight: float) -> float:
    return min(1.0, spread / max(weight, 1e-9))
