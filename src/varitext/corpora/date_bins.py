"""Dates put into bins whose names sort in the order of time."""

from collections.abc import Sequence
from typing import Any

from varitext.corpora.dates import parse_dates
from varitext.records import check_choice

BINS = {
    "day": "{0:%Y-%m-%d}",
    "week": "{0:%G-W%V}",
    "month": "{0:%Y-%m}",
    "quarter": "{0:%Y}-Q{1}",
    "year": "{0:%Y}",
}


def binned(values: Sequence[Any], bins: str, column: str, where: str) -> list[str | None]:
    """The name of the bin of each date; None where a date cannot be read."""
    check_choice("bins", bins, tuple(BINS))
    days = parse_dates(values, column, where)
    return [None if day is None else BINS[bins].format(day, (day.month + 2) // 3) for day in days]
