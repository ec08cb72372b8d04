"""Gradients of the importance-weighted bound of a Gaussian h, on a model whose log p(y) and bounds are known.

    p(h) = N(0, 1),  p(y | h) = N(slope h + bias, 1),  so log p(y) = log N(y; bias, 1 + slope^2)

As in test_estimators.py, parameters are handed out once per example: one backward pass gives many gradients.
"""

import math

import numpy as np
import pytest
import torch
from synthetic import batch_of, scattered_network, topic_documents
from torch import nn

from varitext import DocumentModel
from varitext.latent import DiagonalGaussian, choose_estimator
from varitext.latent.estimators import DReG, ImportanceWeighted, Reparameterised

Y = 1.3
VALUES = torch.tensor([0.9, -0.4, 0.5, 0.2], dtype=torch.float64)  # slope, bias; q's mean and log std
LIMIT = 4.5  # standard errors
REPEATS = 40_000


class Line(nn.Module):
    """Every example has its own slope, bias, mean and log std."""

    def __init__(self, values: torch.Tensor = VALUES, examples: int = REPEATS):
        super().__init__()
        self.values = nn.Parameter(values.expand(examples, -1).clone())

    def encode(self, y):
        return y

    def prior(self, y):
        return DiagonalGaussian.standard(self.values[:, :1])

    def posterior(self, y):
        return DiagonalGaussian(self.values[:, 2:3], self.values[:, 3:])

    def log_likelihood(self, h, y):
        mean = self.values[:, :1] * h + self.values[:, 1:2]
        return DiagonalGaussian(mean, torch.zeros_like(mean)).log_prob(torch.full_like(mean, y))


def gradients(estimator, samples, kl_weight=1.0, model=None):
    torch.manual_seed(0)
    model = model or Line()
    (found,) = torch.autograd.grad(estimator(model, Y, samples, kl_weight).surrogate.sum(), model.values)
    return found  # [examples, 4]


