"""What tests share."""

import os
from pathlib import Path

import hypothesis
import pytest

# the first call of a test imports torch, which takes longer than hypothesis' deadline
hypothesis.settings.register_profile("varitext", deadline=None)
hypothesis.settings.load_profile("varitext")

if os.environ.get("VARITEXT_JITTER"):
    from jitter import Jitter

    Jitter().__enter__()  # for as long as the process lives

BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora; tests that need it are skipped where it is not."""
    folder = Path(os.environ.get("VARITEXT_DATA") or BESIDE_THE_REPOSITORY)
    if not (folder / "20news").is_dir():
        pytest.skip(f"no corpora in {folder}: set VARITEXT_DATA")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups first: each is the work of one process, and the other should have something left to do beside it."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
