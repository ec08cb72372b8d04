"""Every document model's likelihood, as evaluation computes it, is a distribution: all bags of words sum to one.

A sequence of N words has the probability of its bag, so a bag counts as often as it has orders. Evaluation runs without
gradients, where some models take another path than training.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import batch_of

from varitext import compiled
from varitext.documents.posterior import perplexity_of
from varitext.latent import draw
from varitext.models.documents import DOCUMENT_MODELS, model_class
from varitext.models.documents.base import DocumentNetwork
from varitext.models.documents.lda import LDA
from varitext.runtime.randomness import seeded
from varitext.training.settings import HasInferenceParameters

WORDS = 3
SIZES = {"nvdm": {"inference": "statistics", "refinement_steps": 2}, "nvdm_dcm": {"groups": 2}, "lda": {"alpha": 1.0}}
WITHOUT_H = ("docnade", "rsm", "lda")
SAMPLES = {"rsm": 5, "docnade": 100}  # those of RSM are chains, all of which it anneals; of docNADE orders
ARITHMETIC = ("compiled", "torch", "double")


@pytest.fixture
def arithmetic(request, monkeypatch):
    if request.param == "compiled" and not compiled.usable(torch.zeros(1)):
        pytest.skip("no C compiler when varitext was installed")
    if request.param == "torch":
        monkeypatch.setattr(compiled, "usable", lambda *tensors: False)
    return torch.double if request.param == "double" else torch.float32


def bags_of(length: int) -> np.ndarray:
    counts = [row for row in itertools.product(range(length + 1), repeat=WORDS) if sum(row) == length]
    return np.array(counts, np.float32)


def orders_of(bags: np.ndarray) -> np.ndarray:
    return np.array([math.factorial(int(bag.sum())) / math.prod(map(math.factorial, bag.astype(int))) for bag in bags])


def network_of(name: str, dtype: torch.dtype) -> DocumentNetwork:
    """With a random generative model; its inference network is untrained, so that q is near the prior."""
    with seeded(3):
        network = model_class(name)(WORDS, 3, **SIZES.get(name, {}))
        network.learn_frequencies(torch.tensor([30.0, 20.0, 10.0]))
        if isinstance(network, LDA):
            network.word_topics.copy_(torch.distributions.Dirichlet(torch.ones(WORDS)).sample((3,)).T)
            return network  # always in double precision
        inference = network.inference_parameters() if isinstance(network, HasInferenceParameters) else ()
        kept = set(map(id, inference))
        for parameter in network.requires_grad_(False).parameters():
            if id(parameter) not in kept:
                parameter.add_(0.6 * torch.randn_like(parameter))
    return network.to(dtype).eval()


@pytest.mark.parametrize("arithmetic", ARITHMETIC, indirect=True)
@pytest.mark.parametrize("name", [name for name in DOCUMENT_MODELS if name not in WITHOUT_H])
@pytest.mark.parametrize("gradients", [False, True])
def test_given_h_the_likelihood_sums_to_one(name, arithmetic, gradients):
    network = network_of(name, arithmetic).requires_grad_(gradients)
    tolerance = 1e-10 if arithmetic is torch.double else 1e-4
    for length in (1, 3, 12):
        bags = bags_of(length)
        with seeded(0), torch.set_grad_enabled(gradients):
            drawn = draw(network, batch_of(bags, arithmetic), 2)
            h = drawn.h[:, :1].expand_as(drawn.h)  # the same for all bags
            found = network.log_likelihood(h, drawn.encoding).detach().double().exp().numpy()  # [S, B]
        np.testing.assert_allclose(found @ orders_of(bags), 1, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "arithmetic"),
    [*((name, "compiled") for name in DOCUMENT_MODELS), ("nvdm", "torch"), ("nvdm_dcm", "torch")],
    indirect=["arithmetic"],
)
def test_evaluated_perplexities_sum_to_one(name, arithmetic):
    """Importance weighting is unbiased for p(X) with any q, so the sum is one on average; the bound lies below."""
    network, bags = network_of(name, arithmetic), bags_of(3)
    with seeded(0):
        records = [
            perplexity_of(network, scipy.sparse.csr_matrix(bag), SAMPLES.get(name, 2000), seed=0) for bag in bags
        ]
    tighter, bound = (
        float(orders_of(bags) @ np.array([getattr(one, f"{kind}per_document_perplexity") for one in records]) ** -3.0)
        for kind in ("iwae_", "")
    )
    assert tighter == pytest.approx(1, abs=0.03) and bound < 1.03
