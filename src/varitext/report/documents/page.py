"""The report of a document model: what its template, `documents.html`, shows."""

from collections.abc import Sequence
from pathlib import Path

from varitext.corpora import is_fitted_on
from varitext.corpora.documents import Documents
from varitext.documents.model import DocumentModel
from varitext.documents.topic_records import TopicInfo
from varitext.evaluation.map_layout import MIN_FOR_NEIGHBOURS
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.documents.breakdown import Breakdown
from varitext.report.documents.examples import choose_examples, common_axis, posterior_spread
from varitext.report.documents.headline import document_facts, document_tiles
from varitext.report.documents.latent_units import active_units, latent_units
from varitext.report.documents.map import label_map, topic_map
from varitext.report.documents.sample import DocumentSample
from varitext.report.documents.topics import topic_cards
from varitext.report.drawing.training_curves import DOCUMENT_CURVES, training_curves
from varitext.report.facts import provenance
from varitext.report.page import render

MAX_WORDS = 16
NEIGHBOURS = 5


def document_page(
    model: DocumentModel,
    sample: DocumentSample,
    record: PerplexityRecord,
    corpus_name: str,
    source: Documents | None = None,
    folder: Path | None = None,
    breakdowns: Sequence[Breakdown] = (),
) -> str:
    """The report as one HTML text; `source` and `folder` are where the documents and the model come from, if known."""
    topics, dimensions = model.topics(), model.latent_dimensions()
    examples = choose_examples(sample, topics)
    axis = common_axis(examples, sample)
    documents = topic_map(sample, topics, model.seed)
    return render(
        "documents.html",
        name=corpus_name,
        tiles=document_tiles(model, record, source),
        facts=document_facts(model, corpus_name, source),
        tables=provenance(record.as_dict(), model, source, folder),
        sample=sample,
        is_tsne=len(sample) >= MIN_FOR_NEIGHBOURS,
        map=documents,
        labels=label_map(sample, topics, documents.places),
        cards=topic_cards(topics),
        breakdowns=breakdowns,
        fitted_on=source is not None and is_fitted_on(model.fitted_.corpus, source),
        how_many=model.fitted_.regions.choice.how if model.fitted_.regions else "",
        nearest_words=nearest_words(model, topics),
        examples=[(example, posterior_spread(example, sample, dimensions, axis)) for example in examples],
        has_spread=bool(sample.std.any()),
        curves=training_curves(model.fitted_.history, DOCUMENT_CURVES),
        dimensions=dimensions,
        active=active_units(dimensions),
        units=latent_units(dimensions),
    )


def nearest_words(model: DocumentModel, topics: Sequence[TopicInfo]) -> dict[str, list[tuple[str, float]]]:
    """For the first word of each of the largest topics, the words whose vectors are nearest, with their cosines."""
    by_size = sorted(topics, key=lambda topic: -topic.documents)
    leading = list(dict.fromkeys(topic.words[0] for topic in by_size if topic.words))[:MAX_WORDS]
    return {word: model.similar_words(word, NEIGHBOURS) for word in leading}
