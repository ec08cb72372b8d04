"""A ranker that was never fitted, for models that have something to say without: what `fit` would have learned."""

import math

import numpy as np

from varitext.answers.first_stage import ScorerStage
from varitext.answers.fitting import FittedAnswers
from varitext.answers.joint_picture import JointPicture
from varitext.answers.settings import AnswerSettings
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import Overlap
from varitext.text import Vocabulary

# Of the likeness that MiniLM sees, fitted on WikiQA's dev questions: others have other shares of right answers.
# `benchmarks/minilm_untrained.py` finds these numbers
JOINT = JointPicture(
    parameters=(1.056, -1.751, 0.541, -2.643, -2.303, 1.002, -1.595, 0.001, 0.970),
    thresholds={},
    n_questions=296,
    n_without_answer=170,
)


def ranks_untrained(settings: AnswerSettings) -> bool:
    return model_class(settings.model).untrained is not None


def untrained(settings: AnswerSettings) -> FittedAnswers:
    kind, vocabulary = model_class(settings.model).untrained, Vocabulary(())
    assert kind is not None
    return FittedAnswers(
        first_stage=ScorerStage(kind, {"vocabulary_size": 0}, vocabulary),
        overlap=Overlap(vocabulary, np.zeros(0, np.int64), 0),
        combination=None,
        training={},
        history=[],
        corpus={},
        vectors={},
        n_training_questions=0,
        n_training_pairs=0,
        n_dev_questions=0,
        dev_map=math.nan,
        stopped="untrained",
        fit_seconds=0.0,
        joint=JOINT,
    )
