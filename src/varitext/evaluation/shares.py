"""How often each category occurs within each group of documents, with intervals.

The interval is Jeffreys': the central 95 % of Beta(k + 1/2, n - k + 1/2), for k of n documents; it begins at 0 where
there is none, and ends at 1 where there are all.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from varitext.errors import InputError

NO_VALUE = "none"  # what a document without a value counts as


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
    cells = [(value, category) for value in sorted(totals) for category in categories]
    documents = np.array([together[cell] for cell in cells], np.float64)
    of = np.array([totals[value] for value, _ in cells], np.float64)
    low = np.where(documents == 0, 0.0, betaincinv(documents + 0.5, of - documents + 0.5, 0.025))
    high = np.where(documents == of, 1.0, betaincinv(documents + 0.5, of - documents + 0.5, 0.975))
    columns = (documents.astype(int), of.astype(int), documents / of, low, high)
    rows = zip(cells, *(column.tolist() for column in columns), strict=True)
    return [Share(*cell, *numbers) for cell, *numbers in rows]
