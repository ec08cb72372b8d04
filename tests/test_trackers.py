"""The recipes of docs/how-to/track-experiments.md, where their packages are installed: what was logged is read back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "track-experiments.md"


def code_of(*headings: str) -> str:
    """The Python of these sections."""
    text = PAGE.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    return "\n".join(block for name in headings for block in re.findall(r"```python\n(.*?)```", sections[name], re.S))


@pytest.fixture
def recipe(monkeypatch, tmp_path):
    def run(heading: str) -> dict[str, Any]:
        names: dict[str, Any] = {}
        exec(code_of("Several seeds", "Comparison of document models", "Progress object", heading), names)
        return names

    monkeypatch.chdir(tmp_path)
    return run


def test_tensorboard(recipe):
    pytest.importorskip("tensorboard")
    recipe("TensorBoard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator("runs/nvdm").Reload()
    found = events.Scalars("dev_perplexity")
    assert len(found) == 4 and found[0].step == 0 < found[-1].step and found[-1].value > 1
    assert {"learning_rate", "kl_weight", "dev_kl", "active_units"} <= set(events.Tags()["scalars"])


def test_weights_and_biases(recipe, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    recipe("Weights & Biases")
    (logged,) = Path("wandb").glob("offline-run-*/*.wandb")
    assert all(name in logged.read_bytes() for name in (b"dev_perplexity", b"learning_rate", b"latent_dim"))


def test_mlflow(recipe):
    mlflow = pytest.importorskip("mlflow")
    history = recipe("MLflow")["model"].fitted_.history
    run = mlflow.MlflowClient().get_run(mlflow.last_active_run().info.run_id)
    assert run.data.params == {"latent_dim": "2", "seed": "0"}
    logged = mlflow.MlflowClient().get_metric_history(run.info.run_id, "dev_perplexity")
    assert [(one.step, one.value) for one in logged] == [(one["step"], one["dev_perplexity"]) for one in history]
    stored = json.loads(
        Path(mlflow.artifacts.download_artifacts(f"runs:/{run.info.run_id}/model/config.json")).read_text()
    )
    assert stored["kind"] == "document-model"


def test_optuna(recipe):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = recipe("Optuna")
    study = names["study"]
    assert len(study.trials) == 3 and study.best_value == min(trial.value for trial in study.trials if trial.value)
    assert all(len(trial.intermediate_values) == 4 for trial in study.trials)
    pruned = optuna.create_study(pruner=optuna.pruners.ThresholdPruner(upper=0.0))  # perplexities are above 1
    pruned.optimize(names["objective"], n_trials=1)
    assert pruned.trials[0].state is optuna.trial.TrialState.PRUNED
