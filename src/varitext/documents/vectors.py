"""Sentence vectors beside the counts of documents: a matrix that the user gives, or MiniLM's vectors of the texts.

A model that was fitted with MiniLM's vectors also encodes the texts that it is given later. Counts have no texts to
encode, so only their words are used.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from varitext.corpora.document_input import DocumentInput
from varitext.corpora.document_vectors import CountsWithVectors, VectorOrigin, read_vectors, vectors_of
from varitext.corpora.sharded_counts import Counts, ShardedCounts
from varitext.documents.input import TrainingDocuments, texts_of, without_boilerplate
from varitext.errors import InputError
from varitext.models.documents.base import DocumentNetwork

MINILM, GIVEN = "minilm", "given"
MAX_REMEMBERED = 100_000  # vectors of texts that a process keeps, so that a report encodes each text once
VectorInput = np.ndarray | Sequence[Sequence[float]] | str | Path
"""A matrix with a row per document, the .npy file of one, or "minilm"."""


def vectors_to_learn(documents: TrainingDocuments, X: DocumentInput, vectors: VectorInput) -> TrainingDocuments:
    """Add vectors to the documents to learn from; X holds all documents."""
    counts, rows = documents.counts, documents.rows
    if isinstance(counts, ShardedCounts):
        raise InputError("vectors need counts in memory, not in shards: leave out vectors")
    if documents.passage_words is not None:
        raise InputError("vectors describe whole documents: leave out vectors or passages")
    if is_minilm(vectors):
        from varitext.models.answers.pretrained import weights_sha256

        texts = _texts_to_encode(without_boilerplate(X, documents.boilerplate))
        encoded = encode_texts(texts if rows is None else [texts[row] for row in rows])
        origin = VectorOrigin(MINILM, encoded.shape[1], weights_sha256())
        return replace(documents, counts=CountsWithVectors.of(counts, encoded), vectors=origin)
    given = texts_of(X)  # the counts leave out copies
    matrix = read_vectors(vectors, counts.shape[0] + documents.n_empty if given is None else len(given))
    beside = CountsWithVectors.of(counts, matrix if rows is None else matrix[rows])
    return replace(documents, counts=beside, vectors=VectorOrigin(GIVEN, matrix.shape[1]))


def with_vectors(
    counts: Counts,
    vectors: VectorInput | None,
    X: DocumentInput,
    network: DocumentNetwork,
    origin: VectorOrigin | None,
) -> Counts:
    """Counts of X with the given vectors or, for a model fitted with MiniLM's vectors, those of the texts."""
    if vectors is None:
        vectors = vectors_of(X)
    if vectors is None and origin is not None and origin.origin == MINILM and texts_of(X) is not None:
        vectors = MINILM if _same_encoder(origin) else None
    if vectors is None:
        return counts
    if origin is None:
        raise InputError(f"{type(network).__name__} was fitted without vectors: leave out vectors, or fit it with some")
    if isinstance(counts, ShardedCounts):
        raise InputError("vectors need counts in memory, not in shards: leave out vectors")
    matrix = encode_texts(_texts_to_encode(X)) if is_minilm(vectors) else read_vectors(vectors, counts.shape[0])
    if matrix.shape[1] != origin.dimension:
        raise InputError(f"vectors: {matrix.shape[1]} columns, but the model was fitted with {origin.dimension}")
    return CountsWithVectors.of(counts, matrix)


def is_minilm(vectors: VectorInput | None) -> bool:
    return isinstance(vectors, str) and vectors == MINILM


def _texts_to_encode(X: DocumentInput) -> Sequence[str]:
    texts = texts_of(X)
    if texts is None:
        raise InputError("vectors='minilm' encodes texts, and these documents are words or counts: pass texts")
    return texts


def _same_encoder(origin: VectorOrigin) -> bool:
    """Whether the encoder of the fit is installed; otherwise only words are used, with a warning."""
    from varitext.models.answers.pretrained import NEEDED, is_installed, weights_sha256

    if not is_installed():
        warnings.warn(f"{NEEDED}; documents are read by their words alone", UserWarning, stacklevel=5)
        return False
    if weights_sha256() != origin.sha256:
        raise InputError("the model was fitted with other weights of MiniLM: pass counts, or install those of the fit")
    return True


_REMEMBERED: dict[str, np.ndarray] = {}  # text -> vector


def encode_texts(texts: Sequence[str]) -> np.ndarray:
    """MiniLM's vectors of unit length, [D, 384]."""
    from varitext.models.answers.pretrained import pretrained

    new = [text for text in dict.fromkeys(texts) if text not in _REMEMBERED]
    found = dict(zip(new, pretrained().sentence_vectors([text.split() for text in new]), strict=True))
    vectors = np.stack([found[text] if text in found else _REMEMBERED[text] for text in texts])
    _REMEMBERED.update(found)
    while len(_REMEMBERED) > MAX_REMEMBERED:
        _REMEMBERED.pop(next(iter(_REMEMBERED)))
    return vectors
