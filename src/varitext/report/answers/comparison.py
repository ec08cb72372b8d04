"""A ranking beside the floors, measured on the same questions, and beside the paper's figures where they apply."""

from typing import NamedTuple

import plotly.graph_objects as go

from varitext import paper
from varitext.corpora.protocols import protocol_named
from varitext.evaluation.ranking import RankingRecord
from varitext.report.answers.evaluated import JudgedAnswers, floors
from varitext.report.drawing.style import ACCENT, FAINT, WARM, quiet_figure
from varitext.report.escaping import for_plotly

MEASURES = ("MAP", "MRR")


class Compared(NamedTuple):
    """One row: a value for each of `MEASURES`; the paper gives no intervals."""

    name: str
    values: tuple[float, float]
    intervals: tuple[tuple[float, float], tuple[float, float]] | None
    colour: str


def compared(judged: JudgedAnswers) -> list[Compared]:
    """Floors first, then the model, then the paper."""
    rows = [_measured(floor.name, floor.ranking, FAINT) for floor in floors(judged)]
    rows.append(_measured(system_name(judged), judged.evaluation.ranking, ACCENT))
    return rows + [Compared(f"paper: {name}", values, None, WARM) for name, values in paper_rows(judged).items()]


def comparison(rows: list[Compared], measure: str) -> go.Figure:
    """One line per row, with its 95 % interval over questions."""
    place = MEASURES.index(measure)
    points = [_point(row, place, height) for height, row in enumerate(reversed(rows))]
    figure = quiet_figure(points, height=62 + 30 * len(rows))
    names = [for_plotly(row.name) for row in reversed(rows)]
    figure.update_layout(
        xaxis={"title": {"text": measure}, "nticks": 6},
        yaxis={"tickvals": list(range(len(rows))), "ticktext": names, "showgrid": False},
    )
    figure.update_yaxes(range=[-0.6, len(rows) - 0.4])
    return figure


def system_name(judged: JudgedAnswers) -> str:
    """As Table 4 calls it."""
    joined = () if judged.ranker.combination_ is None else (judged.ranker.counts, judged.ranker.position)
    suffix = "".join(f" + {name}" for name, on in zip(("Cnt", "position"), joined, strict=False) if on)
    return paper.ANSWER_SYSTEMS.get(judged.ranker.model, judged.ranker.model) + suffix


def paper_rows(judged: JudgedAnswers) -> dict[str, tuple[float, float]]:
    """MAP and MRR of the same system without and with counts, on the scale of this protocol; none for other data."""
    evaluation = judged.evaluation
    corpus, protocol = evaluation.corpus, evaluation.ranking.protocol
    if evaluation.part != "test" or protocol not in paper.ANSWER_PROTOCOLS.get(corpus, ()):
        return {}
    model = paper.ANSWER_SYSTEMS.get(judged.ranker.model, "")
    shown = [name for name in (model, f"{model} + Cnt") if name in paper.ANSWERS[corpus]] or ["NASM + Cnt"]
    scale = protocol_named(protocol).scale / paper.ANSWER_SCALE[corpus]
    return {name: tuple(scale * value for value in paper.ANSWERS[corpus][name]) for name in shown}


def _measured(name: str, ranking: RankingRecord, colour: str) -> Compared:
    intervals = (ranking.map_interval_95, ranking.mrr_interval_95)
    return Compared(name, (ranking.map, ranking.mrr), intervals, colour)


def _point(row: Compared, place: int, height: int) -> go.Scatter:
    value = row.values[place]
    low, high = row.intervals[place] if row.intervals else (value, value)
    point = go.Scatter(
        x=[value],
        y=[height],
        mode="markers",
        marker={"color": row.colour, "size": 10},
        customdata=[[low, high]],
        hovertemplate="%{x:.4f}"
        + (" (%{customdata[0]:.3f} to %{customdata[1]:.3f})" if row.intervals else "")
        + "<extra></extra>",
    )
    if row.intervals:
        spans = {"array": [high - value], "arrayminus": [value - low]}
        point.update(error_x=spans | {"color": row.colour, "thickness": 2, "width": 0})
    return point
