"""Dates as users write them, put into bins whose names sort in the order of time."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from varitext.errors import InputError
from varitext.records import check_choice

BINS = {
    "day": "{0:%Y-%m-%d}",
    "week": "{0:%G-W%V}",
    "month": "{0:%Y-%m}",
    "quarter": "{0:%Y}-Q{1}",
    "year": "{0:%Y}",
}
WRITTEN = ("%Y-%m", "%Y", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y")


def binned(values: Sequence[Any], bins: str, column: str) -> list[str]:
    """The name of the bin of each date."""
    check_choice("bins", bins, tuple(BINS))
    days = [_day(value, f"{column!r}, row {row}") for row, value in enumerate(values, start=1)]
    return [BINS[bins].format(day, (day.month + 2) // 3) for day in days]


def _day(value: Any, where: str) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    text = str(value).strip()
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        pass
    for form in WRITTEN:
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    raise InputError(f"{where}: {text[:40]!r} is not a date such as 2024-03-31")
