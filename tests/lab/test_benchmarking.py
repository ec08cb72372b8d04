"""The benchmark: every system on a small corpus, what is done once, memory, bounds, tables, growth."""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse
import torch
from command_line import module_in_a_copy, refused, varitext
from synthetic import topic_documents
from torch.distributions import Normal

from lab import child
from lab.benchmark import growth, growth_point, running
from lab.benchmark.growth import Curve, curves, sizes
from lab.benchmark.growth_page import growth_figure, growth_table, softmax_table
from lab.benchmark.limits import multiply_operations, speed_limits
from lab.benchmark.measuring import Task, corpus_parts, measure
from lab.benchmark.synthetic import draw_documents, write_documents
from lab.benchmark.systems import SYSTEMS, Setting, is_installed, system_class
from lab.benchmark.systems.drawn_bound import drawn_bounds
from lab.benchmark.systems.varitext_default import VaritextDefault
from lab.benchmark.tables import comparison, targets
from varitext.errors import InputError
from varitext.layers.counts import multinomial_log_likelihood
from varitext.runtime.devices import running_on
from varitext.runtime.memory import watched

SMALL = Setting(latent_dim=3, threads=1, quick=True)


def write_parts(folder: Path, words: int = 40) -> Path:
    folder.mkdir()
    for part, seed in (("train", 0), ("test", 1)):
        scipy.sparse.save_npz(folder / f"{part}.npz", topic_documents(80, words, seed=seed))
    return folder


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name not in ("gensim", "bertopic")])  # start processes
def test_every_system_fits_transforms_and_bounds(name):
    if not is_installed(name):
        pytest.skip(f"{name} is not installed")
    counts = topic_documents(70, 40)  # more than one batch of the largest
    system = system_class(name)(SMALL)
    system.fit(system.read(counts))
    assert np.asarray(system.transform(system.read(counts[:7]))).shape == (7, 3)
    bounds = system.bounds(counts[:20])
    assert bounds.shape == (20,) and np.isfinite(bounds).all()
    per_word = -bounds / np.asarray(counts[:20].sum(1)).ravel()
    assert (per_word > 1).all() and (per_word < 8).all()  # log 40 is 3.7; hardly trained


def test_drawn_bound_is_below_the_evidence_and_equal_where_q_is_the_posterior():
    """Words that do not depend on h: log p(X) is known, and q = p costs no KL."""
    counts = topic_documents(10, 20)
    log_shares = torch.log_softmax(torch.arange(20.0) / 7, 0)
    exact = counts @ log_shares.double().numpy()
    words = lambda h: log_shares.expand(len(h), 20)  # noqa: E731
    standard = drawn_bounds(
        lambda x: Normal(torch.zeros(len(x), 3), torch.ones(len(x), 3)), Normal(0.0, 1.0), words, counts
    )
    np.testing.assert_allclose(standard, exact, rtol=1e-5)
    moved = drawn_bounds(
        lambda x: Normal(torch.ones(len(x), 3), torch.ones(len(x), 3)), Normal(0.0, 1.0), words, counts
    )
    np.testing.assert_allclose(moved, exact - 1.5, rtol=1e-5)  # KL of N(1, 1) from N(0, 1): a half, three times


def test_drawn_bound_is_that_of_the_multinomial_likelihood():
    from varitext.batches.counts import CountBatch

    counts = topic_documents(5, 20)
    torch.manual_seed(0)
    decoder = torch.nn.Linear(2, 20)
    sure = lambda x: Normal(torch.ones(len(x), 2), torch.full((len(x), 2), 1e-6))  # noqa: E731
    ours = drawn_bounds(sure, Normal(1.0, 1e-6), lambda h: torch.log_softmax(decoder(h), -1), counts)
    expected = multinomial_log_likelihood(decoder(torch.ones(1, 5, 2)), CountBatch.from_rows(counts))[0]
    np.testing.assert_allclose(ours, expected.detach().numpy(), rtol=1e-4)


def test_measuring_gives_one_record(tmp_path):
    task = Task("varitext", str(write_parts(tmp_path / "corpus")), latent_dim=3, threads=1, quick=True)
    record = json.loads(json.dumps(measure(task)))
    assert record["per_document_perplexity"] > 1 and record["fit_seconds"] > 0 and record["words"] == 40
    assert record["transform_limits"]["share_of_multiply_limit"] > 0 < record["fast_documents_per_second"]
    assert set(record["sha256"]) == {"train", "test"} and record["task"]["corpus"] == task.corpus


