"""What tests share."""

import gc
import os
import sys
from pathlib import Path

import hypothesis
import pytest

# modules are compiled once, not by each process that a test starts, even if the environment disables byte code
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

gc.disable()  # while tests are collected: to look for garbage among what is imported takes a third of that time

# the first call of a test imports torch, which takes longer than hypothesis' deadline
hypothesis.settings.register_profile("varitext", deadline=None)
hypothesis.settings.load_profile("varitext")

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when it is first imported

if os.environ.get("VARITEXT_JITTER"):
    from jitter import Jitter

    Jitter().__enter__()  # for as long as the process lives

TESTS = Path(__file__).resolve().parent
BESIDE_THE_REPOSITORY = TESTS.parents[1] / "shared" / "data"
LONGEST = (  # by processor time; those that wait for others, as servers and clusters do, among the first
    "test_ray.py",
    "test_docs.py",
    "runtime/test_processes.py",
    "cli/test_cli.py",
    "serve/test_serve_load.py",
    "serve/test_serve_page.py",
    "serve/test_connections.py",
    "lab/test_faults.py",
    "reproduce/test_experiments.py",
    "corpora/test_shards.py",
    "models/test_contract.py",
    "answers/test_answer_ranker.py",
    "corpora/test_corpora.py",
    "latent/test_estimators.py",
    "models/answers/test_nasm.py",
    "test_examples.py",
    "lab/test_answer_ablations.py",
    "answers/test_ensemble.py",
    "documents/test_document_model.py",
    "cli/test_answer_cli.py",
    "models/answers/test_minilm.py",
    "serve/test_serve.py",
    "runtime/test_devices.py",
    "models/documents/test_rsm.py",
    "serve/test_serve_schema.py",
    "documents/test_updating.py",
    "text/test_segmenters_and_stop_words.py",
    "documents/test_topics.py",
    "report/test_report.py",
    "text/test_text.py",
    "report/test_report_figures.py",
    "answers/test_learning.py",
    "lab/test_document_ablations.py",
    "models/documents/test_nvdm.py",
    "corpora/test_question_answers.py",
    "reproduce/test_document_experiments.py",
    "models/documents/test_discrete_models.py",
    "training/test_training.py",
)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora; tests that need it are skipped where it is not."""
    folder = Path(os.environ.get("VARITEXT_DATA") or BESIDE_THE_REPOSITORY)
    if not (folder / "20news").is_dir():
        pytest.skip(f"no corpora in {folder}: set VARITEXT_DATA")
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()  # what is imported stays
    gc.set_threshold(20_000)  # not 700: hypothesis listens to every collection
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file is the work of one process: the longest come first, so that at the end both have something left to do."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.relative_to(TESTS).as_posix(), len(place)))
