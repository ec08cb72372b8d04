"""Settings of a ranker: one declaration, read without torch."""

import dataclasses
import inspect
import subprocess
import sys

import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.validation import check_is_fitted
from test_answer_ranker import DEV, SMALL, TRAIN

from varitext.answers.fitting import architecture_for
from varitext.answers.networks import answer_objective
from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe, AnswerSettings, flat_settings, settings_from_flat
from varitext.answers.training_data import questions_to_learn
from varitext.errors import InputError
from varitext.models.answers.vocabulary import AnswerWords
from varitext.text import Vocabulary


def test_the_constructor_is_that_of_the_record():
    parameters = inspect.signature(AnswerRanker).parameters.values()
    record = {field.name: field.default for field in dataclasses.fields(AnswerSettings)}
    assert {one.name: one.default for one in parameters} == record
    positional = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert positional == ["model", "latent_dim"] and list(AnswerRanker().get_params(deep=False)) == sorted(record)
    assert vars(AnswerRanker("lstm", seed=3)) == vars(AnswerSettings("lstm", seed=3))


def test_no_setting_has_the_name_of_another():
    named = flat_settings(AnswerSettings())
    assert len(named) == len(dataclasses.fields(AnswerSettings)) - 1 + len(dataclasses.fields(AnswerRecipe))
    changed = AnswerSettings("lstm", seed=3, recipe=AnswerRecipe(layers=1, most_wrong=None))
    assert vars(settings_from_flat(flat_settings(changed))) == vars(changed)
    with pytest.raises(InputError, match="has no setting 'layer'"):
        settings_from_flat({"layer": 1})


def test_an_initialization_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="initialization is pytorch or forget_bias or word_sums, not 'zeros'"):
        AnswerRanker("lstm", recipe=AnswerRecipe(initialization="zeros")).fit(TRAIN, DEV)


def test_a_ranker_is_an_estimator():
    ranker = AnswerRanker("lstm", counts=True, recipe=AnswerRecipe(layers=1))
    assert vars(clone(ranker)) == vars(ranker)
    assert repr(AnswerRanker("lstm").set_params(counts=True)) == "AnswerRanker(model='lstm', counts=True)"
    with pytest.raises(ValueError, match="AnswerRanker has no parameter 'count'; it has: batch_size, counts, "):
        ranker.set_params(seed=1, count=False)
    assert ranker.seed == 0
    for refused in (check_is_fitted, lambda one: one.save("nowhere")):
        with pytest.raises(NotFittedError, match="This AnswerRanker instance is not fitted yet"):
            refused(ranker)


def test_a_grid_of_settings_is_searched():
    columns = {"question": [f"who wrote {name}" for name in "abcdef" for _ in "12"], "label": [1, 0] * 6}
    table = pandas.DataFrame(columns | {"answer": ["she wrote it", "it was old"] * 6})
    parts = GroupKFold(2).split(table, groups=table["question"])
    ranker = AnswerRanker("overlap", vectors="random", threads=1)
    found = GridSearchCV(ranker, {"features": ["bm25", "log_length"]}, scoring=map_of, cv=parts).fit(table)
    assert found.best_params_ == {"features": "bm25"} and found.best_score_ == 1


def map_of(ranker: AnswerRanker, table: pandas.DataFrame) -> float:
    return ranker.evaluate(table, baselines=False).ranking.map


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
