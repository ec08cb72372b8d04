"""The steps of a fit, from settings and questions to `FittedAnswers`, the fitted state of an `AnswerRanker`."""

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from varitext.answers.copies import copies_of, distinct_candidates, without_copies
from varitext.answers.familiarity import Familiarity, fit_familiarity
from varitext.answers.joint import INITIAL, PRECISIONS, JointModel
from varitext.answers.prediction import Calibration, Combination, OutOfFold, Prediction, joined_columns, log_odds
from varitext.answers.recalibration import (
    CalibrationReport,
    LabelledScores,
    ProbabilityQuality,
    ScoreModel,
    cross_validated,
    held_out_questions,
)
from varitext.answers.settings import AnswerSettings, check_samples, flat_settings
from varitext.answers.stages import FirstStage, ScorerStage, build_stage
from varitext.answers.training_data import TrainingData, TrainingRun, out_of_fold, question_folds
from varitext.answers.windows import Windows, in_windows
from varitext.corpora.question_answers import QuestionAnswers, choose_questions
from varitext.errors import InputError, TrainingDiverged
from varitext.evaluation.conformal import HeldOutQuestions
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers import model_class, model_name
from varitext.models.answers.features.overlap import PLACE, Overlap, WordTable, bm25
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.pretrained import pretrained
from varitext.models.answers.recurrent import INITIALIZATIONS
from varitext.models.answers.scorer import AnswerScorer
from varitext.models.answers.vocabulary import NO_VECTORS, AnswerWords
from varitext.models.registry import with_network_arguments
from varitext.runtime.devices import note_cpu_only, running_on
from varitext.store import CHECKPOINT_STATES
from varitext.text import Vocabulary
from varitext.training.settings import TrainingState
from varitext.training.trainer import Trainer

READING = 10  # a guess, for progress only: encoding a pair takes longer than learning from its states
QUESTIONS_AT_ONCE = 200  # predicted per step of progress
NOTE_EVERY = 5.0  # seconds


class FirstPrediction(NamedTuple):
    """Predictions of the first stage for questions: one per group of copies, in every window."""

    copy_of: np.ndarray
    windows: Windows
    prediction: Prediction


class UnseenQuestions(NamedTuple):
    """Questions that no network was trained on. The joint models, one for every second stage, are fitted on them."""

    questions: QuestionAnswers
    parts: list[FirstPrediction]  # each covers some of the questions
    share_without_answer: float | None


