"""Long texts in passages: equal parts of about a given number of words."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Passages(NamedTuple):
    texts: list[str]
    owners: np.ndarray  # the place of the text that each is a part of
    documents: int  # texts

    def averaged(self, values: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The mean over each document's passages, weighted by their words; unweighted if they have none."""
        of_document = np.bincount(self.owners, words, self.documents)[self.owners]
        weights = np.where(of_document > 0, words, 1.0)
        weights = weights / np.bincount(self.owners, weights, self.documents)[self.owners]
        sums = np.zeros((self.documents, *values.shape[1:]))
        np.add.at(sums, self.owners, (weights * np.where(weights > 0, values.T, 0)).T)
        return sums


def split_passages(texts: Iterable[str], words: int) -> Passages:
    """Passages of about `words` words; a text with fewer than one and a half times as many is one passage."""
    parts, owners = [], []
    place = -1
    for place, text in enumerate(texts):
        found = text.split()
        number = max(1, round(len(found) / words))
        edges = np.linspace(0, len(found), number + 1).astype(int).tolist()
        parts += [" ".join(found[start:end]) for start, end in pairwise(edges)]
        owners += [place] * number
    return Passages(parts, np.array(owners, np.int64), place + 1)
