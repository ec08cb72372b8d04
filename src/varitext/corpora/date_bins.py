"""Dates put into bins whose names sort in the order of time."""

from collections.abc import Sequence
from datetime import datetime
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
LONGEST = {"day": 40, "week": 280, "month": 1200, "quarter": 3600}  # days that the dates of a corpus reach


def suitable_bins(days: Sequence[datetime]) -> str:
    """The shortest of which the dates fill at most some forty."""
    reach = (max(days) - min(days)).days if days else 0
    return next((name for name, longest in LONGEST.items() if reach <= longest), "year")


def binned(values: Sequence[Any], bins: str | None, column: str, where: str) -> list[str | None]:
    """The name of the bin of each date; None where a date cannot be read. Without `bins`, those that suit the dates."""
    return bins_of(parse_dates(values, column, where), bins)


def bins_of(days: Sequence[datetime | None], bins: str | None) -> list[str | None]:
    if bins is not None:
        check_choice("bins", bins, tuple(BINS))
    bins = bins or suitable_bins([day for day in days if day is not None])
    return [None if day is None else BINS[bins].format(day, (day.month + 2) // 3) for day in days]
