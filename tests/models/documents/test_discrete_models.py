"""SBN, fDARN and the two variants of NVDM: against enumeration where h is small, and as DocumentModel holds them."""

import itertools
import json

import numpy as np
import pytest
import scipy.sparse
import torch
from command_line import varitext
from synthetic import batch_of, scattered_network, topic_documents

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch
from varitext.latent import (
    Bernoullis,
    choose_estimator,
    elbo,
    exact_evidence,
    importance_weighted_bound,
)
from varitext.latent.discrete import AutoregressiveBernoullis
from varitext.latent.estimators import every_value
from varitext.models.documents.bernoulli import FDARN, MAX_LOGIT, SBN, STEP
from varitext.models.documents.nvdm_categorical import NVDMCategorical
from varitext.models.documents.nvdm_gsm import GSM, PRIOR_WORDS, cluster_topics

COUNTS = topic_documents(200)
NAMES = ("sbn", "fdarn", "nvdm_categorical", "nvdm_gsm")
SMALL = {"latent_dim": 4, "epochs": 6, "batch_size": 32, "learning_rate": 2e-2, "threads": 1, "n_topics": 4}
SOME = topic_documents(8, 12, 3, 9)
WITH_EMPTY = scipy.sparse.vstack([SOME, SOME[:1] * 0]).tocsr()


def small_batch(documents: int = 3) -> CountBatch:
    return batch_of(topic_documents(documents)[:, ::7])


def tiny(kind: type, latent_dim: int = 4, **settings: object) -> torch.nn.Module:
    """In double precision, with weights far from their start."""
    torch.manual_seed(1)
    model = kind(9, latent_dim, **settings, hidden_dim=5).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.5 * torch.randn_like(parameter)
    return model


# Maths


@pytest.mark.parametrize("kind", [SBN, FDARN, NVDMCategorical])
def test_bounds_lie_below_the_evidence_by_enumeration(kind):
    model, batch = tiny(kind), small_batch()
    with torch.no_grad():
        evidence = exact_evidence(model, batch)
        exact_bound = choose_estimator("exact")(model, batch).bound.elbo
        torch.manual_seed(0)
        sampled = elbo(model, batch, 20_000).elbo
        tighter = importance_weighted_bound(model, batch, 20_000)
    assert (exact_bound < evidence).all()
    torch.testing.assert_close(sampled, exact_bound, rtol=0.01, atol=0.1)
    assert (tighter > exact_bound).all() and (tighter < evidence + 0.1).all()


def test_an_autoregressive_prior_sums_to_one_and_draws_what_it_says():
    torch.manual_seed(0)
    prior = AutoregressiveBernoullis(torch.randn(4).double(), 2 * torch.randn(4, 4).double())
    every = torch.tensor(list(itertools.product([0.0, 1.0], repeat=4))).double()  # [16, K]
    probabilities = prior.log_prob(every).exp()
    assert probabilities.sum().item() == pytest.approx(1)
    draws = prior.sample(20_000)
    for k in range(4):
        assert draws[:, k].mean().item() == pytest.approx((probabilities @ every[:, k]).item(), abs=0.02)
    per_dimension = prior.log_prob_per_dimension(every)
    first = torch.distributions.Bernoulli(logits=prior.bias[0]).log_prob(every[:, 0])
    torch.testing.assert_close(per_dimension[:, 0], first)  # the first unit depends on none
    torch.testing.assert_close(per_dimension.sum(1), prior.log_prob(every))


@pytest.mark.parametrize("kind", [SBN, FDARN])
def test_local_log_odds_are_what_changing_a_unit_changes(kind):
    model, batch = tiny(kind), small_batch()
    with torch.no_grad():
        draws = every_value(model, batch)
        encoding = model.encode(batch)
        gains = model.local_log_odds(draws.h, encoding)
        for k in range(4):
            on, off = draws.h.clone(), draws.h.clone()
            on[..., k], off[..., k] = 1, 0
            likelihood = model.log_likelihood(on, encoding) - model.log_likelihood(off, encoding)
            torch.testing.assert_close(gains.likelihood[..., k], likelihood)
            prior = model.prior(encoding).log_prob(on) - model.prior(encoding).log_prob(off)
            torch.testing.assert_close(gains.prior[..., k], prior)


