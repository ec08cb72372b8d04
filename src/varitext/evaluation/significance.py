"""Paired randomisation tests and bootstrap intervals over questions or documents; intervals over seeds.

Values are [questions], or [seeds, questions]: then each question's value is its mean over the seeds, and the question
stays the unit that is drawn: the questions are the sample, the seeds only make each value less noisy.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from varitext.errors import InputError

MAX_ENUMERATED = 20  # differences whose 2^20 signs are all tried
MAX_DRAW = 2**22  # random numbers held at once


class PairedTest(NamedTuple):
    """A two-sided paired randomisation test."""

    difference: float  # mean of first - second
    p_value: float
    n_questions: int
    n_assignments: int  # of signs that were tried
    exact: bool  # whether all of them were


class Interval(NamedTuple):
    mean: float
    low: float
    high: float
    level: float

    @property
    def bounds(self) -> tuple[float, float]:
        return self.low, self.high


def paired_randomisation_test(
    first: ArrayLike, second: ArrayLike, resamples: int = 100_000, seed: int = 0
) -> PairedTest:
    """How often swapping the two models question by question makes a mean difference at least as large as the one seen.

    p = #{signs s : |sum_q s_q d_q| >= |sum_q d_q|} / 2^Q     all assignments of signs, where at most 2^20
    p = (1 + #{...}) / (1 + resamples)                       drawn; the 1 is the assignment seen: p is never 0
    Questions on which the models agree change no sum, so only the others are enumerated.
    """
    first, second = mean_over_seeds(first), mean_over_seeds(second)
    if first.shape != second.shape:
        raise InputError(
            f"a paired test needs the same questions: {first.size} in the first, {second.size} in the second"
        )
    difference = first - second
    moving = difference[difference != 0]
    extreme = abs(moving.sum()) - 1e-12 * np.abs(moving).sum()  # sums in another order differ by rounding
    if len(moving) <= MAX_ENUMERATED:
        sums = _every_signed_sum(moving)
        return PairedTest(
            difference.mean().item(), (np.abs(sums) >= extreme).mean().item(), len(first), len(sums), True
        )
    hits = sum((np.abs(sums) >= extreme).sum() for sums in _drawn_signed_sums(moving, resamples, seed))
    return PairedTest(difference.mean().item(), float(hits + 1) / (resamples + 1), len(first), resamples, False)


def bootstrap_interval(values: ArrayLike, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> Interval:
    """Percentile interval of the mean over questions drawn again with replacement."""
    values = mean_over_seeds(values)
    if not 0 < level < 1 or resamples < 1:
        raise InputError(f"an interval needs a level between 0 and 1 and a resample, not {level} and {resamples}")
    generator, size = np.random.default_rng(seed), len(values)
    means = [values[generator.integers(0, size, (n, size))].mean(1) for n in _portions(resamples, size)]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high), level)


def seed_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Student's t interval of the mean over seeds, of which there are few: one value per seed."""
    from scipy.stats import t as student  # slow to import, and not needed to rank

    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        raise InputError(f"an interval over seeds needs at least 2 of them, not {len(values)}")
    error = values.std(ddof=1) / len(values) ** 0.5
    half = float(student.ppf((1 + level) / 2, len(values) - 1) * error)
    return Interval(float(values.mean()), float(values.mean()) - half, float(values.mean()) + half, level)


def mean_over_seeds(values: ArrayLike) -> np.ndarray:
    """[questions] as it is; [seeds, questions] averaged over seeds."""
    values = np.asarray(values, dtype=float)
    if values.ndim not in (1, 2) or values.size == 0:
        raise InputError(f"values are [questions] or [seeds, questions] and not empty; these are {list(values.shape)}")
    if not np.isfinite(values).all():
        raise InputError(f"{(~np.isfinite(values)).sum()} of {values.size} values are not finite numbers")
    return values if values.ndim == 1 else values.mean(0)


# Inside


def _every_signed_sum(values: np.ndarray) -> np.ndarray:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _drawn_signed_sums(values: np.ndarray, resamples: int, seed: int) -> Iterator[np.ndarray]:
    if resamples < 1:
        raise InputError(f"a randomisation test needs at least one resample, not {resamples}")
    generator = np.random.default_rng(seed)
    for n in _portions(resamples, len(values)):
        signs = generator.integers(0, 2, (n, len(values)), dtype=np.int8)
        yield 2 * (signs @ values) - values.sum()  # sum of (2 s - 1) d


def _portions(resamples: int, size: int) -> Iterator[int]:
    """How many resamples at a time, so that memory does not grow with their number."""
    most = max(1, MAX_DRAW // size)
    for start in range(0, resamples, most):
        yield min(most, resamples - start)
