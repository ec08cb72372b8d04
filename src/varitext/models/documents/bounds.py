"""Values of a document model on documents: log p(X), and the information in each latent dimension.

log p(X) is a bound, an exact value or an estimate. The information is in nats, zero for a dimension that is the same in
every document, and never negative. There is one definition for each kind of document vector:

    gaussian_kl_per_dimension   mean of KL(q(h_k | X) || N(0, 1)), per document
    bernoulli_kl_per_dimension  mean of KL(q(h_k | X) || mean over documents of q), per document: the mutual information
                                of h_k and the document
    proportion_information      mean of theta_k log(theta_k / mean theta_k), per word: topic k's part of the mutual
                                information of topic and document
    direction_information       N / 2 Var_d(h_k) Var_w(R_wk), per document: the KL between word distributions when h_k
                                moves as far as documents do, to second order

The last is for vectors without a posterior. With p(w | h) = softmax(h R + b)_w, a step of d along dimension k changes
the distribution of one word by a KL of d^2 / 2 Var_w(R_wk) + O(d^3), with the variance over words by frequency.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.batches.counts import CountBatch, CountBatches
from varitext.latent import Bernoullis, DiagonalGaussian, LatentModel, elbo, kl, noise
from varitext.runtime.devices import in_parallel
from varitext.runtime.randomness import seeded, stream

SURE = 1e-6  # probabilities are clamped to this distance from 0 and 1
MAX_LOGITS = 2**23  # samples x documents x words held at once: 32 MB


class EstimateKind(NamedTuple):
    """What a model's log p(X) is: a bound, exact or an estimate."""

    kind: str  # bound: never above the true value; exact; or estimate: may be above or below it
    description: str  # which bound or estimator


LOWER_BOUND = EstimateKind("bound", "variational lower bound on log p(X), KL included: an upper bound on perplexity")


class DocumentBounds(NamedTuple):
    """One value per document, in nats. If a model does not draw h, both bounds are log p(X) and the KL is 0."""

    log_likelihood: np.ndarray  # E_q[log p(X | h)]
    kl: np.ndarray
    importance_weighted: np.ndarray
    lengths: np.ndarray  # words
    kl_by_dimension: np.ndarray  # [K], mean over documents
    standard_errors: np.ndarray | None = None  # of an estimate; errors are shared by documents
    drawn: int | None = None  # number of draws, if not the number requested

    @property
    def elbo(self) -> np.ndarray:
        return np.asarray(self.log_likelihood - self.kl)


def document_bounds(
    model: LatentModel,
    counts: scipy.sparse.csr_matrix,
    samples: int = 20,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> DocumentBounds:
    """Both bounds of every document; the same seed gives the same values, on any number of threads."""
    on_cpu = torch.device(device).type == "cpu"
    batch_size = max(1, min(256, MAX_LOGITS // (samples * max(1, counts.shape[1]))))

    @torch.no_grad()
    def bounds(place: int, batch: CountBatch) -> tuple[Tensor, Tensor]:
        own = stream(seed + place, "evaluation noise")
        with noise.drawn_from(torch.Generator().manual_seed(own)) if on_cpu else seeded(own, device):
            bound = elbo(model, batch, samples)
        tighter = bound.draws.importance_weighted()
        rows = torch.stack([bound.log_likelihood, bound.kl, tighter, batch.lengths])
        return rows, bound.kl_per_dimension.sum(0)

    batches = enumerate(CountBatches(counts, device).in_order(batch_size))
    rows, by_dimension = zip(*in_parallel(bounds, batches, on_cpu), strict=True)
    log_likelihood, kl, importance_weighted, lengths = torch.cat(rows, 1).double().cpu().numpy()
    kl_by_dimension = torch.stack(by_dimension).sum(0).cpu().numpy() / counts.shape[0]
    return DocumentBounds(log_likelihood, kl, importance_weighted, lengths, kl_by_dimension)


def exact_bounds(log_probability: np.ndarray, counts: scipy.sparse.csr_matrix, latent_dim: int) -> DocumentBounds:
    """The record of a model that computes, or estimates, log p(X) without drawing h."""
    nothing = np.zeros(len(log_probability))
    lengths = np.asarray(counts.sum(1), np.float64).ravel()
    return DocumentBounds(log_probability, nothing, log_probability, lengths, np.zeros(latent_dim), drawn=0)


def gaussian_kl_per_dimension(mean: Tensor, std: Tensor) -> Tensor:
    q = DiagonalGaussian(mean, std.log())
    return kl(q, DiagonalGaussian.standard(mean)).mean(0)  # [K]


def bernoulli_kl_per_dimension(probabilities: Tensor) -> Tensor:
    """Information per dimension from q(h_k = 1 | X), [D, K]."""
    within = probabilities.double().clamp(SURE, 1 - SURE)
    return kl(Bernoullis(torch.logit(within)), Bernoullis(torch.logit(within.mean(0)))).mean(0)  # [K]


def proportion_information(shares: Tensor) -> Tensor:
    """Information per topic from the topic proportions of documents, [D, K], which sum to one."""
    shares = shares.double()
    return (torch.xlogy(shares, shares) - torch.xlogy(shares, shares.mean(0))).mean(0).clamp(min=0)  # [K]


def direction_information(
    means: Tensor, word_directions: Tensor, word_log_frequencies: Tensor, words_per_document: float
) -> Tensor:
    """Information per dimension from vectors [D, K] and their effect on the words, [V, K]."""
    frequencies, directions = word_log_frequencies.double().exp(), word_directions.double()
    among_words = frequencies @ directions.square() - (frequencies @ directions).square()
    among_documents = means.double().var(0, correction=0)
    return 0.5 * words_per_document * among_documents * among_words.clamp(min=0)  # [K]
