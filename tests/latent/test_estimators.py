"""Gradient estimators for discrete h against enumeration, on models so small that every h can be visited.

Each test model hands out its parameters once per example, so that one backward pass over many copies of a document
gives many independent draws of the gradient, with their standard error.
"""

import copy
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from varitext.errors import InputError
from varitext.latent import (
    ESTIMATORS,
    BaselineInput,
    Bernoullis,
    Categoricals,
    DiagonalGaussian,
    Estimate,
    choose_estimator,
    elbo,
    exact_evidence,
    importance_weighted_bound,
)
from varitext.latent.bound import draw
from varitext.latent.estimators import (
    NVIL,
    VIMCO,
    DReG,
    Exact,
    ImportanceWeighted,
    LeaveOneOut,
    LocalExpectation,
    LocalLogOdds,
    LogProbabilities,
    Reparameterised,
    score_function,
)

DOCUMENTS = torch.tensor([[3.0, 1, 0, 0, 2], [0, 0, 4, 1, 0], [1, 1, 1, 1, 8]], dtype=torch.float64)  # [B, V]: 5 words


class Encoding(NamedTuple):
    inference: Tensor  # [B, V, K]   q's weights, once per example
    inference_bias: Tensor  # [B, K]
    prior_bias: Tensor  # [B, K]
    between: Tensor  # [B, K, K]   of the autoregressive prior
    words: Tensor  # [B, K, V]
    counts: Tensor  # [B, V]


class Autoregressive(NamedTuple):
    """p(h) = prod_k Bernoulli(h_k | h_<k): has log_prob and nothing else."""

    bias: Tensor
    between: Tensor

    def log_prob(self, h: Tensor) -> Tensor:
        return Bernoullis(self.bias + torch.einsum("sbj,bkj->sbk", h, self.between.tril(-1))).log_prob(h)


class Tiny(nn.Module):
    """4 binary latents (`kind` "bernoulli", "autoregressive") or two choices of three ("categorical"); 5 words."""

    def __init__(self, kind: str = "bernoulli"):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.kind, size = kind, 6 if kind == "categorical" else 4
        shapes = {"inference": (5, size), "inference_bias": (size,), "prior_bias": (size,), "between": (size, size)}
        for name, shape in (shapes | {"words": (size, 5)}).items():
            values = torch.randn(shape, generator=generator, dtype=torch.float64)
            setattr(self, name, nn.Parameter(values * (0.2 if name == "inference" else 0.7)))

    def encode(self, counts: Tensor) -> Encoding:
        parts = [getattr(self, name) for name in Encoding._fields[:-1]]
        self.encoding = Encoding(*(part.expand(len(counts), *part.shape) for part in parts), counts)
        return self.encoding

    def _distribution(self, logits: Tensor) -> Bernoullis | Categoricals:
        return Categoricals(logits.view(-1, 2, 3)) if self.kind == "categorical" else Bernoullis(logits)

    def prior(self, encoding: Encoding):
        if self.kind == "autoregressive":
            return Autoregressive(encoding.prior_bias, encoding.between)
        return self._distribution(encoding.prior_bias)

    def posterior(self, encoding: Encoding):
        logits = torch.einsum("bv,bvk->bk", encoding.counts, encoding.inference) + encoding.inference_bias
        return self._distribution(logits)

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        logits = torch.einsum("sbk,bkv->sbv", h.reshape(*h.shape[:2], -1), encoding.words)
        return (encoding.counts * torch.log_softmax(logits, -1)).sum(-1)

    def baseline_input(self, encoding: Encoding) -> BaselineInput:
        return BaselineInput(encoding.counts, encoding.counts.sum(1))

    @torch.no_grad()
    def local_log_odds(self, h: Tensor, encoding: Encoding) -> LocalLogOdds:
        """By changing one unit after the other."""
        prior, likelihood_gains, prior_gains = self.prior(encoding), [], []
        for unit in torch.eye(4, dtype=h.dtype):
            on, off = h + unit * (1 - h), h * (1 - unit)
            likelihood_gains.append(self.log_likelihood(on, encoding) - self.log_likelihood(off, encoding))
            prior_gains.append(prior.log_prob(on) - prior.log_prob(off))
        return LocalLogOdds(torch.stack(likelihood_gains, -1), torch.stack(prior_gains, -1))