def gradients(model, batch, estimator, samples, kl_weight=0.6) -> dict[str, torch.Tensor]:
    model.zero_grad()
    choose_estimator(estimator)(model, batch, samples, kl_weight).surrogate.sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("kind", [SBN, FDARN])
@pytest.mark.parametrize("estimator", ["local_expectation", "leave_one_out"])
def test_the_mean_gradient_is_that_of_enumeration(kind, estimator):
    model, batch = tiny(kind), small_batch()
    exact = gradients(model, batch, "exact", 1)
    torch.manual_seed(0)
    estimate = gradients(model, batch, estimator, 20_000)
    for name, expected in exact.items():
        error = (estimate[name] - expected).norm() / expected.norm().clamp(min=0.1)
        assert error < (0.02 if estimator == "local_expectation" else 0.1), name


@pytest.mark.parametrize("kind", [SBN, FDARN])
def test_one_draw_of_local_expectation_is_less_noisy_than_four_of_leave_one_out(kind):
    model, batch = tiny(kind), small_batch()
    torch.manual_seed(0)

    def variance(estimator: str, samples: int) -> float:
        draws = torch.stack([gradients(model, batch, estimator, samples)["head.weight"] for _ in range(100)])
        return draws.var(0).sum().item()

    assert variance("local_expectation", 1) < 0.25 * variance("leave_one_out", 4)


@pytest.mark.parametrize("kind", [SBN, FDARN])
def test_refinement_closes_most_of_the_gap_to_the_best_factorial_q(kind):
    """Where words move little with h, as the formula assumes; the best q is found by gradients on the exact bound."""
    model, batch = tiny(kind), small_batch()
    with torch.no_grad():
        model.decoder.weight *= 0.3
    exact = choose_estimator("exact")
    model.eval()
    before = exact(model, batch).bound.elbo.detach()
    model.refinement_steps = 60
    after = exact(model, batch).bound.elbo.detach()
    logits = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    model.posterior = lambda encoding: Bernoullis(logits)
    optimizer = torch.optim.Adam([logits], 0.1)
    for _ in range(300):
        optimizer.zero_grad()
        (-exact(model, batch).surrogate.sum()).backward()
        optimizer.step()
    best = exact(model, batch).bound.elbo.detach()
    assert (after > before).all() and (best - after < 0.1 * (best - before)).all()


def test_local_expectation_says_what_it_needs():
    with pytest.raises(InputError, match="Bernoulli latents of a model with local_log_odds"):
        choose_estimator("local_expectation")(tiny(NVDMCategorical), small_batch(), 1)


def test_softmax_shares_explain_the_words():
    """The likelihood against the formula, and the spread of the shares against draws of a narrow q."""
    model, batch = tiny(GSM), small_batch()
    with torch.no_grad():
        model.head.log_std.bias.fill_(-5.0)
        model.head.log_std.weight.zero_()
        encoding = model.encode(batch)
        h = model.posterior(encoding).rsample(4000)
        shares = torch.softmax(model.to_topics(h), -1)
        topics = torch.softmax(model.topic_logits, -1)
        counts = topic_documents(3)[:, ::7].toarray()
        expected = (torch.from_numpy(counts).double() * (shares @ topics).log()).sum(-1)
        torch.testing.assert_close(model.log_likelihood(h, encoding), expected)
        mean, std = model.document_vectors(batch)
    torch.testing.assert_close(mean, shares.mean(0), rtol=0.01, atol=1e-4)
    torch.testing.assert_close(std, shares.std(0), rtol=0.06, atol=1e-4)


@pytest.mark.parametrize("inference", ["words", "statistics"])
def test_topics_of_gsm_do_not_collapse(inference):
    """Ten topics of equal size: each is found, and used by its documents alone."""
    counts, network = topic_documents(600, 60, 10, 30), {"inference": inference}
    model = DocumentModel("nvdm_gsm", latent_dim=10, network=network, epochs=15, threads=1, n_topics=4).fit(counts)
    shares = model.transform(counts)
    truth = np.random.default_rng(0).integers(10, size=600)  # as drawn there
    used = shares.argmax(1)
    assert len(set(used)) == 10 and len(set(zip(truth, used, strict=True))) < 15
    assert model.perplexity_record(topic_documents(200, 60, 10, 30, seed=1)).ratio_to_unigram < 0.6


