"""The report of a document model: what its template, `documents.html`, shows."""

from pathlib import Path

from varitext.corpora.documents import Documents
from varitext.documents.model import DocumentModel
from varitext.evaluation.map_layout import FEWEST_FOR_NEIGHBOURS
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.evaluation.topics import Topic
from varitext.report.documents.examples import choose_examples, common_axis, posterior_spread
from varitext.report.documents.headline import document_facts, document_tiles
from varitext.report.documents.latent_units import active_units, latent_units
from varitext.report.documents.map import document_map
from varitext.report.documents.sample import DocumentSample
from varitext.report.documents.topics import topic_cards
from varitext.report.drawing.training_curves import OF_DOCUMENTS, training_curves
from varitext.report.facts import provenance
from varitext.report.page import render

MOST_WORDS = 16
NEIGHBOURS = 5


def document_page(
    model: DocumentModel,
    sample: DocumentSample,
    record: PerplexityRecord,
    corpus_name: str,
    source: Documents | None = None,
    folder: Path | None = None,
) -> str:
    """The report as one HTML text; `source` and `folder` are where the documents and the model come from, if known."""
    topics, examples = model.latent_dimensions(), choose_examples(sample)
    axis = common_axis(examples, sample)
    return render(
        "documents.html",
        name=corpus_name,
        tiles=document_tiles(model, record, source),
        facts=document_facts(model, corpus_name, source),
        tables=provenance(record.as_dict(), model, source, folder),
        sample=sample,
        is_tsne=len(sample) >= FEWEST_FOR_NEIGHBOURS,
        map=document_map(sample, topics, model.seed),
        n_topics=len(topics),
        cards=topic_cards(topics),
        nearest_words=nearest_words(model, topics),
        examples=[(example, posterior_spread(example, sample, topics, axis)) for example in examples],
        has_spread=bool(sample.std.any()),
        curves=training_curves(model.history_, OF_DOCUMENTS),
        active=active_units(topics),
        units=latent_units(topics),
    )


def nearest_words(model: DocumentModel, topics: list[Topic]) -> dict[str, list[tuple[str, float]]]:
    """For the leading word of each of the first topics, the words whose vectors are nearest, with their cosines."""
    leading = list(dict.fromkeys(topic.words[0] for topic in topics))[:MOST_WORDS]
    return {word: model.similar_words(word, NEIGHBOURS) for word in leading}
