"""Attention weights relative to uniform attention."""

import math
from collections.abc import Sequence

STRONGEST = 8.0  # times the equal weight: drawn in the darkest shade
FOCUSED = 0.6  # of the words: weights that explain anything are spread over no more than this share


def times_equal(weights: Sequence[float]) -> list[float]:
    """Each weight divided by what it would be if all were equal; the weights sum to one."""
    return [weight * len(weights) for weight in weights]


def strength(weights: Sequence[float]) -> list[float]:
    """From 0, for a weight that is equal or less, to 1, for one that is `STRONGEST` times as large; in logarithms."""
    return [min(1.0, max(0.0, math.log(max(one, 1e-9)) / math.log(STRONGEST))) for one in times_equal(weights)]


def is_focused(weights: Sequence[float]) -> bool:
    """Whether attention explains anything: exp(entropy), the number of words it is spread over, is well below all."""
    entropy = -sum(one * math.log(one) for one in weights if one > 0)
    return len(weights) > 1 and math.exp(entropy) <= FOCUSED * len(weights)
