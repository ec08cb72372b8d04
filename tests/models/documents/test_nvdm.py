"""NVDM's own mathematics: the step from h = 0, refinement, readable axes, word dropout, presets."""

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from synthetic import batch_of, scattered_network, topic_documents

from varitext import DocumentModel
from varitext.batches.counts import CountBatch, drop_words
from varitext.latent import DiagonalGaussian, elbo, importance_weighted_bound
from varitext.models.documents import log_linear
from varitext.models.documents.base import DocumentObjective
from varitext.models.documents.log_linear import gradient_ascent, laplace_posterior, newton_step
from varitext.models.documents.nvdm import NVDM

COUNTS = topic_documents(documents=40, words=20)
SOME = topic_documents(8, 12, 3, 9)


def network(**settings) -> NVDM:
    torch.manual_seed(0)
    model = NVDM(20, latent_dim=3, hidden_dim=8, **settings).double()
    torch.nn.init.normal_(model.decoder.weight, std=0.7)
    model.learn_frequencies(torch.from_numpy(np.asarray(COUNTS.sum(0)).ravel()))
    return model


def log_joint(model: NVDM, h: torch.Tensor, batch: CountBatch) -> torch.Tensor:
    """log p(X, h) of each document, written as the paper has it."""
    dense = torch.zeros(len(batch), 20, dtype=h.dtype)
    dense[batch.documents, batch.words] = batch.counts
    log_words = torch.log_softmax(h @ model.decoder.weight.T + model.decoder.bias, -1)
    return (dense * log_words).sum(-1) - 0.5 * h.square().sum(-1)


def test_the_first_step_is_the_best_along_newtons_direction():
    model, batch = network(inference="statistics"), batch_of(COUNTS[:5])
    zero = torch.zeros(5, 3, dtype=torch.double, requires_grad=True)
    (gradient,) = torch.autograd.grad(log_joint(model, zero, batch).sum(), zero)
    step = newton_step(model.decoder, batch)
    for row in range(5):
        one = batch_of(COUNTS[row : row + 1])
        hessian = torch.autograd.functional.hessian(
            lambda h, one=one: log_joint(model, h[None], one).sum(), torch.zeros(3, dtype=torch.double)
        )
        direction = gradient[row] / -hessian.diagonal()
        length = (gradient[row] @ direction) / -(direction @ hessian @ direction)
        torch.testing.assert_close(step.mean[row], length * direction)
        torch.testing.assert_close(step.log_std[row], -0.5 * (-hessian.diagonal()).log())


def test_refinement_goes_uphill_for_every_document_and_reaches_the_top():
    model, batch = network(inference="statistics", refinement_steps=60), batch_of(COUNTS)
    start = newton_step(model.decoder, batch).mean
    refined = gradient_ascent(model.decoder, start, batch, model.refinement_steps).h
    assert (log_joint(model, refined, batch) >= log_joint(model, start, batch) - 1e-9).all()
    top = refined.clone().requires_grad_()
    (slope,) = torch.autograd.grad(log_joint(model, top, batch).sum(), top)
    assert slope.abs().max() < 0.05  # concave: where the slope vanishes is the top


@pytest.mark.parametrize("scale", [30.0, 3000.0])
def test_refinement_stays_finite_and_uphill_where_logits_are_huge(scale):
    """Steps that overflow, or that leave all words behind, are not taken."""
    model, batch = network(inference="statistics", refinement_steps=30).float(), CountBatch.from_rows(COUNTS)
    with torch.no_grad():
        model.decoder.weight *= scale
    start = torch.randn(40, 3)
    refined = gradient_ascent(model.decoder, start, batch, model.refinement_steps).h
    assert torch.isfinite(refined).all()
    heights = [log_joint(model.double(), h.double(), batch_of(COUNTS)) for h in (start, refined)]
    assert (heights[1] >= heights[0] - 1e-5 * heights[0].abs()).all()


def test_refinement_is_for_prediction_only():
    model, batch = network(inference="statistics", refinement_steps=4), batch_of(COUNTS)
    encoding = model.encode(batch)
    trained = model.train().posterior(encoding)
    predicted = model.eval().posterior(encoding)
    assert not torch.equal(trained.mean, predicted.mean)
    assert torch.equal(trained.log_std, predicted.log_std)


def test_documents_with_the_same_statistics_have_the_same_posterior():
    model = network(inference="statistics")
    with torch.no_grad():
        model.decoder.weight[1] = (model.decoder.weight[0] + model.decoder.weight[2]) / 2
    counts = np.zeros((2, 20), np.float32)
    counts[0, [0, 2]] = 1
    counts[1, 1] = 2
    posterior = model.posterior(model.encode(batch_of(scipy.sparse.csr_matrix(counts))))
    torch.testing.assert_close(posterior.mean[0], posterior.mean[1])
    torch.testing.assert_close(posterior.log_std[0], posterior.log_std[1])


