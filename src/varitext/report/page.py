"""The page: headline figures, then pictures, each with one sentence that says how to read it.

Everything is in the one file. The content security policy allows the two scripts of the page by their hash and no
address at all, so that even a mistake in escaping could neither run nor fetch anything.
"""

import base64
import hashlib
from importlib.resources import files as package_files

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

import varitext
from varitext.corpora.documents import Documents
from varitext.document_model import DocumentModel, Topic
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.document_map import FEWEST_FOR_NEIGHBOURS, document_map
from varitext.report.escaping import for_html, for_script
from varitext.report.examples import Example, choose_examples, common_reach, posterior_spread
from varitext.report.headline import full_record, headline, provenance
from varitext.report.latent_units import active_units, latent_units
from varitext.report.nearest_words import nearest_words
from varitext.report.shown_documents import ShownDocuments
from varitext.report.topics import MOST_TOPICS, topic_cards
from varitext.report.training_curves import kl_curve, perplexity_curve


def document_page(
    model: DocumentModel,
    shown: ShownDocuments,
    record: PerplexityRecord,
    corpus_name: str,
    source: Documents | None = None,
) -> str:
    """The report of a document model as one HTML text."""
    topics = model.topics()
    sections = (
        _map_section(model, shown, topics),
        _topics_section(topics),
        _words_section(model, topics),
        _examples_section(shown, topics),
        _training_section(model),
        _units_section(topics),
    )
    top = (
        f'<header class="top"><p class="kind">varitext report</p><h1 dir="auto">{for_html(corpus_name)}</h1></header>'
        f"<section>{headline(record)}{provenance(model, corpus_name, source)}{full_record(record)}</section>"
    )
    return html_page(f"{for_html(corpus_name)} · varitext", top + "".join(sections))


def html_page(title: str, body: str) -> str:
    """A whole page around `body`; plotly comes last, so that the text is there at once."""
    style, script = _own_file("page.css"), _own_file("page.js")
    plotly = get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")  # as the browser will read and hash it
    policy = (
        f"default-src 'none'; script-src {_source_hash(plotly)} {_source_hash(script)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{title}</title>\n<style>\n{style}</style>\n</head>\n'
        f"<body>\n<main>\n{body}\n</main>\n<footer><p>Made by varitext {varitext.__version__}. "
        "This file holds all that it shows and fetches nothing.</p></footer>\n"
        f"<script>{plotly}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def drawn(figure: go.Figure, description: str) -> str:
    """A figure's place in the page, with its height kept free, and its data for the script to draw."""
    return (
        f'<div class="drawn" role="img" aria-label="{for_html(description)}" style="height:{figure.layout.height}px">'
        f'<script type="application/json">{for_script(figure.to_json())}</script></div>'
    )


def _section(heading: str, reading: str, body: str) -> str:
    return f'<section><h2>{heading}</h2><p class="reading">{reading}</p>{body}</section>\n'


def _map_section(model: DocumentModel, shown: ShownDocuments, topics: list[Topic]) -> str:
    figure = document_map(shown, topics, model.seed)
    colour = "label" if shown.labels else "strongest topic; the words on the map say what a region is about"
    some = f"a sample of {len(shown):,} of the {shown.of:,}" if len(shown) < shown.of else f"all {shown.of:,}"
    few = len(shown) < FEWEST_FOR_NEIGHBOURS
    method = "their two main directions: too few for t-SNE" if few else "t-SNE of the posterior means"
    reading = (
        f"Each dot is a document ({some}); near means alike, distances across the map mean little ({method}). "
        f"Colour is the {colour}. Pick names below to see only them; point at a dot to see what it is."
    )
    picture = drawn(figure, "Map of the documents; the list below it names the colours")
    return _section("The documents", reading, f'<figure class="map">{picture}{_legend(figure)}</figure>')


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
    return _section("Topics", reading, topic_cards(topics))


def _words_section(model: DocumentModel, topics: list[Topic]) -> str:
    reading = "For the leading word of each of the first topics, the words whose vectors are nearest by cosine."
    return _section("Nearest words", reading, nearest_words(model, topics))


def _examples_section(shown: ShownDocuments, topics: list[Topic]) -> str:
    examples = choose_examples(shown)
    if not examples:
        return _section("How sure the model is", "No document here has a word that the model knows.", "")
    reading = (
        "Documents from short to long. A dot says how far the document leans towards these words, a line how unsure "
        "that is (one standard deviation to each side). More words, less doubt: the lines should get shorter."
    )
    reach = common_reach(examples, shown)
    cards = "".join(_example_card(example, shown, topics, reach) for example in examples)
    return _section("How sure the model is", reading, f'<div class="examples">{cards}</div>')


def _example_card(example: Example, shown: ShownDocuments, topics: list[Topic], reach: float) -> str:
    label = f'<span class="label" dir="auto">{for_html(example.label)}</span> ' if example.label else ""
    unit = "word" if example.words == 1 else "words"
    picture = drawn(posterior_spread(example, shown, topics, reach), f"Posterior of: {example.title}")
    return (
        f'<figure><figcaption><p class="note">{label}{example.words:,} {unit}</p>'
        f'<p class="title" dir="auto">{for_html(example.title)}</p></figcaption>{picture}</figure>'
    )


def _training_section(model: DocumentModel) -> str:
    reading = (
        "First, the perplexity of documents held out from the fit, after each round; the lowest was kept. "
        "Second, what their latent vectors cost in KL; where the ground is shaded its weight was still rising."
    )
    curves = drawn(perplexity_curve(model.history_), "Held-out perplexity by epoch") + drawn(
        kl_curve(model.history_), "Held-out KL by epoch"
    )
    return _section("How the fit went", reading, f'<div class="pair">{curves}</div>')


def _units_section(topics: list[Topic]) -> str:
    reading = (
        f"{active_units(topics)} of {len(topics)} latent units carry something. "
        "A bar is the KL of one unit; a unit at zero says nothing about any document."
    )
    return _section("Latent units", reading, drawn(latent_units(topics), "KL of each latent unit, largest first"))


def _own_file(name: str) -> str:
    return package_files("varitext.report").joinpath(name).read_text(encoding="utf-8")


def _source_hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