def of_two_draws(kl_weight=1.0):
    """The bound of two draws and its gradient, by quadrature over both of their noises."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    noise, weights = torch.from_numpy(nodes), torch.from_numpy(weights / weights.sum())
    slope, bias, mean, log_std = values = VALUES.clone().requires_grad_()
    h = mean + log_std.exp() * noise
    normal = 0.5 * math.log(2 * math.pi)
    log_q = -0.5 * noise.square() - log_std - normal
    signal = -0.5 * (Y - slope * h - bias).square() - normal + kl_weight * (-0.5 * h.square() - normal - log_q)
    bound = (weights[:, None] * weights * (torch.logaddexp(signal[:, None], signal) - math.log(2))).sum()
    return bound.item(), torch.autograd.grad(bound, values)[0]


def evidence(values=VALUES):
    return torch.distributions.Normal(values[1], (1 + values[0] ** 2).sqrt()).log_prob(torch.tensor(Y))


@pytest.mark.parametrize("kl_weight", [1.0, 0.3])
@pytest.mark.parametrize("estimator", [ImportanceWeighted(), DReG()])
def test_the_mean_gradient_is_that_by_quadrature(estimator, kl_weight):
    draws, (_, truth) = gradients(estimator, 2, kl_weight), of_two_draws(kl_weight)
    assert ((draws.mean(0) - truth).abs() / (draws.std(0) / REPEATS**0.5)).max() < LIMIT
    wrong = gradients(Reparameterised(), 2, kl_weight)  # of the ELBO: the comparison must see it
    assert ((wrong.mean(0) - truth).abs() / (wrong.std(0) / REPEATS**0.5)).max() > 10 * LIMIT


@pytest.mark.parametrize(("samples", "most"), [(2, 0.5), (8, 0.05), (64, 0.001)])  # found: 0.20, 0.010, 0.00013
def test_dreg_has_less_variance_for_q_and_the_same_gradient_for_p(samples, most):
    model = Line(examples=4000)
    plain, dreg = (gradients(estimator, samples, model=model) for estimator in (ImportanceWeighted(), DReG()))
    torch.testing.assert_close(dreg[:, :2], plain[:, :2])  # from the same draws
    assert (dreg[:, 2:].var(0) / plain[:, 2:].var(0)).max() < most
    assert (dreg[:, 2:].mean(0) - plain[:, 2:].mean(0)).abs().max() < 6 * (plain[:, 2:].std(0).max() / 4000**0.5)


def test_at_the_true_posterior_dreg_leaves_q_where_it_is():
    variance = 1 / (1 + VALUES[0] ** 2)
    exact = torch.stack([*VALUES[:2], variance * VALUES[0] * (Y - VALUES[1]), 0.5 * variance.log()])
    for samples, kl_weight in ((2, 1.0), (8, 1.0)):
        model = Line(exact, 50)
        found = gradients(DReG(), samples, kl_weight, model)
        assert found[:, 2:].abs().max() < 1e-12 < gradients(ImportanceWeighted(), samples, model=model)[:, 2:].std()
        torch.testing.assert_close(
            DReG()(model, Y, samples).surrogate, evidence(exact).expand(50)
        )  # every weight is p(y)


def test_with_many_draws_it_is_the_gradient_of_log_p_and_bounds_grow_towards_it():
    values = VALUES.clone().requires_grad_()
    (truth,) = torch.autograd.grad(evidence(values), values)
    assert truth[2:].eq(0).all()
    draws = gradients(DReG(), 1000, model=Line(examples=2000))
    assert ((draws.mean(0) - truth).abs() < LIMIT * draws.std(0) / 2000**0.5 + 2e-3).all()
    torch.manual_seed(0)
    bounds = [ImportanceWeighted()(Line(), Y, samples).surrogate.mean().item() for samples in (2, 8, 64)]
    assert bounds[0] == pytest.approx(of_two_draws()[0], abs=0.005)
    assert bounds[0] + 0.01 < bounds[1] < bounds[2] < evidence().item() + 1e-3


# Document models

COUNTS = topic_documents(documents=120, words=24, topics=3, length=15)


@pytest.mark.parametrize("name", ["nvdm", "nvdm_dcm", "nvdm_gsm"])
def test_the_generative_models_gradient_is_the_slope_of_the_bound(name):
    """Along a random direction, with q and the noise held fixed; the same for both estimators."""
    network, batch = scattered_network(name, COUNTS, 0.3), batch_of(COUNTS[:20])
    torch.manual_seed(1)
    q = network.posterior(network.encode(batch)).detach()
    network.posterior = lambda encoding: q
    inference = {id(parameter) for parameter in network.inference_parameters()}
    generative = [one.requires_grad_() for one in network.parameters() if id(one) not in inference]
    direction = [torch.randn_like(one) for one in generative]

    def surrogate(estimator):
        torch.manual_seed(2)
        return choose_estimator(estimator)(network, batch, 4, 0.7).surrogate.sum()

    def value_at(distance):
        with torch.no_grad():
            for one, along in zip(generative, direction, strict=True):
                one += distance * along
            value = surrogate("importance_weighted").item()
            for one, along in zip(generative, direction, strict=True):
                one -= distance * along
        return value

    slope = (value_at(1e-5) - value_at(-1e-5)) / 2e-5
    for estimator in ("importance_weighted", "dreg"):
        found = torch.autograd.grad(surrogate(estimator), generative, allow_unused=True)
        along = sum((a * b).sum().item() for a, b in zip(found, direction, strict=True) if a is not None)
        assert along == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "estimator"),
    [("nvdm", "dreg"), ("nvdm", "importance_weighted"), ("nvdm_dcm", "dreg"), ("nvdm_gsm", "dreg"), ("sbn", "vimco")],
)
def test_document_models_learn_with_it(name, estimator, tmp_path):
    settings = {"latent_dim": 3, "epochs": 12, "learning_rate": 2e-2, "threads": 1, "samples": 4, "n_topics": 3}
    updates = "alternating" if estimator == "importance_weighted" else "joint"  # h then needs no gradient at times
    model = DocumentModel(name, estimator=estimator, updates=updates, **settings).fit(COUNTS)
    history = model.fitted_.history
    assert min(record["dev_perplexity"] for record in history) < 0.9 * history[0]["dev_perplexity"]
    model.save(tmp_path / "model")
    again = DocumentModel.load(tmp_path / "model")
    assert again.fitted_.architecture["estimator"] == estimator == again.estimator
    assert np.array_equal(again.transform(COUNTS), model.transform(COUNTS))
