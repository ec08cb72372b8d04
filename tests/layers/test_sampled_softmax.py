"""The sampled softmax: exact with all words, unbiased with some; in training only."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from synthetic import topic_documents

from varitext import DocumentModel
from varitext.batches.counts import CountBatch
from varitext.errors import InputError
from varitext.layers.counts import (
    SampledWords,
    estimated_log_normaliser,
    multinomial_log_likelihood,
    sample_words,
    sampled_log_likelihood,
)
from varitext.models.documents import nvdm
from varitext.models.documents.nvdm import NVDM

WORDS, LATENT = 30, 3


@pytest.fixture
def decoder() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(LATENT, WORDS).double()


def log_frequencies() -> torch.Tensor:
    return torch.log_softmax(-0.2 * torch.randperm(WORDS, generator=torch.Generator().manual_seed(1)).double(), 0)


def batch_of(documents: int = 6) -> CountBatch:
    batch = CountBatch.from_rows(topic_documents(documents, words=WORDS, topics=3))
    return dataclasses.replace(batch, counts=batch.counts.double(), lengths=batch.lengths.double())


def test_with_every_word_value_and_gradient_are_those_of_the_full_softmax(decoder):
    batch, h = batch_of(), torch.randn(2, 6, LATENT, dtype=torch.double, requires_grad=True)
    every = sample_words(log_frequencies(), frequent=WORDS)
    parameters = [h, decoder.weight, decoder.bias]
    upstream = torch.randn(2, 6, dtype=torch.double)
    sampled = sampled_log_likelihood(decoder, h, batch, every)
    full = multinomial_log_likelihood(decoder(h), batch)
    torch.testing.assert_close(sampled, full)
    for ours, reference in zip(
        torch.autograd.grad(sampled, parameters, upstream), torch.autograd.grad(full, parameters, upstream), strict=True
    ):
        torch.testing.assert_close(ours, reference)


def test_gradient_equals_finite_differences(decoder):
    batch, sampled = batch_of(2), sample_words(log_frequencies(), 5, 4)
    h = torch.randn(1, 2, LATENT, dtype=torch.double, requires_grad=True)

    def value(h, weight, bias):
        layer = torch.nn.Linear(LATENT, WORDS).double()
        del layer.weight, layer.bias
        layer.weight, layer.bias = weight, bias
        return sampled_log_likelihood(layer, h, batch, sampled)

    weight, bias = (part.detach().clone().requires_grad_() for part in (decoder.weight, decoder.bias))
    assert torch.autograd.gradcheck(value, (h, weight, bias))


def test_the_normaliser_is_unbiased_by_enumeration(decoder):
    """One draw: the mean over all that it can be, each with its probability, is the exact normaliser."""
    logs, h = log_frequencies(), torch.randn(1, 4, LATENT, dtype=torch.double)
    frequent = 7
    always = torch.topk(logs, frequent).indices
    others = torch.tensor([word for word in range(WORDS) if word not in always])
    share = torch.softmax(logs[others], 0)
    mean = 0
    for word, probability in zip(others, share, strict=True):
        weights = torch.cat([torch.zeros(frequent).double(), -probability.log()[None]])
        one = SampledWords(torch.cat([always, word[None]]), weights)
        mean = mean + probability * estimated_log_normaliser(decoder, h, one).exp()
    torch.testing.assert_close(mean, torch.logsumexp(decoder(h), -1).exp())


@torch.no_grad()
def test_draws_are_unbiased_and_their_logarithm_is_low_by_half_the_variance(decoder):
    torch.manual_seed(0)
    logs, h = log_frequencies(), torch.randn(1, 3, LATENT, dtype=torch.double)
    exact = torch.logsumexp(decoder(h), -1)
    ratios = torch.stack(
        [(estimated_log_normaliser(decoder, h, sample_words(logs, 5, 300)) - exact).exp() for _ in range(2000)]
    )
    error = ratios.std(0) / math.sqrt(len(ratios))
    assert ((ratios.mean(0) - 1).abs() < 4 * error).all()
    bias, expected = ratios.log().mean(0), -0.5 * ratios.var(0)
    assert (bias < 0).all()
    torch.testing.assert_close(bias, expected, rtol=0.2, atol=4 * float(error.max()))


def test_what_is_drawn_are_the_frequent_words_and_others_by_their_frequency():
    torch.manual_seed(0)
    logs = log_frequencies()
    words, weights = sample_words(logs, 4, 50_000)
    always = torch.topk(logs, 4).indices
    assert torch.equal(words[:4], always) and (weights[:4] == 0).all()
    assert not torch.isin(words[4:], always).any()
    share = torch.bincount(words[4:], minlength=WORDS) / 50_000
    expected = torch.softmax(logs.index_fill(0, always, -math.inf), 0)
    torch.testing.assert_close(share.double(), expected, atol=0.01, rtol=0)
    torch.testing.assert_close(weights[4:], -(expected[words[4:]] * 50_000).log())


def test_evaluation_is_exact_and_training_is_not(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(nvdm, "sample_words", lambda logs: sample_words(logs, 5, 5))
    network, batch = NVDM(WORDS, LATENT, softmax="sampled"), CountBatch.from_rows(topic_documents(5, words=WORDS))
    h = torch.randn(1, 5, LATENT)
    encoding = network.encode(batch)
    exact = multinomial_log_likelihood(network.decoder(h), batch)
    assert torch.equal(network.eval().log_likelihood(h, encoding), exact)
    assert not torch.allclose(network.train().log_likelihood(h, encoding), exact)


def test_a_small_vocabulary_has_the_full_softmax_unless_asked_otherwise():
    assert NVDM(100, 2).softmax == "full" and NVDM(100, 2, softmax="sampled").softmax == "sampled"
    assert NVDM(nvdm.SAMPLED_ABOVE + 1, 2, hidden_dim=4).softmax == "sampled"
    with pytest.raises(InputError, match="'full', 'sampled' or None"):
        NVDM(100, 2, softmax="adaptive")
    with pytest.raises(InputError, match="lda has no choice of softmax"):
        DocumentModel("lda", softmax="full", latent_dim=2).fit(topic_documents(20))


def test_a_model_learns_with_it_as_well_as_without(monkeypatch, tmp_path):
    monkeypatch.setattr(nvdm, "sample_words", lambda logs: sample_words(logs, 10, 90))
    train, test = topic_documents(400, words=120), topic_documents(200, words=120, seed=1)
    settings = {"latent_dim": 4, "epochs": 25, "learning_rate": 5e-3, "batch_size": 64, "threads": 1}
    sampled = DocumentModel(softmax="sampled", **settings).fit(train)
    full = DocumentModel(softmax="full", **settings).fit(train)
    assert sampled.perplexity(test) == pytest.approx(full.perplexity(test), rel=0.05)
    sampled.save(tmp_path / "model")
    again = DocumentModel.load(tmp_path / "model")
    assert again.fitted_.network.softmax == "sampled" and np.array_equal(again.transform(test), sampled.transform(test))
