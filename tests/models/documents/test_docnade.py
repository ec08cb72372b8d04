"""docNADE's mathematics: probabilities that sum to one, the estimate it learns from, trees, gradients."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import batch_of, topic_documents

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch
from varitext.models.documents import docnade, model_class
from varitext.models.documents.docnade import MAX_DEPTH, DocNADE, WordTree, in_random_order, stacked
from varitext.runtime.randomness import seeded

OUTPUTS = ("softmax", "balanced", "huffman")
WORDS = 5  # a vocabulary small enough to write all documents down
FREQUENCIES = torch.tensor([40.0, 20.0, 5.0, 2.0, 1.0], dtype=torch.double)


def network(output: str = "softmax", words: int = WORDS, **settings) -> DocNADE:
    torch.manual_seed(0)
    model = DocNADE(words, latent_dim=3, output=output, **settings).double()
    model.learn_frequencies(FREQUENCIES if words == WORDS else torch.ones(words))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.8)
    return model.eval()


def in_order(model: DocNADE, sequences: list[tuple[int, ...]]) -> torch.Tensor:
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    words = torch.tensor([word for sequence in sequences for word in sequence])
    return model.log_probability_in_order(
        words, torch.arange(len(sequences)).repeat_interleave(lengths), len(sequences)
    )


def by_hand(model: DocNADE, sequence: tuple[int, ...]) -> float:
    """Word by word, as the paper writes it; full softmax."""
    total, before = 0.0, torch.zeros(3, dtype=torch.double)
    for word in sequence:
        hidden = torch.sigmoid(model.bias + before)
        total += torch.log_softmax(model.output.weight @ hidden + model.output.bias, 0)[word].item()
        before = before + model.embedding[word]
    return total


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("length", [1, 2, 4])
def test_the_probabilities_of_all_sequences_sum_to_one(output, length):
    sequences = list(itertools.product(range(WORDS), repeat=length))
    torch.testing.assert_close(in_order(network(output), sequences).logsumexp(0).item(), 0.0, atol=1e-10, rtol=0)


def test_prefix_sums_are_the_formula_word_by_word(monkeypatch):
    model, sequences = network(), [(0, 1, 1, 4), (3,), (2, 2, 0, 1, 4, 4)]
    monkeypatch.setattr("varitext.models.documents.docnade.MAX_LOGITS", 4 * WORDS)  # documents then lie across blocks
    expected = torch.tensor([by_hand(model, sequence) for sequence in sequences], dtype=torch.double)
    torch.testing.assert_close(in_order(model, sequences), expected)


@pytest.mark.parametrize("output", OUTPUTS)
def test_what_it_learns_from_is_the_mean_over_all_orders(output):
    """The objective's mean over many draws, against all orders of three small documents."""
    model, batch = network(output, draws=1000), batch_of([[2, 1, 0, 0, 1], [0, 0, 1, 0, 0], [1, 0, 0, 2, 0]])
    expected = []
    for document in ([0, 0, 1, 4], [2], [0, 3, 3]):
        expected.append(in_order(model, list(itertools.permutations(document))).mean().item())
    with torch.no_grad():
        found = torch.stack([model.objective(batch, 1, 1.0).surrogate for _ in range(10)])  # [10, 3]
    error = found.std(0) / math.sqrt(10)
    assert ((found.mean(0) - torch.tensor(expected)).abs() < 4 * error + 1e-9).all()
    assert (error < 0.1).all()


