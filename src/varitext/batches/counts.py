"""Batches of documents as sparse counts: a batch holds non-zero counts, document by document, and is never V wide."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from varitext.corpora.document_vectors import CountsWithVectors, vectors_of
from varitext.corpora.sharded_counts import Counts, shuffled_rows
from varitext.runtime.processes import ALONE, Share, World

BATCHES_AT_ONCE = 8  # training batches whose rows are taken from the corpus at a time


@dataclass(frozen=True, slots=True)
class CountBatch:
    """The n non-zero counts of B documents over a vocabulary of V words."""

    words: Tensor  # [n] word of each entry, document by document
    counts: Tensor  # [n]
    documents: Tensor  # [n] document of each entry
    starts: Tensor  # [B] first entry of each document
    lengths: Tensor  # [B] words in each document, counted with repetition
    vocabulary_size: int
    share: Share | None = None  # this process's part of a larger batch
    vectors: Tensor | None = None  # [B, E]   sentence vectors, NaN if a document has none; None: no document has one

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def from_rows(cls, rows: scipy.sparse.csr_matrix, device: torch.device | str = "cpu") -> "CountBatch":
        per_document = np.diff(rows.indptr).astype(np.int64)
        counts = torch.from_numpy(np.asarray(rows.data, np.float32))
        documents = torch.repeat_interleave(torch.from_numpy(per_document))
        lengths = torch.zeros(rows.shape[0], device="cpu").index_add_(0, documents, counts)
        batch = cls(
            words=torch.from_numpy(rows.indices.astype(np.int64)),
            counts=counts,
            documents=documents,
            starts=torch.from_numpy(rows.indptr[:-1].astype(np.int64)),
            lengths=lengths,
            vocabulary_size=rows.shape[1],
            vectors=None if (vectors := vectors_of(rows)) is None else torch.from_numpy(vectors.astype(np.float32)),
        )
        return batch.to(device)

    def to(self, device: torch.device | str) -> "CountBatch":
        if str(device) == self.words.device.type:
            return self
        tensors = (self.words, self.counts, self.documents, self.starts, self.lengths)
        words, counts, documents, starts, lengths = (one.to(device, non_blocking=True) for one in tensors)
        vectors = None if self.vectors is None else self.vectors.to(device, non_blocking=True)
        return CountBatch(words, counts, documents, starts, lengths, self.vocabulary_size, self.share, vectors)

    def divided(self, shares: Iterable[Share]) -> Iterator["CountBatch"]:
        """These documents as the shares of consecutive batches; the results share memory with this batch."""
        ends = [*self.starts.tolist(), len(self.words)]
        last = 0
        for share in shares:
            first, last = last, last + share.stop - share.start
            rows, entries = slice(first, last), slice(ends[first], ends[last])
            yield CountBatch(
                words=self.words[entries],
                counts=self.counts[entries],
                documents=self.documents[entries] - first,
                starts=self.starts[rows] - ends[first],
                lengths=self.lengths[rows],
                vocabulary_size=self.vocabulary_size,
                share=share,
                vectors=None if self.vectors is None else self.vectors[rows],
            )

    def among(self, words: Tensor) -> "CountBatch":
        """The same counts over a vocabulary of these words only, which must include all of the batch's."""
        places = words.new_empty(self.vocabulary_size)
        places[words] = torch.arange(len(words), device=words.device)
        return replace(self, words=places[self.words], vocabulary_size=len(words))

    @property
    def with_vectors(self) -> Tensor:
        """Which documents have a sentence vector, [B]."""
        return torch.zeros_like(self.starts, dtype=torch.bool) if self.vectors is None else ~self.vectors[:, 0].isnan()


