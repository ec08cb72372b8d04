"""SWV: the most probable h, the gradient it learns by, and the bound it is evaluated by."""

import numpy as np
import pytest
import torch
from synthetic import batch_of, topic_documents

from varitext import DocumentModel
from varitext.batches.counts import CountBatch
from varitext.latent import DiagonalGaussian, elbo
from varitext.models.documents.swv import SWV

COUNTS = topic_documents(documents=12, words=20)


def network(latent_dim: int = 3, **settings) -> SWV:
    torch.manual_seed(0)
    model = SWV(20, latent_dim, **settings).double()
    torch.nn.init.normal_(model.decoder.weight, std=0.7)
    return model.eval()


def log_joint(model: SWV, h: torch.Tensor, counts: np.ndarray) -> torch.Tensor:
    """log p(X | h) - |h|^2 / 2, as the paper writes it."""
    log_words = torch.log_softmax(h @ model.decoder.weight.T + model.decoder.bias, -1)
    return (torch.from_numpy(counts).double() * log_words).sum(-1) - 0.5 * h.square().sum(-1)


def test_it_finds_the_most_probable_h_and_the_curvature_there():
    model = network(steps=150)
    found = model.encode(batch_of(COUNTS)).posterior
    top = found.mean.clone().requires_grad_()
    (slope,) = torch.autograd.grad(log_joint(model, top, COUNTS.toarray()).sum(), top)
    assert slope.abs().max() < 1e-3  # concave: where the slope vanishes is the top
    for row in range(3):
        counts = COUNTS[row].toarray()
        hessian = torch.autograd.functional.hessian(
            lambda h, counts=counts: log_joint(model, h[None], counts).sum(), found.mean[row]
        )
        torch.testing.assert_close(found.std[row], (-hessian.diagonal()).rsqrt(), rtol=1e-4, atol=0)


def test_the_gradient_is_that_of_the_best_value_of_all():
    """h is found anew when R moves: finite differences of max_h log p(X, h) - nu |R|^2, against the gradient with h
    held."""
    model = network(frobenius=0.01, steps=400).requires_grad_(True)
    value = model.objective(batch_of(COUNTS), 1, 1.0).surrogate.sum()
    value.backward()
    at_top = model.encode(batch_of(COUNTS)).posterior.mean
    by_hand = log_joint(model, at_top, COUNTS.toarray()) - 0.01 * model.decoder.weight.square().sum()
    torch.testing.assert_close(value, by_hand.sum())
    for parameter, place in (
        (model.decoder.weight, (3, 1)),
        (model.decoder.weight, (17, 0)),
        (model.decoder.bias, (5,)),
    ):
        moved = []
        for step in (1e-4, -1e-4):
            with torch.no_grad():
                parameter[place] += step
                moved.append(model.objective(batch_of(COUNTS), 1, 1.0).surrogate.sum().item())
                parameter[place] -= step
        assert parameter.grad[place].item() == pytest.approx((moved[0] - moved[1]) / 2e-4, rel=1e-3, abs=1e-3)


def test_its_bound_lies_below_the_evidence():
    """Two latent dimensions: the evidence by brute-force integration."""
    model, counts = network(latent_dim=2), COUNTS[:4]
    line = torch.linspace(-6, 6, 241, dtype=torch.double)
    grid = torch.cartesian_prod(line, line)[:, None, :].expand(-1, 4, 2)  # [S, B, K]
    encoding = model.encode(batch_of(counts))
    standard = DiagonalGaussian.standard(torch.zeros(4, 2, dtype=torch.double))
    with torch.no_grad():
        joint = model.log_likelihood(grid, encoding) + standard.log_prob(grid)
        evidence = joint.logsumexp(0) + 2 * (line[1] - line[0]).log()
        torch.manual_seed(0)
        bound = elbo(model, batch_of(counts), 4000)
    assert (bound.elbo < evidence + 0.05).all()
    torch.testing.assert_close(bound.draws.importance_weighted(), evidence, atol=0.2, rtol=0)


def test_it_learns():
    model = DocumentModel("swv", 4, epochs=15, learning_rate=2e-2, threads=1, n_topics=4).fit(topic_documents(400))
    held_out = topic_documents(100, seed=1)
    record = model.perplexity_record(held_out)
    assert record.kind == "bound" and "most probable h" in record.description
    assert record.ratio_to_unigram < 0.75
    word = model.fitted_.vocabulary.words[0]
    own = set(model.fitted_.vocabulary.words[:15])  # the stretch of the vocabulary that belongs to the same topic
    assert sum(other in own for other, _ in model.similar_words(word, 5)) >= 4


def test_the_penalty_keeps_word_vectors_small():
    weak, strong = (SWV(60, 4, frobenius=value) for value in (1e-4, 1.0))
    sizes = []
    for model in (weak, strong):
        model.learn_frequencies(torch.from_numpy(np.asarray(topic_documents().sum(0)).ravel()))
        optimizer = torch.optim.Adam(model.parameters(), 0.02)
        for _ in range(40):
            optimizer.zero_grad()
            (-model.objective(CountBatch.from_rows(topic_documents()), 1, 1.0).surrogate.mean()).backward()
            optimizer.step()
        sizes.append(float(model.decoder.weight.detach().norm()))
    assert sizes[1] < 0.5 * sizes[0]
