"""Answer experiments beyond the paper on a small corpus."""

import pytest
import torch
from made_up_questions import WORDS, made_up
from small_corpora import use_small_questions

from lab import experiment_named
from lab.experiments import initialization, lstm_changes, minilm, recipes
from varitext.batches.pairs import PairBatches
from varitext.models.answers.pretrained import NEEDED
from varitext.models.answers.recurrent import LSTM
from varitext.reproduce.engine import Plan, reproduce


@pytest.fixture
def small(monkeypatch):
    use_small_questions(monkeypatch)


@pytest.mark.parametrize("name", ["default-ranker", "feature-groups", "question-latent"])
def test_experiments_run_from_fit_to_table(name, small, tmp_path):
    plan = Plan(quick=True, models=tmp_path / "models", threads=1)
    table = reproduce(experiment_named(name), plan, tmp_path, lambda _: None)
    assert len([line for line in table.splitlines() if line.startswith("|")]) > 3 and "nan" not in table


def test_initialization_by_hand():
    names = [run.name for run in initialization.EXPERIMENT.runs(Plan(seeds=(0,)))]
    assert len(names) == len(set(names)) == 3 * 3

    def record(model, change, seed, value):
        result = {"alone": value, "counts": value + 0.1, "counts_position": value + 0.2, "dev_map": value + 0.05}
        return {"settings": {"model": model, "change": change, "seed": seed}, "result": result | {"dev_kl": 0.0}}

    pytorch, forget_bias, _ = initialization.INITIALIZATIONS
    records = [record("nasm", forget_bias, seed, 0.6 + seed / 10) for seed in (0, 1)]
    rows = initialization.table([*records, record("lstm", pytorch, 0, 0.5)]).splitlines()[2:]
    assert rows == [
        "| LSTM | PyTorch's | 0.5000 | 0.6000 | 0.7000 | 0.5500 | 1 |",
        "| NASM | forget bias | 0.6500 | 0.7500 | 0.8500 | 0.7000 | 2 |",
    ]


def test_changes_to_the_lstm_by_hand():
    batch = next(PairBatches(made_up(6, seed=0), WORDS, 64).in_order())
    torch.manual_seed(0)
    hinge, backward, residual = (
        kind(len(WORDS), embedding_dim=8, hidden_dim=8, layers=1, dropout=0.0)
        for kind in (lstm_changes.HingeLSTM, lstm_changes.ReversedLSTM, lstm_changes.ResidualLSTM)
    )
    encoding = hinge.encode(batch)
    h = torch.zeros(1, len(batch.labels), 0)
    logits, values = (
        one.detach()[0] for one in (hinge.logits(h, encoding), hinge.log_likelihood_of_pairs(h, encoding))
    )
    for place, value in enumerate(values):
        right = logits[(batch.question_of == batch.question_of[place]) & (batch.labels == 1)]
        expected = 0.0 if batch.labels[place] else -max(0.0, 1 + float(logits[place] - right.mean()))
        assert len(right) and float(value) == pytest.approx(expected, abs=1e-5)
    assert torch.equal(lstm_changes._reversed(lstm_changes._reversed(batch.answers)).tokens, batch.answers.tokens)
    assert not torch.allclose(backward.encode(batch).question, LSTM.encode(backward, batch).question)
    with torch.no_grad():
        for parameter in (*residual.of_questions.parameters(), *residual.of_answers.parameters()):
            parameter.zero_()  # layers that add nothing
        torch.testing.assert_close(residual.encode(batch).question, LSTM.encode(residual, batch).question)


def test_minilm_by_hand(monkeypatch):
    """Its runs, with and without the package, and its rows; a fit of it is tested with the model."""
    names = [run.name for run in minilm.runs(Plan(seeds=(0, 1, 2, 3, 4)))]
    assert len(names) == len(set(names)) == 3 + 1 + 2
    monkeypatch.setattr(minilm, "is_installed", lambda: False)
    assert {run.missing for run in minilm.runs(Plan())} == {NEEDED}

    def record(row, seed, value):
        result = {"dev_map": value, "map": value + 0.1, "mrr": value + 0.2, "ece": 0.03, "fit_cpu_seconds": 9.6}
        return {"settings": {"row": row, "seed": seed}, "result": result}

    rows = minilm.table([record("tuned", 0, 0.5), record("frozen", 0, 0.4), record("frozen", 1, 0.6)])
    assert rows.splitlines()[2:] == [
        "| frozen | 2 | 0.5000 ± 0.1000 | 0.6000 ± 0.1000 | 0.7000 ± 0.1000 | 0.030 | 10 |",
        "| tuned | 1 | 0.5000 | 0.6000 | 0.7000 | 0.030 | 10 |",
    ]


def test_recipes_rank_every_question_unseen(small):
    found = recipes.measure("recommended", 0, Plan(quick=True, threads=1))
    assert set(found) == {"alone", "counts", "counts_position", "dev_map", "dev_kl"}
    assert found["counts_position"] > 0.95  # the correct answer is first
