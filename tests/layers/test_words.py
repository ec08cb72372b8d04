"""Word vectors and dropout."""

import math

import pytest
import torch

from varitext.batches.pairs import FIRST_WORD, PADDING, UNKNOWN
from varitext.errors import InputError
from varitext.layers.words import Dropout, WordEmbedding
from varitext.runtime.randomness import seeded


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


@pytest.mark.parametrize("share", [0.25, 0.4, 0.75])
def test_dropout_drops_its_share_at_every_place_alike(share):
    """Four numbers come from one draw of 64 bits: the places must not differ, nor depend on each other."""
    with seeded(0):
        dropped = Dropout(share)(torch.full((2**18,), 3.0)).view(-1, 4)
    torch.testing.assert_close(dropped.max(), torch.tensor(3.0 / (1 - share)), rtol=2e-5, atol=0)
    zero = (dropped == 0).double()
    assert set(dropped.unique().tolist()) == {0.0, dropped.max().item()}
    error = math.sqrt(share * (1 - share) / len(zero))
    assert ((zero.mean(0) - share).abs() < 4 * error).all()
    assert (zero.T.corrcoef() - torch.eye(4)).abs().max() < 4 / math.sqrt(len(zero))


def test_without_a_share_to_drop_nothing_is_drawn():
    values, layer = torch.randn(7), Dropout(0.0)
    state = torch.get_rng_state()
    assert layer(values) is values and torch.equal(torch.get_rng_state(), state)
    dropping = Dropout(0.5)
    assert dropping.eval()(values) is values and torch.equal(torch.get_rng_state(), state)
    assert (Dropout(1 / 2**15)(torch.ones(400)) > 0).float().mean() > 0.9  # hardly any


def test_the_largest_share_keeps_one_of_65536():
    with seeded(0):
        dropped = Dropout(1 - 2.0**-16)(torch.ones(2**21))
    assert 5 < (dropped > 0).sum() < 90 and dropped.max() == 2**16  # 32 on average
