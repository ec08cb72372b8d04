"""One seed, a stream for each purpose: none repeats another, and all stay what they are."""

from typing import get_args

import numpy as np
import pytest
import scipy.sparse
import torch
from made_up_questions import made_up
from synthetic import topic_documents

from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe
from varitext.documents.fitting import DocumentTask, build_network, hold_out
from varitext.documents.model import DocumentModel
from varitext.models.documents.base import DocumentObjective, Recipe
from varitext.models.documents.nvdm import NVDM
from varitext.runtime.randomness import Purpose, stream
from varitext.training.settings import TrainingSettings
from varitext.training.trainer import Trainer

PURPOSES = get_args(Purpose)
WIDE = 200  # the width at which noise was found to equal the decoder's rows
COUNTS = topic_documents(60, 30, 3, 15)


def test_streams_differ_by_purpose_and_by_seed():
    found = {stream(seed, purpose) for seed in (0, 1, 2, 2**32 - 1) for purpose in PURPOSES}
    assert len(found) == 4 * len(PURPOSES) and all(0 <= one < 2**32 for one in found)


def test_streams_are_what_they_were():
    """Fits are repeatable over versions only as long as these values stand."""
    assert stream(0, "initial weights") == 3_351_603_044
    assert stream(7, "training noise") == 1_078_872_562


class Recorded(NVDM):
    """Keeps the noise that its draws are made of."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.noise = []

    def log_likelihood(self, h, encoding):
        posterior = self.posterior(encoding)
        self.noise.append(((h - posterior.mean) / posterior.std).detach())
        return super().log_likelihood(h, encoding)


def rows_in_common(first, second):
    """Rows of one that stand in the other, to rounding: of WIDE normal numbers, none by chance."""
    distance = torch.cdist(first.reshape(-1, WIDE).double(), second.reshape(-1, WIDE).double())
    return int((distance < 0.1).sum())


def test_noise_is_no_row_of_the_initial_decoder_and_evaluation_noise_no_training_noise(monkeypatch):
    monkeypatch.setattr("varitext.documents.fitting.model_class", lambda name: Recorded)
    training = TrainingSettings(epochs=1, batch_size=16)
    recipe = Recipe({"vocabulary_size": 30, "latent_dim": WIDE, "hidden_dim": 8}, training, DocumentObjective())
    network = build_network("nvdm", recipe, COUNTS, 0, "cpu")
    decoder = network.decoder.weight.detach() / 0.05  # as they were drawn, [V, K]
    Trainer(network, DocumentTask(COUNTS[:40], COUNTS[40:], training, recipe.objective), training).train()
    in_rounds, network.noise = network.noise, []
    network.evaluate(COUNTS[40:], 3, 0)
    in_evaluation = torch.cat([one.reshape(-1, WIDE) for one in network.noise])
    in_training = torch.cat([one.reshape(-1, WIDE) for one in in_rounds])
    assert rows_in_common(decoder, decoder) == len(decoder)
    for first, second in ((decoder, in_training), (decoder, in_evaluation), (in_training, in_evaluation)):
        assert rows_in_common(first, second) == 0


def test_held_out_rows_and_shuffles_do_not_depend_on_each_other():
    """Once epoch 1 was shuffled by the generator that had held documents out."""
    counts = scipy.sparse.csr_matrix(np.arange(1, 101, dtype=np.float32)[:, None])
    held_out = hold_out(counts, 0.2, 0)[1].toarray().ravel()
    task = DocumentTask(counts, counts[:5], TrainingSettings(batch_size=20), DocumentObjective())
    assert all(set(next(task.batches(epoch)).lengths.tolist()) != set(held_out) for epoch in range(4))


def fit_documents():
    DocumentModel("nvdm", 3, epochs=1).fit(COUNTS).perplexity_record(COUNTS)


def fit_answers():
    ranker = AnswerRanker(
        "nasm", 3, vectors="random", embedding_dim=4, epochs=1, recipe=AnswerRecipe(hidden_dim=4, layers=1)
    ).fit(made_up(20, 0))
    ranker.evaluate(made_up(6, 1), "answerable")


@pytest.mark.parametrize("fit", [fit_documents, fit_answers])
def test_no_generator_of_a_fit_starts_from_the_plain_seed(fit, monkeypatch):
    started, manual_seed = [], torch.manual_seed
    monkeypatch.setattr(torch, "manual_seed", lambda seed: (started.append(seed), manual_seed(seed))[1])
    fit()
    assert 0 not in started
    assert {stream(0, "initial weights"), stream(0, "training noise"), stream(0, "dev noise")} <= set(started)
