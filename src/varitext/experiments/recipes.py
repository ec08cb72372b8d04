"""What the points are made of: one change at a time to LSTM + Att, evaluated on WikiQA's training questions.

Not a table of the paper, but the evidence for our defaults. Each training question is ranked by a network that was
trained without its third of them (dev questions choose when to stop); no test question is looked at.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from varitext.answers.folds import out_of_fold, question_folds
from varitext.answers.ranker import AnswerRanker
from varitext.answers.second_stage import cross_fitted
from varitext.answers.task import sampled_probabilities
from varitext.batches.pairs import PairBatches
from varitext.corpora.arranged import arrange
from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.evaluation.ranking import ranking_record
from varitext.experiments.answer_fits import load_part
from varitext.experiments.runs import Experiment, Plan, Record, Run, markdown_table
from varitext.models.answers.features.overlap import COUNTS, PLACE, Overlap
from varitext.models.answers.network import AnswerNetwork

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
    settings = {"model": "lstm_attention"} | CHANGES[change] | ({"epochs": 1} if plan.quick else {})
    ranker = AnswerRanker(seed=seed, threads=plan.threads, **settings)
    train, dev = (
        subset(arrange(load_part(CORPUS, part, plan)).question_answers, ranker.questions) for part in ("train", "dev")
    )
    networks = Networks(ranker, dev)
    with ranker.running():
        fold_of = question_folds(train, FOLDS, seed=0)
        unseen = out_of_fold(train, fold_of, networks.out_of_fold, None, None)
    features = Overlap.learn(train, ranker.vocabulary_).features(train)
    found = {"alone": _map(train, unseen)}
    for name, columns in (("counts", COUNTS), ("counts_position", COUNTS + PLACE)):
        combined = cross_fitted(unseen, features.only(columns), train.labels, fold_of[train.groups])
        found[name] = _map(train, combined)
    return found | {"dev_map": round(float(np.mean(networks.dev_maps)), 5), "dev_kl": round(networks.kl, 6)}


class Networks:
    """Trains a network without some questions, and remembers how it went."""

    def __init__(self, ranker: AnswerRanker, dev: QuestionAnswers):
        self.ranker, self.dev, self.kl = ranker, dev, 0.0
        self.dev_maps: list[float] = []

    def out_of_fold(self, seen: QuestionAnswers, unseen: QuestionAnswers, *_: object) -> np.ndarray:
        trainer = self.ranker.trainer_for(seen, self.dev)
        state, network = trainer.train(), trainer.model.eval()
        assert isinstance(network, AnswerNetwork)
        self.dev_maps.append(state.best_record["dev_map"])
        self.kl = max(self.kl, state.best_record["dev_kl"])
        batches = PairBatches(unseen, self.ranker.vocabulary_, 512)
        probabilities = sampled_probabilities(network, batches, self.ranker.prediction_samples, seed=0)
        return np.asarray(probabilities.mean(0))


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
