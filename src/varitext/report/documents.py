"""The report of a document model: its headline, its page and its figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from varitext import paper
from varitext.charts.records import DOCUMENT_CURVES, Chart, ColumnValues, Map, training_curves
from varitext.corpora import Documents, is_fitted_on
from varitext.corpora.documents import LABEL_COLUMN
from varitext.corpora.sharded_counts import Counts
from varitext.documents.charts import (
    MAX_DOCUMENTS,
    Breakdown,
    DocumentSample,
    active_dimensions,
    breakdown,
    choose_documents,
    choose_examples,
    common_axis,
    dimension_chart,
    document_map,
    label_groups,
    posterior_spread,
    topic_cards,
    topic_charts,
    topic_groups,
)
from varitext.documents.model import DocumentModel
from varitext.documents.settings import DEFAULT_MODEL, FALLBACK_MODEL
from varitext.documents.topic_model import regions_of
from varitext.documents.topic_records import Records, TopicInfo
from varitext.evaluation.latent_dimensions import LatentDimension
from varitext.evaluation.map_layout import MIN_FOR_NEIGHBOURS, lay_out, towards_topics
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.drawing import PANEL_WIDTH, Figure, chart_figure
from varitext.report.page import Tile, fitted_in, provenance, render, why_stopped

Log = Callable[[str], None]  # called with a description of the next step


def silent(_message: str) -> None:
    """The default: log nothing."""


MAX_TILES = 9  # one large tile, and eight that fit beside it
MAX_WORDS, NEIGHBOURS = 16, 5  # in the table of nearest words
WIDE, TOPIC_WIDTH = 1040.0, 250.0


@dataclass(frozen=True, eq=False)
class ShownDocuments:
    """A model, and the documents that its page and figures show; `source` is their corpus, if they come from one."""

    model: DocumentModel
    counts: Counts
    sample: DocumentSample
    breakdowns: Sequence[Breakdown]
    source: Documents | None
    log: Log = silent

    @cached_property
    def topics(self) -> Records[TopicInfo]:
        return self.model.topics()

    @cached_property
    def dimensions(self) -> list[LatentDimension]:
        return self.model.latent_dimensions()

    @cached_property
    def places(self) -> np.ndarray:
        self.log(f"map of {len(self.sample):,} documents")
        centres = regions_of(self.model.fitted_).group_centres()
        return lay_out(towards_topics(self.sample.mean, self.sample.memberships, centres), self.model.seed)

    @cached_property
    def topic_map(self) -> Map:
        return document_map(self.sample, self.topics, self.places, topic_groups(self.sample, self.topics, self.places))

    @property
    def label_map(self) -> Map | None:
        labels = self.sample.labels
        return None if labels is None else document_map(self.sample, self.topics, self.places, label_groups(labels))

    @property
    def label_name(self) -> str:
        """The name of the column that the labels come from."""
        read_as = self.source.read_as if self.source is not None else None
        return (read_as.label_column if read_as is not None else None) or LABEL_COLUMN

    @property
    def is_training_data(self) -> bool:
        return self.source is not None and is_fitted_on(self.model.fitted_.corpus, self.source)


def shown_documents(
    model: DocumentModel,
    documents: Any,
    labels: Sequence[str] | None,
    titles: Sequence[str] | None,
    columns: Sequence[ColumnValues],
    log: Log = silent,
) -> ShownDocuments:
    """Collect what is shown. Labels and texts default to those of the corpus. Counts and vectors are computed once."""
    source = documents if isinstance(documents, Documents) else None
    if source is not None:
        labels = source.labels if labels is None else labels
        titles = source.texts if titles is None else titles
    log("counting words")
    counts = model.count(documents)
    log(f"vectors of {counts.shape[0] if columns else min(counts.shape[0], MAX_DOCUMENTS):,} documents")
    posterior = model.posterior(counts) if columns else None
    sample = choose_documents(model, counts, labels, titles, posterior=posterior)
    found = [breakdown(model, counts, column, posterior) for column in columns]
    return ShownDocuments(model, counts, sample, [one for one in found if one is not None], source, log)


# Headline

MAX_EVALUATED = 8000  # documents: more would narrow the interval but take most of a report's time


def perplexity_of(shown: ShownDocuments) -> PerplexityRecord:
    """Perplexity of all documents, or of a sample drawn with the seed."""
    counts, n = shown.counts, shown.counts.shape[0]
    if n > MAX_EVALUATED:
        counts = counts[np.sort(np.random.default_rng(shown.model.seed).choice(n, MAX_EVALUATED, replace=False))]
    shown.log(f"perplexity of {counts.shape[0]:,} documents")
    return shown.model.perplexity_record(counts)


def document_tiles(
    model: DocumentModel, record: PerplexityRecord, source: Documents | None, n_documents: int = 0
) -> list[Tile]:
    """The tiles of the report. The first is shown large: the perplexity of documents outside the training data.

    `record` may cover only a sample of `n_documents`.
    """
    low, high = record.per_document_interval_95
    is_sample = (evaluated := record.n_documents + record.n_empty_documents) < n_documents
    perplexity = Tile(
        "perplexity per document",
        f"{record.per_document_perplexity:,.1f}",
        f"95 % interval {low:,.1f} to {high:,.1f}; lower is better"
        + (f"; sample of {evaluated:,} of {n_documents:,} documents" if is_sample else ""),
    )
    if source is None or not is_fitted_on(model.fitted_.corpus, source):
        return [perplexity, *_other_tiles(record, in_the_paper(model, source))][:MAX_TILES]
    note = f"of {model.fitted_.n_dev_documents:,} documents held out from training; lower is better"
    held_out = Tile("held-out perplexity", f"{model.fitted_.dev_perplexity:,.1f}", note)
    return [held_out, perplexity._replace(name="on the training documents"), *_other_tiles(record, [])][:MAX_TILES]


def _other_tiles(record: PerplexityRecord, published: list[Tile]) -> list[Tile]:
    is_bound, empty = record.kind == "bound", record.n_empty_documents
    iwae = Tile("importance-weighted", f"{record.iwae_per_document_perplexity:,.1f}", "a tighter bound, per document")
    kind = Tile("kind of estimate", record.kind, record.description)
    unigram = Tile("unigram model", f"{record.unigram_per_document_perplexity:,.1f}", "word frequencies only")
    left_out = f"{empty:,} without a known word left out" if empty else "each with a known word"
    tiles = [
        iwae if is_bound else kind,
        unigram,
        *published,
        Tile("ratio to unigram", f"{record.ratio_to_unigram:.3f}", "lower means that the model has learned more"),
        Tile("per corpus", f"{record.corpus_perplexity:,.1f}", "every word has the same weight"),
    ]
    if is_bound:
        tiles.append(Tile("KL per word", f"{record.kl_per_word:.3f}", "nats, the cost of the latent vector"))
    tiles.append(Tile("documents", f"{record.n_documents:,}", left_out))
    tiles.append(Tile("words", f"{record.n_tokens:,}", "tokens in the vocabulary"))
    return [*tiles, Tile("samples", f"{record.n_samples:,}", "draws of h per document")] if is_bound else tiles


def in_the_paper(model: DocumentModel, source: Documents | None) -> list[Tile]:
    """The paper's value for this model and number of dimensions on the same documents, if it has one (Table 1a)."""
    if source is None or source.part != "test":
        return []
    name, alike = model.fitted_.model, "the same model"
    if name == DEFAULT_MODEL:
        name, alike = FALLBACK_MODEL, "NVDM with a multinomial likelihood"
    published = paper.perplexity(source.name, name, model.latent_dim)
    note = f"{alike}, same K and documents"
    return [] if published is None else [Tile("the paper", f"{published:,}", note)]