def test_initial_topics_are_clusters_of_documents():
    topics = cluster_topics(topic_documents(200, 40, 4, 30), 4)
    assert topics.sum(1) == pytest.approx(1)
    own = topics.reshape(4, 4, 10).sum(2)  # each cluster's share of each stretch of the vocabulary
    assert (own.max(1) > 0.8).all() and sorted(own.argmax(1)) == [0, 1, 2, 3]
    assert cluster_topics(scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32)), 50).shape == (3, 3)
    assert cluster_topics(scipy.sparse.csr_matrix([[2.0, 1.0]]), 50) == pytest.approx(np.array([[2 / 3, 1 / 3]]))


def test_the_estimate_of_proportions_is_one_step_of_em():
    model, batch = tiny(GSM, inference="statistics"), small_batch()
    prior = torch.softmax(model.to_topics.bias, 0)
    joint = prior[:, None] * torch.softmax(model.topic_logits, -1)  # [K, V]
    counts = torch.from_numpy(topic_documents(3)[:, ::7].toarray()).double()
    expected = counts @ (joint / joint.sum(0)).T + PRIOR_WORDS * prior  # [B, K]
    theta = torch.softmax(model.estimate(batch) + model.to_topics.bias, 1)
    torch.testing.assert_close(theta, expected / expected.sum(1, keepdim=True))


# As users hold them


