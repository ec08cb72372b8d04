"""Hostile texts, values and matrices, drawn at random."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

Generator = np.random.Generator
RANGES = ((0, 32), (32, 127), (127, 160), (0x300, 0x370), (0x590, 0x700), (0x2000, 0x2070), (0x4E00, 0x9FFF))
RANGES += ((0xD800, 0xE000), (0xFE00, 0xFE10), (0xFFF0, 0x10000), (0x1F300, 0x1FAFF), (0xE0000, 0xE0080), (0, 0x110000))
PIECES = (
    "orbit", "moon", "\0", "\r\n", "'", '"', "<script>", "{}", "%s", "../..", "9" * 400, "a" * 3000, "\u200d",
    "\u0301" * 99, "İ", "ß", "ﬁ", "Ω", "e9999", "-1e308", "NaN", "\ud800", "\U0010ffff", "\ufeff", "\u202e", "don't",
    "a-b", "_" * 50,
)  # fmt: skip
NUMBERS = (0, -1, 1, 2**31, 2**63, 2**70, -(2**70), 0.5, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf)
OTHERS = (None, True, False, b"bytes", [], {}, [[]], {"a": [1]}, ("x",), [None], "", " ")


def text(generator: Generator) -> str:
    """Known words, characters from any range of Unicode, surrogates, and strings that some program interprets."""
    parts = []
    for _ in range(generator.integers(1, 6)):
        if generator.random() < 0.4:
            parts.append(PIECES[generator.integers(len(PIECES))])
        else:
            low, high = RANGES[generator.integers(len(RANGES))]
            parts.append("".join(map(chr, generator.integers(low, high, generator.integers(1, 12)))))
    return (" ", "", "\t")[generator.integers(3)].join(parts)


def value(generator: Generator, depth: int = 0) -> Any:
    """Any value that Python or JSON can express."""
    kind = generator.integers(6 if depth < 4 else 4)
    if kind == 0:
        return NUMBERS[generator.integers(len(NUMBERS))]
    if kind == 1:
        return OTHERS[generator.integers(len(OTHERS))]
    if kind <= 3:
        return text(generator)
    inside = [value(generator, depth + 1) for _ in range(generator.integers(4))]
    return inside if kind == 4 else {text(generator): each for each in inside}


def matrix(generator: Generator, width: int) -> Any:
    """Invalid counts: of wrong shape, type, sign or size, or merely unusual."""
    rows = int(generator.integers(0, 4))
    counts = generator.integers(0, 3, (rows, width)).astype(float)
    return SHAPES[generator.integers(len(SHAPES))](counts, generator)


def _with_odd_number(counts: np.ndarray, generator: Generator) -> np.ndarray:
    if counts.size:
        counts.flat[generator.integers(counts.size)] = float(NUMBERS[generator.integers(len(NUMBERS))])
    return counts


def _sparse_with_odd_places(counts: np.ndarray, generator: Generator) -> scipy.sparse.csr_matrix:
    """Duplicate and unsorted columns, sometimes out of range, as in a broken file."""
    made = scipy.sparse.csr_matrix(np.ones((2, counts.shape[1])))
    made.indices = made.indices[::-1].copy()
    made.indices[:2] = generator.integers(-2, counts.shape[1] + 2, 2)
    return made


SHAPES: tuple[Callable[[np.ndarray, Generator], Any], ...] = (
    _with_odd_number,
    lambda counts, generator: scipy.sparse.csr_matrix(_with_odd_number(counts, generator)),
    lambda counts, generator: scipy.sparse.coo_array(_with_odd_number(counts, generator)),
    _sparse_with_odd_places,
    lambda counts, generator: counts[:, :-1],
    lambda counts, generator: np.hstack([counts, counts]),
    lambda counts, generator: counts.ravel(),
    lambda counts, generator: counts[None],
    lambda counts, generator: counts.astype(complex),
    lambda counts, generator: counts.astype(bool),
    lambda counts, generator: counts.astype(object),
    lambda counts, generator: counts.astype(str),
    lambda counts, generator: counts.astype("datetime64[s]"),
    lambda counts, generator: counts.astype(np.float16),
    lambda counts, generator: counts.astype(np.uint64) * 2**40,
    lambda counts, generator: [*counts.tolist(), [1.0]],
    lambda counts, generator: [value(generator) for _ in range(2)],
    lambda counts, generator: value(generator),
    lambda counts, generator: np.asfortranarray(counts)[::-1],
    lambda counts, generator: np.zeros((0, counts.shape[1])),
)