def document_facts(shown: ShownDocuments, corpus_name: str) -> dict[str, str]:
    model, fitted = shown.model, shown.model.fitted_
    sizes = f"{model.latent_dim} latent dimensions, {len(fitted.vocabulary.words):,} words"
    trained = f"on {fitted.n_training_documents:,} documents {fitted_in(fitted.fit_seconds, model.seed)}"
    return {
        "corpus": corpus_name,
        **({} if shown.source is None else {"SHA-256": shown.source.sha256}),
        "model": f"{fitted.model}, {sizes}",
        "likelihood": fitted.network.likelihood,
        "fitted": trained,
        "stopped": why_stopped(fitted.stopped, "held-out perplexity"),
    }


# Page


def document_page(shown: ShownDocuments, record: PerplexityRecord, corpus_name: str | None, folder: Path | None) -> str:
    """The report as HTML. Its heading defaults to the corpus; `folder` is the model folder, if known."""
    model, sample, topics, source = shown.model, shown.sample, shown.topics, shown.source
    if corpus_name is None and source is not None:
        corpus_name = f"{source.name} ({'training documents' if shown.is_training_data else source.part})"
    corpus_name = corpus_name or "documents"
    return render(
        "documents.html",
        name=corpus_name,
        tiles=document_tiles(model, record, source, shown.counts.shape[0]),
        facts=document_facts(shown, corpus_name),
        tables=provenance(record.as_dict(), model, source, folder),
        sample=sample,
        is_tsne=len(sample) >= MIN_FOR_NEIGHBOURS,
        map=shown.topic_map,
        labels=shown.label_map,
        label_name=shown.label_name,
        cards=topic_cards(topics),
        breakdowns=shown.breakdowns,
        is_training_data=shown.is_training_data,
        how_many=model.fitted_.regions.choice.how if model.fitted_.regions else "",
        nearest_words=nearest_words(model, topics),
        examples=_posteriors(shown),
        has_spread=bool(sample.std.any()),
        curves=training_curves(model.fitted_.history, DOCUMENT_CURVES),
        dimensions=shown.dimensions,
        active=active_dimensions(shown.dimensions),
        dimension_chart=dimension_chart(shown.dimensions),
    )


