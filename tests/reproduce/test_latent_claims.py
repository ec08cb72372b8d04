"""Experiments on the latent variable: gradients in training, attention under samples, the KL as a regulariser."""

from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from small_corpora import PARTS, questions, use_small_documents, use_small_questions

from varitext.answers.fitting import new_trainer
from varitext.answers.training_data import training_data
from varitext.batches.counts import CountBatch
from varitext.latent import elbo
from varitext.models.documents.nvdm import NVDM
from varitext.reproduce import experiment_named, gradients, kl_term, stochastic_attention
from varitext.reproduce.answer_fits import ranker_settings
from varitext.reproduce.engine import Plan, reproduce


def run(name: str, folder) -> str:
    plan = Plan(quick=True, models=folder / "models", threads=1)
    table = reproduce(experiment_named(name), plan, folder, lambda _: None)
    assert "nan" not in table and len(table.splitlines()) >= 4
    return table


# Gradients in training


def test_the_spread_of_gradients_by_hand():
    found = gradients.by_epoch(np.array([[3.0, 0.0], [5.0, 0.0], [4.0, 2.0], [4.0, -2.0]]), 2)
    assert found == {"std": [1.0, 2.0], "noise_to_signal": [0.25, 0.5], "turn": [0.0]}


def test_recording_gradients_does_not_change_training(monkeypatch):
    use_small_questions(monkeypatch)
    settings = ranker_settings("wikiqa", "nasm", 0, Plan(quick=True, threads=1))
    data = training_data(settings, questions(30, 0), questions(10, 1))
    plain, watched = new_trainer(settings, data), new_trainer(settings, data)
    recorded = gradients.record_gradients(watched)
    for trainer in (plain, watched):
        trainer.train()
    assert all(torch.equal(*pair) for pair in zip(plain.model.parameters(), watched.model.parameters(), strict=True))
    assert {len(found) for found in recorded.values()} == {watched.state.step}  # not in the evaluation of an epoch
    assert all(np.any(gradient) for gradient in recorded["mean"])


def test_gradients_run_from_fit_to_figure(monkeypatch, tmp_path):
    use_small_questions(monkeypatch)
    assert run("gradients", tmp_path).count("NASM") == 2
    drawn = ElementTree.parse(tmp_path / "gradients-quick.svg").getroot()
    assert "NASM: h" in {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}


# Attention under samples of h


def test_attention_runs_from_fit_to_table(monkeypatch, tmp_path):
    use_small_questions(monkeypatch)
    assert run("stochastic-attention", tmp_path).count("NASM") == 2


def test_distances_between_attentions_by_hand():
    drawn, at_mean = torch.tensor([[[0.5, 0.5]], [[1.0, 0.0]]]), torch.tensor([[[0.5, 0.5]]])
    assert stochastic_attention.distance(drawn, at_mean).tolist() == [0.25]  # 0 and 0.5


# The KL of NVDM


@pytest.fixture
def network():
    torch.manual_seed(0)
    return NVDM(PARTS["train"].counts.shape[1], latent_dim=3).eval()


def test_estimates_of_the_gradient_agree(network):
    """On average, with the gradient of the bound under very many samples, and with each other."""
    batch = CountBatch.from_rows(PARTS["train"].counts[:2])
    encoding = network.encode(batch)
    q = type(network.posterior(encoding))(*(values.detach() for values in network.posterior(encoding)))
    torch.manual_seed(1)
    parts = [kl_term.draw(network, encoding, q) for _ in range(400)]
    draws = kl_term.Draws(*(torch.cat(values) for values in zip(*parts, strict=True)))
    estimates = kl_term.gradient_estimates(q, draws)
    for place in (0, 1):  # mean, log std
        best = estimates[kl_term.CLOSED_FORM][place].mean(0)
        for both in estimates.values():
            error = both[place].std(0) / len(both[place]) ** 0.5
            assert (both[place].mean(0) - best).abs().le(5 * error + 1e-3).all()
    variance = kl_term.gradient_variances(network, batch, seed=0, draws=200)
    assert variance["score function"] > variance[kl_term.CLOSED_FORM]


@pytest.mark.parametrize(("objective", "penalised"), [("KL", True), ("L2", True), ("none", False)])
def test_objectives_have_their_penalty(objective, penalised):
    torch.manual_seed(0)
    network = kl_term.OBJECTIVES[objective](PARTS["train"].counts.shape[1], latent_dim=3)
    batch = CountBatch.from_rows(PARTS["train"].counts[:4])
    torch.manual_seed(1)
    estimate = network.objective(batch, 1, 1.0)
    torch.manual_seed(1)
    bound = elbo(network, batch)
    penalty = {"KL": bound.kl, "L2": 0.5 * bound.draws.posterior.mean.square().sum(-1), "none": torch.zeros(4)}
    assert torch.allclose(estimate.surrogate, bound.log_likelihood - penalty[objective], atol=1e-4)
    assert bool(penalty[objective].abs().sum() > 0) == penalised


def test_the_kl_acts_on_the_mean_as_half_its_square(network):
    batch = CountBatch.from_rows(PARTS["train"].counts[:4])
    bound = elbo(network, batch)
    q = bound.draws.posterior
    (slope,) = torch.autograd.grad(bound.kl.sum(), q.mean)
    assert torch.allclose(slope, q.mean)


def test_the_kl_runs_from_fit_to_table(monkeypatch, tmp_path):
    use_small_documents(monkeypatch, kl_term)
    table = run("kl-term", tmp_path)
    assert "neither" in table and "score function" in table
