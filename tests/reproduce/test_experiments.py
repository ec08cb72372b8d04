"""The engine: runs that are measured once, tables of their records; every answer experiment on a small corpus."""

import json
import re
from unittest.mock import ANY
from xml.etree import ElementTree

import numpy as np
import pytest
from refusal import refused
from small_corpora import questions, use_small_questions

from varitext.reproduce import EXPERIMENTS, answer_fits, engine, experiment_named, overfitting, table4
from varitext.reproduce.engine import Experiment, Plan, Run, read_records, reproduce


@pytest.fixture
def small(monkeypatch):
    use_small_questions(monkeypatch)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Where the experiments keep fitted models for each other."""
    return tmp_path_factory.mktemp("models")


def counting_experiment(measured: list[int]) -> Experiment:
    def runs(plan):
        for seed in plan.seeds_or(3):
            yield Run({"seed": seed}, lambda seed=seed: measured.append(seed) or {"value": seed * 10})

    return Experiment("counting", "counts", runs, lambda records: str([one["result"]["value"] for one in records]))


def test_what_is_measured_is_not_measured_again(tmp_path):
    measured, said = [], []
    experiment = counting_experiment(measured)
    assert reproduce(experiment, Plan(seeds=(1,)), tmp_path, said.append) == "[10]"
    assert reproduce(experiment, Plan(), tmp_path, said.append) == "[0, 10, 20]"
    assert measured == [1, 0, 2]
    assert said == ["counting: 1", "counting: 0", "counting: 1 is already measured", "counting: 2"]
    record = json.loads((tmp_path / "counting.jsonl").read_text().splitlines()[1])
    assert record["settings"] == {"seed": 1} and record["seconds"] >= 0 and record["versions"]["torch"]


def test_runs_are_chosen_by_their_names(tmp_path):
    measured = []
    experiment = counting_experiment(measured)
    assert reproduce(experiment, Plan(only="2"), tmp_path, lambda _: None) == "[20]" and measured == [2]
    refused(
        lambda: reproduce(experiment, Plan(only="20"), tmp_path, lambda _: None), "no run with '20'", "Closest", "2"
    )


def test_quick_results_do_not_mix_with_real_ones(tmp_path):
    experiment = counting_experiment([])
    reproduce(experiment, Plan(quick=True), tmp_path, lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["counting-quick.jsonl"]
    refused(lambda: read_records(experiment, tmp_path), "has no results")


def test_a_run_that_fails_leaves_nothing(tmp_path):
    def runs(plan):
        yield Run({"seed": 0}, lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        reproduce(Experiment("failing", "", runs, str), Plan(), tmp_path, lambda _: None)
    assert not list(tmp_path.iterdir())


def test_every_experiment_says_what_it_is():
    for name in EXPERIMENTS:
        experiment = experiment_named(name)
        assert experiment.name == name and experiment.about
    refused(lambda: experiment_named("tabel4"), "Unknown experiment 'tabel4'")


@pytest.mark.parametrize(
    "name", ["table4", "map-by-samples", "question-types", "complexity", "attention", "hinton", "overfitting"]
)
def test_experiments_run_from_fit_to_table(name, small, tmp_path, models):
    plan = Plan(quick=True, models=models, threads=1)
    table = reproduce(experiment_named(name), plan, tmp_path, lambda _: None)
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len(rows) > 3 and "nan" not in table
    if experiment_named(name).figure:
        drawn = ElementTree.parse(tmp_path / f"{name}-quick.svg").getroot()
        assert len(list(drawn.iter())) > 20 and "nan" not in (tmp_path / f"{name}-quick.svg").read_text()
    assert len({row.count("|") for row in table.split("\n\n")[-1].splitlines()}) == 1


def test_overfitting_is_measured_to_the_last_epoch(small, monkeypatch):
    """Not the quick way, which leaves out what makes it long: patience is a setting of the recipe."""
    monkeypatch.setattr(overfitting, "EPOCHS", 8)
    found = overfitting.measure("lstm_attention", 0, Plan(threads=1))
    assert [len(values) for values in found.values()] == [9] * 3  # before training, and after each epoch


def test_the_papers_networks_have_its_sizes(small):
    ranker = answer_fits.fit_ranker("wikiqa", "lstm", 0, Plan(quick=True, threads=1), vectors="random")
    assert ranker.fitted_.architecture == {
        "vocabulary_size": ANY, "embedding_dim": 50, "hidden_dim": 50, "layers": 3, "dropout": 0.4,
        "fixed_words": 0, "initialization": "word_sums",
    }  # fmt: skip


def test_experiments_share_fitted_models(small, tmp_path):
    plan = Plan(quick=True, models=tmp_path, threads=1)
    first = answer_fits.fitted_ranker("wikiqa", "nasm", 0, plan)
    config = (tmp_path / "wikiqa-nasm-0-quick" / "config.json").read_bytes()
    again = answer_fits.fitted_ranker("wikiqa", "nasm", 0, plan)
    assert np.array_equal(first.predict_proba(questions(9, 3)), again.predict_proba(questions(9, 3)))
    assert (tmp_path / "wikiqa-nasm-0-quick" / "config.json").read_bytes() == config


def test_a_run_is_repeated_if_asked(tmp_path):
    measured = []
    experiment = counting_experiment(measured)
    for rerun in (False, True):
        reproduce(experiment, Plan(seeds=(1,), rerun=lambda record, rerun=rerun: rerun), tmp_path, lambda _: None)
    assert measured == [1, 1] and len(read_records(experiment, tmp_path)) == 1


def test_a_repeated_run_with_the_same_figures_confirms_the_earliest_one(tmp_path, monkeypatch):
    figures = {"map": 0.7, "rows": {"seconds": 1.0, "n": 3, "each": [1.0, 0.4]}}

    def measured_again(result):
        run = Run({"seed": 0}, lambda: result)
        again = Experiment("counting", "counts", lambda plan: iter([run]), lambda records: "")
        reproduce(again, Plan(rerun=lambda record: True), tmp_path, lambda _: None)
        return read_records(again, tmp_path)[0]

    first = measured_again(figures)
    assert "confirms" not in first
    near = {"map": 0.702, "rows": {"seconds": 9.0, "n": 3, "each": [0.0, 0.0]}}
    assert measured_again(near)["confirms"] == first["commit"]
    monkeypatch.setattr(engine, "provenance", lambda: {"commit": "later"})
    assert measured_again(near)["commit"] == "later" and measured_again(near)["confirms"] == first["commit"]
    assert "confirms" not in measured_again(near | {"map": 0.71})
    assert "confirms" not in measured_again(near | {"map": 0.71, "more": 1})


def test_two_processes_share_an_experiment(tmp_path):
    """A record that another process wrote during a run is kept."""
    experiment = counting_experiment([])

    def meanwhile():
        reproduce(experiment, Plan(seeds=(1,)), tmp_path, lambda _: None)
        return {"value": 0}

    slow = Experiment("counting", "counts", lambda plan: iter([Run({"seed": 0}, meanwhile)]), experiment.table)
    assert reproduce(slow, Plan(), tmp_path, lambda _: None) == "[0, 10]"


def test_table4_by_hand():
    def record(seed, model, value):
        evaluation = {"map": value, "mrr": value + 0.1, "log_loss": 0.3, "ece": 0.1}
        evaluation |= {"average_precision": [value - 0.1, value, value + 0.1], "protocol": "answerable"}
        result = {"rows": {model: evaluation | {"n_questions": 3}}, "fit_seconds": 10.0 * seed}
        return {"settings": {"corpus": "wikiqa", "model": model, "seed": seed}, "result": result}

    values = {"NASM": 0.6, "LSTM + Att": 0.5}
    records = [record(seed, name, value + seed / 10) for seed in (1, 0) for name, value in values.items()]
    table = table4.table(records)
    nasm = next(line for line in table.splitlines() if line.startswith("| NASM |"))
    assert [float(one) for one in re.findall(r"[\d.]+", nasm)] == [
        0.6705,
        0.6914,
        0.65,
        0.05,
        0.75,
        0.05,
        0.3,
        0.1,
        5,
        2,
    ]
    assert table.startswith("wikiqa, protocol `answerable`: 3 test questions")
    (compared,) = table4.comparisons(records)
    assert compared["difference"] == pytest.approx(0.1)
    assert compared["p_value"] == 0.25  # three questions, all the same way: 2 of 8 signs
