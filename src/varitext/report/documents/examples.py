"""A few documents, short to long, with their posterior: where each lies on its strongest dimensions, and how surely."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from varitext.documents.topic_records import TopicInfo
from varitext.evaluation.latent_dimensions import LatentDimension, words_towards
from varitext.report.documents.sample import DocumentSample
from varitext.report.drawing.charts import Axis, Intervals
from varitext.report.drawing.style import ACCENT

LENGTHS = (0.08, 0.4, 0.7, 0.96)  # quantiles: the spread of the posterior is seen to shrink with the length
DIMENSIONS = 7
LEAST_PROBABILITY, MAX_TOPICS = 0.05, 3  # of the topics shown for a document


class Example(NamedTuple):
    row: int
    title: str
    label: str | None
    words: int
    topics: list[tuple[str, float]]  # name and probability


def choose_examples(
    sample: DocumentSample, topics: Sequence[TopicInfo], quantiles: Sequence[float] = LENGTHS
) -> list[Example]:
    """The documents at these quantiles of length, shortest first."""
    by_length = np.argsort(sample.lengths, kind="stable")
    places = sorted({round(quantile * (len(sample) - 1)) for quantile in quantiles})
    return [_example(int(by_length[place]), sample, topics) for place in places]


def posterior_spread(
    example: Example, sample: DocumentSample, dimensions: list[LatentDimension], axis: Axis
) -> Intervals | None:
    """Posterior mean and standard deviation on the dimensions where the document lies farthest from the prior.

    A dimension's sign is arbitrary, so each row is named by the end it leans to and drawn towards the right. Dimensions
    whose interval covers zero are left out; None if that leaves nothing.
    """
    mean, std = sample.mean[example.row], sample.std[example.row]
    by_number = {dimension.number: dimension for dimension in dimensions}
    strongest = np.argsort(-np.abs(mean), kind="stable")[:DIMENSIONS]
    strongest = strongest[np.abs(mean[strongest]) > std[strongest]].tolist()
    if not strongest:
        return None
    values, spread = np.abs(mean[strongest]), std[strongest]
    return Intervals(
        [", ".join(words_towards(by_number[k], mean[k])[:3]) for k in strongest],
        values,
        values - spread,
        values + spread,
        [ACCENT] * len(strongest),
        [f"{value:.2f} ± {width:.2f}" for value, width in zip(values, spread, strict=True)],
        axis,
        row_height=26,
        zero_line=True,
    )


def common_axis(examples: list[Example], sample: DocumentSample) -> Axis:
    """The same for all examples, so that they can be compared."""
    rows = [example.row for example in examples]
    reach = float((np.abs(sample.mean[rows]) + sample.std[rows]).max(initial=1.0)) * 1.05
    return Axis(limits=(-0.1 * reach, reach))


def _example(row: int, sample: DocumentSample, topics: Sequence[TopicInfo]) -> Example:
    title = (sample.titles[row] if sample.titles else "") or ", ".join(sample.document_keywords[row])
    label = sample.labels[row] if sample.labels else None
    probable = np.argsort(-sample.memberships[row], kind="stable")[:MAX_TOPICS]
    named = [(topics[place].name, float(sample.memberships[row, place])) for place in probable]
    shown = named[:1] + [one for one in named[1:] if one[1] >= LEAST_PROBABILITY]
    return Example(row, title, label, round(float(sample.lengths[row])), shown)
