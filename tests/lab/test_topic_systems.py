"""Topics of every system in a process of its own; BERTopic if its packages are available."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from lab import child, experiment_named
from lab.experiments import topic_names, topic_systems, topics, turftopic_protocol
from lab.experiments.topic_systems import BERTOPIC, Task
from lab.experiments.topics import agreement_with_labels
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.reproduce import document_fits
from varitext.reproduce.engine import Plan, reproduce

ENDINGS = ("at", "en", "ig", "ox", "up", "ash", "eck", "ill", "oom", "um")
KINDS = [[letter + ending for ending in ENDINGS] for letter in "bdfgkl"]  # 60 words


@pytest.fixture
def corpus(tmp_path):
    """A file of texts with their labels, as a user has one."""
    generator = np.random.default_rng(0)
    rows = [{"text": " ".join(generator.choice(KINDS[i % 6], 12)), "label": str(i % 6)} for i in range(240)]
    for part in ("train", "test"):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        (tmp_path / "corpus" / f"{part}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return str(tmp_path / "corpus")


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr(topics, "in_child", lambda function, task, *_: topic_systems.find_topics_of(**task))


@pytest.mark.parametrize("system", ["regions", "axes"])
def test_a_run_has_words_groups_and_cost(system, corpus, in_this_process, monkeypatch, tmp_path):
    monkeypatch.setattr(document_fits, "coherence_reference", lambda plan: topics.load_part(corpus, "train", plan))
    plan = Plan(quick=True, models=tmp_path / "models", threads=1)
    found = topics.measure(corpus, system, 3, 0, plan)
    assert all(len(words) == topic_systems.WORDS for words in found["topics"]) and found["unique_words"] > 0
    assert found["processor_seconds"] > 0 and "groups" not in found and ("purity" in found) == (system == "regions")
    again = topics.measure(corpus, system, 3, 0, plan)
    assert again["topics"] == found["topics"] and "processor_seconds" not in again  # the model was kept


def test_bertopic_is_left_out_in_one_line_where_it_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(topics, "is_here", lambda corpus, plan: True)
    monkeypatch.setattr(topics, "is_available", lambda package: False)
    monkeypatch.setattr(topics, "measure", lambda *_: {"topics": [["a", "b"]], "npmi": 0.1, "unique_words": 1.0})
    said = []
    table = reproduce(experiment_named("topics"), Plan(quick=True), tmp_path, said.append)
    assert [line for line in said if "make peers" in line] == [f"topics: {topics.NO_BERTOPIC}"]
    assert "BERTopic" not in table and BERTOPIC[0] not in (tmp_path / "topics-quick.jsonl").read_text()


def test_only_the_folder_of_the_environment_has_peers(monkeypatch, tmp_path):
    """By its absolute path: what lies in the working directory is never imported."""
    (tmp_path / "build" / "peers").mkdir(parents=True)
    (tmp_path / "build" / "peers" / "peer_of_a_test.py").write_text("def here():\n    return {'here': True}\n")
    (tmp_path / "build" / "peers" / "peer_of_a_test").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VARITEXT_PEERS", "")
    assert child.peer_packages() is None and not child.is_available("peer_of_a_test")
    with pytest.raises(InputError, match="peer_of_a_test"):
        child.in_child("peer_of_a_test:here", {}, 1, "peer_of_a_test")
    monkeypatch.setenv("VARITEXT_PEERS", "build/peers")
    with pytest.raises(InputError, match="must be an absolute path, not 'build/peers'"):
        child.in_child("peer_of_a_test:here", {}, 1, "peer_of_a_test")
    monkeypatch.setenv("VARITEXT_PEERS", str(tmp_path / "build" / "peers"))
    assert child.is_available("peer_of_a_test")
    (tmp_path / "build" / "peers" / "peer_of_a_test").rmdir()
    assert child.in_child("peer_of_a_test:here", {}, 1, "peer_of_a_test") == {"here": True}
    with pytest.raises(InputError, match="peer_of_a_test"):
        child.in_child("peer_of_a_test:here", {}, 1)


@pytest.mark.skipif(not child.is_available("bertopic"), reason="needs make peers")
def test_bertopic_finds_topics_of_texts(corpus, tmp_path):
    task = Task(corpus, "bertopic", 3, 0, quick=True, models=str(tmp_path), threads=1)
    found = child.in_child("lab.experiments.topic_systems:find_topics_of", asdict(task), 1, "bertopic")
    assert 1 < len(found["topics"]) <= 3 and {len(words) for words in found["topics"]} == {10}
    assert len(found["groups"]) == 120 and set(found["groups"]) <= {0, 1, 2}
    assert task.kept.exists() and found["peak_memory_mb"] > 0


def test_groups_are_compared_with_labels():
    found = agreement_with_labels([0, 0, 0, 1, 1, 1], ["x", "x", "y", "y", "z", "y"])
    assert found["purity"] == pytest.approx(4 / 6) and found["n_labels"] == 3
    assert agreement_with_labels([5, 5, 7], ["x", "x", "y"])["nmi"] == pytest.approx(1.0)
    assert agreement_with_labels([0, 1, 0, 1], ["x", "x", "y", "y"])["nmi"] == pytest.approx(0.0, abs=1e-9)


def test_a_name_is_chosen_by_the_words_that_a_document_has():
    scores = np.array([2, 0, 2, 1])
    assert topic_names.share_right(scores, 0, np.array([1, 3])) == 1
    assert topic_names.share_right(scores, 0, np.array([1, 2])) == 0.5  # a tie
    assert topic_names.share_right(scores, 3, np.array([0, 1])) == 0
    assert topic_names.share_right(np.zeros(4), 0, np.array([1, 2, 3])) == 0.25  # no name has a word of it


def test_names_are_measured_on_held_out_documents():
    generator = np.random.default_rng(1)
    texts = [" ".join(generator.choice(KINDS[i % 6], 12)) for i in range(240)]
    model = DocumentModel(latent_dim=6, epochs=20, threads=1, n_topics=6).fit(texts[:180])
    found = topic_names.names_chosen(model, [*texts[180:], "unknown"], 0)
    assert found.documents == 60 and 25 < found.near <= found.random <= 100


def test_systems_of_turftopics_protocol_name_the_package_that_they_need(monkeypatch):
    monkeypatch.setattr(turftopic_protocol, "is_here", lambda corpus, plan: True)
    monkeypatch.setattr(turftopic_protocol, "is_available", lambda package: package == "bertopic")
    missing = {run.settings["system"]: run.missing for run in turftopic_protocol.runs(Plan(quick=True))}
    assert {system for system, reason in missing.items() if reason} == {"keynmf", "gmm"}
    assert "turftopic is not available: run `make peers`" in missing["gmm"]
