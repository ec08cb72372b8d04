"""The figures of a report on documents by name, drawn for files from the data of the page."""

from collections.abc import Callable
from typing import NamedTuple

from varitext.documents.model import DocumentModel
from varitext.report.documents.examples import choose_examples, common_axis, posterior_spread
from varitext.report.documents.latent_units import active_units, latent_units
from varitext.report.documents.map import document_map
from varitext.report.documents.sample import DocumentSample
from varitext.report.documents.topics import topic_figure
from varitext.report.drawing.canvas import Figure
from varitext.report.drawing.static import chart_figure
from varitext.report.drawing.training_curves import OF_DOCUMENTS, training_curves

WIDE = 1040.0


class EvaluatedDocuments(NamedTuple):
    """A model, and the documents that its figures show."""

    model: DocumentModel
    sample: DocumentSample


def _map(evaluated: EvaluatedDocuments) -> Figure:
    model, sample = evaluated
    colour = "label" if sample.labels else "strongest topic"
    return chart_figure(
        f"Documents, coloured by {colour}", [document_map(sample, model.latent_dimensions(), model.seed)], WIDE
    )


def _topics(evaluated: EvaluatedDocuments) -> Figure:
    return topic_figure(evaluated.model.latent_dimensions())


def _posteriors(evaluated: EvaluatedDocuments) -> Figure:
    model, sample = evaluated
    topics, examples = model.latent_dimensions(), choose_examples(sample)
    axis, charts = common_axis(examples, sample), []
    for example in examples:
        titled = axis._replace(title=f"a document of {example.words:,} words")
        charts.append(posterior_spread(example, sample, topics, titled))
    return chart_figure("Where documents lie, and how surely", charts)


def _training(evaluated: EvaluatedDocuments) -> Figure | None:
    curves = training_curves(evaluated.model.history_, OF_DOCUMENTS)
    return chart_figure("How the fit went", curves) if curves else None


def _units(evaluated: EvaluatedDocuments) -> Figure:
    topics = evaluated.model.latent_dimensions()
    title = f"Latent units: {active_units(topics)} of {len(topics)} carry information"
    return chart_figure(title, [latent_units(topics)], WIDE)


DOCUMENT_FIGURES: dict[str, Callable[[EvaluatedDocuments], Figure | None]] = {
    "map": _map,
    "topics": _topics,
    "posteriors": _posteriors,
    "training": _training,
    "units": _units,
}
"""A function gives nothing where the model has nothing to show."""