class ScoreFunction(nn.Module):
    """The plain estimator, b = 0: what the others are measured against."""

    def forward(self, model, batch, samples=1, kl_weight=1.0) -> Estimate:
        bound = elbo(model, batch, samples)
        parts = LogProbabilities.of(bound.draws)
        return score_function(bound, parts, parts.signal(kl_weight), kl_weight)


class Naive(nn.Module):
    """Differentiates the bound as if h were no function of q: wrong, and the tests must see it."""

    def forward(self, model, batch, samples=1, kl_weight=1.0) -> Estimate:
        bound = elbo(model, batch, samples)
        return Estimate(bound.log_likelihood - kl_weight * bound.kl, bound)


def gradients(estimator, model: Tiny, counts: Tensor, samples: int = 1, kl_weight: float = 1.0) -> Tensor:
    """One gradient per example, all parameters in a row: [B, number of parameters]; those of q come first."""
    surrogate = estimator(model, counts, samples, kl_weight).surrogate
    parts = model.encoding[:-1]
    found = torch.autograd.grad(surrogate.sum(), parts, allow_unused=True)
    found = [torch.zeros_like(p) if g is None else g for g, p in zip(found, parts, strict=True)]
    return torch.cat([gradient.flatten(1) for gradient in found], 1)


def of_inference(gradient: Tensor, model: Tiny) -> Tensor:
    return gradient[..., : model.inference.numel() + model.inference_bias.numel()]


def model_of(kind: str, state: str) -> Tiny:
    """ "untrained" or "fitted"."""
    model = Tiny(kind)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(50 if state == "fitted" else 0):
        optimizer.zero_grad()
        (-Exact()(model, DOCUMENTS).surrogate.mean()).backward()
        optimizer.step()
    return model


def trained_nvil(kind: str = "bernoulli", state: str = "untrained") -> NVIL:
    """With a learned baseline and moving averages that have moved; in evaluation, they stay."""
    return copy.deepcopy(_trained_nvil(kind, state))


@cache
def _trained_nvil(kind: str, state: str) -> NVIL:
    model = model_of(kind, state)
    torch.manual_seed(1)
    estimator = NVIL(baseline_dim=5, hidden_dim=20).double()
    optimizer = torch.optim.Adam(estimator.parameters(), 0.02)
    for _ in range(300):
        optimizer.zero_grad()
        (-estimator(model, DOCUMENTS.repeat(20, 1)).surrogate.mean()).backward()
        optimizer.step()
    return estimator.eval()


def deviation(estimator, model: Tiny, kl_weight: float, samples: int, scale_of_inference: float = 1.0) -> Tensor:
    """How many standard errors the mean gradient is from that by enumeration, for every parameter and document."""
    repeats = 8000
    torch.manual_seed(0)
    draws = gradients(estimator, model, DOCUMENTS.repeat_interleave(repeats, 0), samples, kl_weight)
    draws = draws.view(len(DOCUMENTS), repeats, -1)
    truth = gradients(Exact(), model, DOCUMENTS, kl_weight=kl_weight)
    of_inference(truth, model).mul_(scale_of_inference)
    error = draws.std(1) / repeats**0.5
    return (draws.mean(1) - truth).abs() / (error + 1e-9)


kinds = pytest.mark.parametrize("kind", ["bernoulli", "autoregressive", "categorical"])
LIMIT = 4.5  # standard errors: one in 100,000 values is further off by chance, and there are at most 300 of them


