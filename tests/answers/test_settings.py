"""Settings of a ranker: one record, the same names and defaults as the constructor, and as old folders have them."""

import dataclasses
import inspect
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from test_answer_ranker import DEV, SMALL, TEST, TRAIN

from varitext.answers.fitting import architecture_for
from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe, AnswerSettings
from varitext.answers.stages import answer_objective
from varitext.answers.training_data import questions_to_learn
from varitext.errors import InputError
from varitext.files import read_config
from varitext.loading import load_document_model, load_ranker
from varitext.models.answers.vocabulary import AnswerWords
from varitext.text import Vocabulary

OLD_SETTINGS = {  # as folders had them when the ranker took all settings one by one
    "model": "nasm", "latent_dim": 4, "counts": False, "position": False, "features": None, "folds": 4,
    "questions": "answerable", "longest_answer": None, "embedding_dim": 16, "hidden_dim": 16, "layers": 1,
    "dropout": 0.1, "vectors": "random", "unseen_words": 50_000, "tune_word_vectors": False, "epochs": 20,
    "batch_size": 40, "learning_rate": 2e-2, "weight_decay": 0.0, "averaging": 0.97, "most_wrong": 7,
    "kl_warm_up": 0.2, "free_bits": 0.5, "patience": 50, "smoothing": 3, "samples": 1, "prediction_samples": 20,
    "time_limit": None, "dev_share": 0.1, "threads": 1, "device": "cpu", "seed": 0,
}  # fmt: skip


def test_constructor_and_record_have_the_same_names_and_defaults():
    parameters = inspect.signature(AnswerRanker).parameters.values()
    record = {field.name: field.default for field in dataclasses.fields(AnswerSettings)}
    assert [parameter.name for parameter in parameters] == list(record)
    assert {one.name: one.default for one in parameters} == record | {"recipe": None}  # None stands for the default
    assert AnswerRanker().settings == AnswerSettings()
    assert AnswerRanker("lstm", recipe=AnswerRecipe(layers=1)).settings.recipe.layers == 1


def test_no_setting_has_the_name_of_another():
    named = AnswerSettings().flat()
    assert len(named) == len(dataclasses.fields(AnswerSettings)) - 1 + len(dataclasses.fields(AnswerRecipe))
    changed = AnswerSettings("lstm", seed=3, recipe=AnswerRecipe(layers=1, most_wrong=None))
    assert AnswerSettings.from_flat(changed.flat()) == changed
    with pytest.raises(InputError, match="has no setting 'layer'"):
        AnswerSettings.from_flat({"layer": 1})


def test_an_initialization_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="initialization is pytorch or forget_bias or identity, not 'zeros'"):
        AnswerRanker("lstm", recipe=AnswerRecipe(initialization="zeros")).fit(TRAIN, DEV)


def test_a_ranker_can_be_cloned():
    ranker = AnswerRanker("lstm", counts=True, recipe=AnswerRecipe(layers=1))
    assert clone(ranker).settings == ranker.settings


def test_a_folder_with_old_settings_loads(tmp_path):
    ranker = AnswerRanker(**SMALL | {"epochs": 1}).fit(TRAIN, DEV)
    ranker.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text()) | {"settings": OLD_SETTINGS}
    del config["config_sha256"]  # which old folders do not have
    path.write_text(json.dumps(config))
    loaded = AnswerRanker.load(tmp_path / "model")
    assert loaded.settings.flat() == OLD_SETTINGS | {"ensemble": 1, "initialization": None}
    assert loaded.recipe == AnswerRecipe(16, 1, 0.1, most_wrong=7, free_bits=0.5, patience=50, samples=1, folds=4)
    assert np.array_equal(loaded.predict_proba(TEST), ranker.predict_proba(TEST))


def test_a_folder_is_read_once(tmp_path, monkeypatch):
    AnswerRanker(**SMALL | {"epochs": 1}).fit(TRAIN, DEV).save(tmp_path / "model")
    read = []

    def counted(folder, *rest):
        read.append(folder)
        return read_config(folder, *rest)

    monkeypatch.setattr("varitext.store.read_config", counted)
    assert load_ranker(tmp_path / "model", threads=1).threads == 1 and len(read) == 1
    with pytest.raises(InputError, match="holds a ranker of answers"):
        load_document_model(tmp_path / "model")


def test_a_ranking_reads_the_sentences_once(monkeypatch):
    ranker = AnswerRanker(**SMALL | {"epochs": 1}).fit(TRAIN, DEV)
    calls, encode = [], type(ranker.fitted_.network).encode

    def counted(self, batch):
        calls.append(len(batch))
        return encode(self, batch)

    monkeypatch.setattr(type(ranker.fitted_.network), "encode", counted)
    ranking = ranker.rank("who was the king", ["a king", "the old lake", "near"])
    assert calls == [3] and all(one.attention_mean for one in ranking.candidates)


def test_settings_are_read_without_torch():
    check = "import sys, varitext.answers.settings; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


def test_what_is_not_set_is_as_the_model_has_it():
    words = AnswerWords(Vocabulary(("a", "b")), None, "random", 0)
    for name, dims, questions, wrong in (("nasm", 50, "answerable", 10), ("nasm_question", 8, "all", None)):
        settings = AnswerSettings(name)
        assert architecture_for(settings, words)["latent_dim"] == dims
        assert (questions_to_learn(settings), answer_objective(settings).most_wrong) == (questions, wrong)
    asked = AnswerSettings("nasm_question", latent_dim=3, questions="answerable")
    assert architecture_for(asked, words)["latent_dim"] == 3 and questions_to_learn(asked) == "answerable"