@pytest.mark.parametrize("inference", ["counts", "words", "statistics"])
def test_bounds_lie_below_the_evidence(inference):
    """Two latent dimensions: the evidence by brute-force integration."""
    torch.manual_seed(0)
    model = NVDM(20, latent_dim=2, hidden_dim=8, inference=inference).double()
    torch.nn.init.normal_(model.decoder.weight, std=0.7)
    batch = batch_of(COUNTS[:4])
    line = torch.linspace(-6, 6, 241, dtype=torch.double)
    grid = torch.cartesian_prod(line, line)[:, None, :].expand(-1, 4, 2)  # [S, B, K]
    encoding = model.encode(batch)
    prior = DiagonalGaussian.standard(torch.zeros(4, 2, dtype=torch.double))
    log_joint_on_grid = model.log_likelihood(grid, encoding) + prior.log_prob(grid)
    evidence = torch.logsumexp(log_joint_on_grid, 0) + 2 * (line[1] - line[0]).log()
    with torch.no_grad():
        lower = elbo(model, batch, 4000).elbo
        tighter = importance_weighted_bound(model, batch, 4000)
    assert (lower < evidence + 0.05).all()
    assert (lower < tighter + 0.05).all()
    torch.testing.assert_close(tighter, evidence, atol=0.3, rtol=0)


def test_the_laplace_posterior_has_the_whole_curvature(monkeypatch):
    monkeypatch.setattr(log_linear, "MAX_PRODUCTS", 9 * 7)  # seven words at a time
    model, batch = network(inference="statistics"), batch_of(COUNTS[:5])
    h = torch.randn(5, 3, dtype=torch.double)
    found = laplace_posterior(model.decoder, h, batch)
    for row in range(5):
        one = batch_of(COUNTS[row : row + 1])
        hessian = torch.autograd.functional.hessian(lambda at, one=one: log_joint(model, at[None], one).sum(), h[row])
        torch.testing.assert_close(found.covariance[row], -hessian.inverse(), rtol=1e-4, atol=1e-6)


def test_evaluation_with_the_whole_covariance_is_tighter_and_no_better_than_importance_weighting():
    model = network(inference="statistics", refinement_steps=30).float().eval()
    with torch.no_grad():  # two dimensions with nearly the same words: what one has the other need not have
        model.decoder.weight[:, 1] = model.decoder.weight[:, 0] + 0.2 * model.decoder.weight[:, 1]
    whole, diagonal = model.evaluate(COUNTS, 200, 0), model.evaluate_round(COUNTS, 200, 0)
    assert diagonal.elbo.mean() + 0.3 < whole.elbo.mean() < whole.importance_weighted.mean()
    with model.refining(False):  # what the inference network says, whoever evaluates it
        np.testing.assert_array_equal(model.evaluate(COUNTS, 5, 0).elbo, model.evaluate_round(COUNTS, 5, 0).elbo)


def test_turning_to_readable_axes_changes_no_probability():
    model, batch = network(), batch_of(COUNTS)
    h = torch.randn(5, 40, 3, dtype=torch.double)
    model.axes.copy_(torch.linalg.qr(torch.randn(3, 3, dtype=torch.double)).Q)
    turned_logits = (h @ model.axes) @ model.word_vectors.T + model.decoder.bias
    torch.testing.assert_close(turned_logits, model.decoder(h))
    q = model.posterior(model.encode(batch))
    seen = model.rotated(q)
    samples = q.rsample(100_000) @ model.axes
    torch.testing.assert_close(seen.mean, samples.mean(0), atol=0.03, rtol=0)
    torch.testing.assert_close(seen.std, samples.std(0), atol=0.03, rtol=0)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1.0))
def test_word_dropout_only_takes_words_away_and_leaves_no_document_empty(seed, most):
    dropped = drop_words(COUNTS, most, np.random.default_rng(seed))
    assert dropped.shape == COUNTS.shape
    assert (COUNTS - dropped).min() >= 0
    assert (np.asarray(dropped.sum(1)) > 0).all()
    assert np.array_equal(dropped.data, np.round(dropped.data)) and (dropped.data > 0).all()


def test_word_dropout_takes_the_share_it_says_on_average():
    counts = scipy.sparse.csr_matrix(np.full((2000, 5), 20, np.float32))
    kept = drop_words(counts, 0.6, np.random.default_rng(0)).sum() / counts.sum()
    assert kept == pytest.approx(0.7, abs=0.02)  # between none and 0.6 lost, 0.3 on average


@pytest.mark.parametrize("documents", [2, 40, 300, 5_000, 11_000, 100_000, 3_000_000])
def test_recipes_fit_any_size_of_corpus(documents):
    for preset, most in (("paper", 800), ("paper-network", 100), ("recommended", 100)):
        settings = NVDM.recipe(preset, documents, 50.0).training
        assert 8 <= settings.epochs <= most and 32 <= settings.batch_size <= 256 and settings.patience >= 5


