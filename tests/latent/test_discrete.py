"""Bernoulli and categorical h against torch.distributions and enumeration."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import distributions

from varitext.latent import Bernoullis, Categoricals, DiagonalGaussian, kl
from varitext.latent.bound import monte_carlo_kl

logits = st.lists(st.floats(-8, 8), min_size=6, max_size=6)


def bernoullis(values: list[float]) -> Bernoullis:
    return Bernoullis(torch.tensor(values, dtype=torch.float64).view(2, 3))  # B = 2, K = 3


def categoricals(values: list[float]) -> Categoricals:
    return Categoricals(torch.tensor(values, dtype=torch.float64).view(1, 2, 3))  # B = 1, K = 2, C = 3


def one_choice(values: list[float]) -> Categoricals:
    return Categoricals(torch.tensor(values, dtype=torch.float64).view(2, 3))  # B = 2, C = 3


def as_torch(ours: Bernoullis | Categoricals) -> distributions.Distribution:
    if isinstance(ours, Bernoullis):
        return distributions.Bernoulli(logits=ours.logits)
    return distributions.OneHotCategorical(logits=ours.logits)


def per_dimension(theirs: torch.Tensor, ours: Bernoullis | Categoricals) -> torch.Tensor:
    """torch leaves no K where there is none."""
    return theirs[..., None] if isinstance(ours, Categoricals) and ours.logits.ndim == 2 else theirs


every_kind = pytest.mark.parametrize("kind", [bernoullis, categoricals, one_choice])


@every_kind
@given(logits, logits)
def test_kl_and_entropy_equal_torch_distributions(kind, q_values, p_values):
    q, p = kind(q_values), kind(p_values)
    torch.testing.assert_close(kl(q, p), per_dimension(distributions.kl_divergence(as_torch(q), as_torch(p)), q))
    torch.testing.assert_close(q.entropy, per_dimension(as_torch(q).entropy(), q))
    assert (kl(q, p) >= -1e-12).all()
    assert (kl(q, q).abs() < 1e-12).all()


@every_kind
@given(logits, logits)
def test_log_prob_kl_and_entropy_by_enumeration(kind, q_values, p_values):
    q, p = kind(q_values), kind(p_values)
    h = q.values()
    assert len(h) == q.number_of_values == len({tuple(row.flatten().tolist()) for row in h})
    torch.testing.assert_close(q.log_prob_per_dimension(h), per_dimension(as_torch(q).log_prob(h), q))
    probabilities = q.log_prob(h).exp()
    torch.testing.assert_close(probabilities.sum(0), torch.ones_like(probabilities[0]))
    torch.testing.assert_close((probabilities * (q.log_prob(h) - p.log_prob(h))).sum(0), kl(q, p).sum(-1))
    torch.testing.assert_close(-(probabilities * q.log_prob(h)).sum(0), q.entropy.sum(-1))


@every_kind
def test_samples_have_the_shape_and_the_frequencies(kind):
    q = kind([0.5, -1.0, 2.0, 0.0, -3.0, 0.7])
    torch.manual_seed(0)
    h = q.sample(50_000)
    assert h.shape == (50_000, *q.logits.shape)
    assert h.dtype == q.logits.dtype and not h.requires_grad
    assert set(h.unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(h.mean(0), q.probabilities, atol=0.01, rtol=0)


@every_kind
def test_monte_carlo_kl_agrees_with_the_formula(kind):
    q, p = kind([0.5, -1.0, 1.0, 0.0, -0.3, 0.7]), kind([0.1, 0.2, -0.5, 1.0, 0.4, 0.0])
    torch.manual_seed(0)
    h = q.sample(200_000)
    assert monte_carlo_kl(q, p, h).shape == kl(q, p).shape
    torch.testing.assert_close(monte_carlo_kl(q, p, h), kl(q, p), atol=0.01, rtol=0)
    assert torch.equal(kl(q, p, h[:1]), kl(q, p))


class OnlyLogProb:
    def __init__(self, distribution):
        self.log_prob = distribution.log_prob


def test_a_prior_that_only_has_log_prob_gives_one_sum():
    q, p = bernoullis([0.5, -1.0, 1.0, 0.0, -0.3, 0.7]), bernoullis([0.0] * 6)
    torch.manual_seed(0)
    h = q.sample(200_000)
    found = kl(q, OnlyLogProb(p), h)
    torch.testing.assert_close(found, kl(q, p).sum(-1, keepdim=True), atol=0.01, rtol=0)
    with pytest.raises(TypeError, match=r"KL\(Bernoullis \|\| OnlyLogProb\)"):
        kl(q, OnlyLogProb(p))
    with pytest.raises(TypeError):
        kl(q, DiagonalGaussian.standard(q.logits))


def test_kl_to_the_uniform_prior_is_what_entropy_lacks():
    q = categoricals([0.5, -1.0, 1.0, 0.0, -0.3, 0.7])
    lacking = torch.tensor(3.0, dtype=torch.float64).log() - q.entropy
    torch.testing.assert_close(kl(q, Categoricals(torch.zeros_like(q.logits))), lacking)
    r = bernoullis([0.5, -1.0, 1.0, 0.0, -0.3, 0.7])
    torch.testing.assert_close(
        kl(r, Bernoullis(torch.zeros_like(r.logits))), torch.tensor(2.0).double().log() - r.entropy
    )


def test_one_prior_serves_a_whole_batch():
    q = Categoricals(torch.randn(4, 2, 3))
    p = Categoricals(torch.randn(1, 2, 3))
    assert kl(q, p).shape == (4, 2)
    assert p.log_prob(q.sample(5)).shape == (5, 4)


def test_a_choice_ruled_out_stays_out_and_every_value_and_gradient_finite():
    """Attention over a padded sentence: logits of -inf where there is no word."""
    values = torch.tensor([[0.3, 1.0, -torch.inf], [0.1, -0.4, 2.0]], requires_grad=True)
    q, p = Categoricals(values), Categoricals(torch.zeros_like(values))
    p = Categoricals(p.logits.masked_fill(torch.isinf(values), -torch.inf))
    h = q.sample(1000)
    assert h[:, 0, 2].sum() == 0
    total = kl(q, p).sum() + q.entropy.sum() + q.log_prob(h).sum()
    total.backward()
    assert torch.isfinite(total) and torch.isfinite(values.grad).all()


def test_extreme_logits_stay_finite():
    values = torch.tensor([[-500.0, 500.0, 0.0]], requires_grad=True)
    q, p = Bernoullis(values), Bernoullis(-values.detach())
    total = kl(q, p).sum() + q.entropy.sum() + q.log_prob(q.sample(10)).sum()
    total.backward()
    assert torch.isfinite(total) and torch.isfinite(values.grad).all()


def test_nan_passes_through_so_that_training_can_notice():
    for q in (Bernoullis(torch.full((1, 2), torch.nan)), Categoricals(torch.full((1, 2), torch.nan))):
        assert q.log_prob(q.sample(3)).isnan().all()
