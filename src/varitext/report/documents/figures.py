"""The figures of a report on documents by name, drawn for files from the data of the page."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from varitext.documents.model import DocumentModel
from varitext.evaluation.map_layout import lay_out
from varitext.report.documents.breakdown import Breakdown
from varitext.report.documents.examples import choose_examples, common_axis, posterior_spread
from varitext.report.documents.latent_units import active_units, latent_units
from varitext.report.documents.map import label_map, topic_map
from varitext.report.documents.sample import DocumentSample
from varitext.report.documents.topics import topic_figure
from varitext.report.drawing.canvas import Figure
from varitext.report.drawing.static import chart_figure
from varitext.report.drawing.training_curves import DOCUMENT_CURVES, training_curves

WIDE = 1040.0


class EvaluatedDocuments(NamedTuple):
    """A model, and the documents that its figures show."""

    model: DocumentModel
    sample: DocumentSample
    breakdowns: Sequence[Breakdown] = ()


def _map(evaluated: EvaluatedDocuments) -> Figure:
    model, sample, _ = evaluated
    return chart_figure("Documents, coloured by topic", [topic_map(sample, model.topics(), model.seed)], WIDE)


def _labels(evaluated: EvaluatedDocuments) -> Figure | None:
    model, sample, _ = evaluated
    drawn = sample.labels and label_map(sample, model.topics(), lay_out(sample.mean, model.seed))
    return chart_figure("Documents, coloured by label", [drawn], WIDE) if drawn else None


def _topics(evaluated: EvaluatedDocuments) -> Figure:
    return topic_figure(evaluated.model.topics())


def _by_class(evaluated: EvaluatedDocuments) -> Figure | None:
    found = next((one for one in evaluated.breakdowns if not one.over_time), None)
    return chart_figure(f"Topics by {found.column}", found.charts) if found else None


def _over_time(evaluated: EvaluatedDocuments) -> Figure | None:
    found = next((one for one in evaluated.breakdowns if one.over_time), None)
    return chart_figure("Topics over time", found.charts) if found else None


def _posteriors(evaluated: EvaluatedDocuments) -> Figure | None:
    model, sample, _ = evaluated
    dimensions, examples = model.latent_dimensions(), choose_examples(sample, model.topics())
    axis = common_axis(examples, sample)
    drawn = (
        posterior_spread(example, sample, dimensions, axis._replace(title=f"a document of {example.words:,} words"))
        for example in examples
    )
    charts = [chart for chart in drawn if chart is not None]
    return chart_figure("Documents on their strongest latent dimensions", charts) if charts else None


def _training(evaluated: EvaluatedDocuments) -> Figure | None:
    curves = training_curves(evaluated.model.fitted_.history, DOCUMENT_CURVES)
    return chart_figure("Training", curves) if curves else None


def _units(evaluated: EvaluatedDocuments) -> Figure:
    topics = evaluated.model.latent_dimensions()
    title = f"Latent units: {active_units(topics)} of {len(topics)} carry information"
    return chart_figure(title, [latent_units(topics)], WIDE)


DOCUMENT_FIGURES: dict[str, Callable[[EvaluatedDocuments], Figure | None]] = {
    "map": _map,
    "labels": _labels,
    "topics": _topics,
    "by-class": _by_class,
    "over-time": _over_time,
    "posteriors": _posteriors,
    "training": _training,
    "units": _units,
}
"""A function gives nothing where the model has nothing to show."""
