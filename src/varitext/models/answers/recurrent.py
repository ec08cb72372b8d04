"""What the paper's own models of answers have: two LSTMs, and the match of what they read (section 4).

LSTM and LSTM + Att have no latent: the bound is the log likelihood (`network.py`). NASM (`nasm.py`) adds one.
"""

from torch import Tensor

from varitext.batches.pairs import PairBatch
from varitext.layers.attention import BilinearMatch, LatentAttention
from varitext.layers.lstm import SentenceLSTM, read
from varitext.models.answers.network import AnswerNetwork, Encoding


class RecurrentNetwork(AnswerNetwork):
    parallel_training = True

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        layers: int = 3,
        dropout: float = 0.4,
        fixed_words: int = 0,
    ):
        super().__init__(vocabulary_size, embedding_dim, fixed_words)
        self.question_lstm = SentenceLSTM(embedding_dim, hidden_dim, layers, dropout)
        self.answer_lstm = SentenceLSTM(embedding_dim, hidden_dim, layers, dropout)
        self.match = BilinearMatch(hidden_dim, hidden_dim)

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
        logits: Tensor = self.match(question, self.attention(question[None], encoding.answers))  # [1, P]
        return logits.expand(len(h), -1)  # [S, P]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor:
        weights = self.attention.weights(encoding.question_by_pair[None], encoding.answers)
        return weights.expand(len(h), -1, -1)  # [S, P, T]
