"""NVDM with a DCM likelihood: gradient and Newton steps by hand, refinement, the bound, groups, bursts."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import batch_of, scattered_network, topic_documents

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch
from varitext.evaluation.perplexity import hide_words
from varitext.latent import DiagonalGaussian, elbo, importance_weighted_bound
from varitext.latent.gaussian import MEAN_RANGE
from varitext.layers.dcm import dcm_log_likelihood
from varitext.models.documents.dcm_decoder import LogJoint, group_words
from varitext.models.documents.nvdm_dcm import MAX_STEP, NVDMDCM, STRETCH_RANGE
from varitext.runtime.processes import ALONE, Share
from varitext.runtime.randomness import seeded

COUNTS = topic_documents(documents=40, words=20)
SOME = topic_documents(8, 12, 3, 9)
WITH_EMPTY = scipy.sparse.vstack([SOME, SOME[:1] * 0]).tocsr()


def network(latent_dim: int = 3, spread: float = 0.7) -> NVDMDCM:
    torch.manual_seed(0)
    model = NVDMDCM(20, latent_dim=latent_dim, groups=4, hidden_dim=8).double()
    torch.nn.init.normal_(model.decoder.linear.weight, std=spread)
    torch.nn.init.normal_(model.decoder.group_log_scales, std=0.5)
    model.learn_frequencies(torch.from_numpy(np.asarray(COUNTS.sum(0)).ravel()))
    return model


def log_joint(model: NVDMDCM, h: torch.Tensor, batch: CountBatch) -> torch.Tensor:
    """log p(X, h) of each document, from log Gammas of dense counts."""
    x = torch.zeros(len(batch), 20, dtype=h.dtype)
    x[batch.documents, batch.words] = batch.counts
    decoder, lengths = model.decoder, torch.log1p(batch.lengths) - 4
    a = (decoder.linear(h) + lengths[:, None] * decoder.length_weights).exp()
    member = torch.nn.functional.one_hot(decoder.group_of_word, len(decoder.group_log_scales)).to(h)
    sums, n = a @ member, x @ member
    outer = sums * decoder.group_log_scales.exp()

    def rising(mass, count):
        return torch.lgamma(mass + count) - torch.lgamma(mass)

    groups = (rising(outer, n) - rising(sums, n)).sum(-1) - rising(outer.sum(-1), batch.lengths)
    return rising(a, x).sum(-1) + groups - 0.5 * h.square().sum(-1)


def test_gradient_and_height_are_those_of_the_joint():
    model, batch = network(), batch_of(COUNTS)
    torch.nn.init.normal_(model.decoder.length_weights, std=0.3)
    counts = model.decoder.count(batch)
    h = torch.randn(40, 3, dtype=torch.double, requires_grad=True)
    expected = log_joint(model, h, batch)
    (gradient,) = torch.autograd.grad(expected.sum(), h)
    here = model.decoder.log_joint(h.detach(), counts)
    torch.testing.assert_close(here.value, expected.detach())
    torch.testing.assert_close(here.gradient, gradient)


def test_curvature_is_exact_where_every_group_has_one_word_and_masses_are_large():
    """There the likelihood is the multinomial, whose second derivative the formula is."""
    model, batch = network(), batch_of(COUNTS[:1])
    model.decoder = type(model.decoder)(3, 20, 20).double()
    torch.nn.init.normal_(model.decoder.linear.weight, std=0.7)
    with torch.no_grad():
        model.decoder.linear.bias += 16
    counts, h = model.decoder.count(batch), torch.randn(3, dtype=torch.double)
    hessian = torch.autograd.functional.hessian(lambda h: log_joint(model, h[None], batch).sum(), h)
    here = model.decoder.log_joint(h[None], counts)
    root = model.decoder.covariance_root(here.group_weights, model.decoder.moments(counts.layout))[0]
    torch.testing.assert_close(torch.linalg.inv(root.T @ root), -hessian, rtol=1e-3, atol=1e-3)


def test_the_first_step_follows_the_gradient_at_zero():
    model, batch = network(), batch_of(COUNTS)
    zero = torch.zeros(40, 3, dtype=torch.double, requires_grad=True)
    (gradient,) = torch.autograd.grad(log_joint(model, zero, batch).sum(), zero)
    counts = model.decoder.count(batch)
    step = model.decoder.newton_step_from_zero(counts, model.decoder.moments(counts.layout))
    shares = model.word_log_probabilities(torch.zeros(3, dtype=torch.double)).exp()
    word_vectors = model.decoder.linear.weight
    centred = word_vectors - shares @ word_vectors
    total = (model.decoder.linear.bias + model.decoder.group_log_scales[model.decoder.group_of_word]).exp().sum()
    worth = total * (torch.digamma(total + batch.lengths) - torch.digamma(total))
    covariance = (centred * shares[:, None]).T @ centred
    curvature = torch.eye(3, dtype=torch.double) + worth[:, None, None] * covariance
    torch.testing.assert_close((curvature @ step[..., None])[..., 0], gradient)


def test_refinement_goes_uphill_for_every_document_and_reaches_the_top():
    model, batch = network(spread=0.3).eval(), batch_of(COUNTS)
    means = []
    for model.refinement_steps in (0, 60):
        with torch.no_grad():
            means.append(model.posterior(model.encode(batch)).mean)
    heights = [log_joint(model, mean, batch) for mean in means]
    assert (heights[1] >= heights[0] - 1e-9).all()
    top = means[1].clone().requires_grad_()
    (slope,) = torch.autograd.grad(log_joint(model, top, batch).sum(), top)
    assert slope.abs().max() < 0.01


def test_bounds_lie_below_the_evidence():
    """Two latent dimensions: the evidence by brute-force integration."""
    model, batch = network(latent_dim=2).eval(), batch_of(COUNTS[:4])
    line = torch.linspace(-6, 6, 241, dtype=torch.double)
    grid = torch.cartesian_prod(line, line)[:, None, :].expand(-1, 4, 2)  # [S, B, K]
    with torch.no_grad():
        prior = DiagonalGaussian.standard(torch.zeros(4, 2, dtype=torch.double))
        on_grid = model.log_likelihood(grid, model.encode(batch)) + prior.log_prob(grid)
        evidence = torch.logsumexp(on_grid, 0) + 2 * (line[1] - line[0]).log()
        lower = elbo(model, batch, 4000).elbo
        tighter = importance_weighted_bound(model, batch, 4000)
    assert (lower < evidence + 0.05).all() and (lower < tighter + 0.05).all()
    torch.testing.assert_close(tighter, evidence, atol=0.1, rtol=0)


def test_the_first_word_has_the_probability_that_is_said():
    model, batch = network(), batch_of(scipy.sparse.identity(20, np.float32, "csr"))
    h = torch.randn(3, dtype=torch.double)
    expected = model.word_log_probabilities(h)
    found = model.log_likelihood(h.expand(1, 20, 3), model.encode(batch))[0]
    torch.testing.assert_close(found, expected)


def test_documents_of_no_words_and_of_a_million_have_vectors():
    model = network().float().eval()
    counts = np.zeros((3, 20), np.float32)
    counts[1, 4], counts[2, :7] = 1, 1_000_000
    with torch.no_grad():
        vectors = model.document_vectors(CountBatch.from_rows(scipy.sparse.csr_matrix(counts)))
    assert torch.isfinite(vectors.mean).all() and (vectors.std > 0).all()
    assert torch.equal(vectors.mean[0], torch.zeros(3)) and torch.equal(vectors.std[0], torch.ones(3))


def test_words_of_a_topic_share_a_group():
    groups = group_words(topic_documents(documents=400, words=40, topics=4), 4)
    assert [len(set(groups[start : start + 10])) for start in range(0, 40, 10)] == [1, 1, 1, 1]
    assert len(set(groups)) == 4


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (1, 30)])
def test_hardly_any_words_still_have_groups(shape):
    groups = group_words(scipy.sparse.csr_matrix(np.ones(shape, np.float32)), 300)
    assert groups.shape == (shape[1],) and (groups >= 0).all() and (groups < 300).all()


def bursty_documents(documents: int = 400, words: int = 40) -> scipy.sparse.csr_matrix:
    generator = np.random.default_rng(0)
    shares = generator.dirichlet(np.full(words, 0.1), documents)
    return scipy.sparse.csr_matrix(np.array([generator.multinomial(30, each) for each in shares], np.float32))


def test_where_words_come_in_bursts_it_beats_the_multinomial():
    counts = bursty_documents()
    settings = {"latent_dim": 3, "epochs": 12, "threads": 1, "n_topics": 3}
    bursts, none = (DocumentModel(name, **settings).fit(counts[:300]) for name in ("nvdm_dcm", "nvdm"))
    found, plain = (model.perplexity_record(counts[300:]) for model in (bursts, none))
    assert found.per_document_perplexity < 0.8 * plain.per_document_perplexity
    assert (found.likelihood, plain.likelihood) == ("DCM (Dirichlet compound multinomial)", "multinomial")


def test_a_seen_word_is_expected_again_where_words_come_in_bursts():
    """Completing documents uses the urns as the observed words have left them, not p(w | h) alone."""
    model, counts = network().eval(), bursty_documents(40, 20)
    halves = hide_words(counts, seed=0)
    observed, hidden = (batch_of(half) for half in halves)
    with torch.no_grad():
        torch.manual_seed(0)
        found = model.completion_log_likelihood(observed, hidden, 50)
        torch.manual_seed(0)
        h = model.posterior(model.encode(observed)).rsample(50)
        each = (torch.logsumexp(model.word_log_probabilities(h), 0) - np.log(50))[hidden.documents, hidden.words]
    without = torch.zeros(40, dtype=torch.double).index_add_(0, hidden.documents, hidden.counts * each)
    assert found.mean() > without.mean() + 2


def test_new_words_join_the_group_whose_vectors_point_their_way():
    decoder = network(latent_dim=2).decoder
    with torch.no_grad():
        angles = torch.tensor([0.0, 1.5, 3.0, 4.5])[decoder.group_of_word] + 0.1
        decoder.linear.weight.copy_(torch.stack([angles.cos(), angles.sin()], 1))
    expected = decoder.group_of_word.clone()
    decoder.group_of_word[15:] = 0
    decoder.place_words(15)
    assert torch.equal(decoder.group_of_word, expected)


def test_fractions_of_words_are_refused():
    with pytest.raises(InputError, match="whole counts"):
        DocumentModel("nvdm_dcm", fractional_counts=True, latent_dim=2).fit(COUNTS)


def test_short_documents_get_more_passes():
    titles, articles = (NVDMDCM.recipe("recommended", 10_000, words) for words in (3, 100))
    assert titles.training.epochs > 1.5 * articles.training.epochs
    assert NVDMDCM.recipe("recommended", 1000, 3).objective.word_dropout == 0  # three words have none to spare


def test_what_a_fitted_model_keeps_of_its_weights_follows_them():
    """Means of groups and their squares are made once; not once more, but after every change of what they rest on."""
    model = network().float().eval().requires_grad_(False)
    batch = CountBatch.from_rows(
        scipy.sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, (6, 20)), dtype=np.float32)
    )
    first = model.document_vectors(batch).mean
    kept = model._cached
    assert torch.equal(model.document_vectors(batch).mean, first) and model._cached is kept
    changes = (
        lambda: model.decoder.linear.weight.mul_(0.5),
        lambda: model.decoder.group_log_scales.add_(0.3),
        lambda: model.decoder.group_of_word.copy_(model.decoder.group_of_word.flip(0)),
        lambda: model.load_state_dict(network().float().state_dict()),
    )
    for change in changes:
        before = model.document_vectors(batch).mean
        change()
        found, anew = model.document_vectors(batch).mean, copy.deepcopy(model)
        anew._cached = anew.decoder._sorted = None
        assert torch.equal(found, anew.document_vectors(batch).mean) and not torch.equal(found, before)


def test_prediction_makes_as_many_steps_as_it_is_given():
    assert NVDMDCM(20).refinement_steps == 2
    made = [NVDMDCM(20, latent_dim=3, groups=4, hidden_dim=8, refinement_steps=steps).double() for steps in (0, 1, 6)]
    found = []
    for model in made:
        model.load_state_dict(network().state_dict())
        model.eval()
        posterior = model.posterior(model.encode(batch_of(COUNTS)))
        found.append(log_joint(model, posterior.mean.detach(), batch_of(COUNTS)).mean().item())
    assert found[0] < found[1] < found[2]


# Inference


def dcm(**settings) -> NVDMDCM:
    return scattered_network("nvdm_dcm", SOME, spread=0.3, groups=4, hidden_dim=6, **settings)


def rotation(seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(seed)).double())[0]


def test_masses_follow_the_length_within_a_range():
    """log a_w = h R_w + b_w + l_w log N about that of fifty words; nothing is known of lengths beyond e^8 words."""
    decoder = dcm().decoder
    rows = np.zeros((3, 12), np.float32)
    rows[0, 0], rows[1, 1], rows[2, 2] = 1, 400, 5_000_000
    batch = batch_of(scipy.sparse.csr_matrix(rows))
    h = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0)).double()
    lengths = torch.tensor([math.log(2) - 4, math.log(401) - 4, 4.0]).double()
    expected = h @ decoder.linear.weight.T + decoder.linear.bias + lengths[:, None] * decoder.length_weights
    found = decoder.logits(h, decoder.count(batch))
    torch.testing.assert_close(found, expected.flatten(0, 1).T)


def test_moments_and_curvature_by_sums_over_words():
    decoder, batch = dcm().decoder, batch_of(SOME)
    decoder.group_of_word.copy_(torch.tensor([0, 0, 1, 1, 1, 3, 3, 3, 3, 0, 1, 3]))  # group 2 is empty
    counts = decoder.count(batch)
    moments, vectors, masses = decoder.moments(counts.layout), decoder.linear.weight, decoder.linear.bias.exp()
    shares = masses * decoder.group_log_scales.exp()[decoder.group_of_word]
    shares = shares / shares.sum()
    means, within = torch.zeros(4, 3).double(), torch.zeros(3, 3).double()
    for group in (0, 1, 3):
        inside = decoder.group_of_word == group
        means[group] = masses[inside] @ vectors[inside] / masses[inside].sum()
        for word in inside.nonzero()[:, 0]:
            within += shares[word] * torch.outer(vectors[word] - means[group], vectors[word] - means[group])
    torch.testing.assert_close(moments.means, means)
    weights = decoder.log_joint(torch.randn(8, 3).double(), counts).group_weights
    root = decoder.covariance_root(weights, moments)
    for row, found in zip(weights, torch.linalg.inv(root.mT @ root), strict=True):
        spread = torch.cov(means.T, correction=0, aweights=row)
        torch.testing.assert_close(found, torch.eye(3).double() + row.sum() * (spread + within), rtol=1e-4, atol=1e-4)


def test_group_weights_are_what_the_words_are_worth():
    """E = B (digamma(B + N) - digamma(B)) in all, shared as the first urn's masses are."""
    decoder, batch = dcm().decoder, batch_of(SOME)
    h = torch.randn(8, 3, generator=torch.Generator().manual_seed(1)).double()
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
    model, batch = dcm(refinement_steps=0), batch_of(SOME)
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
    torch.testing.assert_close(q.covariance, expected)


