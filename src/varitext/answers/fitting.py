"""The steps of a fit, from settings and questions to `FittedAnswers` (`fitted.py`)."""

import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from varitext.answers.fitted import BASELINES, DevComparison, FirstPrediction, FittedAnswers, UnseenQuestions
from varitext.answers.joint import INITIAL, JointModel
from varitext.answers.prediction import Calibration, OutOfFold, joined_columns
from varitext.answers.settings import AnswerSettings, check_samples, flat_settings
from varitext.answers.stages import ScorerStage, build_stage, check_class
from varitext.answers.training_data import TrainingData, TrainingRun, out_of_fold, question_folds
from varitext.corpora.question_answers import QuestionAnswers, choose_questions
from varitext.errors import InputError, TrainingDiverged
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers import model_class, model_name
from varitext.models.answers.features.overlap import WordTable, bm25
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.pretrained import pretrained
from varitext.models.answers.recurrent import INITIALIZATIONS
from varitext.models.answers.scorer import AnswerScorer
from varitext.models.answers.vocabulary import NO_VECTORS, AnswerWords
from varitext.models.registry import with_network_arguments
from varitext.runtime.devices import note_cpu_only, running_on
from varitext.store import CHECKPOINT_STATES
from varitext.training.settings import TrainingState
from varitext.training.trainer import Trainer

if TYPE_CHECKING:
    from varitext.answers.networks import NetworkStage

READING = 10  # a guess, for progress only: encoding a pair takes longer than learning from its states
QUESTIONS_AT_ONCE = 200  # predicted per step of progress
NOTE_EVERY = 5.0  # seconds


def fit_stages(
    settings: AnswerSettings, data: TrainingData, run: TrainingRun, keep: Callable[[FittedAnswers], None]
) -> None:
    """Fit the model, then the second stage. `keep` receives the result after each, even of a fit that was cut short."""
    columns, folds = joined_columns(settings), settings.recipe.folds
    fitted = fit_first_stage(settings, data, run.on_all_questions(folds) if columns else run, keep)
    if not columns:
        return
    try:
        found = fit_out_of_fold(settings, data, run)
    except KeyboardInterrupt:
        keep(replace(fitted, stopped="interrupted"))
        raise
    seconds = fitted.fit_seconds + found.seconds
    fitted = replace(fitted.with_combination(found.combination(columns)), out_of_fold=found, fit_seconds=seconds)
    comparison = dev_comparison(fitted.predict(data.dev, settings).probability, data, fitted.network)
    keep(replace(fitted, comparison=comparison))


def fit_first_stage(
    settings: AnswerSettings, data: TrainingData, run: TrainingRun, keep: Callable[[FittedAnswers], None]
) -> FittedAnswers:
    stage = new_stage(settings, data)
    run = run.with_rest(_rest_of_work(settings, data))
    with _keeping_states(run) if stage.model.reads_states else nullcontext():
        trainer = stage.trainer(settings, data, run)  # refuses settings, before the first line
        if stage.model.reads_word_vectors:
            _report_word_vectors(settings, data, run)
        try:
            trainer.train(run.resume)
        except TrainingDiverged:  # the best weights so far are in place
            keep(_with_joint_model(_fitted(settings, data, stage, trainer.state), settings, data, run))
            raise
        fitted = _fitted(settings, data, stage, trainer.state)
        try:
            fitted = _with_joint_model(fitted, settings, data, run)
        except KeyboardInterrupt:
            fitted = replace(fitted, stopped="interrupted")
    keep(fitted)
    _stop_if_interrupted(fitted.stopped)
    return fitted


@contextmanager
def _keeping_states(run: TrainingRun) -> Iterator[None]:
    """Within the block, report what the pretrained encoder reads, and keep it beside the checkpoint."""
    kept = None if run.checkpoint is None else run.checkpoint.with_name(CHECKPOINT_STATES)
    with pretrained().reporting(run.note), nullcontext() if kept is None else pretrained().states_kept_in(kept):
        yield


def _rest_of_work(settings: AnswerSettings, data: TrainingData) -> float:
    """The share of the work that follows training: predicting unseen pairs. Training on a pair counts as three."""
    kind, unseen = model_class(settings.model), sum(part.n_pairs for part in unseen_parts(data))
    if kind.reads_states:  # reading takes far longer than training
        unseen *= READING
    return unseen / (unseen + 3 * data.epochs * data.train.n_pairs)