def test_texts_are_counted_over_the_words_of_train(tmp_path):
    for part, text in (("train", "rocket moon orbit"), ("test", "rocket zebra moon")):
        rows = [json.dumps({"text": f"{text} launch"})] * 12 + [json.dumps({"text": "goal match team"})] * 12
        (tmp_path / f"{part}.jsonl").write_text("\n".join(rows) + "\n")
    train, test, _ = corpus_parts(str(tmp_path), None, quick=False)
    assert train.counts.shape[1] == test.counts.shape[1]
    assert max(test.counts.sum(1)) == max(train.counts.sum(1)) - 1  # the zebra is not known
    of_rockets = ["rocket" in text for text in train.texts]
    assert of_rockets == (np.asarray(train.counts.sum(1)).ravel() == 4).tolist()  # the same documents in the same order


def test_systems_that_read_texts_are_for_corpora_that_have_them():
    assert "bertopic" in running.choose_systems(None, has_texts=True)
    assert "bertopic" not in running.choose_systems(None, has_texts=False)
    with pytest.raises(InputError, match="bertopic reads texts"):
        running.choose_systems(["bertopic"], has_texts=False)


def test_what_is_measured_is_not_measured_again_but_another_task_is(tmp_path, monkeypatch):
    asked = []

    def child(module, task, threads, say, package):
        asked.append(task["system"])
        return {"task": {name: value for name, value in task.items() if name != "data_dir"}} if threads < 9 else None

    monkeypatch.setattr(running, "in_child", child)
    monkeypatch.setattr(running, "is_installed", lambda name: name != "pyro")
    plan, said = Task("varitext", "corpus", threads=1), []
    assert running.run_benchmark(plan, ["varitext", "pyro", "plain"], tmp_path, said.append) == []
    assert asked == ["varitext", "plain"] and any("pip install" in line for line in said)
    running.run_benchmark(plan, ["varitext", "plain"], tmp_path, said.append)
    assert asked == ["varitext", "plain"]
    running.run_benchmark(Task("varitext", "corpus", threads=2), ["plain"], tmp_path, said.append)
    assert asked == ["varitext", "plain", "plain"]
    assert running.run_benchmark(Task("varitext", "corpus", threads=9), ["plain"], tmp_path, said.append) == ["plain"]
    assert list(running.read_records(tmp_path)) == ["varitext", "plain"]


def test_a_child_that_fails_says_why_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(child, "subprocess", SimpleNamespace(run=module_in_a_copy))
    said = []
    task = {"system": "varitext", "corpus": "no-such-corpus"}
    assert running.in_child("lab.benchmark.measuring", task, 1, said.append) is None
    assert "no-such-corpus" in said[0]


def test_the_peak_is_what_was_held_and_let_go():
    with watched() as peak:
        held = np.ones(40 << 17)  # 40 MB
        del held
    assert 38 < peak.above < 80


def test_the_limit_counts_every_product():
    a, b = torch.randn(30, 40), torch.randn(40, 50)
    assert multiply_operations(lambda: a @ b) == 2 * 30 * 40 * 50
    found = speed_limits(lambda: a @ b, seconds=1.0)
    assert found["share_of_multiply_limit"] < 1 and found["multiply_gflops"] == 2 * 30 * 40 * 50 / 1e9


def test_products_of_a_transform_on_two_threads_are_counted():
    """Blocks of documents go to other threads there, where torch counts nothing."""
    system = VaritextDefault(Setting(latent_dim=3, threads=2, seed=0, quick=True))
    documents = topic_documents(documents=600, words=30)
    system.fit(documents)
    vectors = system.transform_here(documents, True)
    np.testing.assert_allclose(vectors, system.transform(documents), rtol=1e-4, atol=1e-5)
    refined, fast = (multiply_operations(partial(system.transform_here, documents, refine)) for refine in (True, False))
    assert refined > fast > 600 * 30 * 3


def record_of(seconds: float, perplexity: float | None, speed: float, memory: float) -> dict:
    limits = {"share_of_multiply_limit": 0.6, "multiply_gflops_per_second": 100.0, "memory_gb_per_second": 10.0}
    return {
        "fit_seconds": seconds,
        "per_document_perplexity": perplexity,
        "transform_documents_per_second": speed,
        "peak_memory_mb": memory,
        "figure": "bound",
        "version": "1.0",
        "versions": {"python": "3.11", "torch": "2"},
        "task": {"corpus": "small", "latent_dim": 5, "threads": 1},
        "cores": 2,
        "load_average": 0.5,
        "documents": 10,
        "words": 20,
        "sha256": {"train": "a" * 64, "test": "b" * 64},
        "transform_limits": limits | {"where_time_goes": {"matrix products": 0.7}},
        "fast_documents_per_second": 6 * speed,
        "fast_limits": limits,
    }


def test_table_and_targets_say_what_the_records_say():
    records = {"varitext": record_of(10, 800, 5000, 100), "tomotopy": record_of(20, 1000, 400, 50)}
    records["pyro"] = record_of(50, None, 9000, 90)
    table = comparison(records)
    assert "| 50.0 | 5.00 | - | - | 9,000 |" in table  # no perplexity
    assert "| 2.00 | 1,000 | 1.25 | 400 | 0.08 | 50 | 0.50 |" in table
    assert "- gensim LDA: not measured; `pip install 'varitext[peers]'`" in table
    found = targets(records)
    assert found["15 % below tomotopy's perplexity"] and found["in at most half its time"]
    assert found["transform ten times the fastest LDA"] and not found["peak memory below every neural peer's"]