@pytest.mark.parametrize("preset", ["paper", "paper-network", "recommended"])
@pytest.mark.parametrize("updates", ["joint", "alternating"])
def test_both_presets_learn_with_both_kinds_of_updates(preset, updates):
    counts = topic_documents(400)
    settings = {"preset": preset, "updates": updates, "epochs": 25, "learning_rate": 5e-3, "threads": 1}
    model = DocumentModel("nvdm", latent_dim=4, n_topics=4, **settings)
    record = model.fit(counts).perplexity_record(topic_documents(200, seed=1))
    assert record.ratio_to_unigram < 0.75


def test_the_preset_of_the_paper_is_its_objective():
    """The plain bound: neither weights by length nor dropped words; one sample; ten passes for each side in turn."""
    recipe = NVDM.recipe("paper", 10_000, 100.0)
    assert recipe.objective == DocumentObjective(length_exponent=0.0, word_dropout=0.0)
    training = recipe.training
    assert (training.updates, training.samples, training.kl_warm_up) == ("alternating", 1, 0.0)
    assert training.alternate_every == 10 * 157 and training.learning_rate_schedule == "constant"


# Inference


def test_refinement_can_be_left_out_for_a_while():
    model, batch = scattered_network("nvdm", SOME, inference="statistics", refinement_steps=3), batch_of(SOME)
    refined = model.posterior(model.encode(batch)).mean
    with pytest.raises(KeyError), model.refining(False):
        assert model.refinement_steps == 0
        plain = model.posterior(model.encode(batch)).mean
        raise KeyError
    assert model.refinement_steps == 3 and not torch.allclose(plain, refined)
    with model.refining(True):
        torch.testing.assert_close(model.posterior(model.encode(batch)).mean, refined)


@pytest.mark.parametrize("inference", ["counts", "words", "statistics"])
def test_the_inference_network_corrects_its_start(inference):
    model, batch = scattered_network("nvdm", SOME, inference=inference, hidden_dim=6), batch_of(SOME)
    encoding = model.encode(batch)
    for head, value in ((model.head.mean, 0.3), (model.head.log_std, -0.2)):
        torch.nn.init.zeros_(head.weight)
        torch.nn.init.constant_(head.bias, value)
    q = model.posterior(encoding)
    start = newton_step(model.decoder, batch) if inference == "statistics" else DiagonalGaussian.standard(q.mean)
    torch.testing.assert_close(q.mean, start.mean + 0.3)
    torch.testing.assert_close(q.log_std, start.log_std - 0.2)
    if inference == "statistics":
        read = torch.cat([start.mean, torch.log1p(batch.lengths)[:, None] - 4], 1)
        torch.testing.assert_close(encoding.hidden, model.encoder(read))


def test_value_slope_and_curvature_of_the_joint_are_those_of_autograd():
    model, batch = scattered_network("nvdm", SOME), batch_of(SOME)
    h = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)).double()

    def joint(h, row=slice(None)):
        words = torch.log_softmax(model.decoder(h), -1)
        return (torch.from_numpy(SOME.toarray())[row].double() * words).sum(-1) - 0.5 * h.square().sum(-1)

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
    model, batch = scattered_network("nvdm", SOME), batch_of(SOME)
    log_joint = log_linear._LogJointOf(model.decoder, batch)
    here = log_joint.first(torch.zeros(8, 3).double()).joint
    for step in (1e-7, 1e-2):
        there = log_joint.at(step * here.gradient)
        gain = there.value - here.value
        assert ((gain.abs() > log_linear.ROUNDING * batch.lengths[:, None]) == (step > 1e-3)).all()
        torch.testing.assert_close(log_joint.gain(here, there), gain, rtol=1e-5, atol=1e-13)


def test_a_few_steps_of_gradient_ascent_gain_most_of_what_there_is():
    model, batch = scattered_network("nvdm", SOME), batch_of(SOME)
    start = torch.zeros(8, 3).double()
    first, few, top = (log_linear.gradient_ascent(model.decoder, start, batch, steps).value for steps in (0, 10, 300))
    assert ((few - first) > 0.9 * (top - first)).all() and (top >= few).all()


def test_the_first_step_is_short_enough_where_all_dimensions_say_the_same():
    """Each dimension by itself asks for the whole way: five of them together would go five times too far."""
    decoder = torch.nn.Linear(5, 12).double().requires_grad_(False)
    decoder.weight.copy_(decoder.weight[:, :1].expand(-1, 5) * 8)
    batch = batch_of(SOME * 20)
    first, second = (log_linear.gradient_ascent(decoder, torch.zeros(8, 5).double(), batch, steps) for steps in (0, 1))
    assert (second.value > first.value).all()
