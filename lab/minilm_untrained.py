"""How `minilm` ranks without any fit, on WikiQA's dev questions, and the numbers that it takes from them.

    python lab/minilm_untrained.py [--json results/minilm_untrained.json]

`SCALE` and `SHIFT` of `models/answers/minilm.py` and `UNTRAINED_JOINT` of `answers/fitting.py` are rounded from these
numbers; a test compares them with the file. It needs the extra `minilm`, and about a minute of one core.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from varitext.answers.joint import JointModel
from varitext.answers.prediction import log_odds
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, canonical_order
from varitext.evaluation.ranking import ranking_record
from varitext.files import write_json
from varitext.models.answers.minilm import Likeness
from varitext.reproduce.provenance import provenance
from varitext.text import Vocabulary


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the record here")
    path = parser.parse_args().json
    found = measured(canonical_order(load_questions("wikiqa", "dev")).question_answers) | provenance()
    print(json.dumps(found, indent=2))
    if path:
        write_json(path, found)


if __name__ == "__main__":
    main()