def test_dcm_means_alone_are_those_with_their_spread():
    model, batch = dcm(refinement_steps=2), batch_of(WITH_EMPTY)
    model.axes = rotation()
    torch.testing.assert_close(model.document_means(batch), model.document_vectors(batch).mean)
    known, encoding = (batch.lengths > 0)[:, None], model.encode(batch)
    guess = (encoding.start + model.head(encoding.hidden).mean).clamp(*MEAN_RANGE)
    with model.refining(False):
        torch.testing.assert_close(model.document_means(batch), torch.where(known, guess @ model.axes, 0.0))


def test_some_words_stand_for_all_without_bias():
    decoder, own = dcm().decoder, torch.tensor([3, 7, 3])
    masses = (decoder.linear.bias + decoder.group_log_scales[decoder.group_of_word]).exp()
    sums, sizes = [], []
    with seeded(1):
        for _ in range(4000):
            words, log_weights = decoder.sample_words(own, 0.2)
            assert {3, 7} <= set(words.tolist()) and (log_weights[(words == 3) | (words == 7)] == 0).all()
            sums.append(float((masses[words] * log_weights.exp()).sum()))
            sizes.append(len(words))
    error = np.std(sums) / math.sqrt(len(sums))
    assert abs(np.mean(sums) - float(masses.sum())) < 4 * error and error > 0 and np.mean(sizes) < 0.8 * len(masses)
    words, log_weights = decoder.sample_words(own, 1.0)
    assert words.tolist() == list(range(len(masses))) and not log_weights.any()