@dataclass(frozen=True, eq=False)
class FittedAnswers:
    """The fitted state of a ranker. With the settings, it is all that a model folder stores."""

    first_stage: FirstStage
    overlap: Overlap
    joint: JointModel  # of a question's candidates, given what all stages predict
    training: dict[str, Any] = field(default_factory=dict)  # the settings of the training loop
    history: list[dict[str, float]] = field(default_factory=list)  # one record per epoch
    corpus: dict[str, Any] = field(default_factory=dict)  # name, part and SHA-256 of the training questions
    vectors: dict[str, Any] = field(default_factory=dict)  # source of the initial word vectors, words that have one
    n_training_questions: int = 0
    n_training_pairs: int = 0
    n_dev_questions: int = 0
    dev_map: float = math.nan
    stopped: str = ""  # why training ended
    fit_seconds: float = 0.0
    comparison: "DevComparison | None" = None  # with baselines that need no training
    familiarity: Familiarity | None = None  # what its own questions look like; None: never warn
    calibration: Calibration | None = None  # of the first stage, if it is trained to rank
    combination: Combination | None = None  # the second stage, if there is one
    held_out: HeldOutQuestions | None = None  # the basis of answer sets
    calibrated: CalibrationReport | None = None  # on other questions, after the fit
    out_of_fold: OutOfFold | None = None  # what the second stage was fitted on; not in the folder
    unseen: UnseenQuestions | None = None  # with a second stage, until the fit is saved and loaded

    @property
    def network(self) -> AnswerNetwork | AnswerScorer:
        """The model itself, a torch module."""
        return self.first_stage.model

    @property
    def architecture(self) -> dict[str, Any]:
        """What the model was built with."""
        return self.first_stage.architecture

    @property
    def vocabulary(self) -> Vocabulary:
        return self.overlap.vocabulary

    @property
    def latent_carries(self) -> bool:
        """Whether any latent dimension is active on dev pairs (KL above 0.01 nats) in the epoch that was kept."""
        if not self.network.has_latent:
            return False
        kept = [record for record in self.history if record.get("dev_map") == self.dev_map] or self.history[-1:]
        return any(record.get("active_units", 1) > 0 for record in kept)

    @property
    def reads_positions(self) -> bool:
        """Whether the position of a candidate in its document matters."""
        columns = () if self.combination is None else self.combination.columns
        return self.network.reads_positions or PLACE[0] in columns

    def predict(
        self,
        question_answers: QuestionAnswers,
        settings: AnswerSettings,
        samples: int | None = None,
        attention: bool = False,
    ) -> Prediction:
        """Predictions of all stages for questions in canonical order: one per group of copies, in its best window."""
        return self.join(self.predict_first(question_answers, settings, samples, attention))

    def predict_first(
        self,
        question_answers: QuestionAnswers,
        settings: AnswerSettings,
        samples: int | None = None,
        attention: bool = False,
    ) -> FirstPrediction:
        copy_of = copies_of(question_answers)
        windows = in_windows(without_copies(question_answers, copy_of))
        samples = settings.prediction_samples if samples is None else samples
        found = self.first_stage.predict(windows.question_answers, samples, settings.seed, attention)
        found = self.calibration.join(found) if self.calibration else found
        return FirstPrediction(copy_of, windows, found.with_ties(windows.question_answers.groups))

    def join(self, first: FirstPrediction) -> Prediction:
        """Predictions of all stages, given those of the first."""
        found, read = first.prediction, first.windows.question_answers
        if self.combination is not None:  # after merging ties: it would magnify rounding differences
            found = self.combination.join(found, self.overlap.features(read)).with_ties(read.groups)
        return found.best_of(first.windows).with_copies(first.copy_of)

    def with_joint_model(self, unseen: UnseenQuestions) -> "FittedAnswers":
        """The same with the joint model of what all stages predict for unseen questions."""
        found, share = _in_one([self.join(part) for part in unseen.parts]), unseen.share_without_answer
        scores = LabelledScores(*distinct_candidates(found, unseen.questions)[:3])
        joint = JointModel.fit(*scores, share)
        held_out = held_out_questions(joint.posterior(scores.scores, scores.question_of), scores)
        familiarity = fit_familiarity(unseen.questions, self.overlap, log_odds(found.probability), share)
        return replace(self, joint=joint, held_out=held_out, familiarity=familiarity)

    def with_combination(self, combination: Combination | None) -> "FittedAnswers":
        """The same with another second stage and its joint model; without `unseen`, a general one."""
        other = replace(self, combination=combination, calibrated=None)
        if self.unseen is None:
            return replace(other, joint=JointModel(INITIAL), held_out=None, familiarity=None)
        return other.with_joint_model(self.unseen)

    def recalibrated(self, questions: QuestionAnswers, settings: AnswerSettings) -> "FittedAnswers":
        """The same network with probabilities for questions like these, which are labelled and in canonical order."""
        found = self.predict(questions, settings)
        data = LabelledScores(*distinct_candidates(found, questions)[:3])
        parameters = self.joint.parameters
        data.check()
        before = ProbabilityQuality.of(self.joint.posterior(data.scores, data.question_of), data)
        after, held_out = cross_validated(data, parameters)
        model, n_without = ScoreModel.fit(data, parameters), int((~data.answerable).sum())
        thresholds = {str(one): held_out.abstention_threshold(one) for one in PRECISIONS}
        source = (questions.name, questions.part, questions.sha256, questions.n_questions, n_without)
        return replace(
            self._rescaled(model.platt),
            joint=replace(model.joint, thresholds=thresholds),
            held_out=held_out,
            familiarity=fit_familiarity(questions, self.overlap, model.platt.log_odds(log_odds(found.probability))),
            calibrated=CalibrationReport(*source, before, after),
            out_of_fold=None,
            unseen=None,
        )

    def _rescaled(self, platt: Calibration) -> "FittedAnswers":
        """The same with the log odds of the last stage calibrated."""
        if self.combination is not None:
            return replace(self, combination=self.combination.then(platt))
        return replace(self, calibration=platt if self.calibration is None else self.calibration.then(platt))


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


