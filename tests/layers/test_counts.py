"""Sparse counts against dense formulas, torch.distributions and finite differences; the sampled softmax."""

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from synthetic import batch_of, topic_documents

from varitext import DocumentModel
from varitext.batches.counts import CountBatch, CountBatches
from varitext.errors import InputError
from varitext.layers.counts import (
    CountEncoder,
    SampledWords,
    estimated_log_normaliser,
    multinomial_log_likelihood,
    sample_words,
    sampled_log_likelihood,
    scaled_log_counts,
    sparse_times_dense,
)
from varitext.models.documents import nvdm
from varitext.models.documents.nvdm import NVDM
from varitext.runtime.randomness import seeded

count_matrices = arrays.arrays(
    np.float32, st.tuples(st.integers(1, 6), st.integers(1, 8)), elements=st.integers(0, 50).map(float)
)


def dense_of(batch: CountBatch, values: torch.Tensor) -> torch.Tensor:
    result = torch.zeros(len(batch), batch.vocabulary_size, dtype=values.dtype)
    result[batch.documents, batch.words] = values
    return result


@given(count_matrices)
def test_a_batch_holds_its_counts(dense):
    batch = batch_of(dense, torch.float32)
    torch.testing.assert_close(dense_of(batch, batch.counts), torch.from_numpy(dense))
    torch.testing.assert_close(batch.lengths, torch.from_numpy(dense).sum(1))
    assert torch.equal(batch.to("cpu").words, batch.words)


@settings(deadline=None)
@given(count_matrices)
def test_sparse_product_and_its_gradient_equal_dense(dense):
    batch = batch_of(dense, torch.float32)
    torch.manual_seed(0)
    weight = torch.randn(dense.shape[1], 3, requires_grad=True)
    values = torch.randn(len(batch.counts))
    upstream = torch.randn(len(batch), 3)
    sparse = sparse_times_dense(batch, values, weight)
    (sparse_gradient,) = torch.autograd.grad(sparse, weight, upstream)
    reference = dense_of(batch, values) @ weight
    (dense_gradient,) = torch.autograd.grad(reference, weight, upstream)
    torch.testing.assert_close(sparse, reference)
    torch.testing.assert_close(sparse_gradient, dense_gradient)


@settings(deadline=None)
@given(count_matrices)
def test_multinomial_equals_the_dense_formula(dense):
    batch = batch_of(dense, torch.float32)
    torch.manual_seed(0)
    logits = torch.randn(2, *dense.shape, dtype=torch.float64)
    expected = (torch.log_softmax(logits, -1) * torch.from_numpy(dense).double()).sum(-1)
    torch.testing.assert_close(multinomial_log_likelihood(logits, batch), expected)


def test_multinomial_gradient_equals_finite_differences():
    batch = batch_of(np.array([[3, 0, 1], [0, 0, 2], [0, 0, 0]], np.float32), torch.float32)
    logits = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda values: multinomial_log_likelihood(values, batch), logits)


def test_multinomial_equals_torch_distributions():
    counts = np.array([[3.0, 0.0, 1.0]], np.float32)
    logits = torch.tensor([[[0.2, -1.0, 0.7]]])
    ours = multinomial_log_likelihood(logits, batch_of(counts, torch.float32))
    multinomial = torch.distributions.Multinomial(4, logits=logits[0])
    orders = torch.lgamma(torch.tensor(5.0)) - torch.lgamma(torch.tensor(4.0))  # 4! / 3!: we score one word order
    torch.testing.assert_close(ours[0], multinomial.log_prob(torch.from_numpy(counts)) - orders)


@settings(deadline=None)
@given(count_matrices)
def test_encoder_input_has_one_length_whatever_the_document(dense):
    batch = batch_of(dense * 1000, torch.float32)
    norms = dense_of(batch, scaled_log_counts(batch)).norm(dim=1)
    empty = batch.lengths == 0
    torch.testing.assert_close(norms[~empty], torch.full_like(norms[~empty], 7.0))
    assert (norms[empty] == 0).all()


def test_documents_are_encoded_independently_of_their_neighbours():
    torch.manual_seed(0)
    dense = np.random.default_rng(0).poisson(0.5, (12, 30)).astype(np.float32)
    encoder = CountEncoder(30, 16)
    together = encoder(batch_of(dense, torch.float32))
    alone = torch.cat([encoder(batch_of(dense[i : i + 1], torch.float32)) for i in range(len(dense))])
    order = torch.randperm(len(dense))
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(encoder(batch_of(dense[order.numpy()], torch.float32)), together[order])


def test_every_document_comes_once_per_epoch_in_an_order_set_by_the_seed():
    counts = scipy.sparse.csr_matrix(np.diag(np.arange(1, 24)).astype(np.float32))
    batches = CountBatches(counts)

    def order(passes):
        return [word for batch in passes for word in batch.words.tolist()]

    first = order(batches.shuffled(5, (0, 0)))
    assert sorted(first) == list(range(23))
    assert first == order(batches.shuffled(5, (0, 0)))
    assert first != order(batches.shuffled(5, (0, 1)))
    assert order(batches.in_order(5)) == list(range(23))


