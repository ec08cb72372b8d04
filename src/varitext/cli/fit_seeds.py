"""`varitext fit --seeds N`: the same fit from N seeds, the mean of their held-out scores, and the best model.

The folder holds the model of the best seed, so that every command takes it; `seeds.json`, the table; and the models of
all seeds, each in its own folder, for `varitext compare` and for --resume.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from varitext.cli.fit_run import check_place_for_model, is_finished_model, lock_folder
from varitext.cli.printing import log
from varitext.errors import InputError
from varitext.files import refuse_to_overwrite, write_json
from varitext.loading import Estimator, load_any
from varitext.records import DictRecord

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel


SEEDS_FILE = "seeds.json"
PERPLEXITY, MAP = "held-out perplexity", "dev MAP"
MAY_DIFFER = {"threads", "device", "time_limit", "verbose"}  # between a finished seed and the others


@dataclass(frozen=True)
class SeedScores(DictRecord):
    """The held-out scores of a fit with several seeds: `seeds.json`."""

    measure: str
    scores: dict[str, float]  # by seed
    mean: float
    interval_95: tuple[float, float]
    best_seed: int


def fit_seeds(
    out: Path, resume: bool, trust: str | None, models: Iterator[Estimator], fit: Callable[[Estimator, Path], None]
) -> None:
    """Fit each of the models, which differ in their seed, by `fit(model, folder)`; the best one is also in `out`."""
    from varitext.documents.model import DocumentModel

    if not resume or (out / "config.json").exists():
        refuse_to_overwrite(out)
    scores: dict[int, float] = {}
    for model in models:
        folder = seed_folder(out, model.seed)
        if resume and is_finished_model(folder):
            scores[model.seed] = held_out_score(_finished(folder, model, trust))
            continue
        if scores:  # the first needs no heading; what is wrong with it is said in one line
            log(f"seed {model.seed}")
        with lock_folder(folder):
            check_place_for_model(folder, resume, trust)
            fit(model, folder)
        scores[model.seed] = held_out_score(model)
    table = seed_scores(scores, PERPLEXITY if isinstance(model, DocumentModel) else MAP)
    for file in sorted(seed_folder(out, table.best_seed).iterdir(), key=lambda file: file.name == "config.json"):
        shutil.copy2(file, out / file.name)  # config.json last: without it, the folder is not a model
    write_json(out / SEEDS_FILE, table.as_dict())
    _print_table(table, out)


def seed_folder(out: Path, seed: int) -> Path:
    return out / f"seed-{seed}"


def seed_folders(folder: Path) -> list[Path]:
    """The models of all seeds if the folder was fitted with --seeds, otherwise the folder itself."""
    return sorted(folder.glob("seed-*")) if (folder / SEEDS_FILE).is_file() else [folder]


def held_out_score(model: "DocumentModel | AnswerRanker") -> float:
    """Perplexity of held-out documents, or MAP on dev questions."""
    from varitext.documents.fitting import FittedDocuments

    fitted = model.fitted_
    if isinstance(fitted, FittedDocuments):
        return fitted.dev_perplexity
    return fitted.dev_map if fitted.comparison is None else fitted.comparison.ranker


def seed_scores(scores: dict[int, float], measure: str) -> SeedScores:
    from varitext.evaluation.significance import seed_interval

    interval = seed_interval(list(scores.values()))
    best = (max if measure == MAP else min)(scores, key=scores.__getitem__)
    by_seed = {str(seed): score for seed, score in scores.items()}
    return SeedScores(measure, by_seed, interval.mean, interval.bounds, best)


def _finished(
    folder: Path, wanted: "DocumentModel | AnswerRanker", trust: str | None
) -> "DocumentModel | AnswerRanker":
    """The model of a seed that an earlier run finished; refused if its settings were others."""
    found = load_any(folder, trust=trust)
    before, now = found.get_params(deep=False), wanted.get_params(deep=False)
    for name in sorted(before.keys() - MAY_DIFFER):
        if before[name] != now[name]:
            raise InputError(
                f"{folder} was fitted with other settings ({name} {before[name]}, now {now[name]}): "
                "resume with the same settings, or remove it first"
            )
    log(f"seed {wanted.seed}: finished before")
    return found


def _print_table(table: SeedScores, out: Path) -> None:
    digits = 4 if table.measure == MAP else 1
    log(f"seed  {table.measure}")
    for seed, score in table.scores.items():
        log(f"{seed:>4}  {score:{len(table.measure)}.{digits}f}{'  best' if int(seed) == table.best_seed else ''}")
    low, high = table.interval_95
    interval = f"95 % interval {low:.{digits}f} to {high:.{digits}f}"
    log(f"mean  {table.mean:{len(table.measure)}.{digits}f}  {interval}, {len(table.scores)} seeds")
    log(f"best model in {out}, table in {out / SEEDS_FILE}, all models in {out / 'seed-*'}")
