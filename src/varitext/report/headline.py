"""The figures at the top: what the model is worth on these documents, and where it comes from."""

from varitext.corpora.documents import Documents
from varitext.document_model import DocumentModel
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.report.escaping import for_html

MOST_FILES = 4
STOPPED = {
    "finished": "it had made all its passes",
    "early": "the held-out perplexity had stopped falling",
    "time": "the time limit was reached",
    "interrupted": "it was interrupted; the best model so far was kept",
    "diverged": "training diverged; the best model so far was kept",
}


def headline(record: PerplexityRecord) -> str:
    low, high = record.per_document_interval_95
    tiles = (
        ("importance-weighted", f"{record.iwae_per_document_perplexity:,.1f}", "a tighter bound, per document"),
        ("unigram", f"{record.unigram_per_document_perplexity:,.1f}", "word frequencies alone, per document"),
        ("ratio to unigram", f"{record.ratio_to_unigram:.3f}", "the lower, the more the model has learned"),
        ("per corpus", f"{record.corpus_perplexity:,.1f}", "every word weighs the same"),
        ("KL per word", f"{record.kl_per_word:.3f}", "nats that the latent vector costs"),
        ("documents", f"{record.n_documents:,}", _left_out(record)),
        ("words", f"{record.n_tokens:,}", "tokens of the vocabulary"),
        ("samples", f"{record.n_samples:,}", "draws of h per document"),
    )
    if record.kind != "bound":  # then nothing is tighter, and there is no KL
        tiles = (("kind", record.kind, for_html(record.figure)), *tiles[1:4], *tiles[5:7])
    hero = (
        '<div class="hero"><p class="name">perplexity per document</p>'
        f'<p class="figure">{record.per_document_perplexity:,.1f}</p>'
        f'<p class="note">95 % interval {low:,.1f} to {high:,.1f}; lower is better</p></div>'
    )
    return f'<div class="headline">{hero}<dl class="tiles">{"".join(_tile(*tile) for tile in tiles)}</dl></div>'


def provenance(model: DocumentModel, corpus_name: str, source: Documents | None) -> str:
    """What was fitted on what, in a list that can be copied into a paper."""
    seconds, stopped = _duration(model.fit_seconds_), STOPPED.get(model.stopped_, model.stopped_)
    facts = [
        ("corpus", for_html(corpus_name)),
        *_fingerprints(source),
        ("model", f"{for_html(model.model)}, {model.latent_dim} latent units, {len(model.vocabulary_.words):,} words"),
        ("fitted", f"on {model.n_training_documents_:,} documents in {seconds}, seed {model.seed}"),
        ("stopped", f"because {for_html(stopped)}"),
    ]
    rows = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts)
    return f'<dl class="facts">{rows}</dl>'


def full_record(record: PerplexityRecord) -> str:
    """Every field of the record, to the last digit, for those who compare."""
    rows = "".join(
        f'<tr><th scope="row">{for_html(name)}</th><td>{for_html(value)}</td></tr>'
        for name, value in record.as_dict().items()
    )
    return f"<details><summary>The whole record</summary><table>{rows}</table></details>"


def _tile(name: str, figure: str, note: str) -> str:
    return f'<div><dt>{name}</dt><dd><b>{figure}</b><span class="note">{note}</span></dd></div>'


def _fingerprints(source: Documents | None) -> list[tuple[str, str]]:
    """The SHA-256 of the corpus, as `varitext evaluate` gives it, and of its files if they are few."""
    if source is None:
        return []
    files = [("file", f"{for_html(file.name)} {_hash(file.sha256)}") for file in source.files]
    return [("SHA-256", _hash(source.sha256)), *(files if len(files) <= MOST_FILES else [])]


def _hash(sha256: str) -> str:
    return f'<span class="hash">{for_html(sha256)}</span>'


def _left_out(record: PerplexityRecord) -> str:
    empty = record.n_empty_documents
    return f"{empty:,} without a known word left out" if empty else "each with a known word"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
