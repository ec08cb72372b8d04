"""What surrounds every fit: progress, Ctrl-C, divergence, a full disk, and the model folder at the end."""

import dataclasses
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
        fitted = getattr(job.estimator, "fitted_", None)
        if fitted is None or fitted.stopped != "interrupted":  # a second Ctrl-C: at once
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
    fitted = estimator.fitted_
    corpus = {**(fitted.corpus or {}), **job.typed_corpus} or None
    estimator.fitted_ = dataclasses.replace(fitted, corpus=corpus)  # type: ignore[arg-type]
    estimator.save(out, overwrite=True)
    if estimator.fitted_.stopped != "diverged":  # that error has one line of its own
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
        f"{model.fitted_.n_training_documents} documents, {len(model.fitted_.vocabulary)} words, "
        f"{model.fitted_.fit_seconds:.0f} s ({_STOPPED[model.fitted_.stopped]}); "
        f"held-out perplexity {model.fitted_.dev_perplexity:.1f}"
        + (f"; {topics_found(model)}" if model.fitted_.regions is not None else "")
    )


def topics_found(model: "DocumentModel") -> str:
    """How many topics and why, and what came of seed words."""
    assert model.fitted_.regions is not None
    said = [f"{len(model.fitted_.regions.groups)} topics: {model.fitted_.regions.choice.how}"]
    for seed in model.fitted_.regions.seeds:
        unknown = f", unknown: {' '.join(seed['unknown_words'])}" if seed["unknown_words"] else ""
        shown = " ".join(seed["words_shown"]) or "none of its seed words among the first"
        said.append(f"{seed['name']}: {shown}, cosine to its seed {seed['cosine_to_seed']:.2f}{unknown}")
    return "; ".join(said)


def update_learned(model: "DocumentModel") -> str:
    update = model.fitted_.updates[-1]
    alignment, words = update["alignment"], update["new_words"]
    return (
        f"{update['documents']} more documents" + (f", {words} new words" if words else "") + f", "
        f"{update['seconds']:.0f} s ({_STOPPED[model.fitted_.stopped]}); held-out perplexity of new documents "
        f"{update['perplexity_before']:.1f}, now {update['perplexity_after']:.1f}; alignment of topics "
        f"{alignment['in_place']:.3f} (the lowest {alignment['lowest']:.3f}; {alignment['moved']} of "
        f"{alignment['n_topics']} moved), of document vectors {update['same_vectors']:.3f}"
    )


def answers_learned(ranker: "AnswerRanker") -> str:
    unfinished = (ranker.counts or ranker.position) and ranker.fitted_.combination is None
    living = "" if ranker.fitted_.network.latent_of_question else "nasm_question has one that lives, "
    instead = f"; h carries nothing here: {living}compare is the default ranker"
    silent = instead if ranker.fitted_.network.has_latent and not ranker.fitted_.latent_carries else ""
    learned = ranker.fitted_
    return (
        f"{learned.n_training_questions} questions with {learned.n_training_pairs} pairs, "
        f"{len(learned.vocabulary)} words, {learned.fit_seconds:.0f} s ({_STOPPED[learned.stopped]}); "
        f"{learned.comparison}" + ("; counts and position are not learned yet" if unfinished else "") + silent
    )
