"""Training questions kept from a network: a share that decides when to stop, and folds for an honest second stage.

The second stage learns how far to trust a network beside counts and position. A network knows its own training pairs
too well to be trusted on them, so each pair is predicted by one that was trained without its question.
"""

from collections.abc import Callable

import numpy as np

from varitext.answers.training_run import TrainingRun
from varitext.corpora.question_answers import QuestionAnswers, check_both_labels, choose_questions
from varitext.errors import InputError
from varitext.runtime.randomness import stream

# trains on the first questions and gives the probability of each pair of the second, [P]
PredictHeldOut = Callable[[QuestionAnswers, QuestionAnswers, TrainingRun], np.ndarray]


def hold_out(train: QuestionAnswers, share: float, seed: int) -> tuple[QuestionAnswers, QuestionAnswers]:
    """Hold out `share` of the questions that can tell rankings apart: those with right and wrong answers."""
    if not 0 < share < 1:
        raise InputError(f"dev_share is a share of the questions, between 0 and 1, not {share}")
    telling = sorted({one.words for one in train.questions if one.has_right and one.has_wrong})
    if len(telling) < 2:
        raise InputError(
            f"{len(telling)} question(s) have right and wrong answers: fitting needs at least 2, or dev questions"
        )
    chosen = np.random.default_rng(stream(seed, "hold-out")).permutation(len(telling))
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
    order = np.random.default_rng(stream(seed, "folds")).permutation(len(words)).tolist()
    order.sort(key=lambda place: has_right[words[place]])  # stable: at random among either kind
    fold_of = {words[place]: number % folds for number, place in enumerate(order)}
    return np.array([fold_of[question.words] for question in train.questions])


def out_of_fold(
    train: QuestionAnswers, fold_of: np.ndarray, predict: PredictHeldOut, run: TrainingRun | None = None
) -> np.ndarray:
    """The probability of every pair, predicted without its fold; `fold_of` is the fold of each question."""
    run = run or TrainingRun()
    probability = np.empty(train.n_pairs)
    folds = int(fold_of.max()) + 1
    for fold in range(folds):
        run.note(f"fold {fold + 1} of {folds}: probabilities of questions that were not seen")
        seen, held_out = choose_questions(train, fold_of != fold), choose_questions(train, fold_of == fold)
        check_both_labels(seen)
        probability[fold_of[train.groups] == fold] = predict(seen, held_out, run.on_fold(fold, folds))
    return probability
