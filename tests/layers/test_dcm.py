"""The DCM likelihood: a distribution over sequences, urns by hand, its limits, its gradient, its edges."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import batch_of

from varitext.layers import dcm
from varitext.layers.counts import multinomial_log_likelihood
from varitext.layers.dcm import next_word_log_probabilities
from varitext.layers.grouped_counts import (
    SUMMED,
    Entries,
    Falling,
    GroupedCounts,
    LogRising,
    WordGroups,
    _log_rising_of_large,
    _stirling,
    _stirling_slope,
    log_rising_falling,
)

GROUPS = torch.tensor([1, 0, 1, 0])  # group 2 is empty
SCALES = torch.tensor([-0.7, 0.4, 0.1], dtype=torch.double)


def dcm_log_likelihood(logits: torch.Tensor, scales: torch.Tensor, counts: GroupedCounts) -> torch.Tensor:
    """Of logits themselves: their products with one input for each column."""
    return dcm.dcm_log_likelihood(logits, torch.eye(logits.shape[1], dtype=logits.dtype), scales, counts)


def counted(dense: np.ndarray, groups: torch.Tensor = GROUPS, number: int = 3, dtype=torch.double) -> GroupedCounts:
    return GroupedCounts(batch_of(dense, dtype), WordGroups.of(groups, number))


def logits_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def log_rising(a: torch.Tensor, n: torch.Tensor) -> LogRising:
    falling = Falling.of(n)
    found, places = log_rising_falling(a[..., falling.order], falling), falling.places()
    return LogRising(*(values[..., places] for values in found))


def drawn_one_by_one(sequence: tuple[int, ...], masses: np.ndarray, scales: np.ndarray, groups: np.ndarray) -> float:
    """The probability of a sequence from the urns themselves: a group, then a word of it, both put back doubled."""
    sums = np.array([masses[groups == group].sum() for group in range(len(scales))])
    outer, inner, probability = scales * sums, masses.copy(), 1.0
    for word in sequence:
        group = groups[word]
        probability *= outer[group] / outer.sum() * inner[word] / inner[groups == group].sum()
        outer[group] += 1
        inner[word] += 1
    return probability


def test_all_sequences_together_have_probability_one_and_each_that_of_its_draws():
    logits, length = logits_of(4, 1), 5
    sequences = list(itertools.product(range(4), repeat=length))
    counts = np.array([np.bincount(sequence, minlength=4) for sequence in sequences])
    found = dcm_log_likelihood(logits.repeat(1, len(sequences)), SCALES, counted(counts))[0].exp()
    assert found.sum().item() == pytest.approx(1, abs=1e-12)
    urns = logits[:, 0].exp().numpy(), SCALES.exp().numpy(), GROUPS.numpy()
    by_hand = [drawn_one_by_one(sequence, *urns) for sequence in sequences]
    np.testing.assert_allclose(found.numpy(), by_hand, rtol=1e-12)


def test_one_urn_where_scales_are_one():
    dense = np.array([[3, 0, 1, 12], [0, 40, 0, 0], [1, 1, 1, 1]])
    logits = logits_of(4, 3)
    found = dcm_log_likelihood(logits, torch.zeros(3, dtype=torch.double), counted(dense))
    a, x = logits.exp().T, torch.from_numpy(dense).double()
    rising = (torch.lgamma(a + x) - torch.lgamma(a)).sum(1)
    total = torch.lgamma(a.sum(1) + x.sum(1)) - torch.lgamma(a.sum(1))
    torch.testing.assert_close(found[0], rising - total)


def test_a_full_urn_is_the_multinomial():
    dense = np.array([[3, 0, 1, 12], [0, 40, 0, 0], [1, 1, 1, 1]])
    counts, logits = counted(dense), logits_of(4, 6)
    full = dcm_log_likelihood(logits + 25, torch.zeros(3, dtype=torch.double), counts)
    multinomial = multinomial_log_likelihood(logits.T.reshape(2, 3, 4), counts.batch)
    torch.testing.assert_close(full, multinomial, rtol=1e-7, atol=1e-7)


def test_a_full_urn_is_the_multinomial_in_single_precision_too():
    """Where a difference of two log Gammas has no digit left."""
    counts, logits = counted([[3, 0, 1, 12], [2, 5, 0, 0]], dtype=torch.float32), logits_of(4, 2).float()
    full = dcm_log_likelihood(logits + 15, torch.zeros(3), counts)
    torch.testing.assert_close(full, multinomial_log_likelihood(logits.T[None], counts.batch), rtol=1e-4, atol=1e-3)


def test_the_second_of_a_word_is_likelier_than_its_first():
    counts = counted([[2, 0, 0, 0], [1, 0, 1, 0]])
    twice, apart = dcm_log_likelihood(torch.full((4, 2), -2.0).double(), SCALES, counts)[0]
    assert twice > apart


def test_gradients_equal_finite_differences():
    counts = counted([[1, 2, 0, 30], [0, 0, 0, 1], [9, 8, 10, 7]])
    inputs = logits_of(4, 6).requires_grad_(), SCALES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda logits, scales: dcm_log_likelihood(logits, scales, counts), inputs)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=6), st.floats(-12, 12))
def test_rising_factorials_are_those_of_log_gamma(counts, log_mass):
    n, a = torch.tensor(counts, dtype=torch.double), torch.full((2, len(counts)), math.exp(log_mass)).double()
    found = log_rising(a, n)
    loss = 1e-10 * max(1, math.exp(log_mass))  # what log Gamma itself loses at large a
    torch.testing.assert_close(found.value, torch.lgamma(a + n) - torch.lgamma(a), rtol=1e-9, atol=loss)
    torch.testing.assert_close(found.slope, torch.digamma(a + n) - torch.digamma(a), rtol=1e-7, atol=1e-9)
    single = log_rising(a.float(), n.float())
    torch.testing.assert_close(single.value.double(), found.value, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(single.slope.double(), found.slope, rtol=1e-5, atol=1e-9)


@settings(deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from([0, 0, 1, 2, 9, 4000, 1_000_000])] * 4), min_size=1, max_size=4),
    st.floats(-200, 200),
)
def test_extreme_documents_stay_finite(dense, shift):
    """Documents of no word, of one, and of a million; masses that vanish or fill the urn."""
    counts = counted(np.array(dense), dtype=torch.float32)
    logits = (logits_of(4, len(dense)).float() + shift).requires_grad_()
    value = dcm_log_likelihood(logits, SCALES.float(), counts)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert torch.isfinite(value).all() and torch.isfinite(gradient).all()
    assert (value <= 1e-3 * counts.batch.lengths.clamp(min=1)).all()
    assert (value[0][counts.batch.lengths == 0] == 0).all()


def test_the_next_word_is_as_likely_as_it_makes_the_document():
    """p(next | so far) = p(so far, next) / p(so far), in urns that are left as they are by the other documents."""
    so_far = np.array([[2, 0, 1, 9], [0, 0, 0, 0], [0, 1, 0, 0]])
    logits, samples = logits_of(4, 6), 2
    words, documents = torch.arange(4).repeat(3), torch.arange(3).repeat_interleave(4)
    found = next_word_log_probabilities(
        logits, SCALES, counted(so_far), Entries(words, documents, torch.ones(12).double())
    )
    longer = np.repeat(so_far, 4, 0) + np.tile(np.eye(4), (3, 1))
    each = logits.view(4, samples, 3).repeat_interleave(4, 2).reshape(4, -1)
    after = dcm_log_likelihood(each, SCALES, counted(longer))
    before = dcm_log_likelihood(logits, SCALES, counted(so_far)).repeat_interleave(4, 1)
    torch.testing.assert_close(found, after - before)


def test_what_stirlings_series_leaves_out_is_its_next_term():
    """The series alternates and is enveloping: the remainder lies between one and both of the next two terms."""
    a = torch.tensor([8.0, 9.5, 12.0, 20.0], dtype=torch.double)
    series = torch.lgamma(a) - ((a - 0.5) * a.log() - a + 0.5 * math.log(2 * math.pi))
    left, next_term, after = _stirling(1 / a) - series, a**-7 / 1680, a**-9 / 1188
    assert (left < next_term + 1e-14).all() and (left > next_term - after - 1e-14).all()
    slope = a.log() - 0.5 / a - torch.digamma(a)
    left, next_term, after = _stirling_slope(1 / a) - slope, a**-8 / 240, a**-10 / 132
    assert (left < next_term + 1e-15).all() and (left > next_term - after - 1e-15).all()


def test_rising_factorials_on_either_side_of_where_the_series_begins():
    n = torch.arange(SUMMED - 2.0, SUMMED + 4, dtype=torch.double)
    for a in (0.3, 1.0, 7.0, 40.0):
        found = log_rising(torch.full((len(n),), a, dtype=torch.double), n)
        factors = [a + torch.arange(int(one), dtype=torch.double) for one in n]
        torch.testing.assert_close(found.value, torch.stack([one.log().sum() for one in factors]), rtol=0, atol=1e-9)
        torch.testing.assert_close(found.slope, torch.stack([(1 / one).sum() for one in factors]), rtol=0, atol=1e-9)
    large, many = torch.tensor([9.0, 30.0, 300.0]).double(), torch.tensor([4.0, 1.0, 1000.0]).double()
    found = _log_rising_of_large(large, many)
    torch.testing.assert_close(found.value, torch.lgamma(large + many) - torch.lgamma(large), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.slope, torch.digamma(large + many) - torch.digamma(large), rtol=0, atol=1e-9)
