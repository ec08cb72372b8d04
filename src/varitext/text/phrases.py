"""Words in a row: n-grams, and the pairs that stand together far more often than chance puts them there."""

import math
from collections.abc import Iterable, Sequence, Set

import numpy as np

SPACE = " "  # between the words of an n-gram or phrase
MIN_PAIRS = 5
MIN_NPMI = 0.5


def ngrams(words: Sequence[str], shortest: int, longest: int) -> list[str]:
    """All runs of `shortest` to `longest` words."""
    lengths = range(shortest, longest + 1)
    return [SPACE.join(words[i : i + n]) for n in lengths for i in range(len(words) - n + 1)]


def join_phrases(words: Sequence[str], phrases: Set[str]) -> list[str]:
    """The words with those that make a phrase as one, from left to right."""
    joined: list[str] = []
    place = 0
    while place < len(words):
        pair = SPACE.join(words[place : place + 2])
        is_phrase = pair in phrases and place + 1 < len(words)
        joined.append(pair if is_phrase else words[place])
        place += 2 if is_phrase else 1
    return joined


def choose_phrases(terms: Sequence[str], tokens: np.ndarray, stop_words: Set[str]) -> frozenset[str]:
    """Of words and pairs with their counts, the pairs of high normalised PMI (Bouma 2009) without a stop word.

    log (p(a b) / (p(a) p(b))) / -log p(a b): 1 if the two only ever stand together, 0 if they do so by chance.
    """
    number = dict(zip(terms, tokens.tolist(), strict=True))
    words = sum(count for term, count in number.items() if SPACE not in term)
    pairs = ((term, count) for term, count in number.items() if SPACE in term and count >= MIN_PAIRS)
    chosen = set()
    for pair, count in pairs:
        first, second = pair.split(SPACE)
        if stop_words.isdisjoint((first, second)):
            pmi = math.log(count * words / (number[first] * number[second]))
            if pmi / max(-math.log(count / words), 1e-9) >= MIN_NPMI:
                chosen.add(pair)
    return frozenset(chosen)


def phrases_among(words: Iterable[str]) -> frozenset[str]:
    """The phrases that a vocabulary has."""
    return frozenset(word for word in words if SPACE in word)
