"""The paper's t-SNE figure: test documents as NVDM and SWV place them, coloured by newsgroup.

A picture can flatter, so numbers stand beside it: how often the nearest documents name the right newsgroup, in the map
and in the vectors themselves. Drawn with openTSNE from the directions of the vectors, as in the report.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from varitext.report import check_drawing_packages
from varitext.reproduce.document_fits import NEWSGROUPS, Setting, fitted_model, hashes, load_part, short, titles
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, rounded
from varitext.reproduce.tsne_pictures import html_of, svg_of

MODELS = ("nvdm", "swv")
NEIGHBOURS = 10


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(1):
        for model in MODELS:
            yield Run({"model": model, "seed": seed}, partial(measure, model, seed, plan))


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    check_drawing_packages()
    from varitext.evaluation.map_layout import lay_out

    test = load_part(NEWSGROUPS, "test", plan)
    vectors = fitted_model(NEWSGROUPS, Setting(model), seed, plan).transform(test)
    places = lay_out(vectors, seed)  # [D, 2]
    names, labels = np.unique(np.array(test.labels), return_inverse=True)
    found = {
        "accuracy_in_map": neighbour_accuracy(places, labels, "euclidean"),
        "accuracy_in_vectors": neighbour_accuracy(vectors, labels, "cosine"),
        "most_frequent_label": float(np.bincount(labels).max() / len(labels)),
        "n_neighbours": NEIGHBOURS,
    }
    drawn = {"newsgroups": names.tolist(), "labels": labels.tolist(), "x": rounded(places[:, 0], 1)}
    return short(found) | drawn | {"y": rounded(places[:, 1], 1)} | hashes(NEWSGROUPS, plan)


def neighbour_accuracy(vectors: np.ndarray, labels: np.ndarray, metric: str, neighbours: int = NEIGHBOURS) -> float:
    """How often the nearest other documents vote for a document's own label; of labels with equal votes, the nearest's.

    `labels` are numbers from 0.
    """
    nearest = NearestNeighbors(n_neighbors=neighbours, metric=metric).fit(vectors).kneighbors(return_distance=False)
    votes = np.zeros((len(labels), labels.max() + 1))
    for place in range(neighbours):
        # the extra halves from place to place: less than one vote in all, and the nearest decides between equals
        votes[np.arange(len(labels)), labels[nearest[:, place]]] += 1 + 0.5 ** (place + 1)
    return float((votes.argmax(1) == labels).mean())


def table(records: list[Record]) -> str:
    head = ["", "in the map", "in the vectors", "most frequent newsgroup", "documents", "seed"]
    rows = []
    for record in records:
        found, settings = record["result"], record["settings"]
        names = ("accuracy_in_map", "accuracy_in_vectors", "most_frequent_label")
        figures = [f"{found[name]:.3f}" for name in names]
        rows.append([titles()[settings["model"]], *figures, f"{len(found['labels']):,}", str(settings["seed"])])
    return markdown_table(head, rows)


EXPERIMENT = Experiment(
    "tsne", "maps of the test documents, NVDM beside SWV (t-SNE figure)", runs, table, svg_of, html_of
)
