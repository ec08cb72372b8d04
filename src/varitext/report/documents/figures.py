"""The figures of a report on documents by name, each as a drawing: the same data as on the page."""

from collections.abc import Callable
from typing import NamedTuple

from varitext.documents.model import DocumentModel
from varitext.report.documents.examples import choose_examples, common_reach, posterior_spread
from varitext.report.documents.latent_units import active_units, latent_units
from varitext.report.documents.map import document_map
from varitext.report.documents.sample import ShownDocuments
from varitext.report.documents.topics import topic_drawing
from varitext.report.drawing.plotting import plot
from varitext.report.drawing.shapes import Drawing
from varitext.report.drawing.training_curves import OF_DOCUMENTS, training_curves

WIDE = 1040.0


class JudgedDocuments(NamedTuple):
    """A model, and the documents that its figures show."""

    model: DocumentModel
    shown: ShownDocuments


def _map(judged: JudgedDocuments) -> Drawing:
    model, shown = judged
    colour = "label" if shown.labels else "strongest topic"
    return plot(f"Documents, coloured by {colour}", [document_map(shown, model.topics(), model.seed)], WIDE)


def _topics(judged: JudgedDocuments) -> Drawing:
    return topic_drawing(judged.model.topics())


def _posteriors(judged: JudgedDocuments) -> Drawing:
    model, shown = judged
    topics, examples = model.topics(), choose_examples(shown)
    reach = common_reach(examples, shown)
    figures = []
    for example in examples:
        figure = posterior_spread(example, shown, topics, reach)
        title = {"text": f"a document of {example.words:,} words", "standoff": 10}
        figures.append(figure.update_layout(height=figure.layout.height + 24, xaxis={"title": title}))
    return plot("Where documents lie, and how surely", figures)


def _training(judged: JudgedDocuments) -> Drawing | None:
    curves = training_curves(judged.model.history_, OF_DOCUMENTS)
    return plot("How the fit went", curves) if curves else None


def _units(judged: JudgedDocuments) -> Drawing:
    topics = judged.model.topics()
    title = f"Latent units: {active_units(topics)} of {len(topics)} carry something"
    return plot(title, [latent_units(topics)], WIDE)


DOCUMENT_FIGURES: dict[str, Callable[[JudgedDocuments], Drawing | None]] = {
    "map": _map,
    "topics": _topics,
    "posteriors": _posteriors,
    "training": _training,
    "units": _units,
}
"""A function gives nothing where the model has nothing to show."""
