"""Values of documents by which topics are broken down: a column of their table, or the bins of its dates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from varitext.errors import InputError

if TYPE_CHECKING:
    from datetime import datetime

    from varitext.corpora import Documents

NO_DATE = "no date"


def values_of(documents: "Documents", column: str) -> list[Any]:
    """Of a column of the file that the documents came from; "label" is what the corpus has for labels."""
    if column == "label" and documents.labels is not None:
        return list(documents.labels)
    if column not in documents.columns:
        there = ", ".join(documents.columns) or "none"
        raise InputError(f"{documents.name} has no column {column!r} beside its text; it has {there}")
    return list(documents.columns[column])


def binned_values(documents: "Documents", column: str, bins: str | None) -> list[str]:
    """Names of bins that sort in the order of time; without `bins` those that suit how long the dates reach."""
    from varitext.corpora.date_bins import binned

    found = binned(values_of(documents, column), bins, column, documents.name)
    return [name or NO_DATE for name in found]


def dated(dates: "Sequence[datetime | None]", bins: str | None) -> list[str]:
    """The same for dates that are known."""
    from varitext.corpora.date_bins import bins_of

    return [name or NO_DATE for name in bins_of(dates, bins)]