@pytest.mark.parametrize("output", OUTPUTS)
def test_gradients_are_those_of_finite_differences(output):
    model = network(output).requires_grad_(True)
    batch = batch_of([[2, 1, 0, 0, 1], [0, 0, 1, 3, 0]])

    def value(*_: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        return model.objective(batch, 1, 1.0).surrogate

    assert torch.autograd.gradcheck(value, tuple(model.parameters()))


def test_huffmans_paths_are_the_shortest_and_the_balanced_ones_even():
    frequencies = torch.tensor([8.0, 4.0, 2.0, 1.0, 1.0])
    huffman, balanced = WordTree(5, 2, "huffman"), WordTree(5, 2, "balanced")
    huffman.initialize_from_frequencies(frequencies)
    assert (huffman.turns != 0).sum(1).tolist() == [1, 2, 3, 4, 4]  # worked by hand
    assert sorted((balanced.turns != 0).sum(1).tolist()) == [2, 2, 2, 3, 3]


def test_random_orders_are_orders_of_the_same_words():
    batch = batch_of([[2, 1, 0, 0, 1], [0, 0, 1, 3, 0]])
    torch.manual_seed(0)
    seen = set()
    for _ in range(200):
        words, documents, size = in_random_order(batch)
        assert (documents.tolist(), size) == ([0] * 4 + [1] * 4, 2)
        assert sorted(words[:4].tolist()) == [0, 0, 1, 4] and sorted(words[4:].tolist()) == [2, 3, 3, 3]
        seen.add((*words[:4].tolist(),))
    assert len(seen) == 12  # 4! / 2!


def test_both_figures_of_a_document_and_their_order():
    model, counts = network(), scipy.sparse.csr_matrix(np.array([[2, 1, 0, 0, 1], [0, 0, 1, 3, 0]], np.float32))
    many = model.evaluate(counts, samples=5000, seed=0)  # 1,000 orders
    orders = in_order(model, list(itertools.permutations([0, 0, 1, 4])))
    assert many.elbo[0] == pytest.approx(orders.mean().item(), abs=0.1)
    assert many.importance_weighted[0] == pytest.approx(orders.logsumexp(0).item() - math.log(24), abs=0.1)
    assert (many.importance_weighted >= many.elbo).all() and not many.kl.any()
    again = model.evaluate(counts, samples=20, seed=3)
    np.testing.assert_array_equal(again.elbo, model.evaluate(counts, samples=20, seed=3).elbo)


def test_a_round_is_chosen_by_an_estimate_of_the_same_value():
    model, counts = network(), scipy.sparse.csr_matrix(np.array([[2, 1, 0, 0, 1], [0, 0, 1, 3, 0]], np.float32))
    found = model.evaluate_round(counts, samples=2000, seed=0)
    np.testing.assert_allclose(found.elbo, model.evaluate(counts, samples=5000, seed=0).elbo, atol=0.1)
    assert found.elbo == pytest.approx(model.evaluate_round(counts, samples=2000, seed=0).elbo)
    assert found.elbo != pytest.approx(model.evaluate_round(counts, samples=2000, seed=1).elbo, abs=1e-6)


@pytest.mark.parametrize("preset", ["recommended", "balanced-tree", "huffman-tree"])
def test_it_learns_and_is_kept(preset, tmp_path):
    model = DocumentModel("docnade", 4, preset=preset, epochs=25, learning_rate=2e-2, threads=1).fit(
        topic_documents(400)
    )
    held_out = topic_documents(100, seed=1)
    record = model.perplexity_record(held_out)
    assert (record.kind, record.kl_per_document, record.n_samples) == ("exact", 0, 4)
    assert record.ratio_to_unigram < 0.75
    assert record.iwae_per_document_perplexity < record.per_document_perplexity
    model.save(tmp_path / "model")
    again = DocumentModel.load(tmp_path / "model")
    assert again.perplexity_record(held_out) == record
    np.testing.assert_array_equal(again.transform(held_out), model.transform(held_out))
    assert len(again.latent_dimensions()) == 4 and len(again.similar_words(again.fitted_.vocabulary.words[0], 3)) == 3


def test_what_it_cannot_do_is_said():
    with pytest.raises(InputError, match="output is 'softmax' or a tree"):
        DocNADE(10, 2, output="bush")
    with pytest.raises(InputError, match="activation is 'sigmoid' or 'tanh'"):
        DocNADE(10, 2, activation="relu")
    with pytest.raises(InputError, match="docnade needs whole counts"):
        DocumentModel("docnade", 2, fractional_counts=True).fit(topic_documents(20))


# Orders


def test_words_stay_in_their_document_however_many_there_are():
    rows = scipy.sparse.identity(4096, np.float32, "csr") * 60
    with seeded(0):
        words, documents, size = in_random_order(CountBatch.from_rows(rows.tocsr()))
    assert size == 4096 and torch.equal(words, documents)


def test_versions_of_a_batch_are_stacked():
    batch = batch_of([[2, 0, 1], [0, 0, 0], [0, 3, 0]])
    parts = torch.tensor([[1.0, 0.0, 3.0], [2.0, 1.0, 1.0]]).double()
    found = stacked(batch, parts)
    expected = CountBatch.from_rows(
        scipy.sparse.csr_matrix(np.array([[2, 0, 1], [0, 0, 0], [0, 3, 0]] * 2, np.float32))
    )
    for name in ("words", "documents", "starts"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert found.counts.tolist() == [1, 0, 3, 2, 1, 1] and found.lengths.tolist() == [1, 0, 3, 3, 0, 1]
    assert len(found) == 6 and found.vocabulary_size == 3


def test_an_order_for_every_five_samples():
    model, counts = model_class("docnade")(12, 3), topic_documents(4, 12, 3, 6)
    assert [model.evaluate(counts, samples, 0).drawn for samples in (1, 9, 10, 25)] == [1, 1, 2, 5]


# The tree softmax


def log_probabilities(tree, hidden):
    """Of every word for each row of hidden, one document a word."""
    size = len(tree.paths)
    one_each = CountBatch.from_rows(scipy.sparse.csr_matrix(np.eye(size, dtype=np.float32)))
    return torch.stack([tree.log_likelihood(row.expand(size, -1), one_each) for row in hidden])


@pytest.mark.parametrize("shape", ["balanced", "huffman"])
@pytest.mark.parametrize("size", [2, 3, 5, 8, 13])
def test_leaves_have_the_frequencies_at_zero_and_sum_to_one_anywhere(shape, size):
    with seeded(size):
        tree, frequencies = WordTree(size, 3, shape), torch.rand(size) + 0.01
        hidden = torch.cat([torch.zeros(1, 3), 9 * torch.randn(4, 3)])
    tree.initialize_from_frequencies(frequencies)
    found = log_probabilities(tree, hidden).exp()
    torch.testing.assert_close(found[0], frequencies / frequencies.sum())
    torch.testing.assert_close(found.sum(1), torch.ones(5))
    depths = (tree.turns != 0).sum(1)
    assert set(tree.turns.unique().tolist()) <= {-1, 0, 1} and tree.paths.max() == size - 2
    if shape == "balanced":
        assert depths.max() - depths.min() <= 1 and tree.paths.shape[1] == depths.max() == math.ceil(math.log2(size))


def test_a_huffman_tree_is_never_too_deep():
    """Powers of two give a chain, as long as there are words."""
    tree = WordTree(MAX_DEPTH + 20, 1, "huffman")
    tree.initialize_from_frequencies(2.0 ** -torch.arange(MAX_DEPTH + 20.0))
    depths = (tree.turns != 0).sum(1)
    assert depths[0] == depths.min() and depths.max() <= MAX_DEPTH
    chain = WordTree(MAX_DEPTH + 1, 1, "huffman")  # just as deep as is allowed: no need to change the frequencies
    chain.initialize_from_frequencies(2.0 ** -torch.arange(MAX_DEPTH + 1.0))
    assert (chain.turns != 0).sum(1).tolist() == [*range(1, MAX_DEPTH + 1), MAX_DEPTH]


def test_likelihood_is_a_sum_over_counts_whatever_the_blocks(monkeypatch):
    with seeded(0):
        tree, hidden = WordTree(6, 3), torch.randn(2, 3)
        torch.nn.init.normal_(tree.bias)
    counts = np.array([[2, 0, 1, 0, 0, 3], [0, 1, 1, 1, 0, 0]], np.float32)
    batch = CountBatch.from_rows(scipy.sparse.csr_matrix(counts))
    expected = (torch.from_numpy(counts) * log_probabilities(tree, hidden)).sum(1)
    torch.testing.assert_close(tree.log_likelihood(hidden, batch), expected)
    monkeypatch.setattr(docnade, "MAX_BLOCK", 2)
    torch.testing.assert_close(tree.log_likelihood(hidden, batch), expected)


def test_word_gradients_are_those_where_both_turns_are_as_likely():
    with seeded(0):
        tree = WordTree(6, 3)
    hidden = torch.zeros(3, requires_grad=True)
    for word, expected in enumerate(tree.word_gradients()):
        (found,) = torch.autograd.grad(log_probabilities(tree, hidden[None])[0, word], hidden)
        torch.testing.assert_close(found, expected)


def test_a_tree_of_another_shape_is_refused():
    with pytest.raises(InputError, match="oak"):
        WordTree(4, 2, "oak")
