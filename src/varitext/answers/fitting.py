"""The steps of a fit, from settings and questions to a record of what was learned, which the estimator takes over."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from varitext.answers.baselines import DevComparison, dev_comparison
from varitext.answers.calibration import Calibration
from varitext.answers.derived_settings import architecture_for, joined_columns
from varitext.answers.ensemble import build_stages
from varitext.answers.first_stage import FirstStage
from varitext.answers.folds import out_of_fold, question_folds
from varitext.answers.joint_picture import JointPicture
from varitext.answers.prediction import Prediction
from varitext.answers.second_stage import Combination, OutOfFold
from varitext.answers.settings import AnswerSettings
from varitext.answers.training_data import TrainingData
from varitext.answers.training_run import TrainingRun
from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError, TrainingDiverged
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import PLACE, Overlap
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.scorer import AnswerScorer
from varitext.runtime.devices import running_on
from varitext.text import Vocabulary
from varitext.training.settings import TrainingState
from varitext.training.trainer import Trainer


@dataclass(frozen=True, eq=False)
class FittedAnswers:
    """What a fit has learned: all that a model folder keeps of a ranker, but for its settings."""

    first_stage: FirstStage
    overlap: Overlap
    combination: Combination | None  # the second stage, if there is one
    training: dict[str, Any]  # the settings of the training loop
    history: list[dict[str, float]]  # one record per round
    corpus: dict[str, Any]  # name, part and SHA-256 of what it was fitted on
    vectors: dict[str, Any]  # where word vectors began, and how many words had one
    n_training_questions: int
    n_training_pairs: int
    n_dev_questions: int
    dev_map: float
    stopped: str  # why training ended
    fit_seconds: float
    comparison: DevComparison | None = None  # with what needs no training
    calibration: Calibration | None = None  # of the first stage, if it is trained to rank
    joint: JointPicture | None = None  # of a question's candidates, by what all stages say
    out_of_fold: OutOfFold | None = None  # what the second stage was fitted on; not kept in the folder

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
        """Whether h carries information: some unit has a KL of 0.01 nats on dev pairs, in the round that was kept."""
        if not self.network.has_latent:
            return False
        kept = [record for record in self.history if record.get("dev_map") == self.dev_map] or self.history[-1:]
        return any(record.get("active_units", 1) > 0 for record in kept)

    @property
    def reads_positions(self) -> bool:
        """Whether the place of a candidate in its document counts."""
        columns = () if self.combination is None else self.combination.columns
        return self.network.reads_positions or PLACE[0] in columns

    def predict(
        self,
        question_answers: QuestionAnswers,
        settings: AnswerSettings,
        samples: int | None = None,
        attention: bool = False,
    ) -> Prediction:
        """What all stages say of arranged questions."""
        samples = settings.prediction_samples if samples is None else samples
        found = self.first_stage.predict(question_answers, samples, settings.seed, attention)
        found = self.calibration.join(found) if self.calibration else found
        found = found.with_ties(question_answers.groups)
        if self.combination is None:
            return found
        # it makes differences larger: those of rounding were gone before
        joined = self.combination.join(found, self.overlap.features(question_answers))
        return joined.with_ties(question_answers.groups)


def fit_stages(
    settings: AnswerSettings, data: TrainingData, run: TrainingRun, keep: Callable[[FittedAnswers], None]
) -> None:
    """Fit the model, then what joins it. `keep` is given what there is after each, also where a run was cut short."""
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
    fitted = replace(fitted, combination=found.combination(columns), out_of_fold=found, fit_seconds=seconds)
    comparison = dev_comparison(fitted.predict(data.dev, settings).probability, data)
    keep(with_joint_picture(replace(fitted, comparison=comparison), settings, data))


def fit_first_stage(
    settings: AnswerSettings, data: TrainingData, run: TrainingRun, keep: Callable[[FittedAnswers], None]
) -> FittedAnswers:
    stage = new_stage(settings, data)
    trainer = stage.trainer(settings, data, run)
    try:
        trainer.train(run.resume)
    except TrainingDiverged:  # the best weights so far are in place
        keep(learned(settings, data, stage, trainer.state))
        raise
    fitted = with_joint_picture(learned(settings, data, stage, trainer.state), settings, data)
    keep(fitted)
    _stop_if_interrupted(trainer.state)
    return fitted


def fit_out_of_fold(settings: AnswerSettings, data: TrainingData, run: TrainingRun) -> OutOfFold:
    """Predict every training pair by a model that never saw its question: what the second stage learns from."""
    seconds = []

    def predict_held_out(seen: QuestionAnswers, held_out: QuestionAnswers, run: TrainingRun) -> np.ndarray:
        stage = new_stage(settings, data)
        state = stage.trainer(settings, data._replace(train=seen), run).train(run.resume)
        _stop_if_interrupted(state)
        seconds.append(state.seconds)
        stage.ready()
        return stage.predict(held_out, settings.prediction_samples, settings.seed).probability

    fold_of = question_folds(data.train, settings.recipe.folds, settings.seed)  # [questions]
    probability = out_of_fold(data.train, fold_of, predict_held_out, run)
    return OutOfFold(probability, data.overlap.features(data.train), data.train.labels, sum(seconds))


def new_stage(settings: AnswerSettings, data: TrainingData) -> FirstStage:
    """The model with its first weights, before any training."""
    architecture = architecture_for(settings, data.words)
    members = settings.ensemble
    return build_stages(settings.model, architecture, data.overlap, settings.device, settings.seed, members)


def new_trainer(settings: AnswerSettings, data: TrainingData) -> Trainer:
    """The training of a network as `fit` runs it, before its first step: for benchmarks."""
    trainer = new_stage(settings, data).trainer(settings, data, TrainingRun())
    if not isinstance(trainer, Trainer):
        raise InputError(f"{settings.model} is not trained step by step")
    return trainer


def training_threads(settings: AnswerSettings) -> AbstractContextManager[None]:
    """Its `threads`, used as suits the training of its model."""
    return running_on(settings.threads, model_class(settings.model).parallel_training)


def learned(settings: AnswerSettings, data: TrainingData, stage: FirstStage, state: TrainingState) -> FittedAnswers:
    """What there is once the first stage is trained, whole or in part; from now on it predicts."""
    stage.ready()
    train = data.train
    found = stage.predict(data.dev, settings.prediction_samples, settings.seed).probability  # [P]
    return FittedAnswers(
        first_stage=stage,
        overlap=data.overlap,
        combination=None,
        training=stage.training_record(settings, data.epochs),
        history=state.history,
        corpus={"name": train.name, "part": train.part, "sha256": train.sha256},
        vectors={"start": data.words.source, "n_known": data.words.n_known},
        n_training_questions=train.n_questions,
        n_training_pairs=train.n_pairs,
        n_dev_questions=data.dev.n_questions,
        dev_map=state.best_record["dev_map"],
        stopped=state.stopped,
        fit_seconds=state.seconds,
        comparison=dev_comparison(found, data),
        calibration=Calibration.fit(found, data.dev.labels) if getattr(stage.model, "listwise", 0) else None,
    )


def with_joint_picture(fitted: FittedAnswers, settings: AnswerSettings, data: TrainingData) -> FittedAnswers:
    """Fitted on questions that no network was trained on: those of dev, and those that training left out."""
    parts = [part for part in (data.every_dev or data.dev, data.left_out) if part is not None]
    unseen = replace(parts[0], questions=tuple(question for part in parts for question in part.questions))
    probability = fitted.predict(unseen, settings).probability  # [P]
    return replace(fitted, joint=JointPicture.fit(probability, unseen.labels, unseen.groups, data.share_without_answer))


def _stop_if_interrupted(state: TrainingState) -> None:
    if state.stopped == "interrupted":
        raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")
