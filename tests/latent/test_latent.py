"""The framework as mathematics: against torch.distributions, Monte Carlo, and a model whose evidence is known."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.distributions import Independent, Normal, kl_divergence

from varitext.latent import DiagonalGaussian, draw, elbo, importance_weighted_bound, kl

numbers = st.floats(-3, 3)


def gaussian(values: list[float]) -> DiagonalGaussian:
    mean, log_std = torch.tensor(values, dtype=torch.float64).view(2, 1, -1)
    return DiagonalGaussian(mean, log_std)


def as_torch(gaussian: DiagonalGaussian) -> Independent:
    return Independent(Normal(gaussian.mean, gaussian.std), 1)


@given(st.lists(numbers, min_size=6, max_size=6), st.lists(numbers, min_size=6, max_size=6))
def test_kl_equals_torch_distributions(q_values, p_values):
    q, p = gaussian(q_values), gaussian(p_values)
    torch.testing.assert_close(kl(q, p).sum(-1), kl_divergence(as_torch(q), as_torch(p)))


@given(st.lists(numbers, min_size=6, max_size=6))
def test_kl_is_never_negative_and_zero_only_for_equals(values):
    q = gaussian(values)
    assert (kl(q, q).abs() < 1e-12).all()
    assert (kl(q, DiagonalGaussian.standard(q.mean)) >= -1e-12).all()


def test_kl_equals_the_papers_formula_for_the_standard_prior():
    q = gaussian([0.5, -1.0, 2.0, 0.3, -0.7, 0.1])
    k, variance = 3, (2 * q.log_std).exp()
    paper = -0.5 * (k - q.mean.square().sum() - variance.sum() + variance.log().sum())
    torch.testing.assert_close(kl(q, DiagonalGaussian.standard(q.mean)).sum(), paper)


def test_kl_equals_its_monte_carlo_estimate():
    q, p = gaussian([0.5, -1.0, 0.2, -0.3]), gaussian([0.1, 0.4, 0.3, -0.2])
    torch.manual_seed(0)
    h = q.rsample(400_000)
    estimate = (q.log_prob(h) - p.log_prob(h)).mean()
    assert abs(estimate - kl(q, p).sum()) < 0.01


@given(st.lists(numbers, min_size=6, max_size=6), st.lists(numbers, min_size=3, max_size=3))
def test_log_prob_equals_torch_distributions(values, point):
    q = gaussian(values)
    h = torch.tensor(point, dtype=torch.float64).view(1, 1, 3)
    torch.testing.assert_close(q.log_prob(h), as_torch(q).log_prob(h))


def test_samples_differ_between_rows_and_draws_and_have_the_right_moments():
    q = gaussian([1.0, -2.0, math.log(0.5), math.log(2.0)])
    q = DiagonalGaussian(q.mean.expand(3, 2), q.log_std.expand(3, 2))
    torch.manual_seed(0)
    h = q.rsample(100_000)
    assert h.shape == (100_000, 3, 2)
    assert h[:, 0].ne(h[:, 1]).all()
    torch.testing.assert_close(h.mean(0), q.mean, atol=0.03, rtol=0)
    torch.testing.assert_close(h.std(0), q.std, atol=0.03, rtol=0)


class LinearGaussian(nn.Module):
    """h ~ N(0, 1), y | h ~ N(w h, 1): evidence, posterior and every bound are known in closed form."""

    def __init__(self, weight: float, posterior_mean: float, posterior_std: float):
        super().__init__()
        self.weight = weight
        self.mean = nn.Parameter(torch.tensor(posterior_mean, dtype=torch.float64))
        self.log_std = nn.Parameter(torch.tensor(math.log(posterior_std), dtype=torch.float64))

    def encode(self, y):
        return y

    def prior(self, y):
        return DiagonalGaussian.standard(y)

    def posterior(self, y):
        return DiagonalGaussian(self.mean * y, self.log_std.expand_as(y))

    def log_likelihood(self, h, y):
        return Normal(self.weight * h, 1.0).log_prob(y).sum(-1)

    def evidence(self, y):
        return Normal(0.0, math.sqrt(1 + self.weight**2)).log_prob(y).sum(-1)


Y = torch.tensor([[0.3], [-1.2], [2.5]], dtype=torch.float64)


def test_the_bound_is_tight_at_the_true_posterior():
    weight = 1.5
    model = LinearGaussian(weight, weight / (1 + weight**2), 1 / math.sqrt(1 + weight**2))
    torch.manual_seed(0)
    torch.testing.assert_close(elbo(model, Y, 200_000).elbo, model.evidence(Y), atol=0.02, rtol=0)
    # there every importance weight is the evidence itself, so one sample is enough
    torch.testing.assert_close(importance_weighted_bound(model, Y, 1), model.evidence(Y))


@settings(deadline=None, max_examples=20)
@given(st.floats(0.2, 2), st.floats(-0.5, 1), st.floats(0.3, 1.5))
def test_elbo_below_importance_weighted_below_evidence(weight, mean, std):
    model = LinearGaussian(weight, mean, std)
    torch.manual_seed(0)
    many = Y.repeat(4000, 1)
    lower = elbo(model, many, 10).elbo.view(-1, 3).mean(0)
    middle = importance_weighted_bound(model, many, 10).view(-1, 3).mean(0)
    slack = 0.05
    assert (lower <= middle + slack).all()
    assert (middle <= model.evidence(Y) + slack).all()


def test_elbo_equals_its_closed_form():
    weight, slope, std = 0.8, 0.4, 0.6
    model = LinearGaussian(weight, slope, std)
    mean = slope * Y
    expected = -0.5 * math.log(2 * math.pi) - 0.5 * ((Y - weight * mean).square() + weight**2 * std**2)
    divergence = 0.5 * (std**2 + mean.square() - 1) - math.log(std)
    torch.manual_seed(0)
    bound = elbo(model, Y, 300_000)
    torch.testing.assert_close(bound.kl[:, None], divergence)
    torch.testing.assert_close(bound.log_likelihood[:, None], expected, atol=0.02, rtol=0)
    torch.testing.assert_close(bound.elbo, bound.log_likelihood - bound.kl)


def test_reparameterised_gradients_equal_finite_differences_of_the_closed_form():
    weight, slope, std = 0.8, 0.4, 0.6

    def closed_form(slope: float, std: float) -> float:
        mean = slope * Y
        reconstruction = -0.5 * ((Y - weight * mean).square() + weight**2 * std**2)
        return float((reconstruction - 0.5 * (std**2 + mean.square() - 1) + math.log(std)).sum())

    model = LinearGaussian(weight, slope, std)
    torch.manual_seed(0)
    elbo(model, Y, 300_000).elbo.sum().backward()
    step = 1e-5
    by_slope = (closed_form(slope + step, std) - closed_form(slope - step, std)) / (2 * step)
    by_std = (closed_form(slope, std + step) - closed_form(slope, std - step)) / (2 * step)
    assert model.mean.grad.item() == pytest.approx(by_slope, abs=0.03)
    assert model.log_std.grad.item() == pytest.approx(by_std * std, abs=0.03)


def test_more_samples_tighten_the_importance_weighted_bound():
    model = LinearGaussian(1.5, 0.2, 1.0)
    torch.manual_seed(0)
    many = Y.repeat(3000, 1)
    values = [importance_weighted_bound(model, many, samples).mean().item() for samples in (1, 5, 50)]
    assert values[0] < values[1] < values[2] < model.evidence(Y).mean().item() + 0.01


def test_both_bounds_come_from_the_same_draws():
    model = LinearGaussian(1.5, 0.2, 1.0)
    torch.manual_seed(0)
    draws = draw(model, Y, 7)
    torch.manual_seed(0)
    bound = elbo(model, Y, 7)
    assert torch.equal(bound.draws.h, draws.h) and torch.equal(bound.log_likelihood, draws.log_likelihood.mean(0))
    torch.manual_seed(0)
    assert torch.equal(importance_weighted_bound(model, Y, 7), bound.draws.importance_weighted())
