"""What the commands print: results on standard output, the rest on standard error."""

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from varitext.corpora import CorpusStatus, Documents
    from varitext.evaluation.perplexity import PerplexityRecord


def print_corpus(status: "CorpusStatus") -> None:
    print(f"{status.name}\n  {status.description}\n  {status.where}")
    if status.sha256:
        print(f"  sha256 {status.sha256}")


def print_record(record: "PerplexityRecord", corpus: str) -> None:
    low, high = record.per_document_interval_95
    nats = record.kl_per_word + record.reconstruction_per_word
    rows = [
        ("per-document perplexity", record.per_document_perplexity, f"95 % interval {low:.1f} to {high:.1f}"),
        ("importance-weighted", record.iwae_per_document_perplexity, f"tighter bound, {record.n_samples} samples"),
        ("unigram model", record.unigram_per_document_perplexity, f"ratio {record.ratio_to_unigram:.3f}"),
        ("per-corpus perplexity", record.corpus_perplexity, f"importance-weighted {record.iwae_corpus_perplexity:.1f}"),
        ("KL", record.kl_per_document, f"nats per document; {record.kl_per_word:.3f} of {nats:.3f} per word"),
    ]
    if record.kind != "bound":  # then there is nothing tighter, and no KL
        rows = [rows[0], rows[2], ("per-corpus perplexity", record.corpus_perplexity, record.figure)]
    if record.standard_error:
        rows.insert(1, ("standard error", record.standard_error, "of that, from the estimate itself"))
    left_out = f" ({record.n_empty_documents} without a known word left out)" if record.n_empty_documents else ""
    print(f"{corpus}: {record.n_documents} documents{left_out}, {record.n_tokens} words")
    for name, value, note in rows:
        print(f"  {name:24} {value:8.1f}   {note}")


def print_neighbours(neighbours: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        return print_json({"similar": neighbours})
    for entry in neighbours:
        similarity, *columns = entry.values()
        print(f"{similarity:6.3f}", *columns, sep="  ")


def document_entry(documents: "Documents", index: int, similarity: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"similarity": similarity, "index": index}
    if documents.labels is not None:
        entry["label"] = documents.labels[index]
    if documents.texts is not None:
        entry["text"] = _first_words(documents.texts[index])
    return entry


def _first_words(text: str, length: int = 100) -> str:
    line = " ".join(text[: 5 * length].split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " ..."


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")))


def say(message: str) -> None:
    print(message, file=sys.stderr)
