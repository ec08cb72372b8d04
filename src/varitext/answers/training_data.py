"""What a fit learns from: training questions, dev questions that choose when to stop, words, epochs; and folds.

All candidates of a WikiQA question come from one page, so position and length help more there than the words that are
asked about. Networks with `mixes_lists` therefore see some questions a second time, without positions, among candidates
of other questions: those that BM25 finds and random ones.

The second stage learns how far to trust a network beside counts and position. On its own training pairs a network is
too confident, so each pair is predicted by a network that was trained on other folds.
"""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from varitext.answers.index import CandidateIndex
from varitext.answers.settings import AnswerSettings
from varitext.answers.windows import best_windows
from varitext.corpora.question_answers import (
    Candidate,
    Question,
    QuestionAnswers,
    canonical_order,
    check_both_labels,
    choose_questions,
    protocol_named,
    subset,
)
from varitext.corpora.word_vectors import known_word_vectors
from varitext.errors import InputError
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.vocabulary import RANDOM, AnswerWords, learn_words
from varitext.runtime.randomness import stream
from varitext.training.optimizer import ADAMW, Optimization
from varitext.training.settings import PartOfProgress, Progress, ProgressWithRest

MAX_LEFT_OUT = 1500  # questions: more would add time and little information
MIXED_EVERY = 4  # one training question in four is also seen in a mixed list
FOUND, DRAWN, OWN = 16, 4, 8  # candidates of a mixed list: of other questions by BM25 and at random, and its own wrong
MAX_EPOCHS = 30  # for a few dozen questions


def questions_to_learn(settings: AnswerSettings) -> str:
    """The protocol that selects the training questions."""
    return settings.questions or model_class(settings.model).learns_from


def most_wrong_answers(settings: AnswerSettings) -> int | None:
    """Wrong answers per question and epoch; None: all, as for models where the candidates of a question share its h."""
    return None if model_class(settings.model).latent_of_question else settings.recipe.most_wrong


class TrainingData(NamedTuple):
    train: QuestionAnswers
    dev: QuestionAnswers
    words: AnswerWords
    overlap: Overlap
    epochs: int
    mixed: tuple[Question, ...] = ()  # the training questions among candidates of other questions
    every_dev: QuestionAnswers | None = None  # dev questions before the protocol selected some of them
    left_out: QuestionAnswers | None = None  # training questions without a right answer that training leaves out
    share_without_answer: float | None = None  # of all questions given


def training_data(
    settings: AnswerSettings, question_answers: QuestionAnswers, dev: QuestionAnswers | None
) -> TrainingData:
    """Check, divide and select the questions given to `fit`."""
    given, dev = question_answers, dev and with_wrong_answers(dev, settings.seed)
    question_answers = with_wrong_answers(given, settings.seed)
    check_both_labels(question_answers)
    if settings.position:
        _check_positions(question_answers)
    data = learn_from(settings, *_divide(settings, question_answers, dev), mixes=question_answers is given)
    every = (*question_answers.questions, *(() if dev is None else dev.questions))
    return data._replace(
        every_dev=None if dev is None else canonical_order(dev).question_answers,
        left_out=_left_out(settings, question_answers),
        share_without_answer=sum(not question.has_right for question in every) / len(every),
    )


def learn_from(
    settings: AnswerSettings, train: QuestionAnswers, dev: QuestionAnswers, mixes: bool = True
) -> TrainingData:
    """The same for questions that are already divided and selected; without `mixes`, they are mixed lists already."""
    # unseen words would keep their vectors while those of others are tuned
    unseen = 0 if settings.tune_word_vectors else settings.unseen_words
    kind, source = model_class(settings.model), settings.vectors
    if kind.pretrained:  # the encoder knows every word
        words = learn_words(train, RANDOM, None, settings.seed)
    else:
        if source is None and not kind.reads_word_vectors:  # MiniLM's would only add words
            source = known_word_vectors() or RANDOM
        words = learn_words(train, source, settings.embedding_dim, settings.seed, unseen)
    # the same for every seed: the networks of an ensemble share their inputs
    mixed = mixed_lists(train, 0)[::MIXED_EVERY] if mixes and kind.mixes_lists else ()
    overlap = Overlap.learn(train, words.vocabulary)
    return TrainingData(train, dev, words, overlap, epochs_for(settings, train), mixed)


