"""What the tests of the command line share."""

import pytest


@pytest.fixture(autouse=True)
def no_corpora_from_elsewhere(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
