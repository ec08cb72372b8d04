"""Bigram-CNN: the mean of a convolution over pairs of words, matched (Yu and others 2014)."""

from torch import Tensor

from varitext.models.answer_network import AnswerNetwork, Encoding
from varitext.pair_batches import PairBatch
from varitext.sentence_convolution import SentenceConvolution
from varitext.sentence_layers import BilinearMatch, Sentences


class BigramCNN(AnswerNetwork):
    """p(y = 1 | q, a) = sigmoid(q^T M a + b); one convolution reads questions and answers, as wide as word vectors."""

    updates = 1600  # it learns slowly: on WikiQA's dev questions still in the 28th pass

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
        logits = self.match(encoding.question_by_pair, encoding.answers.last)
        return logits.expand(len(h), -1)  # [S, P]
