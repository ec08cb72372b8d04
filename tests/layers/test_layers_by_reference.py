"""Layers against references: torch's convolution, loops over words, Stirling's remainder, the sizes of BERT."""

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from varitext.batches.counts import CountBatch
from varitext.layers import lstm as sentence_lstm
from varitext.layers.attention import AttentionPooling, BilinearMatch, LatentAttention, Windows, Words, soft_alignment
from varitext.layers.counts import CountEncoder, centred_log_length, sample_words, scaled_log_counts
from varitext.layers.grouped_counts import SUMMED, _log_rising_of_large, _stirling, _stirling_slope, log_rising
from varitext.layers.lstm import SentenceLSTM, chunk_bounds
from varitext.layers.transformer import Encoder
from varitext.layers.words import Dropout
from varitext.models.documents.docnade import MAX_DEPTH, WordTree
from varitext.runtime.randomness import seeded

lengths_of_sentences = st.lists(st.integers(0, 5), min_size=1, max_size=4)


def sentences(lengths: list[int], dim: int, seed: int = 0) -> Words:
    mask = torch.arange(max(1, *lengths)) < torch.tensor(lengths)[:, None]
    generator = torch.Generator().manual_seed(seed)
    return Words(torch.randn(sum(lengths), dim, dtype=torch.double, generator=generator), mask)


def rows_of(words: Words) -> list[torch.Tensor]:
    return list(words.vectors.split(words.mask.sum(1).tolist()))


def batch_of(dense: list[list[float]]) -> CountBatch:
    return CountBatch.from_rows(scipy.sparse.csr_matrix(np.array(dense, np.float32)))


# Two sentences side by side


@settings(deadline=None, max_examples=25)
@given(lengths_of_sentences, st.sampled_from([(1,), (3,), (1, 3, 5), (5, 1)]))
def test_windows_are_torchs_convolution_of_each_sentence(lengths, widths):
    with seeded(0):
        windows = Windows(2, 3, widths).double()
        torch.nn.init.normal_(windows.bias)
    words = sentences(lengths, 2)
    expected = []
    for row in rows_of(words):
        maps = [
            torch.conv1d(row.T[None], weight.permute(2, 1, 0), padding=len(weight) // 2)[0].T
            for weight in windows.weights
            if len(row)
        ]
        expected.append(torch.cat(maps, 1) + windows.bias if maps else torch.zeros(0, 3 * len(widths)).double())
    torch.testing.assert_close(windows(words), torch.cat(expected))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=4), st.booleans())
def test_soft_alignment_word_by_word(lengths, with_same):
    asked, said = (list(column) for column in zip(*lengths, strict=True))
    questions, answers = sentences(asked, 3, 1), sentences(said, 3, 2)
    same = torch.randn(*questions.mask.shape, answers.mask.shape[1], dtype=torch.double) if with_same else None
    of_question, of_answer = [], []
    for pair, (question, answer) in enumerate(zip(rows_of(questions), rows_of(answers), strict=True)):
        scores = question @ answer.T / math.sqrt(3)
        if same is not None:
            scores = scores + same[pair, : len(question), : len(answer)]
        of_question += [row.softmax(0) @ answer if len(answer) else torch.zeros(3).double() for row in scores]
        of_answer += [row.softmax(0) @ question if len(question) else torch.zeros(3).double() for row in scores.T]
    for found, expected in zip(soft_alignment(questions, answers, same), (of_question, of_answer), strict=True):
        torch.testing.assert_close(found, torch.stack(expected) if expected else found.new_zeros(0, 3))


@settings(deadline=None, max_examples=25)
@given(lengths_of_sentences)
def test_pooling_sentence_by_sentence(lengths):
    with seeded(0):
        pooling = AttentionPooling(3).double()
    words = sentences(lengths, 3)
    for row, vectors, weights in zip(
        pooling(words, pooling.weights(words)), rows_of(words), pooling.weights(words), strict=True
    ):
        alone = (vectors @ pooling.score.weight[0]).softmax(0)
        torch.testing.assert_close(row, alone @ vectors)
        torch.testing.assert_close(weights, torch.nn.functional.pad(alone, (0, len(weights) - len(alone))))
    assert [name for name, _ in pooling.named_parameters()] == ["score.weight"]  # a softmax would not see a bias


