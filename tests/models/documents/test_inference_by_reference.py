"""What q, refinement and the urns compute, against autograd, dense sums and torch.distributions.

A bound holds for any q, so that a fault in an inference network shows in none: these tests look at q itself.
"""

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import topic_documents

from varitext.batches.counts import CountBatch
from varitext.latent import DiagonalGaussian
from varitext.latent.gaussian import MEAN_RANGE
from varitext.layers.dcm import dcm_log_likelihood
from varitext.models.documents import log_linear, model_class, nvdm
from varitext.models.documents.bernoulli import MAX_LOGIT, STEP
from varitext.models.documents.dcm_decoder import FIRST_TOTAL, LogJoint
from varitext.models.documents.nvdm import NVDM
from varitext.models.documents.nvdm_dcm import MAX_STEP, NVDMDCM, STRETCH_RANGE
from varitext.runtime.randomness import seeded

WORDS, LATENT = 12, 3
COUNTS = topic_documents(8, WORDS, 3, 9)
WITH_EMPTY = scipy.sparse.csr_matrix(np.vstack([COUNTS.toarray(), np.zeros((1, WORDS), np.float32)]))


def batch_of(counts: scipy.sparse.csr_matrix = COUNTS) -> CountBatch:
    batch = CountBatch.from_rows(counts)
    return dataclasses.replace(batch, counts=batch.counts.double(), lengths=batch.lengths.double())


def network(name: str, spread: float = 0.6, **settings):
    """In double precision, every weight away from where it starts."""
    with seeded(3):
        model = model_class(name)(WORDS, LATENT, **settings).double()
        model.learn_frequencies(torch.from_numpy(np.asarray(COUNTS.sum(0), np.float64).ravel()))
        for parameter in model.parameters():
            parameter.requires_grad_(False).add_(spread * torch.randn_like(parameter))
    return model.eval()


