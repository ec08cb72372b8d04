"""What surrounds every fit: progress, Ctrl-C, divergence, a full disk, and the model folder at the end."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from varitext.cli.printing import log
from varitext.errors import InputError, TrainingDiverged

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel
    from varitext.runtime.processes import World
    from varitext.training.settings import Progress


class FitRun(NamedTuple):
    """What a fit is handed when it starts."""

    progress: "Progress | None"
    checkpoint: Path
    resume: bool
    world: "World"


class FitJob(NamedTuple):
    """An estimator, how it learns from what was loaded for it, and how it speaks about that."""

    estimator: "DocumentModel | AnswerRanker"
    learn: Callable[[FitRun], object]
    summary: Callable[[], str]  # what it has learned, in one line
    typed_corpus: dict[str, Any]  # the corpus in the user's words, so that `evaluate` finds its test part
    unit: str = "word"  # of which the progress line gives the bound: word or pair
    has_latent: bool = True
    keeps_unfinished: bool = True  # whether an interrupted run leaves the best model so far


def fit_and_save(job: FitJob, out: Path, resume: bool) -> None:
    """Fit and write the model folder. Whatever stops the run, the best model so far or the checkpoint is kept."""
    from varitext.runtime.processes import joined
    from varitext.store import CHECKPOINT

    with joined(job.estimator.device) as world:
        run = FitRun(None, out / CHECKPOINT, resume, world)
        if world.is_first:
            _fit_and_save(job, run, out)
        else:  # it works like the first process, writes nothing and says nothing but errors
            warnings.simplefilter("ignore")
            job.learn(run)


def _fit_and_save(job: FitJob, run: FitRun, out: Path) -> None:
    from varitext.training.progress import show_progress

    try:
        with show_progress(job.unit, job.has_latent) as progress:
            job.learn(run._replace(progress=progress))
    except KeyboardInterrupt:
        if getattr(job.estimator, "stopped_", None) != "interrupted":  # a second Ctrl-C: at once
            raise
        if job.keeps_unfinished:
            _save(job, out)
        log("the same command with --resume goes on from here")
        raise
    except TrainingDiverged as error:
        _save(job, out)
        _remove_checkpoints(out)
        raise InputError(f"{error}; model in {out}") from None
    except OSError as error:
        if not run.checkpoint.exists():
            raise
        raise InputError(f"{error.filename}: {error.strerror}; the same command with --resume goes on") from None
    _save(job, out)
    _remove_checkpoints(out)


def _save(job: FitJob, out: Path) -> None:
    estimator = job.estimator
    estimator.corpus_ = {**(estimator.corpus_ or {}), **job.typed_corpus} or None
    estimator.save(out, overwrite=True)
    if estimator.stopped_ != "diverged":  # that error has one line of its own
        log(f"{job.summary()}; model in {out}")


def _remove_checkpoints(folder: Path) -> None:
    from varitext.store import checkpoints

    for file in checkpoints(folder):
        file.unlink(missing_ok=True)


# What was learned, in a line

_STOPPED = {
    "finished": "all epochs",
    "early": "stopped early, no longer improving",
    "time": "time limit reached",
    "interrupted": "interrupted",
    "fitted": "fitted directly",
}


def documents_learned(model: "DocumentModel") -> str:
    return (
        f"{model.n_training_documents_} documents, {len(model.vocabulary_)} words, "
        f"{model.fit_seconds_:.0f} s ({_STOPPED[model.stopped_]}); "
        f"held-out perplexity {model.dev_perplexity_:.1f}"
        + (f"; {topics_found(model)}" if model.regions_ is not None else "")
    )


def topics_found(model: "DocumentModel") -> str:
    """How many topics and why, and what came of seed words."""
    assert model.regions_ is not None
    said = [f"{len(model.regions_.groups)} topics: {model.regions_.choice.how}"]
    for seed in model.regions_.seeds:
        unknown = f", unknown: {' '.join(seed['unknown_words'])}" if seed["unknown_words"] else ""
        shown = " ".join(seed["words_shown"]) or "none of its seed words among the first"
        said.append(f"{seed['name']}: {shown}, cosine to its seed {seed['cosine_to_seed']:.2f}{unknown}")
    return "; ".join(said)


def update_learned(model: "DocumentModel") -> str:
    update = model.updates_[-1]
    alignment, words = update["alignment"], update["new_words"]
    return (
        f"{update['documents']} more documents" + (f", {words} new words" if words else "") + f", "
        f"{update['seconds']:.0f} s ({_STOPPED[model.stopped_]}); held-out perplexity of new documents "
        f"{update['perplexity_before']:.1f}, now {update['perplexity_after']:.1f}; alignment of topics "
        f"{alignment['in_place']:.3f} (the lowest {alignment['lowest']:.3f}; {alignment['moved']} of "
        f"{alignment['n_topics']} moved), of document vectors {update['same_vectors']:.3f}"
    )


def answers_learned(ranker: "AnswerRanker") -> str:
    unfinished = (ranker.counts or ranker.position) and ranker.combination_ is None
    living = "" if ranker.network_.latent_of_question else "nasm_question has one that lives, "
    instead = f"; h carries nothing here: {living}compare is the default ranker"
    silent = instead if ranker.network_.has_latent and not ranker.latent_carries_ else ""
    return (
        f"{ranker.n_training_questions_} questions with {ranker.n_training_pairs_} pairs, "
        f"{len(ranker.vocabulary_)} words, {ranker.fit_seconds_:.0f} s ({_STOPPED[ranker.stopped_]}); "
        f"{ranker.comparison_}" + ("; counts and position are not learned yet" if unfinished else "") + silent
    )
