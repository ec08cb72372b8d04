"""Deep CNN: two convolutions, a bilinear similarity and a hidden layer over all of it (Severyn and Moschitti 2015)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from varitext.models.answer_network import AnswerNetwork, Encoding
from varitext.models.answer_scorer import chosen
from varitext.overlap import COUNTS
from varitext.pair_batches import PairBatch
from varitext.sentence_convolution import SentenceConvolution
from varitext.sentence_layers import BilinearMatch, Sentences

WIDTH = 5


class DeepCNN(AnswerNetwork):
    """p(y = 1 | q, a) = sigmoid(w^T tanh(W [q; q^T M a; a; counts] + c) + b).

    The counts of shared words join before the hidden layer if `features` says "overlap".
    """

    feature_names = ("overlap",)

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 50,
        maps: int = 100,
        dropout: float = 0.4,
        features: Sequence[str] | str | None = None,
        fixed_words: int = 0,
    ):
        super().__init__(vocabulary_size, embedding_dim, fixed_words)
        self.pair_columns = COUNTS if "overlap" in chosen(features, self.feature_names, ()) else ()
        self.question_convolution = SentenceConvolution(embedding_dim, maps, WIDTH, wide=True, dropout=dropout)
        self.answer_convolution = SentenceConvolution(embedding_dim, maps, WIDTH, wide=True, dropout=dropout)
        self.match = BilinearMatch(maps, maps)
        joint_dim = 2 * maps + 1 + len(self.pair_columns)
        self.hidden = nn.Sequential(nn.Linear(joint_dim, joint_dim), nn.Tanh(), nn.Dropout(dropout))
        self.output = nn.Linear(joint_dim, 1)

    def encode(self, batch: PairBatch) -> Encoding:
        question = self.question_convolution.maximum(batch.questions, self.word_vectors)  # [Q, H]
        answers = self.answer_convolution.maximum(batch.answers, self.word_vectors)  # [P, H]
        sentences = Sentences(answers[:, None], answers, batch.answers.mask[:, :1])
        labels = batch.labels.to(question.dtype)
        return Encoding(question, sentences, batch.question_of, labels, batch.features)

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        question, answer = encoding.question_by_pair, encoding.answers.last  # [P, H]
        parts = [question, self.match(question, answer)[:, None], answer]
        if self.pair_columns:
            parts.append(
                torch.log1p(encoding.features.to(answer.dtype))
            )  # counts: a few large ones would drown the rest
        logits = self.output(self.hidden(torch.cat(parts, 1)))[:, 0]
        return logits.expand(len(h), -1)  # [S, P]