def q_scale(estimator) -> float:
    """What the estimator divides q's gradient by."""
    return float(estimator.variance.sqrt().clamp(min=1)) if isinstance(estimator, NVIL) else 1.0


# The mean


@kinds
@pytest.mark.parametrize("kl_weight", [1.0, 0.3])
def test_exact_gradient_is_that_of_the_sum_written_out(kind, kl_weight):
    model = Tiny(kind)
    draws = model.posterior(model.encode(DOCUMENTS)).values()
    encoding = model.encode(DOCUMENTS)
    q, p = model.posterior(encoding).log_prob(draws), model.prior(encoding).log_prob(draws)
    total = (q.exp() * (model.log_likelihood(draws, encoding) + kl_weight * (p - q))).sum(0)
    estimate = Exact()(model, DOCUMENTS, kl_weight=kl_weight)
    torch.testing.assert_close(estimate.surrogate, total)
    expected = torch.autograd.grad(total.sum(), model.inference)[0]
    torch.testing.assert_close(torch.autograd.grad(estimate.surrogate.sum(), model.inference)[0], expected)


@kinds
@pytest.mark.parametrize("kl_weight", [1.0, 0.3])
@pytest.mark.parametrize("name", ["score_function", "leave_one_out", "nvil", "local_expectation"])
def test_the_mean_gradient_is_that_by_enumeration(kind, kl_weight, name):
    if (kind, name) == ("categorical", "local_expectation"):
        pytest.skip("it is for Bernoulli latents")
    model = Tiny(kind)
    others = {"score_function": ScoreFunction, "leave_one_out": LeaveOneOut, "local_expectation": LocalExpectation}
    estimator = others.get(name, lambda: trained_nvil(kind))()
    for samples in (2, 4) if name == "leave_one_out" else (1, 3):
        assert deviation(estimator, model, kl_weight, samples, 1 / q_scale(estimator)).max() < LIMIT


@kinds
def test_the_comparison_sees_a_wrong_gradient(kind):
    assert deviation(Naive(), Tiny(kind), 1.0, 1).max() > 10 * LIMIT


def test_nvil_divides_by_the_spread_of_the_signal_and_never_by_less_than_one():
    model, estimator = Tiny(), trained_nvil()
    for variance, divisor in ((0.0, 1.0), (0.25, 1.0), (9.0, 3.0)):
        estimator.variance.fill_(variance)
        assert deviation(estimator, model, 1.0, 1, 1 / divisor).max() < LIMIT


def test_nvil_is_unbiased_while_its_averages_move():
    """Batches of 4, each with the averages of those before: their own draws are not in them."""
    model, estimator = Tiny(), NVIL().double()
    counts = DOCUMENTS[:1].expand(4, -1)
    torch.manual_seed(0)
    for _ in range(30):
        estimator(model, counts)
    found = []
    for _ in range(3000):
        estimator.variance.zero_()  # centring alone
        found.append(gradients(estimator, model, counts).mean(0))
    draws, truth = torch.stack(found), gradients(Exact(), model, counts)[0]
    assert ((draws.mean(0) - truth).abs() / (draws.std(0) / 3000**0.5 + 1e-9)).max() < LIMIT


# The variance


def variance_of_inference(estimator, model: Tiny, samples: int) -> float:
    """Of the gradient of q's parameters, summed over them, mean over documents; NVIL's division undone."""
    repeats = 8000
    torch.manual_seed(0)
    found = gradients(estimator, model, DOCUMENTS.repeat_interleave(repeats, 0), samples)
    found = of_inference(found, model).view(len(DOCUMENTS), repeats, -1) * q_scale(estimator)
    return float(found.var(1).sum(-1).mean())


