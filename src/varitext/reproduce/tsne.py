"""The paper's t-SNE figure: test documents in the spaces of NVDM and SWV, coloured by newsgroup.

The table measures what the figure shows: how often the nearest documents predict the right newsgroup, on the map and in
the vectors. The map is openTSNE's, from the directions of the vectors, as in the report.
"""

from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from varitext.charts.colours import PALETTE
from varitext.charts.records import Group, Map
from varitext.report import check_drawing_packages
from varitext.report.drawing import chart_figure, svg_text
from varitext.reproduce import ABOUT
from varitext.reproduce.document_fits import NEWSGROUPS, Setting, fitted_model, hashes, load_part, short, titles
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, rounded

MODELS = ("nvdm", "swv")
NEIGHBOURS = 10
PANEL = 460  # pixels: width and height of one map


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
    """How often the nearest other documents vote for a document's own label; the nearest breaks ties.

    `labels` are numbers from 0.
    """
    nearest = NearestNeighbors(n_neighbors=neighbours, metric=metric).fit(vectors).kneighbors(return_distance=False)
    votes = np.zeros((len(labels), labels.max() + 1))
    for place in range(neighbours):
        # the extra share halves from place to place: less than one vote in all, so that it only breaks ties
        votes[np.arange(len(labels)), labels[nearest[:, place]]] += 1 + 0.5 ** (place + 1)
    return float((votes.argmax(1) == labels).mean())


def table(records: list[Record]) -> str:
    head = ["", "on the map", "in the vectors", "most frequent newsgroup", "documents", "seed"]
    rows = []
    for record in records:
        found, settings = record["result"], record["settings"]
        names = ("accuracy_in_map", "accuracy_in_vectors", "most_frequent_label")
        figures = [f"{found[name]:.3f}" for name in names]
        rows.append([titles()[settings["model"]], *figures, f"{len(found['labels']):,}", str(settings["seed"])])
    return markdown_table(head, rows)


def figure(records: list[Record]) -> str:
    """The maps of the first seed side by side."""
    seed = min(record["settings"]["seed"] for record in records)
    maps = [_map(record) for record in records if record["settings"]["seed"] == seed]
    title = "t-SNE of the test documents, coloured by newsgroup"
    return svg_text(chart_figure(title, maps, PANEL, columns=len(maps)))


def _map(record: Record) -> Map:
    found = record["result"]
    places, labels = np.stack([found["x"], found["y"]], 1).astype(float), np.array(found["labels"])
    groups = [
        Group(name, np.flatnonzero(labels == number), PALETTE[number % len(PALETTE)])
        for number, name in enumerate(found["newsgroups"])
    ]
    return Map(places, groups, dot=3.4, title=titles()[record["settings"]["model"]], height=PANEL)


RUNS = partial(grid, measure, 1, model=MODELS)
EXPERIMENT = Experiment("tsne", ABOUT["tsne"], RUNS, table, figure)
