"""The first stage of a ranker by networks, which are trained by gradients on batches of word numbers.

An ensemble of them, trained from different seeds, ranks by their mean log odds: their differences come from the seed,
so the mean ranks better than any of them, and each adds samples of the ranking.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from varitext.answers.network_prediction import PREDICTION_PAIRS, predict
from varitext.answers.prediction import Prediction, joined_columns, log_odds
from varitext.answers.settings import AnswerSettings
from varitext.answers.task import AnswerObjective, AnswerTask
from varitext.answers.training_data import TrainingData, TrainingRun, most_wrong_answers
from varitext.batches.pairs import PairBatches, PairInputs, PairWordFeatures
from varitext.batches.tokens import PairPieces
from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError
from varitext.evaluation.ranking import ranking_record
from varitext.layers.architecture import check_architecture, load_weights
from varitext.layers.functions import expit
from varitext.models.answers import model_class
from varitext.models.answers.features.carried import CARRIED, carried_features
from varitext.models.answers.features.overlap import Overlap, PairFeatures
from varitext.models.answers.features.word_features import word_features
from varitext.models.answers.model import AnswerModel
from varitext.models.answers.network import AnswerNetwork
from varitext.runtime.devices import check_device
from varitext.runtime.randomness import seeded, stream
from varitext.training.settings import TrainingSettings, TrainingState
from varitext.training.trainer import Trainer

FIXED_VECTORS = "word_vectors.fixed"
MEMBERS = "members"  # in the architecture of an ensemble: the number of networks


def training_settings(settings: AnswerSettings, epochs: int) -> TrainingSettings:
    """Settings for one network; the time limit is shared with the networks of folds and ensemble."""
    recipe, kind = settings.recipe, model_class(settings.model)
    networks = settings.ensemble * (1 + recipe.folds * bool(joined_columns(settings)))
    return TrainingSettings(
        epochs=epochs,
        batch_size=max(1, round(settings.batch_size * kind.batch_factor)),
        learning_rate=settings.learning_rate * kind.learning_rate_factor,
        kl_warm_up=recipe.kl_warm_up,
        samples=kind.training_samples if recipe.samples is None else recipe.samples,
        weight_decay=recipe.weight_decay,
        averaging=recipe.averaging,
        patience=kind.patience if recipe.patience is None else recipe.patience,
        smoothing=recipe.smoothing,
        time_limit=None if settings.time_limit is None else settings.time_limit / networks,
        seed=settings.seed,
    )


def answer_objective(settings: AnswerSettings) -> AnswerObjective:
    return AnswerObjective(settings.recipe.free_bits, most_wrong_answers(settings))


class NetworkStage:
    """One network, or an ensemble of several."""

    def __init__(
        self,
        kind: type[AnswerNetwork],
        architecture: dict[str, Any],
        overlap: Overlap,
        device: str,
        seed: int = 0,
        members: int = 1,
    ):
        check_device(device)
        self.own_architecture, self.overlap, self.device = architecture, overlap, device
        self.models = []
        for number in range(members):
            with seeded(stream(seed + number, "initial weights")):
                self.models.append(kind(**architecture).to(device))

    @property
    def model(self) -> AnswerNetwork:
        return self.models[0]

    @property
    def architecture(self) -> dict[str, Any]:
        """The arguments that the networks were built with, as the model folder stores them."""
        return self.own_architecture | ({MEMBERS: len(self.models)} if len(self.models) > 1 else {})

    def trainer(self, settings: AnswerSettings, data: TrainingData, run: TrainingRun) -> "Trainer | EnsembleTraining":
        """The training loop, before its first step."""
        if len(self.models) > 1:
            return EnsembleTraining(self, settings, data, run)
        return self.trainer_of(self.model, settings, data, run)

    def trainer_of(
        self, model: AnswerNetwork, settings: AnswerSettings, data: TrainingData, run: TrainingRun
    ) -> Trainer:
        if data.words.vectors is not None and not model.pretrained:
            model.word_vectors.start_from(torch.from_numpy(data.words.vectors))
        training, words = training_settings(settings, data.epochs), self.overlap.vocabulary
        objective = answer_objective(settings)
        train = replace(data.train, questions=data.train.questions + data.mixed)
        task = AnswerTask(train, data.dev, words, training, objective, self.device, self.inputs)
        model.prepare(task.train_batches, train)
        return Trainer(model, task, training, run.checkpoint, run.progress, optimization=run.optimization)

    def training_record(self, settings: AnswerSettings, epochs: int) -> dict[str, Any]:
        """The settings of the training loop, for the model folder."""
        training, objective = training_settings(settings, epochs), answer_objective(settings)
        return dataclasses.asdict(training) | dataclasses.asdict(objective)

    def predict(
        self, question_answers: QuestionAnswers, samples: int, seed: int, attention: bool = False
    ) -> Prediction:
        """The probability of every pair, with `attention` if asked for and the model has it. Labels are not read."""
        inputs, words = self.inputs(question_answers), self.overlap.vocabulary
        batches = PairBatches(question_answers, words, PREDICTION_PAIRS, self.device, inputs=inputs)
        found = [predict(model, batches, samples, seed, attention) for model in self.models]
        if len(found) == 1:
            return found[0]
        mean = log_odds(np.stack([one.probability for one in found])).mean(0)  # [P]
        attended = [one.attention for one in found if one.attention is not None]
        together = [np.concatenate(pair) for pair in zip(*attended, strict=True)]  # P times [members * S, T]
        return Prediction(expit(mean), np.concatenate([one.sampled for one in found]), together or None)

    def ready(self) -> None:
        """Switch from training to prediction."""
        for model in self.models:
            model.eval().requires_grad_(False)

    def move_to(self, device: str) -> None:
        self.device = device
        for model in self.models:
            model.to(device)

    def stored_weights(self) -> dict[str, np.ndarray]:
        """The weights, in an ensemble by number; fixed word vectors, the same for all, are stored once, in 16 bits."""
        weights = {FIXED_VECTORS: self.model.state_dict()[FIXED_VECTORS].half()}  # exact: `learn_words` rounded them
        for prefix, model in zip(_prefixes(len(self.models)), self.models, strict=True):
            own = {f"{prefix}{name}": value for name, value in model.state_dict().items() if name != FIXED_VECTORS}
            weights |= own
        return {name: value.cpu().numpy() for name, value in weights.items()}

    def restore(self, weights: Mapping[str, np.ndarray], folder: Path) -> None:
        for model, own in zip(self.models, member_weights(weights, len(self.models)), strict=True):
            load_weights(model, own, folder)
        self.ready()

    def inputs(self, question_answers: QuestionAnswers) -> PairInputs:
        return network_inputs(self.model, question_answers, self.overlap)


def stored_networks(
    kind: type[AnswerModel],
    architecture: Mapping[str, Any],
    overlap: Overlap,
    device: str,
    weights: Mapping[str, np.ndarray],
    folder: Path,
) -> NetworkStage:
    """The networks of a model folder, built only if the architecture matches the weights."""
    assert issubclass(kind, AnswerNetwork)
    own, members = dict(architecture), architecture.get(MEMBERS, 1)
    own.pop(MEMBERS, None)
    if members not in range(1, len(weights) + 1):
        raise InputError(f"{folder / 'config.json'}: {members!r} networks, but {len(weights)} tensors in the weights")
    for one in member_weights(weights, members):
        check_architecture(partial(kind, **own), own, one, folder)
    stage = NetworkStage(kind, own, overlap, device, members=members)
    stage.restore(weights, folder)
    return stage


def member_weights(weights: Mapping[str, np.ndarray], members: int) -> Iterator[dict[str, Tensor]]:
    """The weights of each network of an ensemble, as `stored_weights` returned them for all."""
    tensors = {name: torch.from_numpy(values) for name, values in weights.items()}
    fixed = {FIXED_VECTORS: tensors[FIXED_VECTORS].float()}
    for prefix in _prefixes(members):
        own = {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}
        yield own | fixed


def _prefixes(members: int) -> list[str]:
    return [""] if members == 1 else [f"{number}." for number in range(members)]


class EnsembleTraining:
    """Takes the place of `Trainer`: one network after another, each with its own checkpoint."""

    def __init__(self, stage: NetworkStage, settings: AnswerSettings, data: TrainingData, run: TrainingRun):
        self.stage, self.settings, self.data, self.run = stage, settings, data, run
        self.states: list[TrainingState] = []

    def train(self, resume: bool = False) -> TrainingState:
        """Train all; after an interruption, the networks not yet trained are left out."""
        models = self.stage.models
        for number, model in enumerate(models):
            self.run.note(f"network {number + 1} of {len(models)}")
            settings = replace(self.settings, seed=self.settings.seed + number)
            trainer = self.stage.trainer_of(model, settings, self.data, self.run.of_member(number, len(models)))
            try:
                trainer.train(resume)
            finally:
                self.states.append(trainer.state)
                self.stage.models = models[: number + 1]
            if trainer.state.stopped == "interrupted":
                break
        return self.state

    @property
    def state(self) -> TrainingState:
        """The state as of one long run; the last record is that of the whole ensemble."""
        self.stage.ready()
        found = self.stage.predict(self.data.dev, self.settings.prediction_samples, self.settings.seed).probability
        ranking = ranking_record(found, self.data.dev.labels, self.data.dev.groups)
        history, begun = [], 0
        for number, one in enumerate(self.states):
            history += [record | {"network": number, "step": begun + record["step"]} for record in one.history]
            begun += one.step + 1
        history.append({"step": begun, "dev_map": ranking.map, "dev_mrr": ranking.mrr, "networks": len(self.states)})
        seconds = sum(one.seconds for one in self.states)
        stopped = self.states[-1].stopped
        return TrainingState(begun, seconds, -ranking.map, begun, stopped=stopped, history=history)


def network_inputs(model: AnswerNetwork, question_answers: QuestionAnswers, overlap: Overlap) -> PairInputs:
    """The inputs that the network reads besides the word numbers."""
    columns = _pair_columns(model.pair_columns, question_answers, overlap)
    words = word_features(question_answers, overlap) if model.reads_word_features else None
    if model.reads_likeness:
        columns, words = _with_likeness(question_answers, columns, words)
    questions, answers = _states(question_answers) if model.reads_states else (None, None)
    return PairInputs(columns, words, questions, answers, _pieces(question_answers) if model.reads_pieces else None)


def _pair_columns(names: Sequence[str], question_answers: QuestionAnswers, overlap: Overlap) -> np.ndarray | None:
    """The columns of `overlap.py` and `carried.py` that are named, [P, columns]."""
    if not names:
        return None
    found = overlap.features(question_answers)
    if not set(CARRIED).isdisjoint(names):
        carried = carried_features(question_answers, overlap)
        found = PairFeatures(
            found.columns + carried.columns, np.hstack([found.values, carried.values]), found.question_of
        )
    return found.only(names).values


def _with_likeness(
    question_answers: QuestionAnswers, columns: np.ndarray | None, words: list[PairWordFeatures] | None
) -> tuple[np.ndarray, list[PairWordFeatures]]:
    """Add three columns before the others, and one after the other features of every word."""
    from varitext.models.answers.minilm import general_columns, general_log_odds, likeness_of

    alike = likeness_of(question_answers)
    read = general_columns(question_answers, alike)
    parts = [read[:, :2], general_log_odds(read)[:, None], *([] if columns is None else [columns])]
    of_words = [PairWordFeatures(_as_column(one.question), _as_column(one.answer)) for one in alike]
    if words is not None:
        both = zip(words, of_words, strict=True)
        of_words = [PairWordFeatures(*map(np.hstack, zip(own, new, strict=True))) for own, new in both]
    return np.hstack(parts), of_words


def _as_column(cosine: np.ndarray) -> np.ndarray:
    """Map cosines from 0 .. 1, where nearly all are, to -1 .. 1."""
    return (2 * cosine[:, None] - 1).astype(np.float32)  # [T, 1]


def _states(question_answers: QuestionAnswers) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The states of the words of every question and of every pair's answer."""
    from varitext.models.answers.pretrained import pretrained

    asked = [question.words for question in question_answers.questions]
    said = [one.words for question in question_answers.questions for one in question.candidates]
    found = pretrained().states([*asked, *said])
    return found[: len(asked)], found[len(asked) :]


def _pieces(question_answers: QuestionAnswers) -> list[PairPieces]:
    from varitext.models.answers.pretrained import pretrained

    together, questions = pretrained().together, question_answers.questions
    return [together(question.words, one.words) for question in questions for one in question.candidates]
