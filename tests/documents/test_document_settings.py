"""The settings record and the estimator's constructor are one and the same, and the record costs nothing to import."""

import inspect
import subprocess
import sys
from dataclasses import fields

from varitext import DocumentModel
from varitext.documents.estimator import DocumentEstimator
from varitext.documents.fitted import FittedDocuments
from varitext.documents.settings import DocumentSettings


def test_the_record_has_the_arguments_of_the_constructor():
    arguments = inspect.signature(DocumentModel).parameters.values()
    assert {one.name: one.default for one in arguments} == {one.name: one.default for one in fields(DocumentSettings)}
    assert [one.name for one in arguments] == [one.name for one in fields(DocumentSettings)]
    assert DocumentModel()._settings() == DocumentSettings()
    assert DocumentModel(**vars(DocumentSettings(seed=3))).get_params()["seed"] == 3


def test_every_field_of_what_was_fitted_is_an_attribute_of_the_estimator():
    declared = inspect.get_annotations(DocumentEstimator)
    assert set(declared) == {f"{field.name}_" for field in fields(FittedDocuments)} | {"n_features_in_"}


def test_the_command_line_can_read_the_record_before_anything_heavy_is_loaded():
    code = "import sys, varitext.documents.settings; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "scipy", "sklearn"} & set(loaded)
