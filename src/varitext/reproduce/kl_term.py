"""The KL of NVDM as a regulariser, and the variance of its gradients (paper, sections 2, 3 and 6).

We fit the paper's network on 20 Newsgroups with the KL, with 1/2 ||mean||^2 in its place, which has the same gradient
for the mean, and with neither. Then, at the fit with the KL, we measure the variance of four unbiased estimates of the
gradient with respect to the mean and log std of q, from one sample each.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch, CountBatches
from varitext.corpora.sharded_counts import in_memory
from varitext.documents.evaluation import completion_of
from varitext.documents.model import DocumentModel
from varitext.latent import DiagonalGaussian, SampledBound
from varitext.latent.estimators import Estimate
from varitext.models.documents.base import DocumentObjective, Recipe
from varitext.models.documents.bounds import DocumentBounds
from varitext.models.documents.nvdm import NVDM
from varitext.reproduce import ABOUT
from varitext.reproduce.document_fits import NEWSGROUPS, QUICK_EPOCHS, hashes, load_part, samples_of, short
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, mean, results
from varitext.runtime.randomness import seeded, stream

SEEDS = 3
DOCUMENTS, DRAWS = 64, 500  # whose gradients are compared, and how many of each
AT_ONCE = 20  # draws
EPOCHS, LEARNING_RATE = 30, 1.5e-3
CLOSED_FORM = "reparameterised, closed-form KL"


class PlainNVDM(NVDM):
    """The paper's network and bound, without length weights, word dropout and refinement."""

    @staticmethod
    def recipe(preset: str, documents: int, words_per_document: float) -> Recipe:
        usual = NVDM.recipe(preset, documents, words_per_document)
        training = dataclasses.replace(
            usual.training, epochs=EPOCHS, patience=EPOCHS, learning_rate=LEARNING_RATE, batch_size=128
        )
        return Recipe({"inference": "words", "activation": "relu", "softmax": None}, training, DocumentObjective())


