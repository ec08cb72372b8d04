"""Document experiments beyond the paper on small corpora."""

import numpy as np
import pytest
from small_corpora import use_small_documents
from synthetic import topic_documents

from lab import experiment_named
from lab.experiments import generality, likelihoods, topics
from lab.experiments.generality import MadeCorpus
from lab.pages import documents
from varitext.reproduce.engine import Plan, reproduce


@pytest.mark.parametrize("name", ["document-evaluation", "likelihoods"])
def test_experiments_run_from_fit_to_table(name, monkeypatch, tmp_path):
    use_small_documents(monkeypatch, likelihoods)
    plan = Plan(quick=True, models=tmp_path / "models", threads=1)
    table = reproduce(experiment_named(name), plan, tmp_path, lambda _: None)
    rows = table.splitlines()
    assert len(rows) > 3 and "nan" not in table and len({row.count("|") for row in rows}) == 1


def test_corpora_of_many_sizes_from_texts_to_table(monkeypatch, tmp_path):
    """Documents that training has word for word are left out of those that are held out, and counted."""
    pytest.importorskip("tomotopy", reason="needs the extra lda")
    words = np.array([a + b for a in "bcdfghklmnprst" for b in ("at", "en", "ig", "ox", "up")])
    rows = topic_documents(100, words=len(words)).toarray().astype(int)
    texts = [" ".join(np.repeat(words, row)) for row in rows]
    made = MadeCorpus(lambda data_dir: texts + texts[:50], 60, "anything")
    monkeypatch.setattr(generality, "MADE_CORPORA", {"small": made})
    monkeypatch.setattr(generality, "is_here", lambda corpus, plan: corpus == "anything")
    table = reproduce(experiment_named("generality"), Plan(quick=True, threads=1), tmp_path, lambda _: None)
    found = generality.measure("small", "nvdm", Plan(quick=True, threads=1))
    assert found["documents"] == 120 and found["words"] <= 60
    assert found["repeated"] > 0 and found["repeated"] + found["test_documents"] == 30
    assert "nan" not in table and f"| {found['repeated']} |" in table
    train, test, _ = made.split(None)
    assert not {tuple(row) for row in train.toarray()} & {tuple(row) for row in test.toarray()}


def test_topics_are_measured_on_counts_and_on_articles(monkeypatch):
    records = [
        {
            "settings": {"corpus": corpus, "system": "regions", "topics": number, "seed": seed},
            "result": {"topics": [["a", "b"], ["c", "d"]], "npmi": 0.1 * (1 + seed), "c_v": None, "unique_words": 1.0},
        }
        for corpus, number in (("20newsgroups-nvdm", 50), ("20newsgroups", 20))
        for seed in (0, 1)
    ]
    *_, articles, counts = topics.table(records).splitlines()
    assert articles.split(" | ")[:4] == ["| 20newsgroups", "NVDM, topics", "20", "0.150"]
    assert counts.split(" | ")[:3] == ["| 20newsgroups-nvdm", "NVDM, topics", "50"]
    for here, numbers in ((True, {50, 20}), (False, {50})):
        monkeypatch.setattr(topics, "is_here", lambda corpus, plan, here=here: here)
        assert {run.settings["topics"] for run in topics.runs(Plan(quick=True))} == numbers


def test_what_all_of_rcv1_takes_by_hand(monkeypatch):
    """100 seconds for 10 passes over 20,737 documents; the settings allow 8 passes over 794,414."""
    measured = {"fit_seconds": 100.0, "epochs": 10, "evaluation_seconds": 60.0, "n_documents": 5000}
    monkeypatch.setattr(documents, "results_of", lambda name, **settings: [measured] * (settings["model"] == "sbn"))
    table = documents.full_rcv1({"reading_seconds": 600, "recovering_seconds": 120, "peak_megabytes": 1500})
    assert "about 600 s" in table and "another 120 s" in table and "1.5 GB" in table
    hours = 100 / 10 / 20_737 * 8 * 794_414 / 3600
    assert table.splitlines()[-1] == f"| SBN, K = 50 | 8 | {hours:.1f} | 2 |"
