"""The weight of the KL and free bits in the loss of documents: values and gradients by hand."""

import numpy as np
import pytest
import torch
from synthetic import batch_of, scattered_network, topic_documents

from varitext import DocumentModel, InputError
from varitext.documents.fitting import DocumentTask, choose_recipe
from varitext.documents.settings import DocumentSettings
from varitext.latent import DiagonalGaussian, elbo
from varitext.models.documents.base import DocumentObjective
from varitext.training.settings import TrainingSettings

COUNTS = topic_documents(documents=60, words=24, topics=3, length=15)
SMALL = {"latent_dim": 3, "epochs": 2, "threads": 1, "n_topics": 3}
# KL of each dimension: 0.5, 0.02 and 0 nats; one above and two below a floor of 0.1
Q = DiagonalGaussian(torch.tensor([[1.0, 0.2, 0.0]]).double(), torch.zeros(1, 3).double())


def loss_of(free_bits: float, kl_weight: float, q: DiagonalGaussian) -> torch.Tensor:
    network, batch = scattered_network("nvdm", COUNTS, 0.3), batch_of(COUNTS[:1])
    network.posterior = lambda encoding: q
    task = DocumentTask(COUNTS, COUNTS, TrainingSettings(), DocumentObjective(free_bits=free_bits))
    torch.manual_seed(0)
    return task.loss(network, batch, kl_weight).loss / task.loss_scale


@pytest.mark.parametrize("kl_weight", [1.0, 0.4])
def test_the_kl_of_every_dimension_costs_at_least_the_free_bits(kl_weight):
    plain, floored = (loss_of(free_bits, kl_weight, Q).item() for free_bits in (0.0, 0.1))
    assert floored - plain == pytest.approx(kl_weight * (0.08 + 0.1))  # 0.02 and 0 nats are raised to 0.1
    assert loss_of(0.1, 0.0, Q).item() == loss_of(0.0, 0.0, Q).item()


def test_a_dimension_below_the_floor_gets_no_gradient_from_its_kl():
    found = []
    for free_bits, kl_weight in ((0.1, 1.0), (0.0, 1.0), (0.0, 0.0)):
        q = DiagonalGaussian(*(part.clone().requires_grad_() for part in Q))
        found.append(torch.autograd.grad(loss_of(free_bits, kl_weight, q), q.mean)[0][0])
    floored, plain, likelihood = found
    torch.testing.assert_close(plain - likelihood, Q.mean[0])  # d KL / d mean = mean
    torch.testing.assert_close(floored - likelihood, torch.tensor([1.0, 0.0, 0.0]).double())
    assert torch.equal(floored[1:], likelihood[1:])


def test_the_reported_bound_has_the_whole_kl():
    network, batch = scattered_network("nvdm", COUNTS, 0.3), batch_of(COUNTS[:4])
    task = DocumentTask(COUNTS, COUNTS, TrainingSettings(), DocumentObjective(free_bits=3.0))
    torch.manual_seed(0)
    step = task.loss(network, batch, 0.3)
    torch.manual_seed(0)
    bound = elbo(network, batch)
    torch.testing.assert_close(step.kl, bound.kl.mean())
    torch.testing.assert_close(step.elbo, (bound.elbo / batch.lengths).mean())


def test_settings_reach_the_recipe():
    def recipe(**settings):
        return choose_recipe("nvdm_dcm", DocumentSettings(**settings), COUNTS)

    assert (recipe().training.kl_schedule, recipe().training.kl_warm_up) == ("linear", 0.05)  # the preset's
    assert recipe(kl_schedule="cyclical").training.kl_warm_up == 0.5
    assert recipe(kl_schedule="linear").training.kl_warm_up == 0.2
    both = recipe(kl_schedule="cyclical", kl_warm_up=0.3, free_bits=0.2)
    assert (both.training.kl_schedule, both.training.kl_warm_up, both.objective.free_bits) == ("cyclical", 0.3, 0.2)


def test_free_bits_keep_the_kl_of_a_fit_up():
    """Documents of one topic have nothing to tell."""
    same = topic_documents(documents=120, words=24, topics=1, length=15)
    found = []
    for free_bits in (0.0, 0.5):
        settings = SMALL | {"epochs": 30, "learning_rate": 2e-2, "free_bits": free_bits}
        model = DocumentModel("nvdm", **settings).fit(same)
        found.append(model.fitted_.history[-1]["dev_kl"])
        assert model.fitted_.training["free_bits"] == free_bits
    assert found[1] > 1.5 * found[0], found  # 1.5 nats against 0.5


@pytest.mark.parametrize(
    ("name", "settings"),
    [("sbn", {}), ("nvdm", {"estimator": "dreg", "samples": 2}), ("docnade", {}), ("lda", {})],
)
def test_free_bits_are_refused_where_the_kl_is_not_analytic(name, settings):
    with pytest.raises(InputError, match="free_bits needs a Gaussian h and the estimator reparameterised"):
        DocumentModel(name, **SMALL, **settings, free_bits=0.1).fit(COUNTS)


@pytest.mark.parametrize("free_bits", [-0.1, np.inf, np.nan])
def test_free_bits_are_finite_nats(free_bits):
    with pytest.raises(InputError, match="free_bits must be 0 or more nats"):
        DocumentObjective(free_bits=free_bits)