def new_stage(settings: AnswerSettings, data: TrainingData) -> FirstStage:
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


def _fitted(settings: AnswerSettings, data: TrainingData, stage: FirstStage, state: TrainingState) -> FittedAnswers:
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


def _in_one(parts: list[Prediction]) -> Prediction:
    """The predictions of several corpora, joined as if of one."""
    pairs = np.cumsum([0, *(len(one.probability) for one in parts)])
    copy_of = [one.copy_of + begun for one, begun in zip(parts, pairs, strict=False) if one.copy_of is not None]
    return Prediction(
        np.concatenate([one.probability for one in parts]),
        np.concatenate([one.sampled for one in parts], 1),
        copy_of=np.concatenate(copy_of) if copy_of else None,
    )


def _stop_if_interrupted(stopped: str) -> None:
    if stopped == "interrupted":
        raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")


# From settings to the architecture

EMBEDDING_DIM = 50  # as in the paper; used if there are no vectors to take it from
RESERVED = ("vocabulary", "vocabulary_size", "latent_dim", "embedding_dim", "fixed_words", "features", "position")


def check_class(kind: object) -> None:
    if not (isinstance(kind, type) and issubclass(kind, AnswerNetwork | AnswerScorer)):
        raise InputError(f"a subclass of AnswerNetwork or AnswerScorer is needed, not {kind!r}")


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


# Baselines


BASELINES = {"word_overlap": "word counting", "bm25": "BM25"}  # the feature that ranks, and its name in words


@dataclass(frozen=True)
class DevComparison:
    """MAP on dev questions, of the ranker and of two baselines that need no training."""

    ranker: float
    word_count: float
    bm25: float
    itself: str = ""  # the name of the baseline, if the ranker is one

    @property
    def others(self) -> dict[str, float]:
        found = zip(BASELINES.values(), (self.word_count, self.bm25), strict=True)
        return {name: value for name, value in found if name != self.itself}

    @property
    def is_better(self) -> bool:
        return self.ranker > max(self.others.values())

    def __str__(self) -> str:
        baselines = ", ".join(f"{name} {value:.4f}" for name, value in self.others.items())
        if self.is_better:
            return f"dev MAP {self.ranker:.4f} ({baselines})"
        advice = f"use {max(self.others, key=self.others.__getitem__)}"
        if not self.itself:
            advice = "use more questions, or one of these baselines"
        return f"dev MAP {self.ranker:.4f}, NO BETTER THAN {baselines}: {advice}"


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


# Rankers that need no fit

UNTRAINED = "untrained"  # why training ended

# fitted on WikiQA's and QASent's training questions by `python -m lab untrained`
UNTRAINED_JOINT = {
    "minilm": JointModel(
        parameters=(1.272, -0.889, 0.211, -1.469, -1.580, 1.050, 2.251, 1.095, 0.619),
        n_questions=1386,
        n_without_answer=805,
        typical_length=32.5,
    ),
    "bm25": JointModel(
        parameters=(1.922, -2.920, 0.561, -1.272, -0.378, 1.439, 2.983, 1.197, 0.360),
        n_questions=1386,
        n_without_answer=805,
        typical_length=32.5,
    ),
}
NO_FREQUENCIES = Overlap(Vocabulary(()), np.zeros(0, np.int64), 0)


def ranks_untrained(settings: AnswerSettings) -> bool:
    return model_class(settings.model).untrained is not None


def untrained(settings: AnswerSettings, overlap: Overlap = NO_FREQUENCIES) -> FittedAnswers:
    """`overlap` has the document frequencies of an index, if one is searched."""
    kind = model_class(settings.model).untrained
    assert kind is not None
    stage = build_stage(kind, {"vocabulary_size": len(overlap.vocabulary)}, overlap, settings.device)
    assert isinstance(stage, ScorerStage)
    stage.model.use_frequencies(overlap)
    return FittedAnswers(stage, overlap, UNTRAINED_JOINT[model_name(settings.model)], stopped=UNTRAINED)