def with_wrong_answers(question_answers: QuestionAnswers, seed: int) -> QuestionAnswers:
    """If every answer is right: each question in a mixed list. Otherwise the questions as they are."""
    if question_answers.n_positive < question_answers.n_pairs:
        return question_answers
    name = question_answers.name
    warnings.warn(f"{name}: every answer is right, so wrong ones are drawn from the other questions", stacklevel=4)
    ordered = canonical_order(question_answers).question_answers
    every = (candidate for question in ordered.questions for candidate in question.candidates)
    pool = {candidate.words: candidate for candidate in every}  # many questions may have the same answer
    return dataclasses.replace(ordered, questions=mixed_lists(ordered, seed, list(pool.values())))


def mixed_lists(train: QuestionAnswers, seed: int, pool: Sequence[Candidate] | None = None) -> tuple[Question, ...]:
    """Every question that has a right answer, its candidates mixed with those of other questions; no positions.

    The others count as wrong, unless their words are those of one of its own candidates. They come from the `pool`, by
    default all candidates.
    """
    pool = pool or [candidate for question in train.questions for candidate in question.candidates]
    index, generator = CandidateIndex([one.text for one in pool]), np.random.default_rng(stream(seed, "mixed lists"))
    mixed = []
    for number, question in enumerate(train.questions):
        if not question.has_right:
            continue
        own = {one.words for one in question.candidates}
        found = [place for place in index.search(question.text, 4 * FOUND).tolist() if pool[place].words not in own]
        found = generator.permutation(found[: 2 * FOUND])[:FOUND].tolist()
        places = dict.fromkeys([*found, *generator.integers(len(pool), size=DRAWN).tolist()])
        others = [pool[place]._replace(label=0, gain=None) for place in places if pool[place].words not in own]
        wrong = [one for one in question.candidates if not one.label]
        kept = [wrong[place] for place in generator.permutation(len(wrong))[:OWN]]
        listed = [*(one for one in question.candidates if one.label), *kept, *others]
        named = (one._replace(id=f"{place}", position=None) for place, one in enumerate(listed))
        mixed.append(question._replace(id=f"mixed {number}", candidates=tuple(named)))
    return tuple(mixed)


def epochs_for(settings: AnswerSettings, train: QuestionAnswers) -> int:
    """As requested, or enough for the model's `updates`; networks of folds, with fewer pairs, train as long."""
    if settings.epochs is not None:
        return settings.epochs
    kind = model_class(settings.model)
    if kind.passes:
        return kind.passes
    right = np.bincount(train.groups, train.labels, train.n_questions)
    wrong = np.bincount(train.groups, 1 - train.labels, train.n_questions)
    pairs = int(np.sum(right + np.minimum(wrong, most_wrong_answers(settings) or np.inf)))
    return max(kind.fewest_passes, min(MAX_EPOCHS, round(kind.updates * settings.batch_size / pairs)))


def _divide(
    settings: AnswerSettings, question_answers: QuestionAnswers, dev: QuestionAnswers | None
) -> tuple[QuestionAnswers, QuestionAnswers]:
    """Training and dev questions, in canonical order."""
    train = _without_long_answers(canonical_order(question_answers).question_answers, settings.longest_answer)
    train = subset(train, questions_to_learn(settings))
    if dev is None:
        seed = settings.seed if settings.recipe.dev_seed is None else settings.recipe.dev_seed
        train, dev = hold_out(train, settings.recipe.dev_share, seed)
    else:
        dev = subset(canonical_order(dev).question_answers, questions_to_learn(settings))
    check_both_labels(train)
    return best_windows(train), best_windows(dev)


