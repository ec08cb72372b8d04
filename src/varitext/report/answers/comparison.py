"""A ranking beside the baselines, measured on the same questions, and beside the paper's values where they apply."""

from typing import NamedTuple

import numpy as np

from varitext import paper
from varitext.corpora.question_answers import protocol_named
from varitext.evaluation.ranking import RankingRecord
from varitext.paper import MapMrr
from varitext.report.answers.evaluated import EvaluatedAnswers, baselines
from varitext.report.drawing.charts import Axis, Intervals
from varitext.report.drawing.style import ACCENT, FAINT, WARM

MEASURES = ("MAP", "MRR")


class Compared(NamedTuple):
    """One row: a value for each of `MEASURES`; the paper gives no intervals."""

    name: str
    values: tuple[float, float]
    intervals: tuple[tuple[float, float], tuple[float, float]] | None
    colour: str


def compared(evaluated: EvaluatedAnswers) -> list[Compared]:
    """Floors first, then the model, then the paper."""
    rows = [_measured(baseline.name, baseline.ranking, FAINT) for baseline in baselines(evaluated)]
    rows.append(_measured(system_name(evaluated), evaluated.evaluation.ranking, ACCENT))
    return rows + [Compared(f"paper: {name}", values, None, WARM) for name, values in paper_rows(evaluated).items()]


def comparison(rows: list[Compared], measure: str) -> Intervals:
    """One line per row, with its 95 % interval over questions."""
    place = MEASURES.index(measure)
    values = [row.values[place] for row in rows]
    ends = [row.intervals[place] if row.intervals else (value, value) for row, value in zip(rows, values, strict=True)]
    hover = [
        f"{value:.4f}" + (f" ({low:.3f} to {high:.3f})" if row.intervals else "")
        for row, value, (low, high) in zip(rows, values, ends, strict=True)
    ]
    low, high = np.transpose(ends)
    names, colours = [row.name for row in rows], [row.colour for row in rows]
    return Intervals(names, np.array(values), low, high, colours, hover, Axis(measure))


def system_name(evaluated: EvaluatedAnswers) -> str:
    """As Table 4 calls it."""
    ranker = evaluated.ranker
    joined: dict[str, bool] = (
        {} if ranker.fitted_.combination is None else {"Cnt": ranker.counts, "position": ranker.position}
    )
    suffix = "".join(f" + {name}" for name, on in joined.items() if on)
    return paper.ANSWER_SYSTEMS.get(ranker.model, ranker.model) + suffix


def paper_rows(evaluated: EvaluatedAnswers) -> dict[str, MapMrr]:
    """Of the same system without and with counts, on the scale of this protocol; none for other data."""
    evaluation = evaluated.evaluation
    corpus, protocol = evaluation.corpus, evaluation.ranking.protocol
    if evaluation.part != "test" or protocol not in paper.ANSWER_PROTOCOLS.get(corpus, ()):
        return {}
    rows, name = paper.ANSWERS[corpus], paper.ANSWER_SYSTEMS.get(evaluated.ranker.model, "")
    same = [one for one in (name, f"{name} + Cnt") if one in rows] or ["NASM + Cnt"]
    scale = protocol_named(protocol).scale / paper.ANSWER_SCALE[corpus]
    return {one: MapMrr(scale * rows[one].map, scale * rows[one].mrr) for one in same}


def _measured(name: str, ranking: RankingRecord, colour: str) -> Compared:
    intervals = (ranking.map_interval_95, ranking.mrr_interval_95)
    return Compared(name, (ranking.map, ranking.mrr), intervals, colour)
