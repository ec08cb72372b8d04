"""How often each category occurs within each group of documents, with intervals.

The interval is Jeffreys': the central 95 % of Beta(k + 1/2, n - k + 1/2), for k of n documents; it begins at 0 if
k = 0, and ends at 1 if k = n.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import betaincinv

from varitext.corpora.dates import BINS, bins_of, parse_dates
from varitext.errors import InputError
from varitext.records import check_at_least, check_choice

NO_VALUE = "none"  # what a document without a value counts as


class Share(NamedTuple):
    value: str
    category: int
    documents: int
    of: int
    share: float
    low: float
    high: float


def shares_by_value(
    assigned: Sequence[int | None], values: Sequence[str], categories: Sequence[int], order: Sequence[str] | None = None
) -> list[Share]:
    """Shares by value, in alphabetical order if none is given, then by category; others only count in `of`."""
    if len(assigned) != len(values):
        raise InputError(f"{len(assigned)} documents have {len(values)} values")
    totals, together = Counter(values), Counter(zip(values, assigned, strict=True))
    shown = sorted(totals) if order is None else [value for value in order if value in totals]
    cells = [(value, category) for value in shown for category in categories]
    documents = np.array([together[cell] for cell in cells], np.float64)
    of = np.array([totals[value] for value, _ in cells], np.float64)
    low = np.where(documents == 0, 0.0, betaincinv(documents + 0.5, of - documents + 0.5, 0.025))
    high = np.where(documents == of, 1.0, betaincinv(documents + 0.5, of - documents + 0.5, 0.975))
    columns = (documents.astype(int), of.astype(int), documents / of, low, high)
    rows = zip(cells, *(column.tolist() for column in columns), strict=True)
    return [Share(*cell, *numbers) for cell, *numbers in rows]


# Bins

Bins: TypeAlias = int | str | Sequence[float] | None


class Binned(NamedTuple):
    names: list[str]  # the bin of each value
    order: list[str] | None  # of the bins; None: alphabetical


def binned(values: Sequence[object], bins: Bins) -> Binned:
    """Numbers or dates in bins: a number of equally wide ones, a period such as "month", or the edges between them.

    A bin contains its lower edge, and the last one its upper edge too. Values that are missing or outside have none.
    """
    if bins is None:
        return Binned([str(value) for value in values], None)
    if isinstance(bins, str):
        check_choice("bins", bins, tuple(BINS))
        periods = bins_of(parse_dates(values, "values", "bins"), bins)
        return Binned([one or NO_VALUE for one in periods], [*sorted({one for one in periods if one}), NO_VALUE])
    numbers, shown = _numbers(values)
    edges = _edges(numbers, bins)
    titles = [f"{shown(low)} to {shown(high)}" for low, high in pairwise(edges)]
    place = np.searchsorted(edges, numbers, side="right") - 1
    place[numbers == edges[-1]] = len(titles) - 1
    inside = np.isfinite(numbers) & (place >= 0) & (place < len(titles))
    names = [titles[at] if known else NO_VALUE for at, known in zip(place.tolist(), inside.tolist(), strict=True)]
    return Binned(names, [*titles, NO_VALUE])


def _numbers(values: Sequence[object]) -> tuple[np.ndarray, Callable[[float], str]]:
    """The values as numbers, dates as their days, NaN where there is none; and how a number is shown."""
    numbers = np.array([_number(value) for value in values], np.float64)
    if np.isfinite(numbers).any() or not len(numbers):
        return numbers, lambda number: f"{number:.6g}"
    days = parse_dates(values, "values", "bins")
    ordinals = np.array([math.nan if day is None else day.toordinal() for day in days], np.float64)
    return ordinals, lambda number: date.fromordinal(round(number)).isoformat()


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def _edges(numbers: np.ndarray, bins: int | Sequence[float]) -> np.ndarray:
    if isinstance(bins, int):
        check_at_least("bins", bins, 1)
        known = numbers[np.isfinite(numbers)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        return np.linspace(low, high if high > low else low + 1, bins + 1)
    edges = np.asarray(bins, np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise InputError("bins must be a number of bins, a period such as 'month', or edges that increase")
    return edges
