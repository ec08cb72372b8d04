"""`minilm` without any fit, on WikiQA's dev questions, and the constants that it takes from them.

`SCALE` and `SHIFT` of `models/answers/minilm.py` and `UNTRAINED_JOINT` of `answers/fitting.py` are these values,
rounded; a test compares them with the file. Needs the extra `minilm`.
"""

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from varitext.answers.joint import JointModel
from varitext.answers.prediction import log_odds
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, canonical_order
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.minilm import Likeness
from varitext.text import Vocabulary


def measure(quick: bool) -> dict[str, Any]:
    return measured(canonical_order(load_questions("wikiqa", "dev")).question_answers)


def measured(dev: QuestionAnswers) -> dict[str, Any]:
    likeness = Likeness(Vocabulary(()))
    parts = likeness.parts(dev)  # [P, 2]
    score = parts.sum(1)  # [P]
    regression = LogisticRegression(C=np.inf).fit(score[:, None], dev.labels)
    scale, shift = float(regression.coef_[0, 0]), float(regression.intercept_[0])
    probability = expit(scale * score + shift)
    joint = JointModel.fit(log_odds(probability), dev.labels, dev.groups)
    ranked_by = {"whole": parts[:, 0], "words": parts[:, 1], "both": score}
    return {
        "scale": scale,
        "shift": shift,
        "joint": list(joint.parameters),
        "n_questions": joint.n_questions,
        "n_without_answer": joint.n_without_answer,
        "dev_map": {name: ranking_record(one, dev.labels, dev.groups).map for name, one in ranked_by.items()},
    }