def variances(kind: str, state: str) -> dict[str, float]:
    model, nvil = model_of(kind, state), trained_nvil(kind, state)
    local = {} if kind == "categorical" else {"local": variance_of_inference(LocalExpectation(), model, 1)}
    return local | {
        "plain, 1 draw": variance_of_inference(ScoreFunction(), model, 1),
        "nvil, 1 draw": variance_of_inference(nvil, model, 1),
        "plain, 4 draws": variance_of_inference(ScoreFunction(), model, 4),
        "nvil, 4 draws": variance_of_inference(nvil, model, 4),
        "leave_one_out, 4 draws": variance_of_inference(LeaveOneOut(), model, 4),
    }


@kinds
@pytest.mark.parametrize("state", ["untrained", "fitted"])
def test_variances_in_order_and_as_documented(kind, state):
    found = variances(kind, state)
    assert found["nvil, 1 draw"] < found["plain, 1 draw"] / 10, found
    assert found["leave_one_out, 4 draws"] < found["plain, 4 draws"] / 10, found
    assert found["nvil, 4 draws"] < found["plain, 4 draws"] / 10, found
    assert found["nvil, 4 draws"] < found["nvil, 1 draw"], found
    local = found.pop("local", None)
    assert local is None or local < found["leave_one_out, 4 draws"], found
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "discrete-latents.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {kind}, {state} \|(.*)\|$", page, re.MULTILINE)
    *said, local_said = [cell.replace(",", "") for cell in re.split(r"\s*\|\s*", row[1].strip())]
    assert list(map(float, said)) == pytest.approx(list(found.values()), rel=0.3), found
    assert local_said == "–" if local is None else float(local_said) == pytest.approx(local, rel=0.3)


# The importance-weighted bound of a discrete h


def gradients_of_pairs(model: Tiny, kl_weight: float) -> Tensor:
    """Of E[log (w_1 + w_2) / 2] by enumeration of all pairs of values, as `gradients`."""
    encoding = model.encode(DOCUMENTS)
    q, p, h = model.posterior(encoding), model.prior(encoding), model.posterior(encoding).values()
    log_q = q.log_prob(h)
    signal = model.log_likelihood(h, encoding) + kl_weight * (p.log_prob(h) - log_q)  # [N, B]
    of_pairs = torch.logaddexp(signal[:, None], signal) - torch.log(torch.tensor(2.0, dtype=signal.dtype))
    expected = ((log_q[:, None] + log_q).exp() * of_pairs).sum((0, 1))
    parts = encoding[:-1]
    found = torch.autograd.grad(expected.sum(), parts, allow_unused=True)
    found = [torch.zeros_like(part) if one is None else one for one, part in zip(found, parts, strict=True)]
    return torch.cat([gradient.flatten(1) for gradient in found], 1)


class WeightedScoreFunction(nn.Module):
    """VIMCO without baselines."""

    def forward(self, model, batch, samples=2, kl_weight=1.0) -> Estimate:
        bound = elbo(model, batch, samples)
        parts = LogProbabilities.of(bound.draws)
        value = torch.logsumexp(parts.signal(kl_weight), 0)
        return Estimate(value.detach() * parts.posterior.sum(0) + value, bound)


@kinds
@pytest.mark.parametrize("kl_weight", [1.0, 0.3])
def test_vimcos_mean_gradient_is_that_of_the_weighted_bound_by_enumeration(kind, kl_weight):
    model, repeats = Tiny(kind), 8000
    truth = gradients_of_pairs(model, kl_weight)[:, None]
    many = DOCUMENTS.repeat_interleave(repeats, 0)
    for estimator, biased in ((VIMCO(), False), (LeaveOneOut(), True)):  # the other one's bound is the ELBO
        torch.manual_seed(0)
        draws = gradients(estimator, model, many, 2, kl_weight).view(len(DOCUMENTS), repeats, -1)
        error = (draws.mean(1, keepdim=True) - truth).abs() / (draws.std(1, keepdim=True) / repeats**0.5 + 1e-9)
        assert error.max() > 10 * LIMIT if biased else error.max() < LIMIT


