"""How well questions of each kind are answered, by their question word."""

from typing import NamedTuple

import plotly.graph_objects as go

from varitext.evaluation.question_words import QUESTION_WORDS, question_words
from varitext.evaluation.significance import Interval, bootstrap_interval
from varitext.report.answers.evaluated import JudgedAnswers
from varitext.report.drawing.style import ACCENT, quiet_figure


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


def question_word_plot(results: list[WordResult]) -> go.Figure:
    """One line per question word, with its 95 % interval."""
    values = [one.average_precision for one in reversed(results)]
    rows = list(range(len(results)))
    points = go.Scatter(
        x=[value.mean for value in values],
        y=rows,
        mode="markers",
        marker={"color": ACCENT, "size": 10},
        error_x={
            "array": [value.high - value.mean for value in values],
            "arrayminus": [value.mean - value.low for value in values],
            "color": ACCENT,
            "thickness": 2,
            "width": 0,
        },
        customdata=[[value.low, value.high] for value in values],
        hovertemplate="MAP %{x:.4f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<extra></extra>",
    )
    figure = quiet_figure([points], height=62 + 30 * len(results))
    names = [f"{one.question_word} ({one.n_questions:,})" for one in reversed(results)]
    figure.update_layout(
        xaxis={"title": {"text": "MAP"}, "range": [0, 1.02]},
        yaxis={"tickvals": rows, "ticktext": names, "showgrid": False, "range": [-0.6, len(results) - 0.4]},
    )
    return figure
