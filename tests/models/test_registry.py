"""Registries of models: plug-ins by entry point, classes that a folder names, architecture arguments."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from varitext import InputError
from varitext.models import registry
from varitext.models.registry import (
    ModelEntry,
    home_of,
    plug_ins,
    stored_name,
    trusted_class,
    with_network_arguments,
)

FOLDER = Path("folder")
OWN = {"own": ModelEntry("Own", f"{__name__}:Own")}


class Own:
    def __init__(self, vocabulary_size, hidden_dim=5): ...


class Other:
    class Inner: ...


def test_entry_points_extend_a_registry_without_an_import(monkeypatch):
    point = EntryPoint("mine", "no_such_package.models:Mine", "varitext.document_models")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == point.group else [])
    found = plug_ins("varitext.document_models", ModelEntry)
    assert found == {"mine": ModelEntry("mine", "no_such_package.models:Mine", plug_in=True)}
    assert plug_ins("varitext.answer_models", ModelEntry) == {}
    with pytest.raises(ImportError):
        found["mine"].imported()


def test_a_folder_names_own_models_by_name_and_others_by_their_class():
    models = OWN | {"mine": ModelEntry("mine", "package.models:Mine", plug_in=True)}
    assert stored_name("own", models) == stored_name(Own, models) == "own"
    assert stored_name("mine", models) == "package.models:Mine"
    assert stored_name(Other, models) == home_of(Other) == f"{__name__}:Other"
    assert OWN["own"].imported() is Own


def test_only_the_class_that_the_caller_asked_for_is_imported(monkeypatch):
    home = home_of(Other.Inner)
    assert trusted_class(home, home, FOLDER) is Other.Inner
    assert trusted_class(home, Other.Inner, FOLDER) is Other.Inner
    with pytest.raises(InputError, match="install its package"):
        trusted_class("no_such_package:Mine", "no_such_package:Mine", FOLDER)
    monkeypatch.setattr(registry.importlib, "import_module", lambda name: pytest.fail(f"imported {name}"))
    for trust in (None, home_of(Own), Own, "", f"{home} "):
        with pytest.raises(InputError, match="not part of varitext"):
            trusted_class(home, trust, FOLDER)


def test_network_arguments_are_those_of_the_class():
    assert with_network_arguments(Own, {"vocabulary_size": 3}, None) == {"vocabulary_size": 3}
    assert with_network_arguments(Own, {"vocabulary_size": 3}, {"hidden_dim": 7})["hidden_dim"] == 7
    with pytest.raises(InputError, match="Own has no argument 'hiden_dim'; it has: hidden_dim"):
        with_network_arguments(Own, {}, {"hiden_dim": 7}, reserved=["vocabulary_size"])
    with pytest.raises(InputError, match="no argument 'vocabulary_size'"):
        with_network_arguments(Own, {}, {"vocabulary_size": 7}, reserved=["vocabulary_size"])