def rotation(seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(torch.randn(LATENT, LATENT, generator=torch.Generator().manual_seed(seed)).double())[0]


# All models


DECODERS = {
    "nvdm": "decoder",
    "sbn": "decoder",
    "fdarn": "decoder",
    "nvdm_categorical": "decoder",
    "swv": "decoder",
    "nvdm_dcm": "decoder.linear",
    "docnade": "output",
}


@pytest.mark.parametrize(("name", "part"), DECODERS.items())
def test_word_vectors_begin_small(name, part):
    """h then hardly changes the words, and training begins at the unigram model."""
    with seeded(0):
        weight = model_class(name)(500, 30).get_submodule(part).weight.detach()
    assert weight.std().item() == pytest.approx(0.05, rel=0.03) and abs(weight.mean()) < 1e-3


def test_where_the_others_begin():
    with seeded(0):
        rsm, docnade, shares = (model_class(name)(500, 30) for name in ("rsm", "docnade", "nvdm_gsm"))
    for start, spread in ((rsm.word_weights, 0.01), (docnade.embedding, 0.01), (shares.topic_logits, 0.3)):
        assert start.std().item() == pytest.approx(spread, rel=0.03) and abs(start.mean()) < 0.02 * spread
    weights = shares.to_topics.weight.detach()
    torch.testing.assert_close(weights @ weights.T, 4 * torch.eye(30), atol=1e-4, rtol=0)  # twice a rotation
    assert not rsm.word_bias.any() and not rsm.hidden_bias.any() and not rsm.chains.any() and rsm.updates == 0
    assert not docnade.bias.any()
    rsm.learn_frequencies(torch.arange(500.0))
    torch.testing.assert_close(rsm.word_bias.exp(), torch.arange(1.0, 501) / (500 * 501 / 2))


def test_unigram_frequencies_are_add_one():
    model = model_class("nvdm")(4, 2)
    model.learn_frequencies(torch.tensor([0.0, 1.0, 2.0, 3.0]))
    torch.testing.assert_close(model.word_log_frequencies.exp(), torch.tensor([0.1, 0.2, 0.3, 0.4]))
    torch.testing.assert_close(model.decoder.bias, model.word_log_frequencies)


def test_a_gaussian_seen_along_other_axes_has_the_spread_of_its_projections():
    model = network("nvdm")
    model.axes = rotation()
    q = DiagonalGaussian(torch.randn(5, LATENT).double(), torch.randn(5, LATENT).double())
    found = model.rotated(q)
    covariance = model.axes.T @ torch.diag_embed(q.std.square()) @ model.axes
    torch.testing.assert_close(found.mean, q.mean @ model.axes)
    torch.testing.assert_close(found.std.square(), covariance.diagonal(dim1=1, dim2=2))


@pytest.mark.parametrize("name", ["nvdm", "nvdm_dcm", "swv"])
def test_documents_of_no_words_lie_at_the_prior_and_others_where_q_says(name):
    model, batch = network(name, spread=0.2), batch_of(WITH_EMPTY)
    model.axes = rotation()
    vectors, q = model.document_vectors(batch), model.posterior(model.encode(batch))
    factor = q.factor if name == "nvdm_dcm" else torch.diag_embed(q.std)
    covariance = model.axes.T @ factor @ factor.mT @ model.axes
    torch.testing.assert_close(vectors.mean[:-1], (q.mean @ model.axes)[:-1])
    torch.testing.assert_close(vectors.std[:-1].square(), covariance.diagonal(dim1=1, dim2=2)[:-1])
    assert vectors.mean[-1].tolist() == [0.0] * LATENT and vectors.std[-1].tolist() == [1.0] * LATENT


def test_refinement_can_be_left_out_for_a_while():
    model, batch = network("nvdm", inference="statistics", refinement_steps=3), batch_of()
    refined = model.posterior(model.encode(batch)).mean
    with pytest.raises(KeyError), model.refining(False):
        assert model.refinement_steps == 0
        plain = model.posterior(model.encode(batch)).mean
        raise KeyError
    assert model.refinement_steps == 3 and not torch.allclose(plain, refined)
    with model.refining(True):
        torch.testing.assert_close(model.posterior(model.encode(batch)).mean, refined)


# NVDM


@pytest.mark.parametrize("inference", ["words", "statistics"])
def test_the_inference_network_corrects_its_start(inference):
    model, batch = network("nvdm", inference=inference, hidden_dim=6), batch_of()
    encoding = model.encode(batch)
    for head, value in ((model.head.mean, 0.3), (model.head.log_std, -0.2)):
        torch.nn.init.zeros_(head.weight)
        torch.nn.init.constant_(head.bias, value)
    q = model.posterior(encoding)
    start = model.newton_step(batch) if inference == "statistics" else DiagonalGaussian.standard(q.mean)
    torch.testing.assert_close(q.mean, start.mean + 0.3)
    torch.testing.assert_close(q.log_std, start.log_std - 0.2)
    if inference == "statistics":
        read = torch.cat([start.mean, torch.log1p(batch.lengths)[:, None] - 4], 1)
        torch.testing.assert_close(encoding.hidden, model.encoder(read))


def test_the_softmax_is_sampled_in_training_with_large_vocabularies_alone(monkeypatch):
    monkeypatch.setattr(nvdm, "SAMPLED_ABOVE", 12)
    assert [NVDM(size, 2).softmax for size in (12, 13)] == ["full", "sampled"]
    assert NVDM(13, 2, softmax="full").softmax == "full" and NVDM(2, 2, softmax="sampled").softmax == "sampled"


def test_value_slope_and_curvature_of_the_joint_are_those_of_autograd():
    model, batch = network("nvdm"), batch_of()
    h = torch.randn(8, LATENT, generator=torch.Generator().manual_seed(0)).double()

    def joint(h, row=slice(None)):
        words = torch.log_softmax(model.decoder(h), -1)
        return (torch.from_numpy(COUNTS.toarray())[row].double() * words).sum(-1) - 0.5 * h.square().sum(-1)

    here = log_linear._LogJointOf(model.decoder, batch)
    statistics = joint(h) - here.first(h).joint.value[:, 0]  # what does not depend on h: b X
    for at in (h, 0.3 * h):
        found, moved = here.at(at), at.clone().requires_grad_()
        precision = log_linear.precision_at(model.decoder, at, batch)
        (gradient,) = torch.autograd.grad(joint(moved).sum(), moved)
        torch.testing.assert_close(found.value[:, 0] + statistics, joint(at))
        torch.testing.assert_close(found.gradient, gradient)
        for row in range(3):
            hessian = torch.autograd.functional.hessian(lambda h, row=row: joint(h, row), at[row])
            torch.testing.assert_close(precision[row], -hessian.diagonal())


def test_a_gain_too_small_for_rounding_is_told_by_the_slope():
    """In double precision both ways agree, near the top and far from it."""
    model, batch = network("nvdm"), batch_of()
    log_joint = log_linear._LogJointOf(model.decoder, batch)
    here = log_joint.first(torch.zeros(8, LATENT).double()).joint
    for step in (1e-7, 1e-2):
        there = log_joint.at(step * here.gradient)
        gain = there.value - here.value
        assert ((gain.abs() > log_linear.ROUNDING * batch.lengths[:, None]) == (step > 1e-3)).all()
        torch.testing.assert_close(log_joint.gain(here, there), gain, rtol=1e-5, atol=1e-13)


def test_a_few_steps_of_gradient_ascent_gain_most_of_what_there_is():
    model, batch = network("nvdm"), batch_of()
    start = torch.zeros(8, LATENT).double()
    first, few, top = (log_linear.gradient_ascent(model.decoder, start, batch, steps).value for steps in (0, 10, 300))
    assert ((few - first) > 0.9 * (top - first)).all() and (top >= few).all()


def test_the_first_step_is_short_enough_where_all_dimensions_say_the_same():
    """Each dimension by itself asks for the whole way: five of them together would go five times too far."""
    decoder = torch.nn.Linear(5, WORDS).double().requires_grad_(False)
    decoder.weight.copy_(decoder.weight[:, :1].expand(-1, 5) * 8)
    batch = batch_of(COUNTS * 20)
    first, second = (log_linear.gradient_ascent(decoder, torch.zeros(8, 5).double(), batch, steps) for steps in (0, 1))
    assert (second.value > first.value).all()


def test_the_newton_step_is_the_gradient_where_words_hardly_depend_on_h():
    decoder = torch.nn.Linear(LATENT, WORDS).double().requires_grad_(False)
    decoder.weight.mul_(1e-3)
    batch, h = batch_of(), torch.zeros(8, LATENT, dtype=torch.double, requires_grad=True)
    words = torch.log_softmax(decoder(h), -1)
    (gradient,) = torch.autograd.grad((torch.from_numpy(COUNTS.toarray()) * words).sum(), h)
    torch.testing.assert_close(log_linear.newton_step(decoder, batch).mean, gradient, rtol=1e-3, atol=0)


# Bernoulli latents


@pytest.mark.parametrize("name", ["sbn", "fdarn"])
def test_a_step_of_refinement_goes_to_the_second_order_log_odds(name):
    """log p(X | h_k = 1) - log p(X | h_k = 0), by Taylor's formula around the probabilities: f' + f'' (1/2 - h)."""
    model, batch = network(name, refinement_steps=1, hidden_dim=6), batch_of()
    encoding = model.encode(batch)
    logits = model.head(encoding.hidden)
    h = torch.sigmoid(logits).requires_grad_()
    words = torch.log_softmax(model.decoder(h), -1)
    value = (torch.from_numpy(COUNTS.toarray()) * words).sum()
    (slope,) = torch.autograd.grad(value, h, create_graph=True)
    second = torch.stack(
        [torch.autograd.grad(slope[:, unit].sum(), h, retain_graph=True)[0][:, unit] for unit in range(LATENT)], 1
    )
    odds = model.prior(encoding).local_log_odds(h.detach()) + slope.detach() + second * (0.5 - h.detach())
    best = odds.clamp(-MAX_LOGIT, MAX_LOGIT)
    torch.testing.assert_close(model.posterior(encoding).logits, (logits + STEP * (best - logits)))


@pytest.mark.parametrize("name", ["sbn", "fdarn"])
def test_refinement_never_becomes_surer_than_it_may(name):
    model = network(name, refinement_steps=60, hidden_dim=6, spread=1.0)
    logits = model.posterior(model.encode(batch_of(COUNTS * 1000))).logits
    assert logits.abs().max().item() == pytest.approx(MAX_LOGIT, rel=1e-3) and logits.min() < 0 < logits.max()


def test_the_baseline_reads_the_hidden_layer_and_the_mean_log_frequency():
    model, batch = network("sbn", hidden_dim=6), batch_of(WITH_EMPTY)
    found = model.baseline_input(model.encode(batch))
    dense = torch.from_numpy(WITH_EMPTY.toarray()).double()
    mean = (dense @ model.word_log_frequencies) / dense.sum(1).clamp(min=1)
    torch.testing.assert_close(found[0][:, :-1], model.encoder(batch))
    torch.testing.assert_close(found[0][:, -1], mean)
    assert found[1].tolist() == [*dense.sum(1).tolist()[:-1], 1.0]


def test_discrete_vectors_of_no_words_are_the_priors():
    for name in ("sbn", "nvdm_categorical"):
        model, batch = network(name, hidden_dim=6), batch_of(WITH_EMPTY)
        prior = torch.sigmoid(model.prior_logits) if name == "sbn" else model.prior_logits.softmax(-1).flatten()
        torch.testing.assert_close(model.document_vectors(batch).mean[-1], prior)


# Urns


def dcm(**settings) -> NVDMDCM:
    return network("nvdm_dcm", spread=0.3, groups=4, hidden_dim=6, **settings)


def test_masses_follow_the_length_within_a_range():
    """log a_w = h R_w + b_w + l_w log N about that of fifty words; nothing is known of lengths beyond e^8 words."""
    decoder = dcm().decoder
    rows = np.zeros((3, WORDS), np.float32)
    rows[0, 0], rows[1, 1], rows[2, 2] = 1, 400, 5_000_000
    batch = batch_of(scipy.sparse.csr_matrix(rows))
    h = torch.randn(2, 3, LATENT, generator=torch.Generator().manual_seed(0)).double()
    lengths = torch.tensor([math.log(2) - 4, math.log(401) - 4, 4.0]).double()
    expected = h @ decoder.linear.weight.T + decoder.linear.bias + lengths[:, None] * decoder.length_weights
    found = decoder.logits(h, decoder.count(batch))
    torch.testing.assert_close(found, expected.flatten(0, 1).T)


def test_the_urn_begins_with_the_frequencies():
    model = NVDMDCM(WORDS, LATENT, groups=4)
    model.learn_frequencies(torch.arange(12.0))
    torch.testing.assert_close(model.decoder.linear.bias.exp().sum(), torch.tensor(FIRST_TOTAL))
    torch.testing.assert_close(model.decoder.linear.bias.softmax(0), torch.arange(1.0, 13) / 78)
    assert not model.decoder.length_weights.any() and not model.step_gates.any()
    assert (model.decoder.group_log_scales == -0.5).all() and model.decoder.group_of_word.max() == 3


def test_moments_and_curvature_by_sums_over_words():
    decoder, batch = dcm().decoder, batch_of()
    decoder.group_of_word.copy_(torch.tensor([0, 0, 1, 1, 1, 3, 3, 3, 3, 0, 1, 3]))  # group 2 is empty
    counts = decoder.count(batch)
    moments, vectors, masses = decoder.moments(counts.layout), decoder.linear.weight, decoder.linear.bias.exp()
    shares = masses * decoder.group_log_scales.exp()[decoder.group_of_word]
    shares = shares / shares.sum()
    means, within = torch.zeros(4, LATENT).double(), torch.zeros(LATENT, LATENT).double()
    for group in (0, 1, 3):
        inside = decoder.group_of_word == group
        means[group] = masses[inside] @ vectors[inside] / masses[inside].sum()
        for word in inside.nonzero()[:, 0]:
            within += shares[word] * torch.outer(vectors[word] - means[group], vectors[word] - means[group])
    torch.testing.assert_close(moments.means, means)
    weights = decoder.log_joint(torch.randn(8, LATENT).double(), counts).group_weights
    root = decoder.covariance_root(weights, moments)
    for row, found in zip(weights, torch.linalg.inv(root.mT @ root), strict=True):
        spread = torch.cov(means.T, correction=0, aweights=row)
        torch.testing.assert_close(
            found, torch.eye(LATENT).double() + row.sum() * (spread + within), rtol=1e-4, atol=1e-4
        )


def test_group_weights_are_what_the_words_are_worth():
    """E = B (digamma(B + N) - digamma(B)) in all, shared as the first urn's masses are."""
    decoder, batch = dcm().decoder, batch_of()
    h = torch.randn(8, LATENT, generator=torch.Generator().manual_seed(1)).double()
    counts = decoder.count(batch)
    masses = decoder.logits(h[None], counts).exp().T * decoder.group_log_scales.exp()[decoder.group_of_word]
    groups = torch.nn.functional.one_hot(decoder.group_of_word, 4).double()
    outer = masses @ groups
    total = outer.sum(1, keepdim=True)
    worth = torch.digamma(total + batch.lengths[:, None]) - torch.digamma(total)
    torch.testing.assert_close(decoder.log_joint(h, counts).group_weights, outer * worth)


def test_a_higher_value_is_taken_and_what_is_no_number_never():
    def at(number, values, slope=1.0):
        rows = torch.full((3, 2), float(number))
        return LogJoint(rows, torch.tensor(values), slope * rows, rows)

    found = at(1, [2.0, 0.5, math.nan]).where_higher(at(0, [1.0, 1.0, 1.0]))
    assert found.h[:, 0].tolist() == found.gradient[:, 1].tolist() == found.group_weights[:, 0].tolist() == [1, 0, 0]
    assert found.value.tolist() == [2, 1, 1]
    nearly = [1 + 1e-6, 1 - 1e-6, 1.0]  # what rounding hides: the slope along the step decides, whatever the last bits
    assert at(1, nearly).where_higher(at(0, [1.0, 1.0, 1.0])).h[:, 0].tolist() == [1, 1, 1]
    assert at(1, nearly, slope=-1.0).where_higher(at(0, [1.0, 1.0, 1.0])).h[:, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("training", [True, False])
def test_the_dcm_posterior_is_a_stretched_laplace_approximation(training):
    model, batch = dcm(refinement_steps=0), batch_of()
    model.train(training)
    torch.nn.init.zeros_(model.head.log_std.weight)
    model.head.log_std.bias.copy_(torch.tensor([-0.4, 0.0, 9.0]))
    encoding = model.encode(batch)
    q, decoder = model.posterior(encoding), model.decoder
    guess = (encoding.start + model.head(encoding.hidden).mean).clamp(*MEAN_RANGE)
    here = decoder.log_joint(guess, encoding.counts)
    root = decoder.covariance_root(here.group_weights, encoding.moments)
    newton = (root.mT @ root @ here.gradient[..., None])[..., 0].clamp(-MAX_STEP, MAX_STEP)
    mean = guess + torch.sigmoid(model.step_gates) * newton
    if not training:  # kept only where the joint goes up, with the curvature there
        there = decoder.log_joint(mean, encoding.counts)
        mean = torch.where((there.value > here.value)[:, None], mean, guess)
        root = decoder.covariance_root(decoder.log_joint(mean, encoding.counts).group_weights, encoding.moments)
    torch.testing.assert_close(q.mean, mean)
    stretch = torch.tensor([-0.4, 0.0, STRETCH_RANGE[1]]).double().exp()
    expected = stretch[:, None] * (root.mT @ root) * stretch
    torch.testing.assert_close(q.factor @ q.factor.mT, expected)


def test_dcm_means_alone_are_those_with_their_spread():
    model, batch = dcm(refinement_steps=2), batch_of(WITH_EMPTY)
    model.axes = rotation()
    torch.testing.assert_close(model.document_means(batch), model.document_vectors(batch).mean)


def test_the_dcm_network_reads_both_sizes_of_a_document():
    """Its length, and how many different words it has, about zero at fifty."""
    model, batch, read = dcm(), batch_of(), []
    model.encoder.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    encoding = model.encode(batch)
    different = torch.from_numpy(np.diff(COUNTS.indptr)).double()
    torch.testing.assert_close(read[0][:, :LATENT], encoding.start)
    torch.testing.assert_close(read[0][:, LATENT], torch.log1p(batch.lengths) - 4)
    torch.testing.assert_close(read[0][:, LATENT + 1], torch.log1p(different) - 4)


def test_hidden_words_are_completed_from_urns_that_observed_ones_have_changed():
    """By the ratio of two likelihoods at the same draws of h: with the hidden word, and without."""
    model, observed = dcm(), batch_of(COUNTS[:2])
    hidden = np.zeros((2, WORDS), np.float32)
    hidden[0, 3], hidden[0, 7], hidden[1, 7] = 2, 1, 1
    with seeded(5):
        found = model.completion_log_likelihood(observed, batch_of(scipy.sparse.csr_matrix(hidden)), 3)
    encoding = model.encode(observed)
    with seeded(5):
        h = model.posterior(encoding).rsample(3)
    before, expected = model.log_likelihood(h, encoding), torch.zeros(2).double()
    weights, inputs = model.decoder.weights(), model.decoder.inputs(h, encoding.counts)
    for document, word in np.argwhere(hidden):
        longer = COUNTS[:2].toarray()
        longer[document, word] += 1
        counts = model.decoder.count(batch_of(scipy.sparse.csr_matrix(longer)))
        # with the masses of the observed document: its length is what the model knows
        after = dcm_log_likelihood(weights, inputs, model.decoder.group_log_scales, counts)
        ratio = (after - before)[:, document]
        expected[document] += hidden[document, word] * (ratio.logsumexp(0) - math.log(3))
    torch.testing.assert_close(found, expected)
