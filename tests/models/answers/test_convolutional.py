"""The convolutional networks pair by pair, as their formulas are written; dropout of all networks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_questions import WORDS as KNOWN_WORDS
from made_up_questions import logits_of, made_up, random_weights

from varitext.batches.pairs import PairBatches, PairInputs
from varitext.batches.tokens import TokenBatch
from varitext.layers.words import Dropout, WordEmbedding
from varitext.models.answers import model_class
from varitext.models.answers.convolutional import BigramCNN, DeepCNN, SentenceConvolution
from varitext.models.answers.features.overlap import COUNTS, Overlap


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.sampled_from([(2, False), (5, True)]))
def test_convolution_by_hand(lengths, shape):
    width, wide = shape
    with torch.random.fork_rng():
        torch.manual_seed(0)
        vectors, layer = WordEmbedding(9, 3).double(), SentenceConvolution(3, 4, width, wide).double()
        sentences = [np.random.default_rng(row).integers(1, 11, length) for row, length in enumerate(lengths)]
    batch = TokenBatch.from_lists(sentences)
    batch.tokens[~batch.mask] = 7  # another word's number on padding must not matter either
    for row, sentence in enumerate(sentences):
        words = vectors.weight[torch.from_numpy(sentence)]
        before = torch.zeros(width - 1 if wide else 0, 3, dtype=torch.float64)
        outside = torch.cat([before, words, torch.zeros(width - 1, 3, dtype=torch.float64)])
        starts = range(len(sentence) + (width - 1 if wide else 0)) if len(sentence) else []
        windows = [
            torch.tanh(torch.einsum("weh,we->h", layer.weight, outside[at : at + width]) + layer.bias) for at in starts
        ]
        expected = torch.stack(windows) if windows else torch.zeros(1, 4, dtype=torch.float64)
        torch.testing.assert_close(layer.mean(batch, vectors)[row], expected.mean(0))
        torch.testing.assert_close(layer.maximum(batch, vectors)[row], expected.amax(0))


def convolved(row: torch.Tensor, convolution, words, before: int) -> torch.Tensor:
    """All windows of a sentence, [W, H]."""
    vectors, width = words(row[row > 0]), len(convolution.weight)
    line = torch.nn.functional.pad(vectors, (0, 0, before, width - 1))
    starts = range(len(vectors) + before)
    return torch.stack(
        [
            torch.tanh(torch.einsum("wem,we->m", convolution.weight, line[at : at + width]) + convolution.bias)
            for at in starts
        ]
    )


def test_convolutional_networks_pair_by_pair():
    asked = made_up(3, seed=4)
    overlap = Overlap.learn(asked, KNOWN_WORDS)
    columns = overlap.features(asked).only(COUNTS).values
    batch = PairBatches(asked, KNOWN_WORDS, inputs=PairInputs(columns)).batch(range(3))
    bigram = random_weights(BigramCNN(len(KNOWN_WORDS), 4))
    deep = random_weights(DeepCNN(len(KNOWN_WORDS), 4, 3, features="overlap"))
    of_bigram, of_deep = logits_of(bigram, batch), logits_of(deep, batch)
    assert of_bigram.shape == of_deep.shape == (2, 15)
    for pair in range(15):
        rows = batch.questions.tokens[batch.question_of[pair]], batch.answers.tokens[pair]
        q, a = (convolved(row, bigram.convolution, bigram.word_vectors, 0).mean(0) for row in rows)
        torch.testing.assert_close(of_bigram[1, pair], q @ bigram.match.weight @ a + bigram.match.bias)
        convolutions = deep.question_convolution, deep.answer_convolution
        q, a = (convolved(row, one, deep.word_vectors, 4).amax(0) for row, one in zip(rows, convolutions, strict=True))
        counts = torch.from_numpy(np.log1p(columns[pair]))
        joint = torch.cat([q, (q @ deep.match.weight @ a + deep.match.bias)[None], a, counts])
        expected = deep.output(torch.tanh(deep.hidden[0](joint)))[0]
        torch.testing.assert_close(of_deep[1, pair], expected, rtol=1e-5, atol=1e-6)


DROPPING = ("lstm", "lstm_attention", "nasm", "compare", "bigram_cnn", "deep_cnn")


@pytest.mark.parametrize("name", DROPPING)
def test_every_part_drops_the_share_that_is_asked_for(name):
    model = model_class(name)(30, dropout=0.15)
    layers = [one for one in model.modules() if isinstance(one, Dropout | torch.nn.Dropout)]
    shares = [one.share if isinstance(one, Dropout) else one.p for one in layers]
    assert set(shares) == {0.15}
    model.train()
    batch = PairBatches(made_up(4, 0), KNOWN_WORDS).batch(range(4))
    h = torch.zeros(1, len(batch), 50 if name == "nasm" else 0)
    with torch.no_grad():
        first, second = (model.logits(h, model.encode(batch)) for _ in range(2))
        assert not torch.allclose(first, second)
        model.eval()
        torch.testing.assert_close(*(model.logits(h, model.encode(batch)) for _ in range(2)))
