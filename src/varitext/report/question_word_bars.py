"""How well questions of each kind are answered, by their question word."""

from typing import NamedTuple

import plotly.graph_objects as go

from varitext.evaluation.question_words import QUESTION_WORDS, question_words
from varitext.evaluation.significance import Interval, bootstrap_interval
from varitext.report.judged_answers import JudgedAnswers
from varitext.report.style import ACCENT, MIDDLE_INK, quiet_figure


class WordResult(NamedTuple):
    question_word: str
    n_questions: int
    average_precision: Interval


def results_by_word(judged: JudgedAnswers) -> list[WordResult]:
    """MAP and its interval over questions, for every question word that is there, the most frequent first."""
    ranking = judged.evaluation.ranking
    words = question_words(judged.question_by_id[one].text for one in ranking.question_ids.tolist())
    found = [
        WordResult(
            word,
            int((words == word).sum()),
            bootstrap_interval(ranking.average_precision[words == word], seed=judged.ranker.seed),
        )
        for word in QUESTION_WORDS
        if (words == word).any()
    ]
    return sorted(found, key=lambda one: -one.n_questions)


def question_word_bars(results: list[WordResult]) -> go.Figure:
    values = [one.average_precision for one in reversed(results)]
    rows = list(range(len(results)))
    bars = go.Bar(
        x=[value.mean for value in values],
        y=rows,
        orientation="h",
        marker={"color": ACCENT},
        error_x={
            "array": [value.high - value.mean for value in values],
            "arrayminus": [value.mean - value.low for value in values],
            "color": MIDDLE_INK,
            "thickness": 2,
            "width": 0,
        },
        customdata=[[value.low, value.high] for value in values],
        hovertemplate="MAP %{x:.4f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<extra></extra>",
    )
    figure = quiet_figure([bars], height=62 + 34 * len(results))
    names = [f"{one.question_word} ({one.n_questions:,})" for one in reversed(results)]
    figure.update_layout(
        bargap=0.35,
        xaxis={"title": {"text": "MAP"}, "range": [0, 1.02]},
        yaxis={"tickvals": rows, "ticktext": names, "showgrid": False, "range": [-0.6, len(results) - 0.4]},
    )
    return figure
