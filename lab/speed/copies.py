"""Copies of candidates among the training questions: how many there are, and whether their labels agree.

Listed by the share of the longer candidate's words that a near-copy must contain (`MIN_SHARE` in `answers/copies.py`).
"""

from typing import Any

import numpy as np

from varitext.answers import copies
from varitext.corpora import load_questions

CORPORA = (("wikiqa", "train"), ("qasent", "train-all"))
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6)


def measure(quick: bool) -> dict[str, Any]:
    kept, found = copies.MIN_SHARE, {}
    for name, part in CORPORA[: 1 if quick else 2]:
        corpus = load_questions(name, part)
        for copies.MIN_SHARE in SHARES:
            first = copies.copies_of(corpus)
            copied = np.flatnonzero(first != np.arange(len(first)))
            labels, other = corpus.labels[copied], corpus.labels[first[copied]]
            found[f"{name}, {copies.MIN_SHARE}"] = {
                "n_pairs": corpus.n_pairs,
                "n_copies": len(copied),
                "n_with_right": int((labels | other).sum()),
                "n_labels_differ": int((labels != other).sum()),
            }
    copies.MIN_SHARE = kept
    return found
