"""Ablations of the document models: what is held out, and what a change changes."""

import numpy as np
import pytest
import scipy.sparse
import torch

from lab.experiments import document_choices, plain_bound
from lab.experiments.held_out_by_date import last_of_each_group
from varitext.batches.counts import CountBatch
from varitext.models.documents.nvdm_dcm import NVDMDCM

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
    for name in ("default", "no refinement in prediction", "100 groups of words"):
        document_choices.CHOICES["nvdm_dcm"][name].fitted(seed=1)
    assert fits[0] == fits[1] != fits[2]


def test_trials_of_the_plain_bound_change_one_thing_each():
    usual = plain_bound.changed_recipe(plain_bound.Change(), 6_400, 20, 7)
    assert (usual.training.epochs, usual.training.patience, usual.training.alternate_every) == (7, 7, 1000)
    for change in plain_bound.TRIALS.values():
        recipe = plain_bound.changed_recipe(change, 6_400, 20, 7)
        own = {name for name in usual.architecture if recipe.architecture[name] != usual.architecture[name]}
        assert own == set(change.architecture) and recipe.objective == usual.objective
        trained, before = vars(recipe.training), vars(usual.training)
        assert {name for name in before if trained[name] != before[name]} == set(change.training)


def test_tables_of_choices_and_trials_by_hand():
    def record(choice, seed, value):
        return {"settings": {"model": "nvdm", "choice": choice, "seed": seed}, "result": {"perplexity": value}}

    default, *_, weighted = document_choices.CHOICES["nvdm"]
    records = [record(default, 0, 700.0), record(default, 1, 710.0), record(weighted, 1, 705.0)]
    rows = document_choices.model_table(records, "nvdm").splitlines()
    assert f"| **{default}** | 700.0 / 710.0 |  |" in rows and f"| {weighted} | 705.0 | -5.0 |" in rows
    result = {"dev_perplexity": [*range(1300, 1200, -1)], "dev_kl": 8.04}
    trial = {"settings": {"trial": "learning rate 1e-3"}, "result": result}
    assert "| learning rate 1e-3 | 1270 | 1240 | 1210 |  | 8.0 |" in plain_bound.table([trial])
