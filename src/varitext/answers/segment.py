"""A segment of an index: some documents and where their words occur, as arrays that never change once written.

A segment folder has one file per array, memory-mapped when it is opened, and the documents as JSON lines:

    terms.npy        [V]          64-bit hashes of the distinct words, ascending
    starts.npy       [V + 1]      where the postings of each word begin, and where the last ones end
    documents.npy    [postings]   documents that have the word, ascending
    counts.npy       [postings]   how often
    lengths.npy      [N]          number of words of each document
    ids.npy          [N]          64-bit hashes of the documents' ids
    rows.npy         [N + 1]      where the line of each document begins, in bytes, and where the last one ends
    documents.jsonl               one line per document: its id, text and metadata

Words are hashed, so no vocabulary must be read to search. Two of a million words share a hash with probability 3e-8.
"""

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.question_answers import sentence_words
from varitext.corpora.shards import write_array
from varitext.errors import InputError
from varitext.models.answers.features.overlap import SATURATION, is_word, saturated

RECORDS = "documents.jsonl"


@dataclass(frozen=True)
class IndexedDocument:
    """A document of an index.

    Parameters
    ----------
    text : str
        The text, of any length.
    id : str, optional
        Unique id of the document in the index. Numbered from 0 if omitted.
    metadata : dict, optional
        Other values to return with the document, as JSON.

    Examples
    --------
    >>> from varitext import CandidateIndex, IndexedDocument
    >>> index = CandidateIndex([IndexedDocument("Joyce wrote Ulysses", "a7", {"page": 3})])
    >>> index[0].metadata
    {'page': 3}
    """

    text: str
    id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class Postings(NamedTuple):
    documents: np.ndarray  # [n] places in the segment, ascending
    counts: np.ndarray  # [n] how often the word occurs in each


@dataclass(frozen=True, eq=False)
class Segment:
    terms: np.ndarray
    starts: np.ndarray
    documents: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    ids: np.ndarray
    rows: np.ndarray
    records: np.ndarray  # [bytes] of documents.jsonl

    @classmethod
    def of(cls, documents: Sequence[IndexedDocument]) -> "Segment":
        """The segment of documents that all have an id."""
        numbers: dict[str, int] = {}
        occurrences, lengths, lines = array("I"), array("I"), []
        for one in documents:
            words = index_words(one.text)
            occurrences.extend(numbers.setdefault(word, len(numbers)) for word in words)
            lengths.append(len(words))
            lines.append(_line(one))
        hashes = hashes_of(numbers)
        order = np.argsort(hashes)
        column = np.empty(len(order), np.uint64)
        column[order] = np.arange(len(order), dtype=np.uint64)
        place = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
        pairs, counts = np.unique((column[_integers(occurrences)] << 32) | place, return_counts=True)
        return cls(
            terms=hashes[order],
            starts=np.searchsorted(pairs >> 32, np.arange(len(order) + 1, dtype=np.uint64)),
            documents=pairs.astype(np.uint32),
            counts=counts.astype(np.min_scalar_type(int(counts.max(initial=1)))),
            lengths=_integers(lengths),
            ids=hashes_of(str(one.id) for one in documents),
            rows=np.cumsum([0, *map(len, lines)]),
            records=np.frombuffer(b"".join(lines), np.uint8),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def postings(self, term: np.uint64) -> Postings:
        """The postings of a word, by its hash."""
        row = int(np.searchsorted(self.terms, term))
        if row == len(self.terms) or self.terms[row] != term:
            return Postings(self.documents[:0], self.counts[:0])
        chosen = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return Postings(self.documents[chosen], self.counts[chosen])

    def document(self, place: int) -> IndexedDocument:
        line = self.records[int(self.rows[place]) : int(self.rows[place + 1])].tobytes()
        return IndexedDocument(**json.loads(line))

    def save(self, folder: Path) -> None:
        for name in ARRAYS:
            write_array(folder / f"{name}.npy", np.ascontiguousarray(getattr(self, name)))
        (folder / RECORDS).write_bytes(self.records.data)

    @classmethod
    def open(cls, folder: Path) -> "Segment":
        """Open a segment folder; only the sizes are read."""
        try:
            mapped = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS}
            mapped["records"] = np.memmap(folder / RECORDS, np.uint8, "r")
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{folder} is missing or damaged: index the documents again ({error})") from None
        segment = cls(**{name: np.asarray(values) for name, values in mapped.items()})
        if not segment._fits():
            raise InputError(f"{folder} is damaged: its files do not fit each other. Index the documents again.")
        return segment

    def _fits(self) -> bool:
        """Whether the arrays have the sizes and types that belong together."""
        arrays = [getattr(self, name) for name in ARRAYS]
        if not all(one.ndim == 1 and one.dtype.kind in "ui" for one in arrays):
            return False
        n_terms, n_documents, n_postings = len(self.terms), len(self.lengths), len(self.documents)
        sizes = [len(one) for one in arrays]
        expected = [n_terms, n_terms + 1, n_postings, n_postings, n_documents, n_documents, n_documents + 1]
        return sizes == expected and self.starts[-1] == n_postings and self.rows[-1] == len(self.records)