def test_what_is_added_to_the_start_is_a_share_of_the_identity():
    made = []
    for identity in (0.0, 0.6):
        with seeded(0):
            made.append((LatentAttention(3, 4, identity), BilinearMatch(3, 5, identity)))
    (plain, plain_match), (moved, moved_match) = made
    for name, weight in plain.named_parameters():
        added = 0.3 * torch.eye(4) if name in ("from_context.weight", "from_last.weight") else 0.0
        torch.testing.assert_close(moved.get_parameter(name), weight + added)
    torch.testing.assert_close(moved_match.weight, plain_match.weight + 0.6 * torch.eye(3, 5))


# Dropout


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


# Counts


def test_the_encoder_begins_as_linear_layers_do_and_has_as_many_as_asked():
    with seeded(0):
        encoder = CountEncoder(400, 50, hidden_layers=3)
    weights, bound = encoder.word_weights.detach(), 1 / math.sqrt(400)
    assert weights.abs().max() <= bound and weights.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert abs(weights.mean()) < 0.02 * bound
    assert not encoder.bias.any() and not encoder.length_weights.any()
    assert [tuple(layer.weight.shape) for layer in encoder.mlp.layers] == [(50, 50)] * 2
    assert len(CountEncoder(4, 3, hidden_layers=1).mlp.layers) == 0


def test_the_encoder_by_its_formula():
    batch = batch_of([[1, 0, 4], [0, 0, 0], [0, 1, 0]])
    with seeded(1):
        encoder = CountEncoder(3, 2, hidden_layers=2, activation="tanh")
        for one in (encoder.bias, encoder.length_weights):
            torch.nn.init.normal_(one)
    logs = np.log1p([[1, 0, 4], [0, 0, 0], [0, 1, 0]])
    scaled = torch.from_numpy(7 * logs / np.maximum(np.linalg.norm(logs, axis=1, keepdims=True), 1e-9)).float()
    about_fifty = torch.log1p(torch.tensor([5.0, 0.0, 1.0])) - 4
    hidden = torch.tanh(scaled @ encoder.word_weights + encoder.bias + about_fifty[:, None] * encoder.length_weights)
    torch.testing.assert_close(encoder(batch), torch.tanh(encoder.mlp.layers[0](hidden)))


def test_a_document_of_one_word_has_the_same_length_as_any_other():
    torch.testing.assert_close(scaled_log_counts(batch_of([[1, 0], [0, 3]])), torch.tensor([7.0, 7.0]))
    assert abs(centred_log_length(batch_of([[25, 25]])).item()) < 0.1  # about fifty words: about zero


# DCM


def test_what_stirlings_series_leaves_out_is_its_next_term():
    """The series alternates and is enveloping: the remainder lies between one and both of the next two terms."""
    a = torch.tensor([8.0, 9.5, 12.0, 20.0], dtype=torch.double)
    series = torch.lgamma(a) - ((a - 0.5) * a.log() - a + 0.5 * math.log(2 * math.pi))
    left, next_term, after = _stirling(1 / a) - series, a**-7 / 1680, a**-9 / 1188
    assert (left < next_term + 1e-14).all() and (left > next_term - after - 1e-14).all()
    slope = a.log() - 0.5 / a - torch.digamma(a)
    left, next_term, after = _stirling_slope(1 / a) - slope, a**-8 / 240, a**-10 / 132
    assert (left < next_term + 1e-15).all() and (left > next_term - after - 1e-15).all()


