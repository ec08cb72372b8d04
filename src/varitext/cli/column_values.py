"""Values of documents by which topics are broken down: a column of their table, or the bins of its dates."""

from typing import TYPE_CHECKING, Any

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.corpora import Documents


def values_of(documents: "Documents", column: str) -> list[Any]:
    """Of a column of the file that the documents came from; "label" is what the corpus has for labels."""
    if column == "label" and documents.labels is not None:
        return list(documents.labels)
    if column not in documents.columns:
        there = ", ".join(documents.columns) or "none"
        raise InputError(f"{documents.name} has no column {column!r} beside its text; it has {there}")
    return list(documents.columns[column])


def binned_values(documents: "Documents", column: str | None, bins: str | None) -> list[str | None]:
    """Names of bins that sort in the order of time; None where there is no date.

    Without a column these are the dates that the documents came with; without `bins`, those that suit how far they
    reach.
    """
    from varitext.corpora.dates import binned, bins_of

    if column is None:
        return bins_of(documents.dates or (), bins)
    return binned(values_of(documents, column), bins, column, documents.name)