def _left_out(settings: AnswerSettings, given: QuestionAnswers) -> QuestionAnswers | None:
    """At most `MAX_LEFT_OUT` of those without a right answer, if the training protocol excludes them."""
    if not protocol_named(questions_to_learn(settings)).needs_right:
        return None
    ordered = canonical_order(given).question_answers
    without = np.flatnonzero([not question.has_right for question in ordered.questions])
    if not len(without):
        return None
    drawn = np.random.default_rng(stream(settings.seed, "left out")).permutation(without)[:MAX_LEFT_OUT]
    return choose_questions(ordered, np.isin(np.arange(ordered.n_questions), drawn))


def _without_long_answers(train: QuestionAnswers, longest: int | None) -> QuestionAnswers:
    if longest is None:
        return train
    kept = []
    for question in train.questions:
        short = tuple(one for one in question.candidates if len(one.words) <= longest)
        kept += [question._replace(candidates=short)] if short else []
    if not kept:
        raise InputError(f"no training candidate has at most {longest} words (longest_answer)")
    return dataclasses.replace(train, questions=tuple(kept))


def _check_positions(train: QuestionAnswers) -> None:
    if not any(one.position is not None for question in train.questions for one in question.candidates):
        raise InputError(f"{train.name} ({train.part}) has no positions of candidates: leave out position")


# Held-out questions and folds


class TrainingRun(NamedTuple):
    """Progress and checkpoint of a fit, divided among its networks, and the optimizer of each."""

    progress: Progress | None = None
    checkpoint: Path | None = None
    resume: bool = False
    optimization: Optimization = ADAMW

    def on_all_questions(self, folds: int) -> "TrainingRun":
        """The run of the network on all questions, where those of folds come after it."""
        return self._replace(progress=self._part(0.0, 1.0, folds))

    def on_fold(self, fold: int, folds: int) -> "TrainingRun":
        """The run of one fold, from 0. Each of F folds trains on (F - 1)/F of the questions: F - 1 networks in all."""
        begun = 1 + fold * (folds - 1) / folds
        path = self.checkpoint
        path = path and path.with_name(f"{path.stem}-fold-{fold + 1}{path.suffix}")
        return self._replace(progress=self._part(begun, begun + (folds - 1) / folds, folds), checkpoint=path)

    def of_member(self, number: int, members: int) -> "TrainingRun":
        """The run of one network of an ensemble, from 0. The first has the checkpoint's own name."""
        path = self.checkpoint
        if path and number:
            path = path.with_name(f"{path.stem}-network-{number + 1}{path.suffix}")
        return self._replace(progress=self._part(number, number + 1, members), checkpoint=path)

    def with_rest(self, share: float) -> "TrainingRun":
        """A run of which this share is other work, after training."""
        return self._replace(progress=self.progress and ProgressWithRest(self.progress, 1 - share))

    def rest(self, share_done: float) -> None:
        if isinstance(self.progress, ProgressWithRest):
            self.progress.rest(share_done)

    def note(self, message: str) -> None:
        if self.progress:
            self.progress.note(message)

    def _part(self, begun: float, ended: float, networks: int) -> Progress | None:
        return self.progress and PartOfProgress(self.progress, begun / networks, ended / networks)


# trains on the first questions and predicts the probability of each pair of the second, [P]
PredictHeldOut = Callable[[QuestionAnswers, QuestionAnswers, TrainingRun], np.ndarray]


def hold_out(train: QuestionAnswers, share: float, seed: int) -> tuple[QuestionAnswers, QuestionAnswers]:
    """Hold out `share` of the questions that have right and wrong answers: only these tell rankings apart."""
    if not 0 < share < 1:
        raise InputError(f"dev_share is a share of the questions, between 0 and 1, not {share}")
    mixed = sorted({one.words for one in train.questions if one.has_right and one.has_wrong})
    if len(mixed) < 2:
        raise InputError(
            f"{len(mixed)} question(s) have right and wrong answers: fitting needs at least 2, or dev questions"
        )
    chosen = np.random.default_rng(stream(seed, "hold-out")).permutation(len(mixed))
    held_out = {mixed[place] for place in chosen[: max(1, round(share * len(mixed)))]}
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
