"""Writes the model folder beside this file, and what it gives, once: version 1 of the format stays loadable.

    PYTHONPATH=src:tests python tests/answers/folder_v1/make.py

A folder here is never written again. A new version of the format gets a folder of its own.
"""

import json
from pathlib import Path

from made_up_questions import made_up

from varitext import AnswerRanker
from varitext.answers.settings import AnswerRecipe

HERE = Path(__file__).parent
QUESTION, CANDIDATES = "who was the", ["a king", "the old lake", "near a queen", "xyzzy"]

if __name__ == "__main__":
    sizes = {"latent_dim": 2, "embedding_dim": 4, "network": {"hidden_dim": 4, "layers": 1, "prior_dim": 4}}
    sizes["network"]["posterior_dim"] = 4
    settings = {"vectors": "random", "epochs": 4, "learning_rate": 0.02, "threads": 1, "counts": True, "ensemble": 2}
    ranker = AnswerRanker("nasm", **sizes, **settings, recipe=AnswerRecipe(folds=2)).fit(made_up(40, 0), made_up(12, 1))
    ranker.save(HERE / "model")
    ranking = ranker.rank(QUESTION, CANDIDATES)
    expected = {
        "pairs": ranker.predict_proba(made_up(4, 2)).tolist(),
        "sampled": ranker.sample_proba(made_up(4, 2), 2).tolist(),
        "probability": [one.probability for one in ranking.candidates],
        "probability_best": [one.probability_best for one in ranking.candidates],
        "none": [ranking.probability_none],
        "places": [one.place for one in ranking.candidates],
    }
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
