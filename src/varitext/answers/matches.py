"""What a question and a candidate share: the words, and each word's share of the candidate's BM25."""

from collections.abc import Sequence

import numpy as np

from varitext.models.answers.features.overlap import STOP_WORDS, WordRows, idf, is_word, saturated

Match = tuple[str, float]  # a word of the question, in lower case, and its share of the BM25


def matched_words(question: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[tuple[Match, ...]]:
    """Matches of every candidate, largest share first. Stop words do not count; words in few candidates count most."""
    asked = [word for word in dict.fromkeys(map(str.lower, question)) if is_word(word) and word not in STOP_WORDS]
    number = {word: place for place, word in enumerate(asked)}
    said = [number.get(word.lower(), -1) for words in candidates for word in words]
    lengths = np.array([len(words) for words in candidates], np.int64)
    rows = WordRows(np.arange(len(asked)), np.array(said, np.int64), lengths)
    often = rows.per_candidate(rows.question[:, None] == rows.answers)  # [n, C]
    weights = idf(len(candidates), (often > 0).sum(1))  # [n]
    terms = weights[:, None] * saturated(often, lengths / max(1.0, float(lengths.mean())))  # [n, C]
    shares = terms / np.maximum(terms.sum(0), np.finfo(float).tiny)
    return [_largest_first(asked, of_candidate) for of_candidate in shares.T.tolist()]


def _largest_first(asked: Sequence[str], shares: Sequence[float]) -> tuple[Match, ...]:
    found = ((word, share) for word, share in zip(asked, shares, strict=True) if share > 0)
    return tuple(sorted(found, key=lambda one: -one[1]))
