"""Two convolutional networks without a latent variable: the bound is the log-likelihood (`network.py`).

Bigram-CNN   the mean of a convolution over pairs of words, matched (Yu and others 2014)
Deep CNN     the maximum of a wide convolution, matched, with counts of shared words (Severyn and Moschitti 2015)
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.batches.tokens import TokenBatch
from varitext.layers.attention import BilinearMatch
from varitext.layers.words import Dropout, Sentences, WordEmbedding
from varitext.models.answers.features.overlap import COUNTS
from varitext.models.answers.network import AnswerNetwork, Encoding
from varitext.models.answers.scorer import chosen


class BigramCNN(AnswerNetwork):
    """p(y = 1 | q, a) = sigmoid(q^T M a + b); one convolution reads questions and answers, as wide as word vectors."""

    updates = 1600  # it learns slowly: on WikiQA's dev questions it still improves in epoch 28

    def __init__(self, vocabulary_size: int, embedding_dim: int = 50, dropout: float = 0.4, fixed_words: int = 0):
        super().__init__(vocabulary_size, embedding_dim, fixed_words)
        self.convolution = SentenceConvolution(embedding_dim, embedding_dim, width=2, dropout=dropout)
        self.match = BilinearMatch(embedding_dim, embedding_dim)

    def encode(self, batch: PairBatch) -> Encoding:
        question = self.convolution.mean(batch.questions, self.word_vectors)  # [Q, H]
        answers = self.convolution.mean(batch.answers, self.word_vectors)  # [P, H]
        sentences = Sentences(answers[:, None], answers, batch.answers.mask[:, :1])
        return Encoding(question, sentences, batch.question_of, batch.labels.to(question.dtype))

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        logits: Tensor = self.match(encoding.question_by_pair, encoding.answers.last)
        return logits.expand(len(h), -1)  # [S, P]


WIDTH = 5


class DeepCNN(AnswerNetwork):
    """p(y = 1 | q, a) = sigmoid(w^T tanh(W [q; q^T M a; a; counts] + c) + b).

    With `features="overlap"`, counts of shared words join before the hidden layer.
    """

    feature_names = ("overlap",)

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 50,
        maps: int = 100,
        dropout: float = 0.4,
        features: Sequence[str] | str | None = None,
        fixed_words: int = 0,
    ):
        super().__init__(vocabulary_size, embedding_dim, fixed_words)
        self.pair_columns = COUNTS if "overlap" in chosen(features, self.feature_names, ()) else ()
        self.question_convolution = SentenceConvolution(embedding_dim, maps, WIDTH, wide=True, dropout=dropout)
        self.answer_convolution = SentenceConvolution(embedding_dim, maps, WIDTH, wide=True, dropout=dropout)
        self.match = BilinearMatch(maps, maps)
        joint_dim = 2 * maps + 1 + len(self.pair_columns)
        self.hidden = nn.Sequential(nn.Linear(joint_dim, joint_dim), nn.Tanh(), nn.Dropout(dropout))
        self.output = nn.Linear(joint_dim, 1)

    def encode(self, batch: PairBatch) -> Encoding:
        question = self.question_convolution.maximum(batch.questions, self.word_vectors)  # [Q, H]
        answers = self.answer_convolution.maximum(batch.answers, self.word_vectors)  # [P, H]
        sentences = Sentences(answers[:, None], answers, batch.answers.mask[:, :1])
        labels = batch.labels.to(question.dtype)
        return Encoding(question, sentences, batch.question_of, labels, batch.features)

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        question, answer = encoding.question_by_pair, encoding.answers.last  # [P, H]
        parts = [question, self.match(question, answer)[:, None], answer]
        if encoding.features is not None:
            # logarithms: otherwise a few large counts dominate
            parts.append(torch.log1p(encoding.features.to(answer.dtype)))
        logits: Tensor = self.output(self.hidden(torch.cat(parts, 1)))[:, 0]
        return logits.expand(len(h), -1)  # [S, P]


class SentenceConvolution(nn.Module):
    """tanh of a linear map of each window of `width` words, with dropout on word vectors; pooled to one vector.

    A window starts at every word, so that a single word has one; a `wide` convolution also has the windows that extend
    beyond either end. Words outside are zero. Padding has no effect, and a sentence without words gives zeros.
    """

    def __init__(self, input_dim: int, maps: int, width: int, wide: bool = False, dropout: float = 0.0):
        super().__init__()
        self.before = (width - 1) * wide  # windows that start before the first word
        self.dropout = Dropout(dropout)
        limit = 1 / math.sqrt(width * input_dim)
        self.weight = nn.Parameter(torch.empty(width, input_dim, maps).uniform_(-limit, limit))
        self.bias = nn.Parameter(torch.empty(maps).uniform_(-limit, limit))

    def mean(self, batch: TokenBatch, word_vectors: WordEmbedding) -> Tensor:
        windows, number = self._windows(batch, word_vectors, outside=0.0)
        return windows.sum(1) / number.clamp(min=1)[:, None]  # [B, H]

    def maximum(self, batch: TokenBatch, word_vectors: WordEmbedding) -> Tensor:
        # tanh is never below -1, so a missing window is never the maximum
        windows, number = self._windows(batch, word_vectors, outside=-1.0)
        return windows.amax(1) * (number > 0)[:, None]  # [B, H]

    def _windows(self, batch: TokenBatch, word_vectors: WordEmbedding, outside: float) -> tuple[Tensor, Tensor]:
        """The map of every window, [B, W, H], `outside` where a sentence has fewer, and how many it has, [B].

        All sentences are in one line with gaps of a window between them, so that nothing is computed for padding.
        """
        width, input_dim, maps = self.weight.shape
        lengths, mask = batch.lengths, batch.mask
        words = self.dropout(word_vectors(batch.tokens[mask]))  # [n, E]
        sentence, place = mask.nonzero(as_tuple=True)  # [n] of every word
        first = torch.cumsum(lengths + width - 1, 0) - lengths  # [B] where each sentence starts, after a gap
        line = words.new_zeros(int(lengths.sum()) + (width - 1) * (len(lengths) + 1), input_dim)
        line = line.index_copy(0, first[sentence] + place, words)
        starts = len(line) - width + 1
        mapped = self.bias + sum(line[shift : shift + starts] @ self.weight[shift] for shift in range(width))
        number = torch.where(lengths > 0, lengths + self.before, 0)  # [B]
        real = torch.arange(max(1, int(number.max())), device=mask.device) < number[:, None]  # [B, W]
        sentence, place = real.nonzero(as_tuple=True)  # of every window
        windows = torch.tanh(mapped.index_select(0, first[sentence] - self.before + place))
        padded = windows.new_full((real.numel(), maps), outside)
        padded = padded.index_copy(0, sentence * real.shape[1] + place, windows)
        return padded.view(*real.shape, maps), number
