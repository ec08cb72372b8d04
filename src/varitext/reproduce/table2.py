"""Table 2: latent dimensions of NVDM beside the paper's five topics, and coherence and diversity of all of them.

Each of the paper's topics is matched, one to one, with the end of a latent dimension on which its ten words have the
largest mean weight, standardised over the vocabulary; h may be negative, so both ends count.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from varitext.documents.model import DocumentModel
from varitext.evaluation import diversity_record
from varitext.reproduce import ABOUT
from varitext.reproduce.document_fits import NEWSGROUPS, Setting, coherence, fitted_model, hashes, short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean

WORDS = 10
PAPER = {
    "Space": "orbit lunar solar shuttle moon launch fuel nasa satellite japanese",
    "Religion": "muslims worship belief genocide jews islam christianity atheists muslim religious",
    "Encryption": "rsa cryptography crypto keys pgp license secure key escrow trust",
    "Sport": "goals pts teams league team players nhl stats min buf",
    "Policy": "bush resources charles austin bill resolution mr misc piece marc",
}
SETTINGS = (Setting("nvdm"), Setting("nvdm", 50, "paper-network"), Setting("lda"))


def runs(plan: Plan) -> Iterator[Run]:
    for setting in SETTINGS:
        for seed in plan.seeds_or(1):
            yield Run({**setting._asdict(), "seed": seed}, partial(measure, setting, seed, plan))


def measure(setting: Setting, seed: int, plan: Plan) -> dict[str, Any]:
    model = fitted_model(NEWSGROUPS, setting, seed, plan)
    topics = model.latent_dimensions(WORDS)
    diversity = diversity_record(topics)
    found = {
        "matched": matched_topics(model, {name: words.split() for name, words in PAPER.items()}),
        "topics": [list(topic.words) for topic in topics],
        "unique_words": diversity.unique_words,
        "inverted_rbo": diversity.inverted_rbo,
    } | coherence(topics, plan)
    return short(found) | hashes(NEWSGROUPS, plan)


def matched_topics(model: DocumentModel, wanted: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """For each list of words, the matched end of a latent dimension; none for a list of unknown words."""
    vectors = model.word_vectors_
    weights = (vectors - vectors.mean(0)) / np.maximum(vectors.std(0), 1e-12)
    weights = np.hstack([weights, -weights])  # [V, 2 K]   both ends
    places = {
        name: [model.fitted_.vocabulary.index[w] for w in words if w in model.fitted_.vocabulary.index]
        for name, words in wanted.items()
    }
    names = [name for name, rows in places.items() if rows]
    if not names:
        return {}
    scores = np.stack([weights[places[name]].mean(0) for name in names])  # [topics, 2 K]
    by_number = {topic.number: topic for topic in model.latent_dimensions(WORDS)}
    found = {}
    for row, column in zip(*linear_sum_assignment(scores, maximize=True), strict=True):
        topic = by_number[column % vectors.shape[1]]
        words = topic.words if column < vectors.shape[1] else topic.opposite_words
        found[names[row]] = {"words": list(words), "mean_weight": float(scores[row, column])}
    return found


def table(records: list[Record]) -> str:
    parts = [_topics(record) for record in records if record["settings"]["model"] == "nvdm"]
    return "\n\n".join([*parts, _figures(records)])


def _topics(record: Record) -> str:
    matched = record["result"]["matched"]
    head = ["", *(f"*{name}*" for name in PAPER)]
    words = [" ".join(matched[name]["words"]) if name in matched else "" for name in PAPER]
    weights = [f"{matched[name]['mean_weight']:.1f}" if name in matched else "" for name in PAPER]
    rows = [["paper", *PAPER.values()], ["ours", *words], ["weight of the paper's words", *weights]]
    return f"{_name(record)}\n\n{markdown_table(head, rows)}"


def _figures(records: list[Record]) -> str:
    rows = []
    for record in records:
        names = ("npmi", "c_v", "unique_words", "inverted_rbo")
        figures = [mean([record["result"]], name, ".3f") for name in names]
        rows.append([_name(record), *figures, str(len(record["result"]["topics"]))])
    head = ["", "NPMI", "C_V", "unique words", "inverted RBO", "dimensions"]
    return "Coherence and diversity of all latent dimensions, ten words each\n\n" + markdown_table(head, rows)


def _name(record: Record) -> str:
    setting = Setting(*(record["settings"][name] for name in Setting._fields))
    return f"{setting.name}, seed {record['settings']['seed']}"


EXPERIMENT = Experiment("table2", ABOUT["table2"], runs, table)
