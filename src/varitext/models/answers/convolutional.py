"""Two convolutional networks without a latent variable: the bound is the log-likelihood (`network.py`).

Bigram-CNN   the mean of a convolution over pairs of words, matched (Yu and others 2014)
Deep CNN     the maximum of a wide convolution, matched, with counts of shared words (Severyn and Moschitti 2015)
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.layers.attention import BilinearMatch
from varitext.layers.words import SentenceConvolution, Sentences
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
