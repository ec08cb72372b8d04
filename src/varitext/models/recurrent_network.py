"""What the paper's own models of answers have: two LSTMs, and the match of what they read (section 4)."""

from varitext.models.answer_network import AnswerNetwork, Encoding
from varitext.pair_batches import PairBatch
from varitext.sentence_layers import BilinearMatch
from varitext.sentence_lstm import SentenceLSTM, read


class RecurrentNetwork(AnswerNetwork):
    side_by_side = True

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
