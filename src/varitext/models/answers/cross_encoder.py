"""MiniLM as a cross-encoder: question and candidate in one input, fine-tuned (Nogueira and Cho 2019).

    states   = encoder([CLS] question [SEP] candidate [SEP])
    log odds = v . mean(states) + judge(counts of shared words, the candidate's position and length) + b

There is no latent variable: the bound is the log-likelihood. The embeddings of pieces and positions stay fixed, so the
model folder holds the layers only. Training takes three epochs at a sixtieth of the usual learning rate; v, b and the
judge, which are initialized at random, use the usual rate.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from varitext.batches.pairs import PairBatch
from varitext.batches.tokens import PieceBatch
from varitext.layers.dense import FasterLinear
from varitext.layers.words import Dropout, Sentences
from varitext.models.answers.compare_aggregate import PairColumns
from varitext.models.answers.network import AnswerNetwork, Encoding
from varitext.models.answers.pretrained import new_encoder
from varitext.models.answers.scorer import chosen

CHUNK = 16  # pairs of similar length per forward pass, to save padding


class CrossEncoder(AnswerNetwork):
    """`features` names what it reads beside the words (default: all)."""

    joins_columns = False
    pretrained = knows_every_word = True
    reads_word_vectors = False
    reads_pieces = True
    listwise = 1.0
    cross_entropy = 0.5
    passes = 3
    learning_rate_factor = 1 / 60
    batch_factor = 3 / 8
    feature_names = ("counts", "position")

    def __init__(
        self,
        vocabulary_size: int,
        dropout: float = 0.1,
        features: Sequence[str] | str | None = None,
        judge_dim: int = 32,
    ):
        super().__init__(vocabulary_size, 1)
        encoder, faster = new_encoder(), 1 / self.learning_rate_factor
        self.fixed = (encoder.embeddings.requires_grad_(False),)  # in a tuple: neither trained nor stored
        self.layers = encoder.layers
        self.dropout = Dropout(dropout)
        named = chosen(features, self.feature_names, self.feature_names)
        self.columns = PairColumns(counts="counts" in named, position="position" in named)
        self.pair_columns, self.reads_positions = self.columns.names, self.columns.position
        self.output = FasterLinear(encoder.width, 1, faster)
        self.read_columns = FasterLinear(self.columns.width, judge_dim, faster)
        self.judge = FasterLinear(judge_dim, 1, faster)

    def encode(self, batch: PairBatch) -> Encoding:
        assert batch.pieces is not None  # `reads_pieces` asked for them
        order = batch.pieces.lengths.argsort()
        chunks = torch.split(order, CHUNK)
        pooled = torch.cat([self._pooled(batch.pieces.rows(rows)) for rows in chunks])  # [P, H]
        mean = torch.empty_like(pooled).index_copy(0, order, pooled)
        answers = Sentences(mean[:, None], mean, batch.answers.mask)
        question, labels = mean.new_zeros(len(batch.questions), 0), batch.labels.to(mean)
        return Encoding(question, answers, batch.question_of, labels, self.columns(batch).to(mean))

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        logits: Tensor = self.output(self.dropout(encoding.answers.last))[:, 0]
        read = torch.relu(self.read_columns(encoding.features))
        logits = logits + self.judge(self.dropout(read))[:, 0]
        return logits.expand(len(h), -1)  # [S, P]

    def _pooled(self, pieces: PieceBatch) -> Tensor:
        """The mean state of each input, [B, H]."""
        states = self.dropout(self.fixed[0].to(pieces.tokens.device)(pieces.tokens, pieces.segments))
        for layer in self.layers:
            states = layer(states, pieces.mask[:, None, None])
        real = pieces.mask[..., None].to(states)
        mean: Tensor = (states * real).sum(1) / real.sum(1)
        return mean
