"""Networks of other packages: by class or entry point, with architecture arguments, and loaded only if trusted."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.base import clone
from synthetic import topic_documents

from varitext import DocumentModel, InputError
from varitext.models.documents import DOCUMENT_MODELS, DocumentEntry
from varitext.models.documents.nvdm import NVDM
from varitext.models.documents.nvdm_dcm import NVDMDCM

COUNTS = topic_documents(documents=60, words=24, topics=3, length=15)
SMALL = {"latent_dim": 3, "epochs": 2, "threads": 1, "n_topics": 2}
HOME = f"{__name__}:FixedAxes"


class FixedAxes(NVDM):
    """NVDM whose latent dimensions are shown as they are."""

    free_axes = False


@pytest.fixture(scope="module")
def fitted() -> DocumentModel:
    return DocumentModel(FixedAxes, **SMALL, network={"hidden_dim": 7}).fit(COUNTS)


def test_a_class_is_a_model(fitted):
    assert type(fitted.fitted_.network) is FixedAxes and fitted.fitted_.model == HOME
    assert clone(fitted).model is FixedAxes
    assert DocumentModel(NVDM, **SMALL).fit(COUNTS).fitted_.model == "nvdm"
    for other in (str, FixedAxes(24, 3), 5):
        with pytest.raises(InputError, match="a subclass of DocumentNetwork is needed"):
            DocumentModel(other, **SMALL).fit(COUNTS)
    with pytest.raises(InputError, match="no preset is called 'paper'; there are: recommended"):
        DocumentModel(FixedAxes, **SMALL, preset="paper").fit(COUNTS)


@pytest.mark.parametrize("kind", [NVDM, NVDMDCM])
def test_a_gaussian_h_whose_axes_are_not_free_is_shown_on_its_own(kind, tmp_path):
    own_axes = type("OwnAxes", (kind,), {"free_axes": False})
    model = DocumentModel(own_axes, **SMALL).fit(COUNTS).partial_fit(COUNTS, epochs=1)
    assert np.isfinite(model.fitted_.kl_per_dimension).all() and (model.posterior(COUNTS).std > 0).all()
    np.testing.assert_array_equal(model.word_vectors_, model.fitted_.network.word_directions().numpy())
    model.save(tmp_path / "model")
    assert "axes" not in load_file(tmp_path / "model" / "weights.safetensors")
    loaded = DocumentModel.load(tmp_path / "model", trust=own_axes)
    np.testing.assert_array_equal(loaded.transform(COUNTS), model.transform(COUNTS))


def test_architecture_arguments_go_to_the_network(fitted):
    assert fitted.fitted_.architecture["hidden_dim"] == 7
    for name, value in (("hiden_dim", 7), ("latent_dim", 7), ("vocabulary_size", 7)):
        with pytest.raises(InputError, match=f"FixedAxes has no argument '{name}'; it has: inference, hidden_dim"):
            DocumentModel(FixedAxes, **SMALL, network={name: value}).fit(COUNTS)


def test_a_folder_with_a_class_of_another_package_is_loaded_only_if_it_is_trusted(fitted, tmp_path):
    folder = tmp_path / "model"
    fitted.save(folder)
    config = json.loads((folder / "config.json").read_text())
    assert config["model"] == config["settings"]["model"] == HOME
    for trust in (HOME, FixedAxes):
        loaded = DocumentModel.load(folder, trust=trust)
        assert loaded.model is FixedAxes and loaded.network == {"hidden_dim": 7}
        np.testing.assert_array_equal(loaded.transform(COUNTS), fitted.transform(COUNTS))
    for trust in (None, f"{NVDM.__module__}:NVDM", NVDM):
        with pytest.raises(InputError, match=f"load the folder with trust='{HOME}'"):
            DocumentModel.load(folder, trust=trust)


@pytest.mark.parametrize(
    ("name", "message"),
    [("no_such_package:Mine", "install its package"), ("json:JSONDecoder", "not a subclass of DocumentNetwork")],
)
def test_a_trusted_class_that_is_missing_or_no_network_is_refused(fitted, tmp_path, name, message):
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    del config["config_sha256"]
    path.write_text(json.dumps(config | {"model": name}))
    with pytest.raises(InputError, match=message):
        DocumentModel.load(tmp_path / "model", trust=name)


def test_an_entry_point_is_a_name_that_needs_trust_too(monkeypatch, tmp_path):
    monkeypatch.setitem(DOCUMENT_MODELS, "fixed_axes", DocumentEntry("fixed_axes", HOME, plug_in=True))
    model = DocumentModel("fixed_axes", **SMALL).fit(COUNTS)
    assert model.fitted_.model == HOME
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match="not part of varitext"):
        DocumentModel.load(tmp_path / "model")
    assert DocumentModel.load(tmp_path / "model", trust=HOME).model == "fixed_axes"
