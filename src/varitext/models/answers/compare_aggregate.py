"""Compare-aggregate: every word is held against what the other sentence has for it (Wang and Jiang 2017).

    align       each word x of either sentence gets x', the mean of the other sentence's words weighed by likeness
    compare     c = relu(W [x; x * x'; (x - x')^2; features of the word])
    aggregate   windows of 1, 3 and 5 compared words, pooled by attention, of either sentence
    judge       a hidden layer on both, with counts of shared words, the candidate's place and its length

There is no latent, so the KL is zero and the bound is the log likelihood. It is trained to rank, by the softmax over a
question's candidates, with a part of the cross-entropy so that a probability means one.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.batches.tokens import TokenBatch
from varitext.layers.alignment import AttentionPooling, Windows, Words, soft_alignment
from varitext.layers.words import Dropout, Sentences
from varitext.models.answers.features.overlap import COUNTS, PLACE
from varitext.models.answers.features.word_features import WORD_FEATURES
from varitext.models.answers.network import AnswerNetwork, Encoding
from varitext.models.answers.scorer import chosen

POSITION_DROPPED = 0.1  # of the training questions, so that it also ranks where places are unknown


class CompareAggregate(AnswerNetwork):
    """`features` names what it reads beside the words; without it, all."""

    updates = 700
    joins_columns = False
    listwise = 1.0
    cross_entropy = 0.5
    feature_names = ("words", "counts", "position")

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
        self.pair_columns = COUNTS * ("counts" in named) + PLACE * self.reads_positions
        self.dropout = Dropout(dropout)
        self.project = nn.Linear(embedding_dim, hidden_dim)
        compared = 3 * hidden_dim + len(WORD_FEATURES) * self.reads_word_features
        self.compare = nn.ModuleList(nn.Linear(compared, hidden_dim) for _ in range(2))
        self.windows = nn.ModuleList(Windows(hidden_dim, maps, widths) for _ in range(2))
        pooled = maps * len(tuple(widths))
        self.pooling = nn.ModuleList(AttentionPooling(pooled) for _ in range(2))
        joint = 2 * pooled + len(self.pair_columns) + 2 * self.reads_positions
        self.hidden = nn.Linear(joint, hidden_dim)
        self.output = nn.Linear(hidden_dim, 1)

    def encode(self, batch: PairBatch) -> Encoding:
        read = self._projected(batch.questions)
        asked = batch.questions.mask[batch.question_of]  # [P, Tq]
        question = Words(read.padded()[batch.question_of][asked], asked)  # once for every candidate
        answer = self._projected(batch.answers)
        aligned = soft_alignment(question, answer)
        sides = ((question, aligned[0], batch.question_words), (answer, aligned[1], batch.answer_words))
        found = [self._windows(side, *values) for side, values in enumerate(sides)]
        pooled = [pooling(words) for pooling, words in zip(self.pooling, found, strict=True)]
        pair = torch.cat([*pooled, *self._columns(batch)], 1)
        answers = Sentences(found[1].padded(), pair, batch.answers.mask)
        return Encoding(pair.new_zeros(len(batch.questions), 0), answers, batch.question_of, batch.labels.to(pair))

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        hidden = torch.relu(self.hidden(self.dropout(encoding.answers.last)))
        return self.output(self.dropout(hidden))[:, 0].expand(len(h), -1)  # [S, P]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor:
        answers = encoding.answers
        weights = self.pooling[1].weights(Words(answers.states[answers.mask], answers.mask))
        return weights.expand(len(h), -1, -1)  # [S, P, T]

    def _projected(self, sentences: TokenBatch) -> Words:
        vectors = self.dropout(self.word_vectors(sentences.tokens[sentences.mask]))
        return Words(torch.tanh(self.project(vectors)), sentences.mask)  # [n, H]

    def _windows(self, side: int, words: Words, aligned: Tensor, features: Tensor | None) -> Words:
        own = words.vectors
        parts = [own, own * aligned, (own - aligned) ** 2]
        if self.reads_word_features:
            parts.append(own.new_zeros(len(own), len(WORD_FEATURES)) if features is None else features)
        compared = torch.relu(self.compare[side](torch.cat(parts, 1)))  # [n, H]
        return words._replace(vectors=torch.relu(self.windows[side](Words(self.dropout(compared), words.mask))))

    def _columns(self, batch: PairBatch) -> list[Tensor]:
        """Counts in logarithms, so that a few large ones do not drown the rest; an unknown place is zero, and known."""
        if not self.pair_columns:
            return []
        if batch.features is None:
            return [self.output.weight.new_zeros(len(batch), len(self.pair_columns) + 2 * self.reads_positions)]
        values = batch.features  # [P, F]
        if not self.reads_positions:
            return [torch.log1p(values)]
        counts, (position, length) = values[:, :-2], values[:, -2:].T
        known = ~position.isnan()
        if self.training:
            dropped = torch.rand(len(batch.questions), device=known.device) < POSITION_DROPPED
            known = known & ~dropped[batch.question_of]
        first = known & (position == 0)
        place = torch.where(known, position, 0.0)
        return [torch.log1p(counts), torch.stack([place, known.to(place), first.to(place), length - 3], 1)]