def _report_word_vectors(settings: AnswerSettings, data: TrainingData, run: TrainingRun) -> None:
    """Report the word vectors, in the first line of a fit, unless random ones were requested."""
    if data.words.vectors is not None:
        run.note(str(data.words))
    elif settings.vectors is None:
        warnings.warn(NO_VECTORS, stacklevel=2)


def fit_out_of_fold(settings: AnswerSettings, data: TrainingData, run: TrainingRun) -> OutOfFold:
    """Predict every training pair by a model that never saw its question: the second stage learns from that."""
    seconds = []

    def predict_held_out(seen: QuestionAnswers, held_out: QuestionAnswers, run: TrainingRun) -> np.ndarray:
        stage = new_stage(settings, data)
        state = stage.trainer(settings, data._replace(train=seen, mixed=()), run).train(run.resume)
        _stop_if_interrupted(state.stopped)
        seconds.append(state.seconds)
        stage.ready()
        return stage.predict(held_out, settings.prediction_samples, settings.seed).probability

    fold_of = question_folds(data.train, settings.recipe.folds, settings.seed)  # [questions]
    probability = out_of_fold(data.train, fold_of, predict_held_out, run)
    return OutOfFold(probability, data.overlap.features(data.train), data.train.labels, sum(seconds))


def new_stage(settings: AnswerSettings, data: TrainingData) -> "NetworkStage | ScorerStage":
    """The model with its initial weights."""
    architecture, kind = architecture_for(settings, data.words), model_class(settings.model)
    return build_stage(kind, architecture, data.overlap, settings.device, settings.seed, settings.ensemble)


def new_trainer(settings: AnswerSettings, data: TrainingData) -> Trainer:
    """The training of a network as `fit` runs it, before its first step: for benchmarks."""
    trainer = new_stage(settings, data).trainer(settings, data, TrainingRun())
    if not isinstance(trainer, Trainer):
        raise InputError(f"{settings.model} is not trained step by step")
    return trainer


def training_threads(settings: AnswerSettings) -> AbstractContextManager[None]:
    """The `threads` of the settings, used as suits the training of the model."""
    return running_on(settings.threads, model_class(settings.model).parallel_training)


def _fitted(
    settings: AnswerSettings, data: TrainingData, stage: "NetworkStage | ScorerStage", state: TrainingState
) -> FittedAnswers:
    """The result of training the first stage, complete or in part, before its joint model."""
    stage.ready()
    train = data.train
    found = stage.predict(data.dev, settings.prediction_samples, settings.seed).probability  # [P]
    return FittedAnswers(
        first_stage=stage,
        overlap=data.overlap,
        joint=JointModel(INITIAL),
        training=stage.training_record(settings, data.epochs),
        history=state.history,
        corpus={"name": train.name, "part": train.part, "sha256": train.sha256},
        vectors=data.words.record if stage.model.reads_word_vectors else {},
        n_training_questions=train.n_questions,
        n_training_pairs=train.n_pairs,
        n_dev_questions=data.dev.n_questions,
        dev_map=state.best_record["dev_map"],
        stopped=state.stopped,
        fit_seconds=state.seconds,
        comparison=dev_comparison(found, data, stage.model),
        calibration=Calibration.fit(found, data.dev.labels) if getattr(stage.model, "listwise", 0) else None,
    )


def unseen_parts(data: TrainingData) -> list[QuestionAnswers]:
    """Questions that no network was trained on: those of dev, and those that training left out."""
    return [part for part in (data.every_dev or data.dev, data.left_out) if part is not None]


def _with_joint_model(
    fitted: FittedAnswers, settings: AnswerSettings, data: TrainingData, run: TrainingRun
) -> FittedAnswers:
    """Fit the joint model on unseen questions; after an interruption on dev questions only, which is quicker."""
    parts = unseen_parts(data)[: 1 if fitted.stopped == "interrupted" else None]
    questions = replace(parts[0], questions=tuple(question for part in parts for question in part.questions))
    found = _predict_in_parts(fitted, questions, settings, run)
    unseen = UnseenQuestions(questions, found, data.share_without_answer)
    return replace(fitted.with_joint_model(unseen), unseen=unseen if joined_columns(settings) else None)


def _predict_in_parts(
    fitted: FittedAnswers, questions: QuestionAnswers, settings: AnswerSettings, run: TrainingRun
) -> list[FirstPrediction]:
    """Predict the parts one after the other, reporting progress."""
    found: list[FirstPrediction] = []
    pairs, part_of, noted = 0, np.arange(questions.n_questions) // QUESTIONS_AT_ONCE, time.monotonic()
    for part in range(int(part_of[-1]) + 1):
        found.append(fitted.predict_first(choose_questions(questions, part_of == part), settings))
        pairs += len(found[-1].copy_of)
        run.rest(pairs / questions.n_pairs)
        if time.monotonic() - noted > NOTE_EVERY:
            noted = time.monotonic()
            run.note(f"calibrating on questions not trained on: {pairs:,} of {questions.n_pairs:,} pairs ranked")
    return found


