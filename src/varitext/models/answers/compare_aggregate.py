"""Compare-aggregate: compare every word with its counterpart in the other sentence (Wang and Jiang 2017).

    align       each word x of either sentence gets x', the mean of the other sentence's words weighted by similarity
    compare     c = relu(W [x; x * x'; (x - x')^2; features of the word])
    aggregate   windows of 1, 3 and 5 compared words, pooled by attention, of either sentence
    judge       a hidden layer on both, with counts of shared words, the candidate's position and its length

There is no latent variable, so the KL is zero and the bound is the log-likelihood. Training minimises a listwise loss,
the softmax over a question's candidates, plus part of the cross-entropy, so that probabilities are meaningful.
Prediction adds the log odds of a linear ranking (`LinearRanking`).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch, PairBatches
from varitext.batches.tokens import TokenBatch
from varitext.corpora.question_answers import QuestionAnswers
from varitext.layers.attention import AttentionPooling, Windows, Words, soft_alignment
from varitext.layers.words import Dropout, Sentences
from varitext.models.answers.features.carried import CARRIED, PRIOR
from varitext.models.answers.features.overlap import COUNTS, PLACE
from varitext.models.answers.features.word_features import WORD_FEATURES
from varitext.models.answers.network import AnswerNetwork, Encoding
from varitext.models.answers.scorer import chosen, listwise_weights

POSITION_DROPPED = 0.1  # share of the training questions, so that it also ranks without positions
LIKENESS = 3  # columns: two cosines of `minilm.py`, and the log odds of its `General`
MIDDLE, SPREAD = 0.6, 0.25  # typical values of cosines, to standardise them
GENERAL_SPREAD = 3.0  # of log odds
PRIOR_STRENGTH = 0.03


class PairColumns(nn.Module):
    """What networks read of a pair besides its words: similarity, shared words, what carries over, position.

    It has no weights. Counts are read as logarithms. A position becomes four columns: itself, whether it is known,
    whether it is the first, and the candidate's length; all are zero if it is unknown, since they carry information
    only where the candidates are one document. In a batch the columns are in the order of the arguments.
    """

    def __init__(self, likeness: bool = False, counts: bool = False, carried: bool = False, position: bool = False):
        super().__init__()
        self.likeness, self.position = likeness, position
        self.names = COUNTS * counts + CARRIED * carried + PLACE * position  # those of `overlap.py` and `carried.py`
        self.width = LIKENESS * likeness + len(self.names) + 2 * position

    def forward(self, batch: PairBatch) -> Tensor:
        """[P, width]; all zero for a batch that has none."""
        if batch.features is None:
            return torch.zeros(len(batch), self.width, device=batch.labels.device)
        begin, end = LIKENESS * self.likeness, batch.features.shape[1] - len(PLACE) * self.position
        alike, counts, place = (batch.features[:, part] for part in (slice(begin), slice(begin, end), slice(end, None)))
        parts = [(alike[:, :2] - MIDDLE) / SPREAD, alike[:, 2:] / GENERAL_SPREAD, torch.log1p(counts)]
        if self.position:
            parts.append(self._place(place[:, 0], place[:, 1], batch))
        return torch.cat(parts, 1)

    def _place(self, position: Tensor, length: Tensor, batch: PairBatch) -> Tensor:
        known = ~position.isnan()
        if self.training:
            dropped = torch.rand(len(batch.questions), device=known.device) < POSITION_DROPPED
            known = known & ~dropped[batch.question_of]
        first = known & (position == 0)
        place = torch.where(known, position, 0.0)
        return torch.stack([place, known.to(place), first.to(place), known * (length - 3)], 1)  # [P, 4]


class LinearRanking(nn.Module):
    """The ranking by features that mean the same everywhere, whose log odds prediction adds to a network's.

    A network knows the kind of text it was trained on, and soon trusts that too much. The sum ranks better on held-out
    questions, and far better on other text. Training does not see it: the network would undo it.
    """

    weights: Tensor  # [F]

    def __init__(self, columns: PairColumns):
        super().__init__()
        self.used = CARRIED[0] in columns.names
        begin = LIKENESS * columns.likeness + (columns.names.index(CARRIED[0]) if self.used else 0)
        self.rows = slice(begin, begin + len(CARRIED))  # of a batch's features
        self.register_buffer("weights", torch.zeros(len(CARRIED)))

    def learn(self, columns: np.ndarray | None, train: QuestionAnswers) -> None:
        if self.used and columns is not None:
            found = listwise_weights(columns[:, self.rows], train.labels, train.groups, PRIOR, PRIOR_STRENGTH)
            self.weights.copy_(torch.from_numpy(found))

    def forward(self, logits: Tensor, features: Tensor | None) -> Tensor:
        """The sum, [P]; in training, and without features, the logits of the network alone."""
        if self.training or not self.used or features is None:
            return logits
        return logits + features[:, self.rows].to(logits) @ self.weights


class _Side(nn.Module):
    """One of the two sentences: its words compared with their counterparts, in windows."""

    def __init__(self, hidden_dim: int, n_features: int, maps: int, widths: Sequence[int], dropout: float):
        super().__init__()
        self.n_features, self.dropout = n_features, Dropout(dropout)
        self.compare = nn.Linear(3 * hidden_dim + n_features, hidden_dim)
        self.windows = Windows(hidden_dim, maps, widths)
        self.pooling = AttentionPooling(maps * len(tuple(widths)))

    def forward(self, words: Words, aligned: Tensor, features: Tensor | None) -> Words:
        own = words.vectors  # [n, H]
        parts = [own, own * aligned, (own - aligned) ** 2]
        if self.n_features:
            parts.append(own.new_zeros(len(own), self.n_features) if features is None else features)
        compared = self.dropout(torch.relu(self.compare(torch.cat(parts, 1))))  # [n, H]
        return words._replace(vectors=torch.relu(self.windows(Words(compared, words.mask))))


class CompareAggregate(AnswerNetwork):
    """`features` names what it reads beside the words (default: all)."""

    updates = 700
    joins_columns = False
    mixes_lists = True
    listwise = 1.0
    cross_entropy = 0.5
    feature_names: tuple[str, ...] = ("words", "counts", "position")

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 100,
        hidden_dim: int = 64,
        maps: int = 48,
        widths: Sequence[int] = (1, 3, 5),
        dropout: float = 0.3,
        features: Sequence[str] | str | None = None,
        fixed_words: int = 0,
    ):
        super().__init__(vocabulary_size, embedding_dim, fixed_words)
        named = chosen(features, self.feature_names, self.feature_names)
        self.reads_word_features, self.reads_positions = "words" in named, "position" in named
        self.reads_likeness = "likeness" in named
        self.columns = PairColumns(self.reads_likeness, "counts" in named, "counts" in named, self.reads_positions)
        self.pair_columns = self.columns.names
        self.dropout = Dropout(dropout)
        self.project = nn.Linear(embedding_dim, hidden_dim)
        read = len(WORD_FEATURES) * self.reads_word_features + self.reads_likeness  # of each word
        self.question_side = _Side(hidden_dim, read, maps, widths, dropout)
        self.answer_side = _Side(hidden_dim, read, maps, widths, dropout)
        joint = 2 * maps * len(tuple(widths)) + self.columns.width
        self.hidden = nn.Linear(joint, hidden_dim)
        self.output = nn.Linear(hidden_dim, 1)
        self.linear = LinearRanking(self.columns)

    def prepare(self, batches: PairBatches, train: QuestionAnswers) -> None:
        self.linear.learn(batches.inputs.columns, train)

    @property
    def counts_shared_words(self) -> bool:
        return self.reads_word_features or COUNTS[0] in self.pair_columns

    def encode(self, batch: PairBatch) -> Encoding:
        read, answer = self._read(batch)
        asked = batch.questions.mask[batch.question_of]  # [P, Tq]
        question = Words(read.padded()[batch.question_of][asked], asked)  # once for every candidate
        for_question, for_answer = soft_alignment(question, answer)
        asked_windows = self.question_side(question, for_question, batch.question_words)
        windows = self.answer_side(answer, for_answer, batch.answer_words)
        asked_pooling, pooling = self.question_side.pooling, self.answer_side.pooling
        weights = pooling.weights(windows)  # [P, T]
        pooled = [asked_pooling(asked_windows, asked_pooling.weights(asked_windows)), pooling(windows, weights)]
        pair = torch.cat([*pooled, self.columns(batch)], 1)  # [P, D]
        answers = Sentences(
            weights[..., None], pair, batch.answers.mask
        )  # of its words, only the weights are used later
        nothing, labels = pair.new_zeros(len(batch.questions), 0), batch.labels.to(pair)
        return Encoding(nothing, answers, batch.question_of, labels, batch.features)

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        hidden = torch.relu(self.hidden(self.dropout(encoding.answers.last)))
        logits: Tensor = self.output(self.dropout(hidden))[:, 0]
        logits = self.linear(logits, encoding.features)
        return logits.expand(len(h), -1)  # [S, P]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor:
        return encoding.answers.states[..., 0].expand(len(h), -1, -1)  # [S, P, T]

    def _read(self, batch: PairBatch) -> tuple[Words, Words]:
        """The words of questions and of answers, as vectors."""
        return self._projected(batch.questions), self._projected(batch.answers)

    def _projected(self, sentences: TokenBatch) -> Words:
        vectors = self.dropout(self.word_vectors(sentences.tokens[sentences.mask]))
        return Words(torch.tanh(self.project(vectors)), sentences.mask)  # [n, H]
