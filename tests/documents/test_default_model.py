"""Which model learns documents if none is named, and that a fit, a folder and an update keep to it."""

import numpy as np
import pytest
from synthetic import topic_documents

from varitext import DocumentModel
from varitext.documents.default_model import BURSTS, MAX_DIMENSIONS, MAX_WORDS, PLAIN, model_for
from varitext.documents.settings import DocumentSettings

COUNTS = topic_documents(documents=60, words=24, topics=3, length=15)
SMALL = {"latent_dim": 3, "epochs": 2, "threads": 1, "n_topics": 2}


@pytest.mark.parametrize(
    ("settings", "words", "expected"),
    [
        ({}, 0, BURSTS),
        ({"latent_dim": MAX_DIMENSIONS}, MAX_WORDS, BURSTS),
        ({"latent_dim": MAX_DIMENSIONS + 1}, 0, PLAIN),
        ({}, MAX_WORDS + 1, PLAIN),
        ({"preset": "paper"}, 0, PLAIN),
        ({"fractional_counts": True}, 0, PLAIN),
        ({"softmax": "sampled"}, 0, PLAIN),
        ({"model": "sbn"}, MAX_WORDS + 1, "sbn"),
        ({"model": BURSTS, "latent_dim": 200}, MAX_WORDS + 1, BURSTS),  # whoever names it gets it
    ],
)
def test_bursts_wherever_they_apply(settings, words, expected):
    assert model_for(DocumentSettings(**settings), words) == expected


def test_fit_and_folder_say_which_it_was(tmp_path):
    model = DocumentModel(**SMALL).fit(COUNTS)
    assert model.model is None and model.fitted_.model == BURSTS
    model.save(tmp_path / "model")
    loaded = DocumentModel.load(tmp_path / "model")
    assert loaded.model is None and loaded.fitted_.model == BURSTS
    assert loaded.partial_fit(COUNTS).fitted_.model == BURSTS


def test_fractions_of_words_are_learned_without_bursts():
    model = DocumentModel(**SMALL, fractional_counts=True).fit(COUNTS * 0.5)
    assert model.fitted_.model == PLAIN and np.isfinite(model.transform(COUNTS * 0.5)).all()
