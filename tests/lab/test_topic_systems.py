"""Topics of every system in a process of its own; BERTopic where its packages are."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import module_in_a_copy

from lab import child
from lab.experiments import experiment_named, topic_systems, topics
from lab.experiments.topic_systems import BERTOPIC, Task
from varitext.errors import InputError
from varitext.reproduce.document_fits import ARTICLES
from varitext.reproduce.engine import Plan, reproduce

ENDINGS = ("at", "en", "ig", "ox", "up", "ash", "eck", "ill", "oom", "um")
KINDS = [[letter + ending for ending in ENDINGS] for letter in "bdfgkl"]  # 60 words


@pytest.fixture
def corpus(tmp_path):
    """A file of texts with their labels, as a user has one."""
    generator = np.random.default_rng(0)
    rows = [{"text": " ".join(generator.choice(KINDS[i % 6], 12)), "label": str(i % 6)} for i in range(120)]
    for part in ("train", "test"):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        (tmp_path / "corpus" / f"{part}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return str(tmp_path / "corpus")


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr(topics, "in_child", lambda module, task, *_: topic_systems.find_topics(Task(**task)))


@pytest.mark.parametrize("system", ["regions", "axes"])
def test_a_run_has_words_groups_and_cost(system, corpus, in_this_process, monkeypatch, tmp_path):
    monkeypatch.setattr(topics, "coherence_reference", lambda plan: topics.load_part(corpus, "train", plan))
    plan = Plan(quick=True, models=tmp_path / "models", threads=1)
    found = topics.measure(corpus, system, 3, 0, plan)
    assert all(len(words) == topic_systems.WORDS for words in found["topics"]) and found["unique_words"] > 0
    assert found["processor_seconds"] > 0 and "groups" not in found and ("purity" in found) == (system == "regions")
    again = topics.measure(corpus, system, 3, 0, plan)
    assert again["topics"] == found["topics"] and "processor_seconds" not in again  # the model was kept


def test_what_fails_in_its_process_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "subprocess", SimpleNamespace(run=module_in_a_copy))
    with pytest.raises(InputError, match="no-such-corpus"):
        topics.measure("no-such-corpus", "regions", 3, 0, Plan(quick=True, threads=1))


def test_bertopic_is_left_out_in_one_line_where_it_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(topics, "is_here", lambda corpus, plan: True)
    monkeypatch.setattr(topics, "is_available", lambda package: False)
    monkeypatch.setattr(topics, "measure", lambda *_: {"topics": [["a", "b"]], "npmi": 0.1, "unique_words": 1.0})
    said = []
    table = reproduce(experiment_named("topics"), Plan(quick=True), tmp_path, said.append)
    assert [line for line in said if "make peers" in line] == [f"topics: {topics.NO_BERTOPIC}"]
    assert "BERTopic" not in table and not list(tmp_path.glob(f"*/{ARTICLES}-{BERTOPIC[0]}-*"))


def test_peers_have_a_folder_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setenv("VARITEXT_PEERS", str(tmp_path))
    assert not child.is_available("peer_of_a_test")
    (tmp_path / "peer_of_a_test").mkdir()
    (tmp_path / "peer_of_a_test" / "__main__.py").write_text("print('{\"here\": true}')")
    assert child.is_available("peer_of_a_test")
    said = []
    assert child.in_child("peer_of_a_test", {}, 1, said.append, "peer_of_a_test") == {"here": True}
    assert child.in_child("peer_of_a_test", {}, 1, said.append) is None and "peer_of_a_test" in said[0]


@pytest.mark.skipif(not child.is_available("bertopic"), reason="needs make peers")
def test_bertopic_finds_topics_of_texts(corpus, tmp_path):
    task = Task(corpus, "bertopic", 3, 0, quick=True, models=str(tmp_path), threads=1)
    found = topics._found(task)
    assert 1 < len(found["topics"]) <= 3 and {len(words) for words in found["topics"]} == {10}
    assert len(found["groups"]) == 120 and set(found["groups"]) <= {0, 1, 2}
    assert task.kept.exists() and found["peak_memory_mb"] > 0
