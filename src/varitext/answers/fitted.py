"""`FittedAnswers`, the fitted state of an `AnswerRanker`, and what it predicts; and rankers that need no fit."""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varitext.answers.copies import copies_of, distinct_candidates, without_copies
from varitext.answers.familiarity import Familiarity, fit_familiarity
from varitext.answers.joint import INITIAL, PRECISIONS, JointModel
from varitext.answers.prediction import Calibration, Combination, OutOfFold, Prediction, log_odds
from varitext.answers.recalibration import (
    CalibrationReport,
    LabelledScores,
    ProbabilityQuality,
    ScoreModel,
    cross_validated,
    held_out_questions,
)
from varitext.answers.settings import AnswerSettings
from varitext.answers.stages import ScorerStage
from varitext.answers.windows import Windows, in_windows
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.conformal import HeldOutQuestions
from varitext.models.answers import model_class, model_name
from varitext.models.answers.features.overlap import PLACE, Overlap
from varitext.models.answers.scorer import AnswerScorer
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from varitext.answers.networks import NetworkStage
    from varitext.models.answers.network import AnswerNetwork


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

    first_stage: "NetworkStage | ScorerStage"
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
    def network(self) -> "AnswerNetwork | AnswerScorer":
        """The model itself."""
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


def _in_one(parts: list[Prediction]) -> Prediction:
    """The predictions of several corpora, joined as if of one."""
    pairs = np.cumsum([0, *(len(one.probability) for one in parts)])
    copy_of = [one.copy_of + begun for one, begun in zip(parts, pairs, strict=False) if one.copy_of is not None]
    return Prediction(
        np.concatenate([one.probability for one in parts]),
        np.concatenate([one.sampled for one in parts], 1),
        copy_of=np.concatenate(copy_of) if copy_of else None,
    )


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
    assert kind is not None and issubclass(kind, AnswerScorer)
    stage = ScorerStage(kind, {"vocabulary_size": len(overlap.vocabulary)}, overlap.vocabulary)
    stage.model.use_frequencies(overlap)
    return FittedAnswers(stage, overlap, UNTRAINED_JOINT[model_name(settings.model)], stopped=UNTRAINED)
