"""Compare-aggregate on states of the small pretrained encoder, which stays as it is (`pretrained.py`).

The network is that of `compare_aggregate.py` in all but what a word begins as: its state in its sentence, by MiniLM,
instead of a vector that is the same everywhere, and that it reads how alike both sentences and their words are by
these states (`likeness.py`). Nothing of the encoder is in the model folder.

Without any fit `likeness.py` ranks in its place.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.layers.attention import Words
from varitext.models.answers.compare_aggregate import CompareAggregate
from varitext.models.answers.likeness import Likeness
from varitext.models.answers.pretrained import pretrained as shared_encoder


class MiniLM(CompareAggregate):
    passes = 3  # on WikiQA's dev questions it was best after two, and worse from the fourth on
    pretrained = True
    reads_states = True
    untrained = Likeness
    feature_names = (*CompareAggregate.feature_names, "likeness")

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int = 128,
        maps: int = 48,
        widths: Sequence[int] = (1, 3, 5),
        dropout: float = 0.3,
        features: Sequence[str] | str | None = None,
    ):
        super().__init__(vocabulary_size, 1, hidden_dim, maps, widths, dropout, features)
        self.project = nn.Linear(shared_encoder().width, hidden_dim)

    def _read(self, batch: PairBatch) -> tuple[Words, Words]:
        questions, answers = batch.question_states, batch.answer_states
        assert questions is not None and answers is not None  # `reads_states` asked for them
        return self._states(questions, batch.questions.mask), self._states(answers, batch.answers.mask)

    def _states(self, states: Tensor, mask: Tensor) -> Words:
        return Words(torch.tanh(self.project(self.dropout(states))), mask)  # [n, H]
