"""The report of a document model: headline figures, then pictures, each with one sentence that says how to read it."""

from pathlib import Path

import plotly.graph_objects as go

from varitext.corpora.documents import Documents
from varitext.documents.model import DocumentModel, Topic
from varitext.evaluation.map_layout import FEWEST_FOR_NEIGHBOURS
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.documents.examples import Example, choose_examples, common_reach, posterior_spread
from varitext.report.documents.headline import document_facts, document_headline, paper_perplexity
from varitext.report.documents.latent_units import active_units, latent_units
from varitext.report.documents.map import document_map
from varitext.report.documents.nearest_words import nearest_words
from varitext.report.documents.sample import ShownDocuments
from varitext.report.documents.topics import MOST_TOPICS, topic_cards
from varitext.report.drawing.training_curves import OF_DOCUMENTS, training_curves
from varitext.report.escaping import for_html
from varitext.report.facts import file_hashes, folded_table, settings_of
from varitext.report.page import beside_each_other, drawn, report_page, section


def document_page(
    model: DocumentModel,
    shown: ShownDocuments,
    record: PerplexityRecord,
    corpus_name: str,
    source: Documents | None = None,
    folder: Path | None = None,
) -> str:
    """The report as one HTML text; `source` and `folder` are where the documents and the model come from, if known."""
    topics = model.topics()
    top = document_headline(record, paper_perplexity(model, source))
    top += document_facts(model, corpus_name, source) + folded_table("The whole record", record.as_dict())
    top += folded_table("All settings", settings_of(model)) + folded_table(
        "Files (SHA-256)", file_hashes(source, folder)
    )
    sections = [
        _map_section(model, shown, topics),
        _topics_section(topics),
        _words_section(model, topics),
        _examples_section(shown, topics),
        _training_section(model),
        _units_section(topics),
    ]
    return report_page(corpus_name, top, sections)


def _map_section(model: DocumentModel, shown: ShownDocuments, topics: list[Topic]) -> str:
    figure = document_map(shown, topics, model.seed)
    colour = "label" if shown.labels else "strongest topic; the words on the map say what a region is about"
    some = f"a sample of {len(shown):,} of the {shown.of:,}" if len(shown) < shown.of else f"all {shown.of:,}"
    few = len(shown) < FEWEST_FOR_NEIGHBOURS
    method = "their two main directions: too few for t-SNE" if few else "t-SNE of their vectors"
    reading = (
        f"Each dot is a document ({some}); near means alike, distances across the map mean little ({method}). "
        f"Colour is the {colour}. Pick names below to see only them; point at a dot to see what it is."
    )
    picture = drawn(figure, "Map of the documents; the list below it names the colours")
    return section("The documents", reading, f'<figure class="map">{picture}{_legend(figure)}</figure>')


def _legend(figure: go.Figure) -> str:
    """The names as buttons: they wrap on a phone and work from the keyboard, which plotly's own legend does not."""
    buttons = "".join(  # the names are escaped already, for plotly, which is stricter
        f'<button type="button" aria-pressed="false" data-trace="{number}">'
        f'<i style="background:{trace.marker.color}"></i><span dir="auto">{trace.name}</span></button>'
        for number, trace in enumerate(figure.data)
    )
    return f'<div class="legend" role="group" aria-label="Highlight">{buttons}</div>'


def _topics_section(topics: list[Topic]) -> str:
    first = f"the {MOST_TOPICS} of {len(topics)} that carry" if len(topics) > MOST_TOPICS else "those that carry"
    reading = (
        "A topic is one latent dimension; the bars show how strongly it raises each word. "
        f"Shown are {first} most, each with its share of the information (KL) in a document's vector."
    )
    return section("Topics", reading, topic_cards(topics))


def _words_section(model: DocumentModel, topics: list[Topic]) -> str:
    reading = "For the leading word of each of the first topics, the words whose vectors are nearest by cosine."
    return section("Nearest words", reading, nearest_words(model, topics))


def _examples_section(shown: ShownDocuments, topics: list[Topic]) -> str:
    examples = choose_examples(shown)
    reading = "Documents from short to long. A dot says how far the document leans towards these words"
    if shown.std.any():
        reading += (
            ", a line how unsure that is (one standard deviation to each side). "
            "More words, less doubt: the lines should get shorter."
        )
    else:
        reading += ". This model gives each document one point: it has no spread to show."
    reach = common_reach(examples, shown)
    cards = "".join(_example_card(example, shown, topics, reach) for example in examples)
    return section("How sure the model is", reading, f'<div class="examples">{cards}</div>')


def _example_card(example: Example, shown: ShownDocuments, topics: list[Topic], reach: float) -> str:
    label = f'<span class="label" dir="auto">{for_html(example.label)}</span> ' if example.label else ""
    unit = "word" if example.words == 1 else "words"
    picture = drawn(posterior_spread(example, shown, topics, reach), f"Posterior of: {example.title}")
    return (
        f'<figure><figcaption><p class="note">{label}{example.words:,} {unit}</p>'
        f'<p class="title" dir="auto">{for_html(example.title)}</p></figcaption>{picture}</figure>'
    )


def _training_section(model: DocumentModel) -> str:
    curves = training_curves(model.history_, OF_DOCUMENTS)
    reading = (
        "Documents held out from the fit, after each round: their perplexity, whose lowest was kept, and log p(X)."
    )
    if len(curves) == len(OF_DOCUMENTS):
        reading += (
            " Last, what their latent vectors cost in KL; where the ground is shaded its weight was still rising."
        )
    if not curves:
        return section("How the fit went", "It was measured only once: there is no curve.", "")
    described = [(curve, f"By epoch: {curve.layout.yaxis.title.text}") for curve in curves]
    return section("How the fit went", reading, beside_each_other(described))


def _units_section(topics: list[Topic]) -> str:
    reading = (
        f"{active_units(topics)} of {len(topics)} latent units carry something. "
        "A bar is the information in one unit; a unit at zero says nothing about any document."
    )
    picture = drawn(latent_units(topics), "What each latent unit carries, largest first")
    return section("Latent units", reading, picture)
