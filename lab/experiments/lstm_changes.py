"""Changes to the paper's LSTM beyond its initialization, compared on WikiQA's training questions.

Three-fold cross-validation as in `recipes.py`; no test question is used. Every network starts as a sum of word vectors.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lab.experiments.recipes import COLUMNS, cross_validated
from varitext.batches.pairs import PairBatch
from varitext.batches.tokens import TokenBatch
from varitext.corpora import load_documents, load_questions
from varitext.corpora.word_vectors import WordVectors
from varitext.layers.words import Sentences
from varitext.models.answers.network import Encoding
from varitext.models.answers.recurrent import LSTM
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, mean, results
from varitext.text import tokenise

SEEDS = 2
MARGIN = 1.0  # of the hinge loss
WORD2VEC = {"vector_size": 100, "sg": 1, "negative": 5, "min_count": 2, "epochs": 5, "workers": 1}


class HingeLSTM(LSTM):
    """Trained on the hinge loss: a right answer scores above each wrong one of its question by a margin."""

    def log_likelihood_of_pairs(self, h: Tensor, encoding: Encoding) -> Tensor:
        if not self.training:
            return super().log_likelihood_of_pairs(h, encoding)
        logits, n_questions = self.logits(h, encoding), len(encoding.question)  # [S, P]
        right = encoding.labels * logits
        sums = logits.new_zeros(len(logits), n_questions).index_add(1, encoding.question_of, right)
        number = encoding.labels.new_zeros(n_questions).index_add(0, encoding.question_of, encoding.labels)
        of_right = (sums / number.clamp(min=1)).index_select(1, encoding.question_of)  # [S, P]
        return -(1 - encoding.labels) * torch.relu(MARGIN + logits - of_right)


class ReversedLSTM(LSTM):
    """Reads sentences from the last word to the first."""

    def encode(self, batch: PairBatch) -> Encoding:
        return super().encode(replace(batch, questions=_reversed(batch.questions), answers=_reversed(batch.answers)))


def _reversed(batch: TokenBatch) -> TokenBatch:
    places = torch.arange(batch.mask.shape[1], device=batch.mask.device).expand_as(batch.tokens)
    mirrored = torch.where(batch.mask, batch.lengths[:, None] - 1 - places, places)
    return TokenBatch(batch.tokens.gather(1, mirrored), batch.mask)


class ResidualLSTM(LSTM):
    """One layer that adds up words, and two above it that each add to the states they read."""

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        layers: int = 1,
        dropout: float = 0.4,
        fixed_words: int = 0,
    ):
        super().__init__(vocabulary_size, embedding_dim, hidden_dim, layers, dropout, fixed_words)
        self.of_questions, self.of_answers = (
            nn.ModuleList(nn.LSTM(hidden_dim, hidden_dim, batch_first=True) for _ in range(2)) for _ in range(2)
        )

    def encode(self, batch: PairBatch) -> Encoding:
        below = super().encode(batch)
        # only the question's last state is kept, so the question is read again
        question = self.question_lstm(batch.questions, lambda tokens: self.word_vectors(tokens) - self.centre)
        questions = _with_layers(question, self.of_questions)
        return below._replace(question=questions.last, answers=_with_layers(below.answers, self.of_answers))


def _with_layers(sentences: Sentences, layers: nn.ModuleList) -> Sentences:
    states = sentences.states
    for layer in layers:
        states = states + layer(states)[0]
    last = (sentences.mask.sum(1) - 1).clamp(min=0)
    return Sentences(states, states[torch.arange(len(states), device=states.device), last], sentences.mask)


def local_vectors(seed: int, plan: Plan) -> WordVectors:
    """word2vec trained on the training text at hand, so that names and numbers have vectors too."""
    from gensim.models import Word2Vec

    model = Word2Vec(list(_sentences(plan)), seed=seed, **WORD2VEC)
    return WordVectors(tuple(model.wv.index_to_key), model.wv.vectors, "word2vec on local text")


def _sentences(plan: Plan) -> Iterator[list[str]]:
    for corpus, part in (("wikiqa", "train"), ("qasent", "train-all")):
        for question in load_questions(corpus, part, data_dir=plan.data_dir).questions:
            yield list(question.words)
            yield from (list(candidate.words) for candidate in question.candidates)
    for text in load_documents("20newsgroups", data_dir=plan.data_dir).texts or ():
        yield tokenise(text)


CHANGES: dict[str, dict[str, Any]] = {
    "none": {"model": "lstm"},
    "hinge loss": {"model": HingeLSTM},
    "reversed input": {"model": ReversedLSTM},
    "residual layers": {"model": ResidualLSTM, "layers": 1},
    "word2vec on local text": {"model": "lstm"},
    "24 epochs": {"model": "lstm", "epochs": 24},
}


def measure(change: str, seed: int, plan: Plan) -> dict[str, Any]:
    vectors = {"vectors": local_vectors(seed, plan)} if "word2vec" in change else {}
    return cross_validated({"seed": seed} | CHANGES[change] | vectors, plan)


def table(records: list[Record]) -> str:
    rows = []
    for change in CHANGES:
        if found := results(records, change=change):
            rows.append([change, *(mean(found, name) for name in COLUMNS), str(len(found))])
    return markdown_table(["change", *COLUMNS.values(), "seeds"], rows)


RUNS = partial(grid, measure, SEEDS, change=CHANGES)
EXPERIMENT = Experiment("lstm-changes", "changes to the paper's LSTM, on training questions", RUNS, table)
