"""Ablation of the default settings for answers: one change at a time to LSTM + Att, on WikiQA's training questions.

Three-fold cross-validation: each training question is ranked by a network trained without its fold, dev questions
decide when to stop, and no test question is used. The networks start at random (`initialization="pytorch"`).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.answers.fitting import new_stage, training_threads
from varitext.answers.prediction import Combination
from varitext.answers.settings import AnswerSettings, settings_from_flat
from varitext.answers.training_data import TrainingRun, learn_from, out_of_fold, question_folds, questions_to_learn
from varitext.corpora.question_answers import QuestionAnswers, canonical_order, subset
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.features.overlap import COUNTS, PLACE, Overlap, PairFeatures
from varitext.models.answers.recurrent import PYTORCH
from varitext.reproduce.answer_fits import load_part
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results
from varitext.text import Vocabulary

CORPUS = "wikiqa"
COLUMNS = {"alone": "alone", "counts": "+ Cnt", "counts_position": "+ Cnt + position", "dev_map": "dev MAP"}
FOLDS = 3
SEEDS = 2
CHANGES: dict[str, dict[str, Any]] = {
    "recommended": {},
    "50-d vectors (principal components)": {"embedding_dim": 50},
    "tuned vectors": {"tune_word_vectors": True},
    "50-d vectors, tuned": {"embedding_dim": 50, "tune_word_vectors": True},
    "random vectors": {"vectors": "random"},
    "vocabulary of training questions only": {"unseen_words": 0},
    "all 2,118 questions": {"questions": "all"},
    "at most 3 wrong answers per epoch": {"most_wrong": 3},
    "one layer": {"layers": 1},
    "dropout .2": {"dropout": 0.2},
    "no weight averaging": {"averaging": 0.0},
    "epoch chosen by its own dev MAP": {"smoothing": 1},
    "no averaging, epoch by its own dev MAP": {"averaging": 0.0, "smoothing": 1},
    "batches of 256 pairs, same epochs": {"batch_size": 256, "epochs": 12},
    "batches of 64 pairs, same epochs": {"batch_size": 64, "epochs": 12},
    "NASM": {"model": "nasm"},
    "NASM, 2 free nats": {"model": "nasm", "free_bits": 2.0},
}


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        for number, change in enumerate(CHANGES):
            settings = {"number": number, "seed": seed, "change": change}
            yield Run(settings, partial(measure, change, seed, plan))


def measure(change: str, seed: int, plan: Plan) -> dict[str, Any]:
    settings = {"model": "lstm_attention", "seed": seed, "initialization": PYTORCH}
    return cross_validated(settings | CHANGES[change], plan)


def cross_validated(chosen: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """MAP of the training questions, and means over the folds' networks of dev measures."""
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


def cross_fitted(probabilities: np.ndarray, features: PairFeatures, labels: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """The probability of each pair from a combination that was fitted without the pair's fold."""
    combined = np.empty(len(labels))
    for number in np.unique(fold):
        inside = fold == number
        fitted = Combination.fit(probabilities[~inside], features.of_pairs(~inside), labels[~inside])
        combined[inside] = fitted.probability(probabilities[inside], features.of_pairs(inside))
    return combined


class FoldNetworks:
    """Trains a network without some questions, and keeps its dev measures."""

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
    rows = []
    for change in CHANGES:
        if found := results(records, change=change):
            kl = max(one["dev_kl"] for one in found)
            rows.append([change, *(mean(found, name) for name in COLUMNS), f"{kl:.2g}", str(len(found))])
    return markdown_table(["", *COLUMNS.values(), "KL, nats", "seeds"], rows)


EXPERIMENT = Experiment("recipes", "ablation of the default settings for answers, on training questions", runs, table)
