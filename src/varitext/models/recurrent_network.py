"""What the paper's own models of answers have: two LSTMs, and the match of what they read (section 4)."""

from varitext.models.answer_network import AnswerNetwork, Encoding
from varitext.pair_batches import PairBatch
from varitext.sentence_layers import BilinearMatch, SentenceLSTM


class RecurrentNetwork(AnswerNetwork):
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
        question = self.question_lstm(batch.questions, self.word_vectors).last
        answers = self.answer_lstm(batch.answers, self.word_vectors)
        return Encoding(question, answers, batch.question_of, batch.labels.to(question.dtype))
