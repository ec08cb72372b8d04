"""The benchmark: every system on a small corpus, memory, bounds, tables, growth."""

import importlib.util
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import topic_documents
from torch.distributions import Normal

from lab import child
from lab.benchmark import compare, growth, synthetic
from lab.benchmark.growth import Curve, curves, growth_table, sizes, softmax_table
from lab.benchmark.synthetic import draw_documents
from lab.benchmark.systems import SYSTEMS, Setting, system_class
from lab.benchmark.systems.drawn_bound import drawn_bounds
from lab.import_graph import ROOT
from lab.speed.timing import best_seconds, median_seconds, multiply_operations, multiply_rate
from varitext.errors import InputError
from varitext.layers.counts import multinomial_log_likelihood
from varitext.reproduce.engine import Plan, read_records, reproduce

SMALL = Setting(latent_dim=3, threads=1, quick=True)


def write_parts(folder, words=40):
    folder.mkdir()
    for part, seed in (("train", 0), ("test", 1)):
        scipy.sparse.save_npz(folder / f"{part}.npz", topic_documents(80, words, seed=seed))
    return str(folder)


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "gensim"])  # starts processes
def test_every_system_fits_transforms_and_bounds(name):
    if not importlib.util.find_spec(SYSTEMS[name].package):
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
    corpus = write_parts(tmp_path / "corpus")
    record = compare.measure("varitext", corpus, latent_dim=3, threads=1, seed=0, quick=True, data_dir=None)
    assert record["per_document_perplexity"] > 1 and record["fit_seconds"] > 0 and record["words"] == 40
    assert record["fast_documents_per_second"] > 0 and set(record["sha256"]) == {"train", "test"}


def test_a_child_that_fails_gives_the_reason():
    with pytest.raises(InputError, match="no_such_function"):
        child.in_child("lab.child:no_such_function", {}, 1)


def test_systems_that_are_not_installed_are_named(monkeypatch, tmp_path):
    asked, said = [], []
    found = {"fit_seconds": 10.0, "per_document_perplexity": 800.0, "transform_documents_per_second": 5000.0}
    found |= {"peak_memory_mb": 100.0, "figure": "bound", "version": "1.0", "cores": 2, "load_average": 0.5}
    found |= {"documents": 10, "words": 20, "fast_documents_per_second": 30_000.0}

    def in_child(function, task, threads, package):
        asked.append(task["system"])
        relative = {"tomotopy": 2.0}.get(task["system"], 1.0)
        return found | {"fit_seconds": 10 * relative, "per_document_perplexity": None if relative == 1 else 900.0}

    monkeypatch.setattr(compare, "in_child", in_child)
    monkeypatch.setattr(compare, "is_installed", lambda name: name in ("varitext", "tomotopy"))
    table = reproduce(compare.EXPERIMENT, Plan(), tmp_path, said.append)
    assert asked == ["varitext", "tomotopy"] and sum("is not installed" in line for line in said) == len(SYSTEMS) - 2
    assert "| 20.0 | 2.00 | 900 |" in table and "| 10.0 | 1.00 | - | - | 5,000 |" in table
    reproduce(compare.EXPERIMENT, Plan(), tmp_path, said.append)
    assert len(asked) == 2
    reproduce(compare.EXPERIMENT, Plan(threads=1), tmp_path, said.append)  # another number of threads is another run
    assert len(asked) == 4


def test_the_peak_is_what_was_held_and_let_go():
    """In a new process: the system may take back unused memory of a large one meanwhile."""
    block = "with watched() as peak:\n held = bytearray(b'x') * (40 << 20)\n del held\nprint(peak.above)"
    told = subprocess.run(
        [sys.executable, "-c", f"from lab.memory import watched\n{block}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert 38 < float(told.stdout) < 80


def test_timing_by_hand():
    a, b = torch.randn(30, 40), torch.randn(40, 50)
    assert multiply_operations(lambda: a @ b) == 2 * 30 * 40 * 50 and multiply_rate(size=64, repeats=2) > 0
    clock = iter([0.0, 3.0, 5.0, 6.0, 10.0, 12.0]).__next__
    assert best_seconds(lambda: None, 3, clock) == 1.0
    turns = []
    median_seconds(lambda: turns.append("a"), lambda: turns.append("b"), repeats=2, warm_up=1)
    assert turns == ["a", "b"] * 3


def test_slope_of_a_linear_cost_is_one():
    sizes_of = np.array([10.0, 100.0, 1000.0])
    assert Curve("documents", "full", sizes_of, 3 * sizes_of, sizes_of).slope == pytest.approx(1)
    points = [
        {
            "settings": {"curve": "words", "documents": 5, "words": words, "latent_dim": 2, "softmax": softmax},
            "result": {"seconds_per_document": words**power, "peak_memory_mb": 1.0}
            | {"log_normaliser_bias": -0.01, "log_normaliser_spread": 0.1},
        }
        for softmax, power in (("full", 1), ("sampled", 0.5))
        for words in (100, 1000)
    ]
    assert [round(curve.slope, 6) for curve in curves(points)] == [1, 0.5]
    assert "| 1,000 | 31.62 | -0.0100 |" in softmax_table(points)
    assert "| words | sampled | 100 to 1,000 |" in growth_table(points)
    assert ElementTree.fromstring(growth.figure(points)).tag.endswith("svg")


def test_every_point_of_growth_has_its_own_name():
    for quick in (False, True):
        names = [run.name for run in growth.runs(Plan(quick=quick))]
        assert len(names) == len(set(names)) == len(list(sizes(quick)))


def test_synthetic_documents_are_drawn_from_their_topics():
    blocks = list(draw_documents(6000, 300, seed=1))
    counts = scipy.sparse.vstack(blocks).tocsr()
    assert counts.shape == (6000, 300) and [block.shape[0] for block in blocks] == [5000, 1000]
    assert counts.sum() / 6000 == pytest.approx(100, rel=0.05)
    again = next(draw_documents(6000, 300, seed=1))
    assert (again != blocks[0]).nnz == 0
    assert np.asarray(counts.sum(0)).ravel()[:20].mean() > 5 * np.asarray(counts.sum(0)).ravel()[-20:].mean()


def test_growth_is_measured_and_drawn(tmp_path, monkeypatch):
    small = [growth.Size("words", 100, 30, 3), growth.Size("words", 100, 60, 3, "sampled", epochs=1)]
    small.append(growth.Size("words", 100, 60, 3, epochs=1))
    functions = {"write_documents": synthetic.write_documents, "measure_point": growth.measure_point}
    here = lambda function, task, threads: functions[function.partition(":")[2]](**task)  # noqa: E731
    monkeypatch.setattr(growth, "sizes", lambda quick: iter(small))
    monkeypatch.setattr(growth, "in_child", here)  # without seven imports of torch
    threads = torch.get_num_threads()
    try:
        reproduce(growth.EXPERIMENT, Plan(threads=1), tmp_path, lambda _: None)
    finally:
        torch.set_num_threads(threads)
    points = read_records(growth.EXPERIMENT, tmp_path)
    assert len(points) == 3 and all({"commit", "versions", "cpu"} <= set(point) for point in points)
    sampled = next(point["result"] for point in points if point["settings"]["softmax"] == "sampled")
    assert abs(sampled["log_normaliser_bias"]) < 1e-5  # all sixty words are taken
    ElementTree.parse(tmp_path / "growth.svg")