def test_evaluation_and_shared_batches_see_all_words():
    model, batch = dcm(word_share=0.1), batch_of(SOME[:1])
    assert len(model.train()._sample_words(batch).words) < model.decoder.linear.out_features
    assert model.eval()._sample_words(batch) is None and dcm().train()._sample_words(batch) is None
    shared = dataclasses.replace(batch, share=Share(ALONE, 0, len(batch), len(batch) + 1))
    assert model.train()._sample_words(shared) is None


def test_hidden_words_are_completed_from_urns_that_observed_ones_have_changed():
    """By the ratio of two likelihoods at the same draws of h: with the hidden word, and without."""
    model, observed = dcm(), batch_of(SOME[:2])
    hidden = np.zeros((2, 12), np.float32)
    hidden[0, 3], hidden[0, 7], hidden[1, 7] = 2, 1, 1
    with seeded(5):
        found = model.completion_log_likelihood(observed, batch_of(scipy.sparse.csr_matrix(hidden)), 3)
    encoding = model.encode(observed)
    with seeded(5):
        h = model.posterior(encoding).rsample(3)
    before, expected = model.log_likelihood(h, encoding), torch.zeros(2).double()
    weights, inputs = model.decoder.weights(), model.decoder.inputs(h, encoding.counts)
    for document, word in np.argwhere(hidden):
        longer = SOME[:2].toarray()
        longer[document, word] += 1
        counts = model.decoder.count(batch_of(scipy.sparse.csr_matrix(longer)))
        # with the masses of the observed document: its length is what the model knows
        after = dcm_log_likelihood(weights, inputs, model.decoder.group_log_scales, counts)
        ratio = (after - before)[:, document]
        expected[document] += hidden[document, word] * (ratio.logsumexp(0) - math.log(3))
    torch.testing.assert_close(found, expected)


# Groups of words


def test_groups_are_no_more_than_words_can_fill():
    counts = topic_documents(200, 60, 4)
    assert [len(np.unique(group_words(counts, groups))) for groups in (1, 4, 300)] == [1, 4, 12]  # five words each


def test_groups_look_at_whether_a_word_is_there_and_not_at_chance():
    dense = topic_documents(80, 60, 4, 12).toarray()
    dense[:, 17] = 0  # in no document
    groups = []
    for seed, times in ((0, 1), (1, 1), (2, 7)):
        np.random.seed(seed)
        groups.append(group_words(scipy.sparse.csr_matrix(dense * times), 4))
    assert np.array_equal(groups[0], groups[1]) and np.array_equal(groups[0], groups[2])
