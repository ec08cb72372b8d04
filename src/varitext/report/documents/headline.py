"""The numbers at the top of a report on documents: how good the model is on these, and where it comes from."""

from varitext import paper
from varitext.corpora.documents import Documents
from varitext.documents.model import DocumentModel
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.facts import Fact, Tile, duration, fingerprint, why_stopped

FITTED_ON_THESE = "the model was fitted on these documents: their perplexity does not say how good it is on others"


def document_tiles(record: PerplexityRecord, published: int | None = None, held_out: bool = True) -> list[Tile]:
    """The first is shown large: the perplexity, unless it is that of documents that the model was fitted on."""
    tiles = _tiles(record, published)
    if held_out:
        return tiles
    documents = next(tile for tile in tiles if tile.name == "documents")
    others = [tile._replace(note=f"fitted on these; {tile.note}") if tile is tiles[0] else tile for tile in tiles]
    return [documents._replace(note=FITTED_ON_THESE), *(tile for tile in others if tile is not documents)]


def is_held_out(model: DocumentModel, source: Documents | None) -> bool:
    """Not the documents that the model was fitted on, as far as is known."""
    fitted_on = model.corpus_ or {}
    return source is None or (fitted_on.get("sha256"), fitted_on.get("part")) != (source.sha256, source.part)


def _tiles(record: PerplexityRecord, published: int | None) -> list[Tile]:
    low, high = record.per_document_interval_95
    interval = f"95 % interval {low:,.1f} to {high:,.1f}; lower is better"
    hero = Tile("perplexity per document", f"{record.per_document_perplexity:,.1f}", interval)
    unigram = Tile("unigram", f"{record.unigram_per_document_perplexity:,.1f}", "word frequencies alone, per document")
    in_paper = [] if published is None else [Tile("the paper", f"{published:,}", "the same model, size and documents")]
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
    samples = [] if in_paper else [Tile("samples", f"{record.n_samples:,}", "draws of h per document")]  # eight fit
    return [hero, tighter, unigram, *in_paper, ratio, corpus, kl, documents, words, *samples]


def document_facts(model: DocumentModel, corpus_name: str, source: Documents | None) -> list[Fact]:
    """What was fitted on what."""
    seconds = duration(model.fit_seconds_)
    return [
        Fact("corpus", corpus_name),
        *fingerprint(source),
        Fact("model", f"{model.model}, {model.latent_dim} latent units, {len(model.vocabulary_.words):,} words"),
        Fact("fitted", f"on {model.n_training_documents_:,} documents in {seconds}, seed {model.seed}"),
        why_stopped(model.stopped_, "the held-out perplexity"),
    ]


def paper_perplexity(model: DocumentModel, source: Documents | None) -> int | None:
    """The paper's value for this model and size on these very documents, if it has one (Table 1 a)."""
    if source is None or source.part != "test":
        return None
    return paper.perplexity(source.name, model.model, model.latent_dim)


def _left_out(record: PerplexityRecord) -> str:
    empty = record.n_empty_documents
    return f"{empty:,} without a known word left out" if empty else "each with a known word"
