"""The figures at the top of a report on documents: what the model is worth on these, and where it comes from."""

from varitext import paper
from varitext.corpora.documents import Documents
from varitext.documents.model import DocumentModel
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.escaping import for_html
from varitext.report.facts import Tile, duration, facts, fingerprint, headline, why_stopped


def document_headline(record: PerplexityRecord, published: int | None = None) -> str:
    low, high = record.per_document_interval_95
    unigram = Tile("unigram", f"{record.unigram_per_document_perplexity:,.1f}", "word frequencies alone, per document")
    ratio = Tile("ratio to unigram", f"{record.ratio_to_unigram:.3f}", "the lower, the more the model has learned")
    corpus = Tile("per corpus", f"{record.corpus_perplexity:,.1f}", "every word weighs the same")
    in_paper = [] if published is None else [Tile("the paper", f"{published:,}", "the same model, size and documents")]
    documents = Tile("documents", f"{record.n_documents:,}", _left_out(record))
    words = Tile("words", f"{record.n_tokens:,}", "tokens of the vocabulary")
    if record.kind == "bound":
        tighter = f"{record.iwae_per_document_perplexity:,.1f}"
        first = Tile("importance-weighted", tighter, "a tighter bound, per document")
        kl = Tile("KL per word", f"{record.kl_per_word:.3f}", "nats that the latent vector costs")
        samples = [] if in_paper else [Tile("samples", f"{record.n_samples:,}", "draws of h per document")]  # eight fit
        tiles = [first, unigram, *in_paper, ratio, corpus, kl, documents, words, *samples]
    else:  # nothing is tighter, and there is no KL
        first = Tile("kind", for_html(record.kind), for_html(record.figure))
        tiles = [first, unigram, *in_paper, ratio, corpus, documents, words]
    interval = f"95 % interval {low:,.1f} to {high:,.1f}; lower is better"
    return headline(Tile("perplexity per document", f"{record.per_document_perplexity:,.1f}", interval), tiles)


def document_facts(model: DocumentModel, corpus_name: str, source: Documents | None) -> str:
    """What was fitted on what."""
    seconds = duration(model.fit_seconds_)
    return facts(
        [
            ("corpus", for_html(corpus_name)),
            *fingerprint(source),
            (
                "model",
                f"{for_html(model.model)}, {model.latent_dim} latent units, {len(model.vocabulary_.words):,} words",
            ),
            ("fitted", f"on {model.n_training_documents_:,} documents in {seconds}, seed {model.seed}"),
            ("stopped", why_stopped(model.stopped_, "the held-out perplexity")),
        ]
    )


def paper_perplexity(model: DocumentModel, source: Documents | None) -> int | None:
    """The paper's figure for this model and size on these very documents, if it has one (Table 1 a)."""
    if source is None or source.part != "test":
        return None
    return paper.perplexity(source.name, model.model, model.latent_dim)


def _left_out(record: PerplexityRecord) -> str:
    empty = record.n_empty_documents
    return f"{empty:,} without a known word left out" if empty else "each with a known word"
