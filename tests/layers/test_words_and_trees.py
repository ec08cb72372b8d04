"""Where layers start, what word vectors are looked up, and trees of words by hand."""

import math

import numpy as np
import pytest
import scipy.sparse
import torch

from varitext.batches.counts import CountBatch
from varitext.batches.pairs import FIRST_WORD, PADDING, UNKNOWN
from varitext.errors import InputError
from varitext.layers.attention import BilinearMatch, LatentAttention, Windows
from varitext.layers.words import WordEmbedding
from varitext.models.answers.convolutional import SentenceConvolution
from varitext.models.documents import docnade
from varitext.models.documents.docnade import MAX_DEPTH, WordTree
from varitext.runtime.randomness import seeded


def spread_over(values, limit):
    """Whether they fill the range from -limit to limit evenly."""
    values = values.detach().flatten()
    assert values.abs().max() <= limit
    return values.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.1) and abs(values.mean()) < 0.1 * limit


def test_layers_start_where_they_say():
    with seeded(0):
        words, match, convolution = WordEmbedding(200, 20), BilinearMatch(40, 50), SentenceConvolution(30, 500, 2)
    assert words.weight[PADDING].abs().max() == 0 and spread_over(words.weight[1:], 0.25)
    assert words.weight.shape == (FIRST_WORD + 200, 20) and words.weight.requires_grad
    assert spread_over(match.weight, math.sqrt(6 / 90)) and match.bias.item() == 0
    assert spread_over(convolution.weight, 1 / math.sqrt(60)) and spread_over(convolution.bias, 1 / math.sqrt(60))
    with seeded(0):
        windows = Windows(20, 300, (1, 3))
    assert all(spread_over(one, 1 / math.sqrt(len(one) * 20)) for one in windows.weights) and not windows.bias.any()
    attention = LatentAttention(5, 7)
    assert {name for name, _ in attention.named_parameters()} == {
        f"{name}.weight" for name in ("from_query", "from_state", "score", "from_context", "from_last")
    }


def test_the_match_is_bilinear():
    match = BilinearMatch(2, 3)
    question, answer = torch.randn(4, 2), torch.randn(5, 4, 3)
    with torch.no_grad():
        match.bias.fill_(0.7)
        expected = (question[:, None] @ match.weight @ answer[..., None])[..., 0, 0] + 0.7
        torch.testing.assert_close(match(question, answer), expected)
        torch.testing.assert_close(match(question, answer[0]), expected[0])


@pytest.mark.parametrize("fixed", [0, 1, 3])
def test_words_are_looked_up_whether_learned_or_fixed(fixed):
    words, matrix = WordEmbedding(5, 2, fixed), torch.arange(10.0).view(5, 2)
    words.start_from(matrix)
    table = torch.cat([torch.zeros(1, 2), matrix.mean(0, keepdim=True), matrix])  # padding, unknown, words
    assert (PADDING, UNKNOWN, FIRST_WORD) == (0, 1, 2)
    tokens = torch.tensor([[0, 1, 2], [6, 5, 4], [3, 6, 0]])
    found = words(tokens)
    torch.testing.assert_close(found, table[tokens])
    found.sum().backward()
    times = torch.bincount(tokens.flatten(), minlength=7)
    times[PADDING] = 0  # it never learns
    assert words.weight.grad[:, 0].tolist() == times[: 7 - fixed].tolist()
    for shape in ((4, 2), (5, 3)):
        with pytest.raises(InputError, match="5 words x 2"):
            words.start_from(torch.zeros(shape))


def test_a_start_from_no_words_leaves_zero_for_the_unknown():
    words = WordEmbedding(0, 2)
    words.start_from(torch.zeros(0, 2))
    assert words.weight[UNKNOWN].tolist() == [0, 0]


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


def test_huffman_paths_are_as_short_as_can_be():
    tree = WordTree(5, 2, "huffman")
    tree.initialize_from_frequencies(torch.tensor([1.0, 8.0, 2.0, 4.0, 1.0]))
    assert (tree.turns != 0).sum(1).tolist() == [4, 1, 3, 2, 4]


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