def test_a_training_batch_is_what_its_documents_alone_would_be():
    """Also across the rows that are taken at a time, and with empty documents."""
    counts = scipy.sparse.csr_matrix(np.random.default_rng(0).poisson(0.3, (31, 7)).astype(np.float32))
    batches = list(CountBatches(counts).shuffled(3, (0, 0)))
    assert [len(batch) for batch in batches] == [3] * 10 + [1]
    for batch in batches:
        alone = CountBatch.from_rows(scipy.sparse.csr_matrix(dense_of(batch, batch.counts).numpy()))
        for name in ("words", "counts", "documents", "starts", "lengths"):
            assert torch.equal(getattr(batch, name), getattr(alone, name)), name


def test_equal_blocks_fill_up_with_empty_documents():
    counts = scipy.sparse.csr_matrix(np.eye(5, dtype=np.float32))
    blocks = list(CountBatches(counts).in_equal_blocks(4))
    assert [(len(batch), real) for batch, real in blocks] == [(4, 4), (4, 1)]
    assert blocks[1][0].lengths.tolist() == [1, 0, 0, 0]


def test_the_encoder_by_its_formula():
    batch = batch_of([[1, 0, 4], [0, 0, 0], [0, 1, 0]], torch.float32)
    with seeded(1):
        encoder = CountEncoder(3, 2, hidden_layers=2, activation="tanh")
        for one in (encoder.bias, encoder.length_weights):
            torch.nn.init.normal_(one)
    logs = np.log1p([[1, 0, 4], [0, 0, 0], [0, 1, 0]])
    scaled = torch.from_numpy(7 * logs / np.maximum(np.linalg.norm(logs, axis=1, keepdims=True), 1e-9)).float()
    about_fifty = torch.log1p(torch.tensor([5.0, 0.0, 1.0])) - 4
    hidden = torch.tanh(scaled @ encoder.word_weights + encoder.bias + about_fifty[:, None] * encoder.length_weights)
    torch.testing.assert_close(encoder(batch), torch.tanh(encoder.mlp.layers[0](hidden)))


def test_raw_counts_enter_as_they_are():
    dense = torch.tensor([[1.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    encoder = CountEncoder(3, 2, hidden_layers=1, activation="tanh", raw=True)
    torch.nn.init.normal_(encoder.bias)
    expected = torch.tanh(dense @ encoder.word_weights + encoder.bias)
    torch.testing.assert_close(encoder(batch_of(dense.numpy(), torch.float32)), expected)


# The sampled softmax


WORDS, LATENT = 30, 3


@pytest.fixture
def decoder() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(LATENT, WORDS).double()


def log_frequencies() -> torch.Tensor:
    return torch.log_softmax(-0.2 * torch.randperm(WORDS, generator=torch.Generator().manual_seed(1)).double(), 0)


def some_documents(documents: int = 6) -> CountBatch:
    return batch_of(topic_documents(documents, words=WORDS, topics=3))


def test_with_every_word_value_and_gradient_are_those_of_the_full_softmax(decoder):
    batch, h = some_documents(), torch.randn(2, 6, LATENT, dtype=torch.double, requires_grad=True)
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
    batch, sampled = some_documents(2), sample_words(log_frequencies(), 5, 4)
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
    settings = {"latent_dim": 4, "epochs": 25, "learning_rate": 5e-3, "batch_size": 64, "threads": 1, "n_topics": 4}
    sampled = DocumentModel(softmax="sampled", **settings).fit(train)
    full = DocumentModel(softmax="full", **settings).fit(train)
    assert sampled.perplexity(test) == pytest.approx(full.perplexity(test), rel=0.05)
    sampled.save(tmp_path / "model")
    again = DocumentModel.load(tmp_path / "model")
    assert again.fitted_.network.softmax == "sampled" and np.array_equal(again.transform(test), sampled.transform(test))


@pytest.mark.parametrize("drawn", ["lowest", "highest"])
def test_no_draw_falls_on_a_word_that_is_always_taken(monkeypatch, drawn):
    """The first and the last word are frequent: the edges of what a random number can be must not hit them."""
    logs = torch.tensor([0.4, 0.1, 0.1, 0.4], dtype=torch.double).log()
    edge = 0.0 if drawn == "lowest" else 1 - 2.0**-53
    monkeypatch.setattr(torch, "rand", lambda size, dtype, device: torch.full((size,), edge, dtype=dtype))
    found = sample_words(logs, frequent=2, drawn=3)
    assert set(found.words.tolist()[:2]) == {0, 3} and set(found.words.tolist()[2:]) == {1 if drawn == "lowest" else 2}
    torch.testing.assert_close(found.log_weights.exp(), torch.tensor([1, 1, 2 / 3, 2 / 3, 2 / 3]).double())


def test_rounding_does_not_draw_a_word_that_is_always_taken(monkeypatch):
    """In single precision the shares of the others add up to a little more or less than one."""
    monkeypatch.setattr(torch, "rand", lambda size, dtype, device: torch.full((size,), 1 - 2.0**-53, dtype=dtype))
    for seed in range(20):
        logs = torch.randn(1000, generator=torch.Generator().manual_seed(seed))
        logs[-1] = 9.0
        found = sample_words(logs, frequent=1, drawn=1)
        assert found.words[0] == 999 > found.words[1] and torch.isfinite(found.log_weights).all()
