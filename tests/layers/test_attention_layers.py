"""Attention against formulas word by word; layers on vectors."""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from varitext.latent.gaussian import LOG_STD_RANGE
from varitext.layers.attention import AttentionPooling, BilinearMatch, Windows, Words, soft_alignment
from varitext.layers.dense import GaussianHead
from varitext.runtime.randomness import seeded

lengths_of_sentences = st.lists(st.integers(0, 5), min_size=1, max_size=4)


def sentences(lengths: list[int], dim: int, seed: int = 0) -> Words:
    mask = torch.arange(max(1, *lengths)) < torch.tensor(lengths)[:, None]
    generator = torch.Generator().manual_seed(seed)
    return Words(torch.randn(sum(lengths), dim, dtype=torch.double, generator=generator), mask)


def rows_of(words: Words) -> list[torch.Tensor]:
    return list(words.vectors.split(words.mask.sum(1).tolist()))


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
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=4))
def test_soft_alignment_word_by_word(lengths):
    asked, said = (list(column) for column in zip(*lengths, strict=True))
    questions, answers = sentences(asked, 3, 1), sentences(said, 3, 2)
    of_question, of_answer = [], []
    for question, answer in zip(rows_of(questions), rows_of(answers), strict=True):
        scores = question @ answer.T / math.sqrt(3)
        of_question += [row.softmax(0) @ answer if len(answer) else torch.zeros(3).double() for row in scores]
        of_answer += [row.softmax(0) @ question if len(question) else torch.zeros(3).double() for row in scores.T]
    for found, expected in zip(soft_alignment(questions, answers), (of_question, of_answer), strict=True):
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


def test_the_match_is_bilinear():
    match = BilinearMatch(2, 3)
    question, answer = torch.randn(4, 2), torch.randn(5, 4, 3)
    with torch.no_grad():
        match.bias.fill_(0.7)
        expected = (question[:, None] @ match.weight @ answer[..., None])[..., 0, 0] + 0.7
        torch.testing.assert_close(match(question, answer), expected)
        torch.testing.assert_close(match(question, answer[0]), expected[0])


def test_log_std_starts_at_zero_and_stays_in_range():
    head = GaussianHead(4, 3)
    assert (head(torch.randn(5, 4)).log_std == 0).all()
    torch.nn.init.constant_(head.log_std.weight, 100.0)
    extreme = head(torch.tensor([[1e6] * 4, [-1e6] * 4])).log_std
    assert extreme.max() == LOG_STD_RANGE[1] and extreme.min() == LOG_STD_RANGE[0]
