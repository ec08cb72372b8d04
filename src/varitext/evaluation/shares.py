"""How often each category occurs within each group of documents, with intervals.

The interval is Jeffreys': the central 95 % of Beta(k + 1/2, n - k + 1/2), for k of n documents; it begins at 0 where
there is none, and ends at 1 where there are all.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import beta

from varitext.errors import InputError


class Share(NamedTuple):
    value: str
    category: int
    documents: int
    of: int
    share: float
    low: float
    high: float


def shares_by_value(assigned: Sequence[int | None], values: Sequence[str], categories: Sequence[int]) -> list[Share]:
    """By value in alphabetical order, then by category; documents without a category count in `of` alone."""
    if len(assigned) != len(values):
        raise InputError(f"{len(assigned)} documents have {len(values)} values")
    totals, together = Counter(values), Counter(zip(values, assigned, strict=True))
    return [
        share_of(value, category, together[value, category], totals[value])
        for value in sorted(totals)
        for category in categories
    ]


def share_of(value: str, category: int, documents: int, of: int) -> Share:
    jeffreys = beta(documents + 0.5, of - documents + 0.5)
    low = 0.0 if documents == 0 else float(jeffreys.ppf(0.025))
    high = 1.0 if documents == of else float(jeffreys.ppf(0.975))
    return Share(value, category, documents, of, documents / of, low, high)
