"""What surrounds every fit: the folder's lock, progress, Ctrl-C, divergence, a full disk, and the model folder."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.cli.printing import log
from varitext.errors import InputError, TrainingDiverged
from varitext.files import check_can_write, locked, refuse_to_overwrite, remove_unfinished
from varitext.loading import load_any
from varitext.models.answers import ANSWER_MODELS

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.fitting import FittedDocuments
    from varitext.documents.model import DocumentModel
    from varitext.runtime.processes import World
    from varitext.training.settings import Progress

    Learn = Callable[[Progress | None, Path, World], object]  # learns, with this progress, checkpoint file and world

_STOPPED = {
    "finished": "all epochs",
    "early": "stopped early, no longer improving",
    "time": "time limit reached",
    "interrupted": "interrupted",
    "fitted": "fitted without gradients",
}


# The folder


@contextmanager
def lock_folder(out: Path) -> Iterator[None]:
    """Refuse a folder that another run writes to, and clear what a killed one left; new folders go if left empty.

    The lock is on the folder itself: the system releases it when the process ends, even by kill -9.
    """
    check_can_write(out)
    if out.exists() and not out.is_dir():
        refuse_to_overwrite(out)
    created = [folder for folder in (out.absolute(), *out.absolute().parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked(out, wait=False) as is_locked:
            if is_locked:
                remove_unfinished(out)
            yield
    finally:
        for folder in created:
            with suppress(OSError):  # no longer empty: the model is there, or a checkpoint
                folder.rmdir()


def check_place_for_model(out: Path, resume: bool, trust: str | None) -> None:
    """Nothing is overwritten: the folder is new, or with --resume holds an unfinished run."""
    from varitext.store import holds_unfinished_run

    if holds_unfinished_run(out):
        if not resume:
            raise InputError(f"{out} holds an unfinished run: add --resume to continue it, or remove it first")
    elif resume and (out / "config.json").exists():
        if load_any(out, trust=trust).fitted_.stopped != "interrupted":
            raise InputError(f"{out} holds a finished model: there is nothing to resume")
    else:
        refuse_to_overwrite(out)


def is_finished_model(folder: Path) -> bool:
    from varitext.store import checkpoints

    return (folder / "config.json").exists() and not checkpoints(folder)


# The run


def fit_and_save(
    estimator: "DocumentModel | AnswerRanker",
    learn: "Learn",
    summary: Callable[[Any], str],
    out: Path,
    corpus: dict[str, Any],
    keeps_unfinished: bool = True,
) -> None:
    """Fit and write the model folder. Whatever stops the run, the best model so far or the checkpoint is kept.

    `summary` reports in one line what was learned. `corpus` records what the user typed, so that `evaluate` finds its
    test part. `keeps_unfinished`: an interrupted run saves the best model so far.
    """
    from varitext.runtime.processes import joined
    from varitext.store import CHECKPOINT
    from varitext.training.progress import show_progress

    def save() -> None:
        fitted = estimator.fitted_
        recorded = {**(fitted.corpus or {}), **corpus} or None
        estimator.fitted_ = dataclasses.replace(fitted, corpus=recorded)  # type: ignore[arg-type]
        estimator.save(out, overwrite=True)
        if fitted.stopped != "diverged":  # which has its own error message
            log(f"{summary(estimator)}; model in {out}")

    checkpoint, answers = out / CHECKPOINT, ANSWER_MODELS.get(str(estimator.model))
    with joined(estimator.device) as world:
        if not world.is_first:  # works like the first process, but writes nothing and reports nothing but errors
            warnings.simplefilter("ignore")
            learn(None, checkpoint, world)
            return
        try:
            with show_progress("pair", answers.has_latent) if answers else show_progress() as progress:
                learn(progress, checkpoint, world)
        except KeyboardInterrupt:
            fitted = getattr(estimator, "fitted_", None)
            if fitted is None or fitted.stopped != "interrupted":  # a second Ctrl-C: stop at once
                raise
            if keeps_unfinished:
                save()
            log("run the same command with --resume to continue")
            raise
        except TrainingDiverged as error:
            save()
            _remove_checkpoints(out)
            raise InputError(f"{error}; model in {out}") from None
        except OSError as error:
            if not checkpoint.exists():
                raise
            hint = "run the same command with --resume to continue"
            raise InputError(f"{error.filename}: {error.strerror}; {hint}") from None
        save()
        _remove_checkpoints(out)


def _remove_checkpoints(folder: Path) -> None:
    from varitext.store import checkpoints

    for file in checkpoints(folder):
        file.unlink(missing_ok=True)


# What was learned, in one line


def documents_learned(model: "DocumentModel") -> str:
    fitted = model.fitted_
    return (
        f"{fitted.n_training_documents} documents, {len(fitted.vocabulary)} words, "
        f"{fitted.fit_seconds:.0f} s ({_STOPPED[fitted.stopped]}){_training_rate(fitted)}; "
        f"held-out perplexity {fitted.dev_perplexity:.1f}"
        + (f"; {topics_found(model)}" if fitted.regions is not None else "")
    )


def _training_rate(fitted: "FittedDocuments") -> str:
    """Of all passes over the documents; empty if it was fitted without passes."""
    passes = fitted.history[-1].get("epoch", 0) if fitted.history else 0
    rate = passes * fitted.n_training_documents / max(fitted.fit_seconds, 1e-3)
    return f", {rate:,.0f} documents per second" if passes else ""


def topics_found(model: "DocumentModel") -> str:
    """The number of topics and the reason for it, and the result for each seed topic."""
    regions = model.fitted_.regions
    assert regions is not None
    separator = ": " if regions.choice.how.startswith("too few") else ", "
    override = ". Use --topics N to override" if "automatically" in regions.choice.how else ""
    number = "1 topic" if len(regions.groups) == 1 else f"{len(regions.groups)} topics"
    parts = [f"{number}{separator}{regions.choice.how}{override}"]
    for seed in regions.seeds:
        unknown = f", unknown: {' '.join(seed['unknown_words'])}" if seed["unknown_words"] else ""
        shown = " ".join(seed["words_shown"]) or "none of its seed words among the first"
        parts.append(f"{seed['name']}: {shown}, cosine to its seed {seed['cosine_to_seed']:.2f}{unknown}")
    return "; ".join(parts)


def update_learned(model: "DocumentModel") -> str:
    update = model.fitted_.updates[-1]
    alignment, words = update["alignment"], update["new_words"]
    return (
        f"{update['documents']} more documents" + (f", {words} new words" if words else "") + f", "
        f"{update['seconds']:.0f} s ({_STOPPED[model.fitted_.stopped]}); held-out perplexity of the new documents "
        f"{update['perplexity_before']:.1f} before, {update['perplexity_after']:.1f} now; alignment of topics "
        f"{alignment['in_place']:.3f} (lowest {alignment['lowest']:.3f}; {alignment['moved']} of "
        f"{alignment['n_topics']} moved), of document vectors {update['same_vectors']:.3f}"
    )


def answers_learned(ranker: "AnswerRanker") -> str:
    fitted = ranker.fitted_
    unfinished = (ranker.counts or ranker.position) and fitted.combination is None
    collapsed = ""
    if fitted.network.has_latent and not fitted.latent_carries:
        others = "compare" if fitted.network.latent_of_question else "nasm_question or compare"
        collapsed = f"; posterior collapse: the latent variable carries no information, try {others}"
    return (
        f"{fitted.n_training_questions} questions with {fitted.n_training_pairs} pairs, "
        f"{len(fitted.vocabulary)} words, {fitted.fit_seconds:.0f} s ({_STOPPED[fitted.stopped]}); "
        f"{fitted.comparison}" + ("; counts and position are not learned yet" if unfinished else "") + collapsed
    )
