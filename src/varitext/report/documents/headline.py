"""The numbers at the top of a report on documents: how good the model is on these, and where it comes from."""

from varitext import paper
from varitext.corpora import is_fitted_on
from varitext.corpora.documents import Documents
from varitext.documents.default_model import BURSTS, PLAIN
from varitext.documents.model import DocumentModel
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.facts import Fact, Tile, duration, fingerprint, why_stopped

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