@kinds
def test_vimcos_baselines_take_away_most_of_the_variance(kind):
    found = [variance_of_inference(estimator, Tiny(kind), 8) for estimator in (VIMCO(), WeightedScoreFunction())]
    assert found[0] < found[1] / 30, found


@kinds
def test_vimcos_value_is_the_weighted_bound(kind):
    model = Tiny(kind)
    torch.manual_seed(0)
    expected = importance_weighted_bound(model, DOCUMENTS, 5)
    torch.manual_seed(0)
    estimate = VIMCO()(model, DOCUMENTS, 5)
    torch.testing.assert_close(estimate.surrogate, expected)
    assert (estimate.surrogate > estimate.bound.log_likelihood - 50).all() and not estimate.bound.kl.requires_grad


# Bounds


@kinds
def test_the_exact_bound_is_below_the_evidence_and_sampling_agrees(kind):
    model = Tiny(kind)
    bound, evidence = Exact()(model, DOCUMENTS).bound, exact_evidence(model, DOCUMENTS)
    assert (bound.elbo < evidence).all()
    torch.manual_seed(0)
    torch.testing.assert_close(elbo(model, DOCUMENTS, 50_000).elbo, bound.elbo, atol=0.05, rtol=0)
    weighted = importance_weighted_bound(model, DOCUMENTS, 50_000)
    torch.testing.assert_close(weighted, evidence, atol=0.05, rtol=0)


@kinds
def test_more_samples_tighten_the_importance_weighted_bound(kind):
    model, many = Tiny(kind), DOCUMENTS.repeat(3000, 1)
    torch.manual_seed(0)
    values = [importance_weighted_bound(model, many, samples).mean().item() for samples in (1, 5, 50)]
    below, above = Exact()(model, DOCUMENTS).bound.elbo.mean().item(), exact_evidence(model, DOCUMENTS).mean().item()
    assert values[0] == pytest.approx(below, abs=0.1)
    assert values[0] < values[1] < values[2] < above + 0.01


@pytest.mark.parametrize("name", ["leave_one_out", "nvil", "local_expectation", "exact"])
def test_surrogate_has_the_weighted_bounds_value_and_reports_have_the_full_kl(name):
    torch.manual_seed(0)
    estimate = choose_estimator(name).double()(Tiny(), DOCUMENTS, samples=4, kl_weight=0.25)
    bound = estimate.bound
    torch.testing.assert_close(estimate.surrogate, bound.log_likelihood - 0.25 * bound.kl)
    torch.testing.assert_close(bound.elbo, bound.log_likelihood - bound.kl)
    assert bound.kl_per_dimension.shape == (3, 4)


@kinds
@pytest.mark.parametrize("name", ["leave_one_out", "nvil", "exact"])
def test_what_else_is_in_the_batch_does_not_matter(kind, name, monkeypatch):
    model = Tiny(kind)
    estimator = trained_nvil(kind) if name == "nvil" else choose_estimator(name)
    h = draw(model, DOCUMENTS, 4).h
    monkeypatch.setattr(Bernoullis, "sample", lambda self, samples: h[:samples, -len(self.logits) :])
    monkeypatch.setattr(Categoricals, "sample", lambda self, samples: h[:samples, -len(self.logits) :])
    together, alone = (gradients(estimator, model, batch, 4) for batch in (DOCUMENTS, DOCUMENTS[-1:]))
    torch.testing.assert_close(together[-1:], alone)


# State and choice


