"""The parameters of `DocumentModel` are declared once, and the record costs nothing to import."""

import inspect
import subprocess
import sys
from dataclasses import fields

from sklearn.base import clone

from varitext import DocumentModel
from varitext.documents.settings import DocumentSettings


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