@pytest.fixture(scope="module")
def fitted():
    return {name: DocumentModel(name, **SMALL).fit(COUNTS) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_every_model_learns_and_says_what_it_has_learned(fitted, name):
    model = fitted[name]
    record = model.perplexity_record(topic_documents(100, seed=1))
    assert record.kind == "bound" and record.ratio_to_unigram < 0.97
    # to rounding: of a posterior that is sure of one choice both bounds are the same number
    assert record.iwae_per_document_perplexity < (1 + 1e-6) * record.per_document_perplexity
    posterior = model.posterior(COUNTS)
    assert posterior.mean.shape == (200, 16 if name == "nvdm_categorical" else 4) == posterior.std.shape
    assert (posterior.mean >= 0).all() and (posterior.mean <= 1).all() and np.isfinite(posterior.std).all()
    assert model.get_feature_names_out().shape == posterior.mean.shape[1:]
    assert (model.fitted_.kl_per_dimension >= 0).all() and model.fitted_.kl_per_dimension.max() > 0.01
    assert len(model.latent_dimensions(3)) == posterior.mean.shape[1] and len(model.similar_words("word1", 4)) == 4


@pytest.mark.parametrize("name", NAMES)
def test_a_document_of_no_words_gets_the_prior(fitted, name):
    network = fitted[name].fitted_.network
    seen = fitted[name].posterior(scipy.sparse.csr_matrix((1, 60)))
    if name == "nvdm_gsm":
        expected = torch.softmax(network.to_topics.bias, 0)
    elif name == "nvdm_categorical":
        expected = torch.softmax(network.prior_logits, -1).flatten()
    else:
        expected = network.prior_probabilities()
    np.testing.assert_allclose(seen.mean[0], expected, rtol=1e-5)


def test_prior_probabilities_of_fdarn_are_those_of_enumeration():
    model = tiny(FDARN)
    every = torch.tensor(list(itertools.product([0.0, 1.0], repeat=4))).double()
    with torch.no_grad():
        exact = model.prior(None).log_prob(every).exp() @ every
        torch.testing.assert_close(model.prior_probabilities(), exact, rtol=0, atol=0.04)


@pytest.mark.parametrize(("estimator", "samples"), [("leave_one_out", 4), ("nvil", 1), ("exact", 1)])
def test_the_estimator_is_chosen_by_name(estimator, samples):
    model = DocumentModel("sbn", **SMALL, estimator=estimator, samples=samples).fit(COUNTS)
    assert model.fitted_.architecture["estimator"] == estimator
    assert model.perplexity_record(COUNTS).ratio_to_unigram < 1.02


def test_the_command_line_fits_them_by_name(tmp_path):
    words = [["moon", "orbit", "rocket"], ["goal", "league", "team"]]
    lines = [" ".join(words[i % 2][(i + j) % 3] for j in range(8)) for i in range(60)]
    (tmp_path / "texts.csv").write_text("\n".join(["text", *lines]))
    file, folder = tmp_path / "texts.csv", tmp_path / "model"
    options = ["--model", "fdarn", "--latent-dim", "2", "--epochs", "2", "--threads", "1"]
    assert varitext("fit", file, *options, "--out", folder).code == 0
    assert json.loads(varitext("evaluate", folder, file, "--json").out)["kind"] == "bound"


def test_presets():
    for kind in (SBN, FDARN):
        assert kind.recipe("paper", 10_000, 100.0).architecture["estimator"] == "nvil"


# Inference


@pytest.mark.parametrize("name", ["sbn", "fdarn"])
def test_a_step_of_refinement_goes_to_the_second_order_log_odds(name):
    """log p(X | h_k = 1) - log p(X | h_k = 0), by Taylor's formula around the probabilities: f' + f'' (1/2 - h)."""
    model, batch = scattered_network(name, SOME, refinement_steps=1, hidden_dim=6), batch_of(SOME)
    encoding = model.encode(batch)
    logits = model.head(encoding.hidden)
    h = torch.sigmoid(logits).requires_grad_()
    words = torch.log_softmax(model.decoder(h), -1)
    value = (torch.from_numpy(SOME.toarray()) * words).sum()
    (slope,) = torch.autograd.grad(value, h, create_graph=True)
    second = torch.stack(
        [torch.autograd.grad(slope[:, unit].sum(), h, retain_graph=True)[0][:, unit] for unit in range(3)], 1
    )
    odds = model.prior(encoding).local_log_odds(h.detach()) + slope.detach() + second * (0.5 - h.detach())
    best = odds.clamp(-MAX_LOGIT, MAX_LOGIT)
    torch.testing.assert_close(model.posterior(encoding).logits, (logits + STEP * (best - logits)))


@pytest.mark.parametrize("name", ["sbn", "fdarn"])
def test_refinement_never_becomes_surer_than_it_may(name):
    model = scattered_network(name, SOME, refinement_steps=60, hidden_dim=6, spread=1.0)
    logits = model.posterior(model.encode(batch_of(SOME * 1000))).logits
    assert logits.abs().max().item() == pytest.approx(MAX_LOGIT, rel=1e-3) and logits.min() < 0 < logits.max()


def test_the_baseline_reads_the_hidden_layer_and_the_mean_log_frequency():
    model, batch = scattered_network("sbn", SOME, hidden_dim=6), batch_of(WITH_EMPTY)
    found = model.baseline_input(model.encode(batch))
    dense = torch.from_numpy(WITH_EMPTY.toarray()).double()
    mean = (dense @ model.word_log_frequencies) / dense.sum(1).clamp(min=1)
    torch.testing.assert_close(found[0][:, :-1], model.encoder(batch))
    torch.testing.assert_close(found[0][:, -1], mean)
    assert found[1].tolist() == [*dense.sum(1).tolist()[:-1], 1.0]


def test_proportions_spread_as_their_slope_says():
    model, batch = scattered_network("nvdm_gsm", SOME, 0.2), batch_of(SOME)
    vectors, q = model.document_vectors(batch), model.posterior(model.encode(batch))
    torch.testing.assert_close(vectors.mean, torch.softmax(model.to_topics(q.mean), -1))
    for row in range(3):
        slope = torch.autograd.functional.jacobian(lambda h: torch.softmax(model.to_topics(h), -1), q.mean[row])
        torch.testing.assert_close(vectors.std[row], (slope.square() @ q.std[row].square()).sqrt())


@pytest.mark.parametrize("name", ["nvdm_categorical", "sbn", "fdarn"])
def test_probabilities_of_discrete_vectors_and_their_spread(name):
    model, batch = scattered_network(name, SOME, 0.2), batch_of(SOME)
    vectors = model.document_vectors(batch)
    assert vectors.mean.shape == (8, model.vector_dim)
    torch.testing.assert_close(vectors.mean, model.posterior(model.encode(batch)).probabilities.flatten(1))
    torch.testing.assert_close(vectors.std, (vectors.mean * (1 - vectors.mean)).sqrt())