def _stop_if_interrupted(stopped: str) -> None:
    if stopped == "interrupted":
        raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")


# From settings to the architecture

EMBEDDING_DIM = 50  # as in the paper; used if there are no vectors to take it from
RESERVED = ("vocabulary", "vocabulary_size", "latent_dim", "embedding_dim", "fixed_words", "features", "position")


def check_settings(settings: AnswerSettings) -> None:
    recipe, kind = settings.recipe, model_class(settings.model)
    check_class(kind)
    name = model_name(settings.model)
    with_network_arguments(kind, {}, settings.network, RESERVED)
    if not kind.feature_names and settings.features is not None:
        raise InputError(f"{name} has no features to choose from: leave out features")
    fewest = kind.fewest_latent_dims
    if settings.latent_dim is not None and settings.latent_dim < fewest:
        raise InputError(f"latent_dim must be at least {fewest}, not {settings.latent_dim}")
    named = flat_settings(settings)
    for one in ("embedding_dim", "hidden_dim", "layers", "ensemble", "longest_answer"):
        if named[one] is not None and named[one] < 1:
            raise InputError(f"{one} must be at least 1, not {named[one]}")
    check_samples(settings.prediction_samples)
    if settings.unseen_words < 0:
        raise InputError(f"unseen_words must be 0 or more, not {settings.unseen_words}")
    if not kind.trained_by_gradient and settings.ensemble != 1:
        raise InputError(f"{name} does not depend on the seed: leave out ensemble")
    if not kind.trained_by_gradient:
        note_cpu_only(name, settings.device)
    if recipe.folds < 2:
        raise InputError(f"folds must be at least 2, not {recipe.folds}")
    if not 0 <= recipe.free_bits < np.inf:
        raise InputError(f"free_bits must be 0 or more nats, not {recipe.free_bits}")
    if recipe.initialization not in (None, *INITIALIZATIONS):
        raise InputError(f"initialization is {' or '.join(INITIALIZATIONS)}, not {recipe.initialization!r}")
    if recipe.dropout is not None and not 0 <= recipe.dropout < 1:
        raise InputError(f"dropout is a share from 0 to below 1, not {recipe.dropout}")


def architecture_for(settings: AnswerSettings, words: AnswerWords) -> dict[str, Any]:
    """The arguments that the model is built with: those of the settings that it takes, and `network`."""
    recipe, kind = settings.recipe, model_class(settings.model)
    given = settings.embedding_dim or EMBEDDING_DIM
    sizes = {
        "latent_dim": settings.latent_dim,
        "hidden_dim": recipe.hidden_dim,
        "layers": recipe.layers,
        "dropout": recipe.dropout,
        "initialization": recipe.initialization,
        "features": settings.features,
        "position": settings.position,
        "embedding_dim": given if words.vectors is None else words.vectors.shape[1],
        "fixed_words": 0 if settings.tune_word_vectors else words.n_known,
    }
    parameters = inspect.signature(kind).parameters
    known = {name: value for name, value in sizes.items() if name in parameters}
    for name in ("latent_dim", "hidden_dim", "layers", "dropout", "initialization"):
        if name in known and known[name] is None:
            known[name] = parameters[name].default
    return with_network_arguments(kind, {"vocabulary_size": len(words.vocabulary)} | known, settings.network, RESERVED)


def dev_comparison(probability: np.ndarray, data: TrainingData, model: AnswerNetwork | AnswerScorer) -> DevComparison:
    """The comparison for the ranker's `probability` of the dev pairs."""
    dev, overlap = data.dev, data.overlap
    count = overlap.features(dev).only(["word_overlap"]).values[:, 0]
    lengths = [len(candidate.words) for question in data.train.questions for candidate in question.candidates]
    weighed = bm25(WordTable.of(dev), overlap, max(1.0, float(np.mean(lengths))))
    ranker, counted, by_bm25 = (
        ranking_record(one, dev.labels, dev.groups).map for one in (probability, count, weighed)
    )
    features = model.columns if isinstance(model, AnswerScorer) else ()
    return DevComparison(ranker, counted, by_bm25, BASELINES.get(features[0], "") if len(features) == 1 else "")
