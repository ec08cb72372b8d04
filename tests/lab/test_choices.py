"""The scripts that measure what choices of document models are worth: what is held out, and what a change changes."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from varitext.batches.counts import CountBatch
from varitext.documents.fitting import build_network
from varitext.models.documents.nvdm_dcm import NVDMDCM

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import document_choices
import plain_bound
from held_out_by_date import last_of_each_group

COUNTS = scipy.sparse.csr_matrix(np.random.default_rng(0).poisson(0.5, (60, 20)).astype(np.float32))


def test_the_last_of_each_group_are_held_out():
    labels = ["a"] * 100 + ["b"] * 50 + ["a"] * 100
    held_out = np.flatnonzero(last_of_each_group(labels))
    assert held_out.tolist() == [*range(146, 150), *range(232, 250)]  # 9 % of 50 and of 200, the last of the file


@pytest.fixture
def dcm():
    torch.manual_seed(0)
    network = NVDMDCM(20, 3, groups=4)
    torch.nn.init.normal_(network.decoder.linear.weight)
    return network.eval()


def test_a_diagonal_covariance_has_the_same_variances(dcm):
    encoding = dcm.encode(CountBatch.from_rows(COUNTS[:5]))
    whole = dcm.posterior(encoding)
    document_choices.with_diagonal_covariance(dcm)
    found = dcm.posterior(encoding)
    whole_covariance, covariance = (q.root.mT @ q.root for q in (whole, found))
    variances = whole_covariance.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(covariance, variances.diag_embed())
    assert (whole_covariance - covariance).abs().max() > 1e-3 and torch.equal(whole.mean, found.mean)


def test_lengths_that_are_left_out_are_not_learned(dcm):
    document_choices.without_lengths(dcm)
    dcm.train().log_likelihood(torch.ones(1, 5, 3), dcm.encode(CountBatch.from_rows(COUNTS[:5]))).sum().backward()
    assert dcm.decoder.length_weights.grad is None and not dcm.decoder.length_weights.any()
    assert dcm.decoder.linear.weight.grad.any()


def test_choices_of_prediction_share_the_weights_of_the_model_as_it_is(monkeypatch):
    fits = []
    monkeypatch.setattr(document_choices, "fitted", lambda *settings: fits.append(settings))
    for name in ("nvdm_dcm, as it is", "no refinement in prediction", "100 groups of words"):
        document_choices.CHOICES[name].fitted(seed=1)
    assert fits[0] == fits[1] != fits[2]


@pytest.mark.parametrize("start", plain_bound.STARTS)
def test_starts_of_the_plain_bound(start):
    changes = {"start": start, "epochs": 3}
    recipe = plain_bound.plain_recipe(20, changes)
    assert recipe.training.epochs == 3 and recipe.objective.length_exponent == 0 == recipe.objective.word_dropout
    usual, network = (
        build_network("nvdm", recipe, COUNTS, 0, "cpu"),
        plain_bound.plain_network(recipe, COUNTS, changes),
    )
    moved = {
        name
        for (name, before), after in zip(usual.named_parameters(), network.parameters(), strict=True)
        if not torch.equal(before, after)
    }
    weights = {name for name, values in network.named_parameters() if values.dim() == 2 and "log_std" not in name}
    expected = {"as_it_is": set(), "glorot": weights, "no_frequencies": {"decoder.bias"}}
    assert moved == expected.get(start, {"decoder.weight"})
    assert not network.head.log_std.weight.any()