class CountBatches:
    """Documents as batches: shuffled for training, in order for evaluation. `counts` may be in shards on disk."""

    def __init__(self, counts: Counts, device: torch.device | str = "cpu"):
        self.counts = counts
        self.device = device

    def __len__(self) -> int:
        return self.counts.shape[0]

    def shuffled(
        self,
        batch_size: int,
        seed: Sequence[int],
        word_dropout: float = 0.0,
        world: World = ALONE,
        vector_dropout: float = 0.0,
    ) -> Iterator[CountBatch]:
        """One pass in an order that depends only on `seed`, so that a resumed run sees the same batches.

        Each process of a `world` takes its share of every batch. It reads other rows only for word dropout, which
        depends on all rows.
        """
        generator = np.random.default_rng(seed)
        for chosen in in_pieces(shuffled_rows(self.counts, generator), BATCHES_AT_ONCE * batch_size):
            bounds = [*range(0, len(chosen), batch_size), len(chosen)]
            shares = [world.share(end - start) for start, end in pairwise(bounds)]
            pairs = zip(bounds[:-1], shares, strict=True)
            own = np.concatenate([np.arange(start + share.start, start + share.stop) for start, share in pairs])
            rows = self.counts[chosen if word_dropout else chosen[own]]
            if word_dropout:
                rows = drop_words(rows, word_dropout, generator)[own]
            if vector_dropout and vectors_of(rows) is not None:
                rows = drop_vectors(rows, generator.random(len(chosen))[own] < vector_dropout)
            yield from (batch.to(self.device) for batch in CountBatch.from_rows(rows).divided(shares))

    def in_order(self, batch_size: int) -> Iterator[CountBatch]:
        for start in range(0, len(self), batch_size):
            yield CountBatch.from_rows(self.counts[start : start + batch_size], self.device)

    def in_equal_blocks(self, block_size: int) -> Iterator[tuple[CountBatch, int]]:
        """Blocks in order, each with its number of real documents; the last is padded with empty documents.

        Matrix products of one fixed shape treat every row alike, so a document's result is bit-for-bit independent
        of the other documents in the call.
        """
        for start in range(0, len(self), block_size):
            rows = self.counts[start : start + block_size]
            real = rows.shape[0]
            indptr = np.pad(rows.indptr, (0, block_size - real), mode="edge")
            filled = scipy.sparse.csr_matrix((rows.data, rows.indices, indptr), shape=(block_size, rows.shape[1]))
            if (vectors := vectors_of(rows)) is not None:
                padding = ((0, block_size - real), (0, 0))
                filled = CountsWithVectors.of(filled, np.pad(vectors, padding, constant_values=np.nan))
            yield CountBatch.from_rows(filled, self.device), real


def in_pieces(arrays: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The concatenated arrays, `size` numbers at a time."""
    rest = np.zeros(0, np.int64)
    for array in arrays:
        rest = np.concatenate([rest, array])
        whole = len(rest) - len(rest) % size
        yield from (rest[start : start + size] for start in range(0, whole, size))
        rest = rest[whole:]
    if len(rest):
        yield rest


def drop_words(rows: scipy.sparse.csr_matrix, most: float, generator: np.random.Generator) -> scipy.sparse.csr_matrix:
    """Word dropout: drop each word with a probability drawn per document between 0 and `most`.

    Every pass sees other, shorter versions of the documents, so the networks cannot memorise them. A document that
    would lose all its words keeps them.
    """
    documents = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    kept_share = 1 - most * generator.random(rows.shape[0])
    counts = generator.binomial(rows.data.astype(np.int64), kept_share[documents]).astype(np.float32)
    emptied = np.bincount(documents, counts, minlength=rows.shape[0]) == 0
    counts = np.where(emptied[documents], rows.data, counts)
    dropped = scipy.sparse.csr_matrix((counts, rows.indices.copy(), rows.indptr.copy()), shape=rows.shape)
    dropped.eliminate_zeros()
    return dropped if (vectors := vectors_of(rows)) is None else CountsWithVectors.of(dropped, vectors)


def drop_vectors(rows: scipy.sparse.csr_matrix, dropped: np.ndarray) -> CountsWithVectors:
    """The same documents without the vectors of some, so that the inference network learns to do without them."""
    vectors = vectors_of(rows)
    assert vectors is not None
    return CountsWithVectors.of(rows, np.where(dropped[:, None], np.nan, vectors))