def test_rising_factorials_on_either_side_of_where_the_series_begins():
    n = torch.arange(SUMMED - 2.0, SUMMED + 4, dtype=torch.double)
    for a in (0.3, 1.0, 7.0, 40.0):
        found = log_rising(torch.full((len(n),), a, dtype=torch.double), n)
        factors = [a + torch.arange(int(one), dtype=torch.double) for one in n]
        torch.testing.assert_close(found.value, torch.stack([one.log().sum() for one in factors]), rtol=0, atol=1e-9)
        torch.testing.assert_close(found.slope, torch.stack([(1 / one).sum() for one in factors]), rtol=0, atol=1e-9)
    large, many = torch.tensor([9.0, 30.0, 300.0]).double(), torch.tensor([4.0, 1.0, 1000.0]).double()
    found = _log_rising_of_large(large, many)
    torch.testing.assert_close(found.value, torch.lgamma(large + many) - torch.lgamma(large), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.slope, torch.digamma(large + many) - torch.digamma(large), rtol=0, atol=1e-9)


# Words that stand for all


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


# Sentences


def test_a_forget_bias_is_that_of_the_forget_gates_alone():
    made = []
    for forget_bias in (0.0, 1.5):
        with seeded(0):
            made.append(SentenceLSTM(3, 4, layers=2, forget_bias=forget_bias).lstm)
    for name, weight in made[0].named_parameters():
        added = torch.zeros(16).index_fill(0, torch.arange(4, 8), 1.5 if "bias_ih" in name else 0.0)
        torch.testing.assert_close(made[1].get_parameter(name), weight + added if weight.dim() == 1 else weight)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=80))
def test_a_chunk_ends_where_one_more_sentence_would_wait_too_long(lengths):
    lengths.sort(reverse=True)
    for start, end in chunk_bounds(lengths)[:-1]:
        assert sum(lengths[start] - length for length in lengths[start : end + 1]) > sentence_lstm.CALL


# Trees and transformers


@pytest.mark.parametrize("shape", ["balanced", "huffman"])
def test_a_tree_of_v_leaves_has_v_minus_one_nodes(shape):
    with seeded(0):
        tree = WordTree(700, 30, shape)
    assert tree.nodes.weight.shape == (699, 30) and tree.bias.shape == (699,) and not tree.bias.any()
    assert tree.nodes.weight.std().item() == pytest.approx(0.05, rel=0.02) and abs(tree.nodes.weight.mean()) < 1e-3
    assert tree.paths.shape == tree.turns.shape == (700, 10 if shape == "balanced" else MAX_DEPTH)
    assert (tree.paths.dtype, tree.turns.dtype) == (torch.int32, torch.int8)  # what a model folder keeps
    steps = tree.paths[tree.turns != 0]
    assert sorted(set(steps.tolist())) == list(range(699))  # every node is on a path
    assert (torch.bincount(steps.long()) >= 2).all()  # and leads to at least two leaves
    assert len(tree.paths[:, 0].unique()) == 1  # all begin at the root
    assert not tree.paths[tree.turns == 0].any()


def test_a_balanced_tree_is_a_heap_read_from_the_root():
    tree = WordTree(5, 2)
    codes = [code[turns != 0].tolist() for code, turns in zip(tree.paths, tree.turns, strict=True)]
    assert codes == [[0, 1], [0, 2], [0, 2], [0, 1, 3], [0, 1, 3]]
    turns = [row[row != 0].tolist() for row in tree.turns]
    assert turns == [[1, -1], [-1, 1], [-1, -1], [1, 1, 1], [1, 1, -1]]


def test_sizes_are_those_of_bert():
    """Of two kinds of segments, four times as wide inside, as its files have them."""
    encoder = Encoder(30, 8, 2, 2, 32, longest=12)
    shapes = {name: tuple(value.shape) for name, value in encoder.state_dict().items()}
    assert len(encoder.layers) == 2 and encoder.width == 8
    assert shapes["embeddings.word_embeddings.weight"] == (30, 8)
    assert shapes["embeddings.position_embeddings.weight"] == (12, 8)
    assert shapes["embeddings.token_type_embeddings.weight"] == (2, 8)
    assert shapes["layers.1.read.weight"] == (24, 8) and shapes["layers.1.attended.weight"] == (8, 8)
    assert shapes["layers.1.inner.weight"] == (32, 8) and shapes["layers.1.outer.weight"] == (8, 32)
