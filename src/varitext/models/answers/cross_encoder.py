"""MiniLM as a cross-encoder: question and candidate in one input, and the encoder learns (Nogueira and Cho 2019).

    states   = encoder([CLS] question [SEP] candidate [SEP])       every word of one sees every word of the other
    log odds = v . mean(states) + b

Vectors of pieces and of places stay as they are: questions of one's own are too few for them. They are the package's,
and the model folder keeps the layers alone. There is no latent, and no word vectors. It learns in three passes, at a
sixtieth of the rate of networks that begin at random.
"""

import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.batches.pieces import PieceBatch
from varitext.layers.words import Dropout, Sentences
from varitext.models.answers.network import AnswerNetwork, Encoding
from varitext.models.answers.pretrained import new_encoder

CHUNKS = 8  # that a batch is cut into by length, so that little padding is read


class CrossEncoder(AnswerNetwork):
    joins_columns = False
    pretrained = True
    reads_pieces = True
    listwise = 1.0
    cross_entropy = 0.5
    passes = 3
    learning_rate_factor = 1 / 60

    def __init__(self, vocabulary_size: int, dropout: float = 0.1):
        super().__init__(vocabulary_size, 1)
        encoder = new_encoder()
        self.fixed = (encoder.embeddings.requires_grad_(False),)  # in a tuple: no part of what is learned or kept
        self.layers = encoder.layers
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(encoder.width, 1)

    def encode(self, batch: PairBatch) -> Encoding:
        assert batch.pieces is not None  # `reads_pieces` asked for them
        order = batch.pieces.lengths.argsort()
        chunks = order.chunk(min(CHUNKS, len(order)))
        pooled = torch.cat([self._pooled(batch.pieces.rows(rows)) for rows in chunks])  # [P, H]
        mean = torch.empty_like(pooled).index_copy(0, order, pooled)
        answers = Sentences(mean[:, None], mean, batch.answers.mask)
        return Encoding(mean.new_zeros(len(batch.questions), 0), answers, batch.question_of, batch.labels.to(mean))

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        logits: Tensor = self.output(self.dropout(encoding.answers.last))[:, 0]
        return logits.expand(len(h), -1)  # [S, P]

    def _pooled(self, pieces: PieceBatch) -> Tensor:
        """The mean state of each input, [B, H]."""
        states = self.dropout(self.fixed[0].to(pieces.tokens.device)(pieces.tokens, pieces.segments))
        for layer in self.layers:
            states = layer(states, pieces.mask[:, None, None])
        real = pieces.mask[..., None].to(states)
        mean: Tensor = (states * real).sum(1) / real.sum(1)
        return mean