def nearest_words(model: DocumentModel, topics: Sequence[TopicInfo]) -> dict[str, list[tuple[str, float]]]:
    """For the first word of each of the largest topics, the words whose vectors are nearest, with their cosines."""
    by_size = sorted(topics, key=lambda topic: -topic.documents)
    leading = list(dict.fromkeys(topic.words[0] for topic in by_size if topic.words))[:MAX_WORDS]
    return {word: model.similar_words(word, NEIGHBOURS) for word in leading}


def _posteriors(shown: ShownDocuments, titled: bool = False) -> list[tuple[Any, Chart | None]]:
    """The examples, each with its posterior."""
    examples = choose_examples(shown.sample, shown.topics)
    axis = common_axis(examples, shown.sample)
    titles = [f"a document of {example.words:,} words" if titled else "" for example in examples]
    return [
        (example, posterior_spread(example, shown.sample, shown.dimensions, axis, title))
        for example, title in zip(examples, titles, strict=True)
    ]


# Figures


def _panels(title: str, charts: Sequence[Chart | None], width: float = PANEL_WIDTH) -> Figure | None:
    drawn = [chart for chart in charts if chart is not None]
    return chart_figure(title, drawn, width) if drawn else None


def _by_class(shown: ShownDocuments) -> Figure | None:
    found = next((one for one in shown.breakdowns if not one.over_time), None)
    return _panels(f"Topics by {found.column}", found.charts) if found else None


def _over_time(shown: ShownDocuments) -> Figure | None:
    return _panels("Topics over time", next((one.charts for one in shown.breakdowns if one.over_time), []))


def _dimensions(shown: ShownDocuments) -> Figure | None:
    title = f"{active_dimensions(shown.dimensions)} of {len(shown.dimensions)} latent dimensions carry information"
    return _panels(title, [dimension_chart(shown.dimensions)], WIDE)


DOCUMENT_FIGURES: dict[str, Callable[[ShownDocuments], Figure | None]] = {
    "map": lambda shown: _panels("Documents, coloured by topic", [shown.topic_map], WIDE),
    "labels": lambda shown: _panels(f"Documents, coloured by {shown.label_name}", [shown.label_map], WIDE),
    "topics": lambda shown: chart_figure("Topics", topic_charts(shown.topics), TOPIC_WIDTH, columns=4),
    "by-class": _by_class,
    "over-time": _over_time,
    "posteriors": lambda shown: _panels(
        "Documents on their strongest latent dimensions", [chart for _, chart in _posteriors(shown, titled=True)]
    ),
    "training": lambda shown: _panels("Training", training_curves(shown.model.fitted_.history, DOCUMENT_CURVES)),
    "dimensions": _dimensions,
}
"""A function returns None if the model has nothing to show."""
