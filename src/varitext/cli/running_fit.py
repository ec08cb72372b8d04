"""What surrounds every fit: progress, Ctrl-C, divergence, a full disk, and the model folder at the end."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from varitext.cli.printing import say
from varitext.errors import InputError, TrainingDiverged

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.corpora import Documents, QuestionAnswers
    from varitext.documents.model import DocumentModel
    from varitext.runtime.processes import World


class Lesson(NamedTuple):
    """An estimator, what it is to learn from, and how it speaks about that."""

    estimator: "DocumentModel | AnswerRanker"
    train: "Documents | QuestionAnswers"
    dev: "QuestionAnswers | None"
    typed: dict[str, str | None]  # the corpus in the user's words, so that `evaluate` finds its test part
    unit: str  # of which the progress line gives the bound: word or pair
    has_latent: bool
    summary: Callable[[Any], str]  # what the estimator has learned, in one line
    learn: Callable[..., Any] | None = None  # in the place of `estimator.fit`
    keeps_unfinished: bool = True  # whether an interrupted run leaves the best model so far


def fit_and_save(lesson: Lesson, out: Path, resume: bool) -> None:
    """Fit and write the model folder. Whatever stops the run, the best model so far or the checkpoint is kept."""
    from varitext.runtime.processes import joined

    with joined(lesson.estimator.device) as world:
        if world.is_first:
            _fit_and_save(lesson, out, resume, world)
        else:
            _fit_along(lesson, out, resume, world)


def _fit_along(lesson: Lesson, out: Path, resume: bool, world: "World") -> None:
    """Not the first process of a run: it works like the first, writes nothing and says nothing but errors."""
    from varitext.store import CHECKPOINT

    warnings.simplefilter("ignore")
    lesson.estimator.fit(lesson.train, checkpoint=out / CHECKPOINT, resume=resume, world=world)


def _fit_and_save(lesson: Lesson, out: Path, resume: bool, world: "World") -> None:
    from varitext.cli.progress import show_progress
    from varitext.store import CHECKPOINT, checkpoints

    estimator = lesson.estimator
    fit = partial(estimator.fit, world=world) if world.size > 1 else estimator.fit
    try:
        with show_progress(lesson.unit, lesson.has_latent) as progress:
            learn = lesson.learn or fit
            learn(lesson.train, dev=lesson.dev, progress=progress, checkpoint=out / CHECKPOINT, resume=resume)
    except KeyboardInterrupt:
        if getattr(estimator, "stopped_", None) != "interrupted":  # a second Ctrl-C: at once
            raise
        if lesson.keeps_unfinished:
            _save(lesson, out)
        say("the same command with --resume goes on from here")
        raise
    except TrainingDiverged as error:
        _save(lesson, out)
        _remove(checkpoints(out))
        raise InputError(f"{error}; model in {out}") from None
    except OSError as error:
        if not (out / CHECKPOINT).exists():
            raise
        raise InputError(f"{error.filename}: {error.strerror}; the same command with --resume goes on") from None
    _save(lesson, out)
    _remove(checkpoints(out))


def _save(lesson: Lesson, out: Path) -> None:
    estimator = lesson.estimator
    estimator.corpus_ = (estimator.corpus_ or {}) | lesson.typed or None
    estimator.save(out, overwrite=True)
    if estimator.stopped_ != "diverged":  # that error has one line of its own
        say(f"{lesson.summary(estimator)}; model in {out}")


def _remove(files: list[Path]) -> None:
    for file in files:
        file.unlink()


# What was learned, in a line

_STOPPED = {
    "finished": "all epochs",
    "early": "stopped early, no longer getting better",
    "time": "time limit reached",
    "interrupted": "interrupted",
    "fitted": "in one go",
}


def documents_learned(model: "DocumentModel") -> str:
    return (
        f"{model.n_training_documents_} documents, {len(model.vocabulary_)} words, "
        f"{model.fit_seconds_:.0f} s ({_STOPPED[model.stopped_]}); "
        f"held-out perplexity {model.dev_perplexity_:.1f}"
    )


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
    return (
        f"{ranker.n_training_questions_} questions with {ranker.n_training_pairs_} pairs, "
        f"{len(ranker.vocabulary_)} words, {ranker.fit_seconds_:.0f} s ({_STOPPED[ranker.stopped_]}); "
        f"dev MAP {ranker.dev_map_:.4f}" + ("; counts and position are not learned yet" if unfinished else "")
    )