def test_averages_and_baseline_survive_a_state_dict():
    model = Tiny()
    first, second = trained_nvil(), NVIL(baseline_dim=5, hidden_dim=20).double().eval()
    assert {"centre", "variance", "started", "baseline.0.weight"} <= set(first.state_dict())
    second.load_state_dict(safetensors.torch.load(safetensors.torch.save(first.state_dict())))
    found = []
    for estimator in (first, second):
        torch.manual_seed(5)
        found.append((gradients(estimator.train(), model, DOCUMENTS, 2), estimator.centre, estimator.variance))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_averages_follow_the_published_rule_and_stand_still_in_evaluation():
    estimator, signal = NVIL(decay=0.8), torch.tensor([[1.0, 3.0]])
    torch.testing.assert_close(estimator.advantage(signal, 1.0), torch.tensor([[-1.0, 1.0]]))  # the first is its own c
    torch.testing.assert_close(estimator.advantage(signal + 10, 1.0), torch.tensor([[9.0, 11.0]]))
    assert estimator.centre.item() == pytest.approx(0.8 * 2 + 0.2 * 12)
    assert estimator.variance.item() == pytest.approx(1.0)
    estimator.eval().advantage(signal + 100, 1.0)
    assert estimator.centre.item() == pytest.approx(4.0)


def test_the_baseline_learns_the_signal_and_touches_nothing_else():
    model, estimator = Tiny(), trained_nvil()
    predicted = (estimator.baseline(DOCUMENTS) + estimator.centre) * DOCUMENTS.sum(1)
    bound = Exact()(model, DOCUMENTS).bound.elbo
    assert (predicted - bound).abs().max() < 0.35 * bound.std()
    before = model.inference.grad
    least_squares = estimator.baseline(model.baseline_input(model.encode(DOCUMENTS)).features.detach()).sum()
    least_squares.backward()
    assert model.inference.grad is before


class Line(nn.Module):
    def encode(self, y):
        return y

    def prior(self, y):
        return DiagonalGaussian.standard(y)

    def posterior(self, y):
        return DiagonalGaussian(0.5 * y, torch.full_like(y, -0.5, requires_grad=True))

    def log_likelihood(self, h, y):
        return DiagonalGaussian(h, torch.zeros_like(h)).log_prob(y)


def test_reparameterised_is_the_elbo_to_the_bit():
    y = torch.tensor([[0.3], [-1.2]])
    torch.manual_seed(0)
    bound = elbo(Line(), y, 3)
    torch.manual_seed(0)
    estimate = Reparameterised()(Line(), y, 3, 0.4)
    assert torch.equal(estimate.surrogate, -(0.4 * bound.kl - bound.log_likelihood))
    assert torch.equal(estimate.bound.elbo, bound.elbo)


def test_estimators_are_chosen_by_name():
    assert {name: type(choose_estimator(name, 3)) for name in ESTIMATORS} == ESTIMATORS
    assert choose_estimator("nvil", 3).baseline[0].in_features == 3
    with pytest.raises(InputError, match=r"'gumbel'.*reparameterised, leave_one_out, nvil, .*, vimco"):
        choose_estimator("gumbel")


def test_what_cannot_work_is_said():
    y, wide = torch.zeros(1, 1), Tiny()
    with pytest.raises(InputError, match="discrete"):
        NVIL()(Line(), y)
    with pytest.raises(InputError, match="Gaussian"):
        Reparameterised()(Tiny(), DOCUMENTS)
    with pytest.raises(InputError, match="set samples to 2 or more"):
        LeaveOneOut()(Tiny(), DOCUMENTS, 1)
    for estimator in (VIMCO(), DReG(), ImportanceWeighted()):
        with pytest.raises(InputError, match="set samples to 2 or more"):
            estimator(Line(), y, 1)
    with pytest.raises(InputError, match="discrete"):
        VIMCO()(Line(), y)
    with pytest.raises(InputError, match="Gaussian"):
        DReG()(Tiny(), DOCUMENTS)
    with pytest.raises(InputError, match="every value"):
        Exact()(Line(), y)
    wide.posterior = lambda encoding: Bernoullis(torch.zeros(3, 50))
    with pytest.raises(InputError, match=r"1\.1e\+15 here, at most 4096"):
        Exact()(wide, DOCUMENTS)
