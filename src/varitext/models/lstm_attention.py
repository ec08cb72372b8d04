"""LSTM+Att: NASM's deterministic twin (paper, section 5.3). The question's last state looks at the answer, not h."""

import torch
from torch import Tensor

from varitext.models.answer_network import Encoding
from varitext.models.recurrent_network import RecurrentNetwork
from varitext.pair_batches import PairBatch
from varitext.sentence_layers import LatentAttention


class LSTMAttention(RecurrentNetwork):
    """p(y = 1 | q, a) = sigmoid(s_q^T M z_a(a, s_q) + b)."""

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        layers: int = 3,
        dropout: float = 0.4,
        fixed_words: int = 0,
    ):
        super().__init__(vocabulary_size, embedding_dim, hidden_dim, layers, dropout, fixed_words)
        self.attention = LatentAttention(hidden_dim, hidden_dim)

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        question = encoding.question_by_pair  # [P, H]
        logits = self.match(question, self.attention(question[None], encoding.answers))  # [1, P]
        return logits.expand(len(h), -1)  # [S, P]

    @torch.no_grad()
    def attention_weights(self, batch: PairBatch, samples: int = 1) -> Tensor:
        """alpha on every word of every answer; the same in all samples."""
        encoding = self.encode(batch)
        return self.attention_given(self.prior_samples(encoding, samples), encoding)  # [S, P, T]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor:
        weights = self.attention.weights(encoding.question_by_pair[None], encoding.answers)
        return weights.expand(len(h), -1, -1)  # [S, P, T]
