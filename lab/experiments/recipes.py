"""What the points are made of: one change at a time to LSTM + Att, evaluated on WikiQA's training questions.

Not a table of the paper, but the evidence for our defaults. Each training question is ranked by a network that was
trained without its third of them (dev questions choose when to stop); no test question is looked at.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.answers.fitting import new_stage, training_threads
from varitext.answers.prediction import cross_fitted
from varitext.answers.settings import AnswerSettings, settings_from_flat
from varitext.answers.training_data import TrainingRun, learn_from, out_of_fold, question_folds, questions_to_learn
from varitext.corpora.question_answers import QuestionAnswers, canonical_order, subset
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.features.overlap import COUNTS, PLACE, Overlap
from varitext.reproduce.answer_fits import TABLES_START, load_part
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table
from varitext.text import Vocabulary

CORPUS = "wikiqa"
FOLDS = 3
SEEDS = 2
CHANGES: dict[str, dict[str, Any]] = {
    "as recommended": {},
    "vectors of 50 numbers (principal components)": {"embedding_dim": 50},
    "vectors tuned": {"tune_word_vectors": True},
    "vectors of 50 numbers, tuned": {"embedding_dim": 50, "tune_word_vectors": True},
    "no vectors: a random start": {"vectors": "random"},
    "words of training questions alone": {"unseen_words": 0},
    "all 2,118 questions": {"questions": "all"},
    "at most 3 wrong answers a pass": {"most_wrong": 3},
    "one layer": {"layers": 1},
    "dropout .2": {"dropout": 0.2},
    "weights not averaged": {"averaging": 0.0},
    "the best single round": {"smoothing": 1},
    "neither": {"averaging": 0.0, "smoothing": 1},
    "batches of 256 pairs, as many passes": {"batch_size": 256, "epochs": 12},
    "batches of 64 pairs, as many passes": {"batch_size": 64, "epochs": 12},
    "NASM": {"model": "nasm"},
    "NASM, 2 free nats": {"model": "nasm", "free_bits": 2.0},
}


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        for number, change in enumerate(CHANGES):
            settings = {"number": number, "seed": seed, "change": change}
            yield Run(settings, partial(measure, change, seed, plan))


def measure(change: str, seed: int, plan: Plan) -> dict[str, Any]:
    settings = {"model": "lstm_attention", "seed": seed, "initialization": TABLES_START}
    return cross_validated(settings | CHANGES[change], plan)


def cross_validated(chosen: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """MAP of training questions, each ranked by a network that was trained without its fold; means over the folds'
    networks of what dev questions say."""
    quick = {"epochs": 1} if plan.quick else {}
    settings = settings_from_flat(chosen | {"threads": plan.threads} | quick)
    train, dev = (
        subset(canonical_order(load_part(CORPUS, part, plan)).question_answers, questions_to_learn(settings))
        for part in ("train", "dev")
    )
    networks = FoldNetworks(settings, dev)
    with training_threads(settings):
        fold_of = question_folds(train, FOLDS, seed=0)
        probability = out_of_fold(train, fold_of, networks.predict_held_out)
    features = Overlap.learn(train, networks.vocabulary).features(train)
    found = {"alone": _map(train, probability)}
    for name, columns in (("counts", COUNTS), ("counts_position", COUNTS + PLACE)):
        combined = cross_fitted(probability, features.only(columns), train.labels, fold_of[train.groups])
        found[name] = _map(train, combined)
    return found | {"dev_map": round(float(np.mean(networks.dev_maps)), 5), "dev_kl": round(networks.kl, 6)}


class FoldNetworks:
    """Trains a network without some questions, and remembers how it went."""

    def __init__(self, settings: AnswerSettings, dev: QuestionAnswers):
        self.settings, self.dev, self.kl = settings, dev, 0.0
        self.dev_maps: list[float] = []
        self.vocabulary: Vocabulary  # of the last

    def predict_held_out(self, seen: QuestionAnswers, held_out: QuestionAnswers, run: TrainingRun) -> np.ndarray:
        data = learn_from(self.settings, seen, self.dev)
        stage = new_stage(self.settings, data)
        best = stage.trainer(self.settings, data, run).train().best_record
        self.vocabulary = data.words.vocabulary
        self.dev_maps.append(best["dev_map"])
        self.kl = max(self.kl, best["dev_kl"])
        stage.model.eval()
        return stage.predict(held_out, self.settings.prediction_samples, seed=0).probability


def _map(corpus: QuestionAnswers, probability: np.ndarray) -> float:
    return round(ranking_record(probability, corpus.labels, corpus.groups).map, 5)


def table(records: list[Record]) -> str:
    head = ["", "alone", "+ Cnt", "+ Cnt + position", "dev MAP", "KL, nats", "seeds"]
    rows = []
    for change in CHANGES:
        found = [record["result"] for record in records if record["settings"]["change"] == change]
        if found:
            names = ("alone", "counts", "counts_position", "dev_map")
            figures = [f"{np.mean([one[name] for one in found]):.4f}" for name in names]
            kl = max(one["dev_kl"] for one in found)
            rows.append([change, *figures, f"{kl:.2g}", str(len(found))])
    return markdown_table(head, rows)


EXPERIMENT = Experiment("recipes", "what our defaults for answers are worth, on training questions", runs, table)
