"""Dates: a column of dates parsed, and dates grouped into bins."""

import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from varitext.errors import InputError
from varitext.records import check_choice

FORMATS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%Y-%m", "%Y", "%d %B %Y", "%B %d, %Y", "%d-%b-%Y")
BOTH_WAYS = ("%m/%d/%Y", "%d/%m/%Y")


def parse_dates(values: Sequence[Any], column: str, where: str) -> tuple[datetime | None, ...]:
    """The date of each row, without time zone (converted to UTC if it has one); None if it cannot be read.

    The format that reads the most rows is used for the whole column.
    """
    readers: dict[str, Callable[[str], datetime]] = {"ISO": _iso, "RFC 2822": parsedate_to_datetime}
    readers |= {pattern: _by_pattern(pattern) for pattern in FORMATS}
    found: dict[str, list[datetime | None]] = {}
    for name, reader in readers.items():
        found[name] = [_read(value, reader) for value in values]
        if None not in found[name] and name not in BOTH_WAYS:
            break  # no other format can read more
    n_read = {name: sum(one is not None for one in dates) for name, dates in found.items()}
    best = max(n_read, key=lambda name: n_read[name])
    _report(values, found[best], column, where)
    if (
        best in BOTH_WAYS
        and len({n_read[name] for name in BOTH_WAYS}) == 1
        and found[BOTH_WAYS[0]] != found[BOTH_WAYS[1]]
    ):
        warnings.warn(
            f"{where}: dates in {column!r} are read as month/day/year. Write 2026-01-31 to avoid ambiguity.",
            stacklevel=4,
        )
    return tuple(found[best])


def _report(values: Sequence[Any], dates: Sequence[datetime | None], column: str, where: str) -> None:
    unread = [row for row, one in enumerate(dates) if one is None]
    if not unread:
        return
    shown = f"row {unread[0] + 1} has {str(values[unread[0]])[:40]!r}"
    if len(unread) == len(dates):
        raise InputError(f"{where}: column {column!r} has no readable date, such as 2026-01-31; {shown}")
    many = "dates" if len(unread) > 1 else "date"
    warnings.warn(f"{where}: {len(unread):,} {many} in {column!r} cannot be read ({shown})", stacklevel=5)


def _read(value: Any, reader: Callable[[str], datetime]) -> datetime | None:
    if isinstance(value, datetime):
        return _without_zone(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return _without_zone(reader(str(value).strip()))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _iso(text: str) -> datetime:
    if text.isdigit() and len(text) != 8:  # a bare number, such as a year
        raise ValueError
    return datetime.fromisoformat(text)


def _by_pattern(pattern: str) -> Callable[[str], datetime]:
    return lambda text: datetime.strptime(text, pattern)


def _without_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


BINS = {"day": "{0:%Y-%m-%d}", "week": "{0:%G-W%V}", "month": "{0:%Y-%m}", "quarter": "{0:%Y}-Q{1}", "year": "{0:%Y}"}
LONGEST = {"day": 40, "week": 280, "month": 1200, "quarter": 3600}  # largest range of dates, in days


def suitable_bins(days: Sequence[datetime]) -> str:
    """The shortest bins such that the dates fill at most about forty of them."""
    reach = (max(days) - min(days)).days if days else 0
    return next((name for name, longest in LONGEST.items() if reach <= longest), "year")


def bins_of(days: Sequence[datetime | None], bins: str | None) -> list[str | None]:
    """The name of each date's bin; None if the date could not be read. `bins` are chosen by the dates if omitted."""
    if bins is not None:
        check_choice("bins", bins, tuple(BINS))
    bins = bins or suitable_bins([day for day in days if day is not None])
    return [None if day is None else BINS[bins].format(day, (day.month + 2) // 3) for day in days]


MAX_BINS = 2000


def all_bins(names: Sequence[str]) -> list[str]:
    """The bins from the first to the last of these, with those that no date fell into; other names stay as they are."""
    for bins in BINS:
        ends = [_first_day(name, bins) for name in (min(names, default=""), max(names, default=""))]
        if ends[0] is not None and ends[1] is not None:
            days = [ends[0] + timedelta(day) for day in range((ends[1] - ends[0]).days + 1)]
            found = [str(name) for name in dict.fromkeys(bins_of(days, bins))]
            return found if len(found) <= MAX_BINS and set(names) <= set(found) else list(names)
    return list(names)


def _first_day(name: str, bins: str) -> datetime | None:
    """The first day of a bin; None if these bins have no such name."""
    year, _, quarter = name.partition("-Q")
    patterns = {"day": "%Y-%m-%d", "week": "%G-W%V-%u", "month": "%Y-%m", "quarter": "%Y-%m", "year": "%Y"}
    texts = {"week": f"{name}-1", "quarter": f"{year}-{3 * int(quarter) - 2}" if quarter in tuple("1234") else ""}
    day = _read(texts.get(bins, name), _by_pattern(patterns[bins]))
    return day if day is not None and bins_of([day], bins) == [name] else None
