"""Training questions kept from a network: a share that decides when to stop, and folds for an honest second stage.

The second stage learns how far to trust a network beside counts and position. A network knows its own training pairs
too well to be trusted on them, so each pair is judged by one that was trained without its question.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from varitext.corpora.arranged import choose_questions
from varitext.corpora.question_answers import QuestionAnswers, check_both_labels
from varitext.errors import InputError
from varitext.training.settings import PartOfProgress, Progress

# trains on the first questions, with its checkpoint at the path, and gives the probability of each pair of the second
Judge = Callable[[QuestionAnswers, QuestionAnswers, Path | None, Progress | None], np.ndarray]


def hold_out(train: QuestionAnswers, share: float, seed: int) -> tuple[QuestionAnswers, QuestionAnswers]:
    """Hold out `share` of the questions that can tell rankings apart: those with right and wrong answers."""
    if not 0 < share < 1:
        raise InputError(f"dev_share is a share of the questions, between 0 and 1, not {share}")
    telling = sorted({one.words for one in train.questions if one.has_right and one.has_wrong})
    if len(telling) < 2:
        raise InputError(
            f"{len(telling)} question(s) have right and wrong answers: fitting needs at least 2, or dev questions"
        )
    chosen = np.random.default_rng((seed, 1)).permutation(len(telling))
    held_out = {telling[place] for place in chosen[: max(1, round(share * len(telling)))]}
    inside = np.array([one.words in held_out for one in train.questions])
    return choose_questions(train, ~inside), choose_questions(train, inside)


def question_folds(train: QuestionAnswers, folds: int, seed: int) -> np.ndarray:
    """The fold of every question: equal questions together, those with a right answer spread evenly."""
    has_right: dict[tuple[str, ...], bool] = {}
    for question in train.questions:
        has_right[question.words] = has_right.get(question.words, False) or question.has_right
    if len(has_right) < 2:
        raise InputError("counts and position need at least 2 different questions to learn from")
    words = sorted(has_right)
    order = np.random.default_rng((seed, 2)).permutation(len(words)).tolist()
    order.sort(key=lambda place: has_right[words[place]])  # stable: at random among either kind
    fold_of = {words[place]: number % folds for number, place in enumerate(order)}
    return np.array([fold_of[question.words] for question in train.questions])


def out_of_fold(
    train: QuestionAnswers, fold_of: np.ndarray, judge: Judge, progress: Progress | None, checkpoint: Path | None
) -> np.ndarray:
    """The probability of every pair, judged without its fold; `fold_of` is the fold of each question."""
    probability = np.empty(train.n_pairs)
    folds = fold_of.max() + 1
    for fold in range(folds):
        if progress:
            progress.note(f"fold {fold + 1} of {folds}: probabilities of questions that were not seen")
        seen, unseen = choose_questions(train, fold_of != fold), choose_questions(train, fold_of == fold)
        check_both_labels(seen)
        watched = fold_progress(progress, fold, folds)
        probability[fold_of[train.groups] == fold] = judge(seen, unseen, _fold_path(checkpoint, fold), watched)
    return probability


def fold_progress(progress: Progress | None, fold: int | None, folds: int) -> Progress | None:
    """The part of a whole fit that a fold takes; None is the network on all questions, which comes first.

    Each of F folds trains on (F - 1)/F of the questions, all of them together on F - 1 times as many.
    """
    if progress is None:
        return None
    begun = 0.0 if fold is None else 1 + fold * (folds - 1) / folds
    ended = 1.0 if fold is None else begun + (folds - 1) / folds
    return PartOfProgress(progress, begun / folds, ended / folds)


def _fold_path(checkpoint: Path | None, fold: int) -> Path | None:
    return checkpoint and checkpoint.with_name(f"{checkpoint.stem}-fold-{fold + 1}{checkpoint.suffix}")


def check_positions(train: QuestionAnswers) -> None:
    """Some candidate's place in its document is known."""
    if not any(one.position is not None for question in train.questions for one in question.candidates):
        raise InputError(f"{train.name} ({train.part}) does not tell where its candidates stand: leave out position")
