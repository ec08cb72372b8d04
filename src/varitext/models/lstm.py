"""LSTM: the last states of question and answer, matched (paper, section 5.3). No attention, no latent."""

from torch import Tensor

from varitext.models.answer_network import Encoding
from varitext.models.recurrent_network import RecurrentNetwork


class LSTM(RecurrentNetwork):
    """p(y = 1 | q, a) = sigmoid(s_q(|q|)^T M s_a(|a|) + b)."""

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        logits = self.match(encoding.question_by_pair, encoding.answers.last)
        return logits.expand(len(h), -1)  # [S, P]