def test_slope_of_a_linear_cost_is_one():
    sizes_of = np.array([10.0, 100.0, 1000.0])
    assert Curve("documents", "full", sizes_of, 3 * sizes_of, sizes_of).slope == pytest.approx(1)
    points = [
        {"curve": "words", "softmax": softmax, "words": words, "documents": 5, "latent_dim": 2}
        | {"seconds_per_document": words**power, "peak_memory_mb": 1.0}
        | {"log_normaliser_bias": -0.01, "log_normaliser_spread": 0.1}
        for softmax, power in (("full", 1), ("sampled", 0.5))
        for words in (100, 1000)
    ]
    assert [round(curve.slope, 6) for curve in curves(points)] == [1, 0.5]
    assert "| 1,000 | 31.62 | 0.0100 nats |" in softmax_table(points)
    assert "| words | sampled | 100 to 1,000 |" in growth_table(curves(points))
    assert ElementTree.fromstring(growth_figure(curves(points))).tag.endswith("svg")


def test_every_point_of_growth_has_a_name_of_its_own():
    for quick in (False, True):
        names = [size.name for size in sizes(quick)]
        assert len(names) == len(set(names))


def test_synthetic_documents_are_drawn_from_their_topics():
    blocks = list(draw_documents(6000, 300, seed=1))
    counts = scipy.sparse.vstack(blocks).tocsr()
    assert counts.shape == (6000, 300) and [block.shape[0] for block in blocks] == [5000, 1000]
    assert counts.sum() / 6000 == pytest.approx(100, rel=0.05)
    again = next(draw_documents(6000, 300, seed=1))
    assert (again != blocks[0]).nnz == 0
    assert np.asarray(counts.sum(0)).ravel()[:20].mean() > 5 * np.asarray(counts.sum(0)).ravel()[-20:].mean()


def test_the_command_refuses_what_it_does_not_know(tmp_path):
    assert "no system is called 'mallet'" in refused(
        tmp_path, "benchmark", "--peers", "mallet", "--out", tmp_path / "b"
    )
    with pytest.raises(InputError, match="no train and test parts"):
        corpus_parts(str(write_parts(tmp_path / "corpus") / "train.npz"), None, quick=False)


def test_the_command_measures_in_processes_of_their_own(tmp_path, monkeypatch):
    """Ours in this one, for one import of torch less."""
    corpus, in_child = write_parts(tmp_path / "corpus"), running.in_child

    def ours_here(module: str, task: dict, threads: int, *others: object) -> dict | None:
        return measure(Task(**task)) if task["system"] == "varitext" else in_child(module, task, threads, *others)

    monkeypatch.setattr(running, "in_child", ours_here)
    typed = ("benchmark", corpus, "--peers", "scikit-learn", "--threads", 1, "--latent-dim", 3, "--quick", "--json")
    outcome = varitext(*typed, "--out", tmp_path / "results")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert set(found["systems"]) == {"varitext", "scikit-learn"} and found["failed"] == []
    assert {path.name for path in (tmp_path / "results-quick").iterdir()} == {"varitext.json", "scikit-learn.json"}


def in_this_process(module: str, task: dict, threads: int, say: object) -> dict:
    if module.endswith("growth_point"):
        with running_on(threads):
            return growth_point.measure(growth_point.Point(**task))
    write_documents(Path(task["folder"]), task["documents"], task["words"], task["seed"])
    return {}


def test_the_command_measures_growth_and_draws_it(tmp_path, monkeypatch):
    small = [growth.Size("words", 100, 30, 3), growth.Size("words", 100, 60, 3, "sampled", epochs=1)]
    small.append(growth.Size("words", 100, 60, 3, epochs=1))
    monkeypatch.setattr(growth, "sizes", lambda quick: iter(small))
    monkeypatch.setattr(growth, "in_child", in_this_process)  # seven imports of torch less
    outcome = varitext("benchmark", "--growth", "--threads", 1, "--json", "--out", tmp_path / "results")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert len(found["points"]) == 3 and list(found["slopes"]) == ["words, full softmax"]
    assert all({"commit", "versions", "cpu"} <= set(point) for point in found["points"])
    sampled = next(point for point in found["points"] if point["softmax"] == "sampled")
    assert abs(sampled["log_normaliser_bias"]) < 1e-5  # sixty words are all taken
    ElementTree.parse(tmp_path / "results" / "growth" / "growth.svg")
    again = varitext("benchmark", "--growth", "--threads", 1, "--out", tmp_path / "results")
    assert again.err.count("is there already") == 3 and "| 60 |" in again.out
