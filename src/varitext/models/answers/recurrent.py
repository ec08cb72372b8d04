"""LSTM and LSTM + Att (paper, section 4): two LSTMs and the bilinear match of what they read.

They have no latent variable: the KL is zero and the bound is the log-likelihood. NASM (`nasm.py`) adds h.

The paper does not specify the initialization, and it matters. The sum of a sentence's word vectors, centred, ranks
answers well without any training; LSTMs that start at random do not learn it. `word_sums` starts there: each LSTM adds
up the words it reads, and the match compares the sums. In cross-validation it ranks best. `forget_bias` adds one to the
biases of the forget gates, which PyTorch initializes near zero, so that a state halves at every word.
"""

import numpy as np
import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch, PairBatches
from varitext.corpora.question_answers import QuestionAnswers
from varitext.layers.attention import BilinearMatch, LatentAttention
from varitext.layers.lstm import SentenceLSTM, read
from varitext.models.answers.network import AnswerNetwork, Encoding

PYTORCH, FORGET_BIAS, WORD_SUMS = INITIALIZATIONS = ("pytorch", "forget_bias", "word_sums")


class RecurrentNetwork(AnswerNetwork):
    parallel_training = True
    fewest_passes = patience = 16  # QASent's dev MAP still rises after ten
    attends = False  # whether s_q is the query of an attention over the answer
    centre: Tensor  # [E]   subtracted from word vectors

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        layers: int = 3,
        dropout: float = 0.4,
        fixed_words: int = 0,
        initialization: str = WORD_SUMS,
    ):
        super().__init__(vocabulary_size, embedding_dim, fixed_words)
        self.initialization = initialization
        self.register_buffer("centre", torch.zeros(embedding_dim), persistent=initialization == WORD_SUMS)
        forget_bias = 1.0 if initialization == FORGET_BIAS else 0.0
        self.question_lstm = SentenceLSTM(embedding_dim, hidden_dim, layers, dropout, forget_bias)
        self.answer_lstm = SentenceLSTM(embedding_dim, hidden_dim, layers, dropout, forget_bias)
        self.match = BilinearMatch(hidden_dim, hidden_dim)
        if self.attends:
            self.attention = LatentAttention(hidden_dim, hidden_dim)
        if not self.has_latent:
            self.initialize()

    def initialize(self) -> None:
        """Set the initial weights; a network with h does so once it has its attention."""
        if self.initialization != WORD_SUMS:
            return
        lstm = self.question_lstm.lstm
        projection = nn.init.orthogonal_(torch.empty(lstm.hidden_size, lstm.input_size))
        for part in (self.question_lstm, self.answer_lstm):  # both project words in the same way
            part.start_as_word_sum(projection)
        self.match.start_as_inner_product()
        if hasattr(self, "attention"):
            self.attention.start_at_last_state()

    @torch.no_grad()
    def prepare(self, batches: PairBatches, train: QuestionAnswers) -> None:
        """Centre: the mean vector of the words of training questions and answers."""
        if self.initialization == WORD_SUMS:
            said = [answer for answers in batches.answers for answer in answers]
            tokens = torch.from_numpy(np.concatenate([*batches.questions, *said])).to(self.centre.device)
            tally = torch.bincount(tokens)
            numbers = tally.nonzero()[:, 0]
            self.centre.copy_((tally[numbers, None] * self.word_vectors(numbers)).sum(0) / len(tokens))

    def encode(self, batch: PairBatch) -> Encoding:
        lstms, sentences = (self.question_lstm, self.answer_lstm), (batch.questions, batch.answers)
        questions, answers = read(lstms, sentences, lambda tokens: self.word_vectors(tokens) - self.centre)
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
