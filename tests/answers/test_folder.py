"""Model folders of rankers: version 1, networks of other packages, one reading; see also `test_answer_ranker.py`."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_up_questions import made_up
from sklearn.base import clone

from varitext import AnswerRanker, InputError
from varitext.files import read_config
from varitext.loading import load_document_model, load_ranker
from varitext.models.answers import ANSWER_MODELS, AnswerEntry
from varitext.models.answers.recurrent import LSTM

FOLDER_V1 = Path(__file__).parent / "folder_v1"
TRAIN, DEV = made_up(30, 0), made_up(8, 1)
SMALL = {"vectors": "random", "embedding_dim": 4, "epochs": 1, "threads": 1}
HOME = f"{__name__}:Mine"


class Mine(LSTM):
    """A network of another package."""


@pytest.fixture(scope="module")
def fitted():
    return AnswerRanker(Mine, **SMALL, network={"hidden_dim": 5, "layers": 1}).fit(TRAIN, DEV)


def test_version_1_of_the_folder_stays_readable():
    """tests/answers/folder_v1/make.py wrote it once."""
    expected = json.loads((FOLDER_V1 / "expected.json").read_text())
    ranker, made = AnswerRanker.load(FOLDER_V1 / "model"), runpy.run_path(str(FOLDER_V1 / "make.py"))
    ranking = ranker.rank(made["QUESTION"], made["CANDIDATES"])
    found = {name: [getattr(one, name) for one in ranking.candidates] for name in ("probability", "probability_best")}
    found |= {"pairs": ranker.predict_proba(made_up(4, 2)), "sampled": ranker.sample_proba(made_up(4, 2), 2)}
    for name, values in (found | {"none": [ranking.probability_none]}).items():
        np.testing.assert_allclose(values, expected[name], atol=1e-4, err_msg=name)
    assert [one.place for one in ranking.candidates] == expected["places"]
    assert len(ranker.fitted_.first_stage.models) == 2 and ranker.fitted_.combination is not None


def test_a_folder_is_read_once(fitted, tmp_path, monkeypatch):
    AnswerRanker("overlap", **SMALL).fit(TRAIN, DEV).save(tmp_path / "model")
    read = []

    def counted(folder, *rest):
        read.append(folder)
        return read_config(folder, *rest)

    monkeypatch.setattr("varitext.store.read_config", counted)
    assert load_ranker(tmp_path / "model", threads=1).threads == 1 and len(read) == 1
    with pytest.raises(InputError, match="holds a ranker of answers"):
        load_document_model(tmp_path / "model")


# Networks of other packages


def test_shapes_are_checked_without_a_compiler():
    """torch computes some functions of tensors without values in Python, and imports for seconds for that."""
    code = f"""
import sys
from functools import partial
from pathlib import Path
from varitext import InputError, Vocabulary
from varitext.answers.fitting import architecture_for
from varitext.answers.settings import AnswerSettings
from varitext.layers.architecture import check_architecture
from varitext.models.answers import model_class
from varitext.models.answers.vocabulary import AnswerWords
for name in {[name for name, one in ANSWER_MODELS.items() if one.trained_by_gradient and not one.extra]}:
    architecture = architecture_for(AnswerSettings(name), AnswerWords(Vocabulary(("a", "b")), None, "random", 0))
    try:
        check_architecture(partial(model_class(name), **architecture), architecture, {{}}, Path("model"))
    except InputError as differing:
        assert "the weights do not fit" in str(differing)
    assert not {{"torch._dynamo", "sympy"}} & set(sys.modules), name
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_class_is_a_model(fitted):
    assert type(fitted.fitted_.network) is Mine and fitted.fitted_.architecture["hidden_dim"] == 5
    assert clone(fitted).model is Mine
    for other in (str, 5):
        with pytest.raises(InputError, match="a subclass of AnswerNetwork or AnswerScorer is needed"):
            AnswerRanker(other, **SMALL).fit(TRAIN, DEV)
    for name in ("hiden_dim", "latent_dim", "vocabulary_size"):
        with pytest.raises(InputError, match=f"Mine has no argument '{name}'; it has: hidden_dim, layers"):
            AnswerRanker(Mine, **SMALL, network={name: 7}).fit(TRAIN, DEV)


def test_a_class_of_another_package_is_loaded_only_if_it_is_trusted(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["model"] == config["settings"]["model"] == HOME
    for trust in (HOME, Mine):
        loaded = AnswerRanker.load(tmp_path / "model", trust=trust)
        assert loaded.model is Mine and loaded.network == {"hidden_dim": 5, "layers": 1}
        np.testing.assert_array_equal(loaded.predict_proba(DEV), fitted.predict_proba(DEV))
    for trust in (None, f"{LSTM.__module__}:LSTM", LSTM):
        with pytest.raises(InputError, match=f"load the folder with trust='{HOME}'"):
            AnswerRanker.load(tmp_path / "model", trust=trust)


@pytest.mark.parametrize(
    ("name", "trust", "message"),
    [
        ("no_such_package:Mine", "no_such_package:Mine", "install its package"),
        ("json:JSONDecoder", "json:JSONDecoder", "a subclass of AnswerNetwork or AnswerScorer is needed"),
        ("newer", None, "holds a 'newer', which this version of varitext does not have"),
    ],
)
def test_a_class_that_is_missing_or_no_network_is_refused(fitted, tmp_path, name, trust, message):
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    del config["config_sha256"]
    path.write_text(json.dumps(config | {"model": name}))
    with pytest.raises(InputError, match=message):
        AnswerRanker.load(tmp_path / "model", trust=trust)


@pytest.mark.parametrize("value", [2**70, "1", None])
def test_a_parameter_that_is_not_a_number_is_refused(fitted, tmp_path, value):
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["joint"]["parameters"][0] = value
    del config["config_sha256"]
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match="parameters must be"):
        AnswerRanker.load(tmp_path / "model", trust=Mine)


def test_an_entry_point_is_a_name_that_needs_trust_too(monkeypatch, tmp_path):
    monkeypatch.setitem(ANSWER_MODELS, "mine", AnswerEntry("mine", HOME, plug_in=True))
    AnswerRanker("mine", **SMALL).fit(TRAIN, DEV).save(tmp_path / "model")
    with pytest.raises(InputError, match="not part of varitext"):
        AnswerRanker.load(tmp_path / "model")
    assert AnswerRanker.load(tmp_path / "model", trust=HOME).model is Mine
