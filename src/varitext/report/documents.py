"""The report of a document model: its headline, its page and its figures."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from varitext import paper
from varitext.corpora import is_fitted_on
from varitext.corpora.documents import Documents
from varitext.documents.default_model import BURSTS, PLAIN
from varitext.documents.model import DocumentModel
from varitext.documents.topic_records import TopicInfo
from varitext.evaluation.map_layout import MIN_FOR_NEIGHBOURS, lay_out
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.charts import DOCUMENT_CURVES, training_curves
from varitext.report.document_charts import (
    Breakdown,
    DocumentSample,
    active_units,
    choose_examples,
    common_axis,
    label_map,
    latent_units,
    posterior_spread,
    topic_cards,
    topic_figure,
    topic_map,
)
from varitext.report.drawing import Figure, chart_figure
from varitext.report.page import Fact, Tile, duration, fingerprint, provenance, render, why_stopped

# Headline

MAX_TILES = 9  # the large one, and eight that fit beside it


def document_tiles(model: DocumentModel, record: PerplexityRecord, source: Documents | None) -> list[Tile]:
    """The first is shown large: a perplexity of documents that the model has not learned from."""
    low, high = record.per_document_interval_95
    interval = f"95 % interval {low:,.1f} to {high:,.1f}; lower is better"
    published = in_the_paper(model, source)
    hero = Tile("perplexity per document", f"{record.per_document_perplexity:,.1f}", interval)
    if source is not None and is_fitted_on(model.fitted_.corpus, source):
        tiles = [_held_out(model), *_tiles_of(record, hero._replace(name="fitted on these"), published)]
    else:
        tiles = _tiles_of(record, hero, published)
    return tiles[:MAX_TILES]


def _held_out(model: DocumentModel) -> Tile:
    note = f"of {model.fitted_.n_dev_documents:,} documents that the fit held out; lower is better"
    return Tile("held-out perplexity", f"{model.fitted_.dev_perplexity:,.1f}", note)


def _tiles_of(record: PerplexityRecord, hero: Tile, in_paper: list[Tile]) -> list[Tile]:
    unigram = Tile("unigram", f"{record.unigram_per_document_perplexity:,.1f}", "word frequencies alone, per document")
    ratio = Tile("ratio to unigram", f"{record.ratio_to_unigram:.3f}", "the lower, the more the model has learned")
    corpus = Tile("per corpus", f"{record.corpus_perplexity:,.1f}", "every word weighs the same")
    documents = Tile("documents", f"{record.n_documents:,}", _left_out(record))
    words = Tile("words", f"{record.n_tokens:,}", "tokens of the vocabulary")
    if record.kind != "bound":  # nothing is tighter, and there is no KL
        kind = Tile("kind", record.kind, record.figure)
        return [hero, kind, unigram, *in_paper, ratio, corpus, documents, words]
    tighter = Tile(
        "importance-weighted", f"{record.iwae_per_document_perplexity:,.1f}", "a tighter bound, per document"
    )
    kl = Tile("KL per word", f"{record.kl_per_word:.3f}", "nats that the latent vector costs")
    samples = Tile("samples", f"{record.n_samples:,}", "draws of h per document")
    return [hero, tighter, unigram, *in_paper, ratio, corpus, kl, documents, words, samples]


def document_facts(model: DocumentModel, corpus_name: str, source: Documents | None) -> list[Fact]:
    """What was fitted on what."""
    seconds = duration(model.fitted_.fit_seconds)
    return [
        Fact("corpus", corpus_name),
        *fingerprint(source),
        Fact(
            "model",
            f"{model.fitted_.model}, {model.latent_dim} latent units, {len(model.fitted_.vocabulary.words):,} words",
        ),
        Fact("likelihood", model.fitted_.network.likelihood),
        Fact("fitted", f"on {model.fitted_.n_training_documents:,} documents in {seconds}, seed {model.seed}"),
        why_stopped(model.fitted_.stopped, "the held-out perplexity"),
    ]


def in_the_paper(model: DocumentModel, source: Documents | None) -> list[Tile]:
    """The paper's value for this model and size on these very documents, if it has one (Table 1 a)."""
    if source is None or source.part != "test":
        return []
    name, alike = (
        (PLAIN, "NVDM with a multinomial") if model.fitted_.model == BURSTS else (model.fitted_.model, "the same model")
    )
    published = paper.perplexity(source.name, name, model.latent_dim)
    return [] if published is None else [Tile("the paper", f"{published:,}", f"{alike}, the same size and documents")]


def _left_out(record: PerplexityRecord) -> str:
    empty = record.n_empty_documents
    return f"{empty:,} without a known word left out" if empty else "each with a known word"


# Page

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


# Figures

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
