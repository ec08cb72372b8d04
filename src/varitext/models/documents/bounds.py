"""What is known of log p(X) of held-out documents: a bound, an exact value or an estimate."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch

from varitext.batches.counts import CountBatches
from varitext.latent import LatentModel, elbo
from varitext.runtime.randomness import seeded, stream

MAX_LOGITS = 2**23  # samples x documents x words held at once: 32 MB


class EstimateKind(NamedTuple):
    """What a model's log p(X) is: a bound, exact or an estimate."""

    kind: str  # bound: never above the truth; exact; or estimate: may lie on either side
    words: str  # the same in a sentence: which bound, which estimator


LOWER_BOUND = EstimateKind("bound", "variational lower bound on log p(X), KL included: an upper bound on perplexity")


class DocumentBounds(NamedTuple):
    """One value per document, in nats. A model that does not draw h has log p(X) twice, and a KL of 0."""

    log_likelihood: np.ndarray  # E_q[log p(X | h)]
    kl: np.ndarray
    importance_weighted: np.ndarray
    lengths: np.ndarray  # words
    kl_by_dimension: np.ndarray  # [K], mean over documents
    standard_errors: np.ndarray | None = None  # of an estimate, by its own account; they err together, not one by one
    drawn: int | None = None  # how many draws there were, where that is not the number asked for

    @property
    def elbo(self) -> np.ndarray:
        return np.asarray(self.log_likelihood - self.kl)


@torch.no_grad()
def document_bounds(
    model: LatentModel,
    counts: scipy.sparse.csr_matrix,
    samples: int = 20,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> DocumentBounds:
    """Both bounds of every document; the same seed gives the same values."""
    batch_size = max(1, min(256, MAX_LOGITS // (samples * max(1, counts.shape[1]))))
    rows, by_dimension = [], []
    with seeded(stream(seed, "evaluation noise"), device):
        for batch in CountBatches(counts, device).in_order(batch_size):
            bound = elbo(model, batch, samples)
            tighter = bound.draws.importance_weighted()
            rows.append(torch.stack([bound.log_likelihood, bound.kl, tighter, batch.lengths]))
            by_dimension.append(bound.kl_per_dimension.sum(0))
    log_likelihood, kl, importance_weighted, lengths = torch.cat(rows, 1).double().cpu().numpy()
    kl_by_dimension = torch.stack(by_dimension).sum(0).cpu().numpy() / counts.shape[0]
    return DocumentBounds(log_likelihood, kl, importance_weighted, lengths, kl_by_dimension)


def exact_bounds(log_probability: np.ndarray, counts: scipy.sparse.csr_matrix, latent_dim: int) -> DocumentBounds:
    """What a model says that knows, or estimates, log p(X) without drawing h."""
    nothing = np.zeros(len(log_probability))
    lengths = np.asarray(counts.sum(1), np.float64).ravel()
    return DocumentBounds(log_probability, nothing, log_probability, lengths, np.zeros(latent_dim), drawn=0)
