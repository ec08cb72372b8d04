"""LSTM and LSTM + Att (paper, section 4): two LSTMs and the bilinear match of what they read.

They have no latent variable: the KL is zero and the bound is the log-likelihood. NASM (`nasm.py`) adds h.

PyTorch initializes the biases of forget gates near zero, so that a state halves at every word. Here one is added to
them, which ranks better in cross-validation on the training questions.
"""

from typing import NamedTuple

from torch import Tensor

from varitext.batches.pairs import PairBatch
from varitext.layers.attention import BilinearMatch, LatentAttention
from varitext.layers.lstm import SentenceLSTM, read
from varitext.models.answers.network import AnswerNetwork, Encoding


class Initialization(NamedTuple):
    """Initial weights."""

    forget_bias: float  # added to that of both LSTMs
    same_weights: bool  # whether the LSTM of answers starts as a copy of that of questions
    identity: float  # multiple of the identity added to M, and half of it to each of W_a and W_n


INITIALIZATIONS = {
    "pytorch": Initialization(0.0, False, 0.0),
    "forget_bias": Initialization(1.0, False, 0.0),
    "identity": Initialization(1.0, True, 1.0),
}
DEFAULT_INITIALIZATION = "forget_bias"


class RecurrentNetwork(AnswerNetwork):
    parallel_training = True
    attends = False  # whether s_q is the query of an attention over the answer

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        layers: int = 3,
        dropout: float = 0.4,
        fixed_words: int = 0,
        initialization: str = DEFAULT_INITIALIZATION,
    ):
        super().__init__(vocabulary_size, embedding_dim, fixed_words)
        self.initialization = initial = INITIALIZATIONS[initialization]
        self.question_lstm = SentenceLSTM(embedding_dim, hidden_dim, layers, dropout, initial.forget_bias)
        self.answer_lstm = SentenceLSTM(embedding_dim, hidden_dim, layers, dropout, initial.forget_bias)
        if initial.same_weights:
            self.answer_lstm.load_state_dict(self.question_lstm.state_dict())
        self.match = BilinearMatch(hidden_dim, hidden_dim, initial.identity)
        if self.attends:
            self.attention = LatentAttention(hidden_dim, hidden_dim, initial.identity)

    def encode(self, batch: PairBatch) -> Encoding:
        lstms, sentences = (self.question_lstm, self.answer_lstm), (batch.questions, batch.answers)
        questions, answers = read(lstms, sentences, self.word_vectors)
        return Encoding(questions.last, answers, batch.question_of, batch.labels.to(answers.last.dtype))


class LSTM(RecurrentNetwork):
    """p(y = 1 | q, a) = sigmoid(s_q(|q|)^T M s_a(|a|) + b)."""

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        logits: Tensor = self.match(encoding.question_by_pair, encoding.answers.last)
        return logits.expand(len(h), -1)  # [S, P]


class LSTMAttention(RecurrentNetwork):
    """p(y = 1 | q, a) = sigmoid(s_q^T M z_a(a, s_q) + b)."""

    attends = True

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        question = encoding.question_by_pair  # [P, H]
        logits: Tensor = self.match(question, self.attention(question[None], encoding.answers))  # [1, P]
        return logits.expand(len(h), -1)  # [S, P]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor:
        weights = self.attention.weights(encoding.question_by_pair[None], encoding.answers)
        return weights.expand(len(h), -1, -1)  # [S, P, T]
