"""The parameters of `DocumentModel` are declared once, in a record that is light to import; the default model."""

import inspect
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone
from synthetic import topic_documents

from varitext import DocumentModel
from varitext.documents.settings import (
    DEFAULT_MODEL,
    FALLBACK_MODEL,
    MAX_DIMENSIONS,
    MAX_WORDS,
    DocumentSettings,
    default_document_model,
)

COUNTS = topic_documents(documents=60, words=24, topics=3, length=15)
SMALL = {"latent_dim": 3, "epochs": 2, "threads": 1, "n_topics": 2}


def test_the_record_is_the_constructor():
    arguments = inspect.signature(DocumentModel).parameters.values()
    assert [one.name for one in arguments] == [one.name for one in fields(DocumentSettings)]
    assert [one.name for one in arguments if one.kind is not one.KEYWORD_ONLY] == ["model", "latent_dim"]
    model = DocumentModel("nvdm", 20, seed=3, network={"hidden_dim": 7})
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "DocumentModel(latent_dim=20, model='nvdm', network={'hidden_dim': 7}, seed=3)"
    assert model != DocumentModel("nvdm", 20, seed=3, network={"hidden_dim": 7})  # as scikit-learn's estimators


def test_the_command_line_can_read_the_record_before_anything_heavy_is_loaded():
    code = "import sys, varitext.documents.settings; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "scipy", "sklearn"} & set(loaded)


# The default model


@pytest.mark.parametrize(
    ("settings", "words", "expected"),
    [
        ({}, 0, DEFAULT_MODEL),
        ({"latent_dim": MAX_DIMENSIONS}, MAX_WORDS, DEFAULT_MODEL),
        ({"latent_dim": MAX_DIMENSIONS + 1}, 0, FALLBACK_MODEL),
        ({}, MAX_WORDS + 1, FALLBACK_MODEL),
        ({"preset": "paper"}, 0, FALLBACK_MODEL),
        ({"fractional_counts": True}, 0, FALLBACK_MODEL),
        ({"softmax": "sampled"}, 0, FALLBACK_MODEL),
    ],
)
def test_bursts_wherever_they_apply(settings, words, expected):
    assert default_document_model(DocumentSettings(**settings), words) == expected


def test_fit_and_folder_say_which_it_was(tmp_path):
    model = DocumentModel(**SMALL).fit(COUNTS)
    assert model.model is None and model.fitted_.model == DEFAULT_MODEL
    model.save(tmp_path / "model")
    loaded = DocumentModel.load(tmp_path / "model")
    assert loaded.model is None and loaded.fitted_.model == DEFAULT_MODEL
    assert loaded.partial_fit(COUNTS).fitted_.model == DEFAULT_MODEL


def test_fractions_of_words_are_learned_without_bursts():
    model = DocumentModel(**SMALL, fractional_counts=True).fit(COUNTS * 0.5)
    assert model.fitted_.model == FALLBACK_MODEL and np.isfinite(model.transform(COUNTS * 0.5)).all()