@dataclass(frozen=True, eq=False)
class LiveSegment:
    """A segment and which of its documents are deleted, with their names in the folder of the index."""

    segment: Segment
    deleted: np.ndarray | None = None  # [N] bool; None: none are
    name: str | None = None
    deleted_name: str | None = None

    @cached_property
    def n_live(self) -> int:
        return len(self.segment) - (0 if self.deleted is None else int(self.deleted.sum()))

    @cached_property
    def n_words(self) -> int:
        lengths = self.segment.lengths
        return int((lengths if self.deleted is None else lengths[~self.deleted]).sum(dtype=np.int64))

    def documents(self) -> Iterator[IndexedDocument]:
        places = np.arange(len(self.segment)) if self.deleted is None else np.flatnonzero(~self.deleted)
        return map(self.segment.document, map(int, places))

    def places_of(self, ids: Set[str]) -> dict[str, int]:
        """Where the documents with some of these ids are."""
        found = np.isin(self.segment.ids, hashes_of(ids))
        found = found if self.deleted is None else found & ~self.deleted
        named = {str(self.segment.document(place).id): place for place in map(int, np.flatnonzero(found))}
        return {name: place for name, place in named.items() if name in ids}  # hashes may be equal by chance

    def without(self, ids: Set[str]) -> "LiveSegment":
        places = list(self.places_of(ids).values())
        if not places:
            return self
        deleted = np.zeros(len(self.segment), bool) if self.deleted is None else self.deleted.copy()
        deleted[places] = True
        return replace(self, deleted=deleted, deleted_name=None)

    def frequencies(self, terms: np.ndarray) -> np.ndarray:
        """The number of documents that have each word, [terms]."""
        every = (self.segment.postings(term).documents for term in terms)
        return np.array(
            [len(one) - (0 if self.deleted is None else self.deleted[one].sum()) for one in every], np.int64
        )

    def best(self, terms: np.ndarray, weights: np.ndarray, mean_length: float, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The n best places by BM25 and their scores, in the order of places, or more if some tie.

        The weights descend. Once the remaining words cannot lift any other document into the n best, they are looked up
        for these few only: frequent words have the most postings and the least weight.
        """
        scores = np.zeros(len(self.segment)) if self.deleted is None else np.where(self.deleted, -np.inf, 0.0)
        relative = self.segment.lengths / mean_length
        left = (SATURATION + 1) * np.append(np.cumsum(weights[::-1])[::-1], 0.0)  # [terms + 1] the most they can add
        few = None
        for term, weight, rest in zip(terms, weights, left[1:], strict=True):
            documents, counts = self._postings_among(term, few)
            scores[documents] += weight * saturated(counts, relative[documents])
            few = _still_possible(scores, n, rest) if few is None else few
        found = np.flatnonzero(scores > 0)
        if len(found) > n:
            found = found[scores[found] >= np.partition(scores[found], -n)[-n]]
        return found, scores[found]

    def _postings_among(self, term: np.uint64, few: np.ndarray | None) -> Postings:
        """Only those of a few documents, if some are given."""
        found = self.segment.postings(term)
        if few is None or not len(found.documents):
            return found
        rows = np.minimum(np.searchsorted(found.documents, few), len(found.documents) - 1)
        rows = rows[found.documents[rows] == few]
        return Postings(found.documents[rows], found.counts[rows])


def _still_possible(scores: np.ndarray, n: int, rest: float) -> np.ndarray | None:
    """The documents that can be among the n best if each score still grows by at most `rest`; None: perhaps all."""
    found = scores[scores > 0]
    if len(found) < n:
        return None
    lowest = np.partition(found, -n)[-n]
    return np.flatnonzero(scores >= lowest - rest).astype(np.uint32) if lowest > rest else None


ARRAYS = tuple(one.name for one in fields(Segment) if one.name != "records")


def index_words(text: str) -> list[str]:
    """The words in lower case, without punctuation, and without the full stop of every sentence of a longer text."""
    return [indexed_form(word) for word in sentence_words(text) if is_word(word)]


def indexed_form(word: str) -> str:
    return word.lower().rstrip(".")


def hashes_of(words: Iterable[str]) -> np.ndarray:
    digests = (blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in words)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def _line(document: IndexedDocument) -> bytes:
    record = {"id": document.id, "text": document.text, "metadata": document.metadata}
    try:
        return json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n"
    except ValueError as error:
        raise InputError(f"the metadata of document {document.id!r} cannot be written as JSON ({error})") from None


def _integers(values: "array[int]") -> np.ndarray:
    return (
        np.frombuffer(values, np.dtype(f"u{values.itemsize}")).astype(np.uint32) if values else np.zeros(0, np.uint32)
    )


def chunks_of(documents: Iterable[IndexedDocument], most: int, characters: int) -> Iterator[list[IndexedDocument]]:
    """Lists of at most `most` documents and, unless a single one is longer, of at most `characters` characters."""
    chunk: list[IndexedDocument] = []
    size = 0
    for one in documents:
        if chunk and (len(chunk) == most or size + len(one.text) > characters):
            yield chunk
            chunk, size = [], 0
        chunk.append(one)
        size += len(one.text)
    if chunk:
        yield chunk