class WithoutKL(PlainNVDM):
    """Maximises E_q[log p(X | h)] alone."""

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        return super().objective(batch, samples, 0.0)

    def evaluate_round(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        found = super().evaluate_round(counts, samples, seed)
        return found._replace(kl=np.zeros_like(found.kl))


class WithL2(PlainNVDM):
    """Subtracts 1/2 ||mean||^2 in the place of the KL."""

    def objective(self, batch: CountBatch, samples: int, kl_weight: float) -> Estimate:
        estimate = super().objective(batch, samples, 0.0)
        assert isinstance(estimate.bound, SampledBound)
        penalty = half_square(estimate.bound.draws.posterior)
        return estimate._replace(surrogate=estimate.surrogate - kl_weight * penalty)

    def evaluate_round(self, counts: scipy.sparse.csr_matrix, samples: int, seed: int) -> DocumentBounds:
        batches = CountBatches(counts, self.device).in_order(256)
        penalty = torch.cat([half_square(self.posterior(self.encode(batch))) for batch in batches])
        return super().evaluate_round(counts, samples, seed)._replace(kl=penalty.double().cpu().numpy())


def half_square(q: Any) -> Tensor:
    squares: Tensor = 0.5 * q.mean.square().sum(-1)
    return squares  # [B]


OBJECTIVES = {"KL": PlainNVDM, "L2": WithL2, "none": WithoutKL}
TITLES = {"KL": "KL", "L2": "½‖μ‖² instead of the KL", "none": "neither"}


def measure(objective: str, seed: int, plan: Plan) -> dict[str, Any]:
    train, test = (load_part(NEWSGROUPS, part, plan) for part in ("train", "test"))
    epochs = QUICK_EPOCHS if plan.quick else None
    model = DocumentModel(OBJECTIVES[objective], 50, epochs=epochs, threads=plan.threads, seed=seed).fit(train)
    network, samples, posterior = model.fitted_.network, samples_of(plan), model.posterior(test)
    assert isinstance(network, NVDM)
    frequencies = network.word_log_frequencies.double().cpu().numpy()
    completion = completion_of(network, in_memory(model.count(test)), frequencies, samples, seed)
    found: dict[str, Any] = {
        "squared_mean": float(np.square(posterior.mean).sum(1).mean()),
        "std": float(posterior.std.mean()),
        "perplexity": model.perplexity_record(test, samples).per_document_perplexity,
        "completion_perplexity": completion.per_document_perplexity,
    }
    if objective == "KL":
        batch = CountBatch.from_rows(in_memory(model.count(train))[:DOCUMENTS])
        found["gradient_variance"] = gradient_variances(network, batch, seed)
    return short(found) | hashes(NEWSGROUPS, plan)


# Estimates of the gradient


class Draws(NamedTuple):
    """Values for S samples of each document."""

    noise: Tensor  # [S, B, K]
    h: Tensor  # [S, B, K]
    log_likelihood: Tensor  # [S, B]
    slope: Tensor  # [S, B, K]   of the log-likelihood with respect to h


def gradient_estimates(q: DiagonalGaussian, draws: Draws) -> dict[str, tuple[Tensor, Tensor]]:
    """For each estimator the gradient of every draw with respect to mean and log std, [S, B, K] each."""
    std, noise, h, slope = q.std, draws.noise, draws.h, draws.slope
    prior = DiagonalGaussian.standard(q.mean)
    joint = slope - h  # of log p(X, h) with respect to h
    path = joint + noise / std  # the same of s(h), as equation 3 has it
    signal = draws.log_likelihood + prior.log_prob(h) - q.log_prob(h)
    advantage = (signal - signal.mean(0))[..., None]  # the best constant baseline, nearly
    return {
        CLOSED_FORM: (slope - q.mean, slope * std * noise - (std.square() - 1)),
        "reparameterised, sampled KL": (joint, joint * std * noise + 1),
        "equations 3 and 4": (path, path * std * noise),
        "score function": (advantage * noise / std, advantage * (noise.square() - 1)),
    }


def gradient_variances(network: NVDM, batch: CountBatch, seed: int, draws: int = DRAWS) -> dict[str, float]:
    """The variance over draws, summed over mean and log std and averaged over documents."""
    with seeded(stream(seed, "evaluation noise"), network.device):
        encoding = network.encode(batch)
        q = DiagonalGaussian(*(values.detach() for values in network.posterior(encoding)))
        parts = [draw(network, encoding, q) for _ in range(draws // AT_ONCE)]
    together = Draws(*(torch.cat(values) for values in zip(*parts, strict=True)))
    found = gradient_estimates(q, together)
    return {name: float(sum(each.var(0).sum(-1).mean() for each in both)) for name, both in found.items()}


def draw(network: NVDM, encoding: Any, q: DiagonalGaussian) -> Draws:
    h = q.rsample(AT_ONCE).requires_grad_()
    log_likelihood = network.log_likelihood(h, encoding)
    (slope,) = torch.autograd.grad(log_likelihood.sum(), h)
    return Draws(((h - q.mean) / q.std).detach(), h.detach(), log_likelihood.detach(), slope)


def table(records: list[Record]) -> str:
    head = ["penalty", "‖μ‖²", "std of q", "perplexity (bound)", "completion perplexity", "seeds"]
    columns = {"squared_mean": ".1f", "std": ".3f", "perplexity": ",.0f", "completion_perplexity": ",.0f"}
    rows = []
    for objective, title in TITLES.items():
        if found := results(records, objective=objective):
            rows.append([title, *(mean(found, name, form) for name, form in columns.items()), str(len(found))])
    return f"{markdown_table(head, rows)}\n\n{_variances(results(records, objective='KL'))}"


def _variances(found: list[dict[str, Any]]) -> str:
    names = found[0]["gradient_variance"] if found else ()
    means = {name: float(np.mean([one["gradient_variance"][name] for one in found])) for name in names}
    rows = [[name, f"{value / means[CLOSED_FORM]:.3g}"] for name, value in means.items()]
    return markdown_table(["gradient of the bound, one sample", "variance, relative"], rows)


RUNS = partial(grid, measure, SEEDS, objective=OBJECTIVES)
EXPERIMENT = Experiment("kl-term", ABOUT["kl-term"], RUNS, table)
