"""The vocabulary of an answer ranker, from its training questions, and the initial word vectors."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers, reading_form
from varitext.corpora.word_vectors import WordVectors, known_word_vectors, load_word_vectors, vectors_for
from varitext.errors import InputError
from varitext.models.answers.pretrained import is_installed, piece_vectors
from varitext.runtime.randomness import stream
from varitext.text import Vocabulary
from varitext.text.vocabulary import is_line

RANDOM = "random"  # as `VectorSource`: random initial vectors
MINILM = "minilm"  # input vectors of the pieces of words in the pretrained encoder, if it is installed
MINILM_DIM = 100  # of their principal components
MINILM_STD = 0.5  # about that of GloVe's vectors
VectorSource = WordVectors | str | Path | None  # None: those of the data folder, or MiniLM's, if they are there
NO_VECTORS = (
    "no word vectors were found, so they start at random, and the ranker is worse. `varitext data fetch glove` "
    "downloads some, `varitext data fetch minilm` others, and --vectors (vectors=) names a file"
)


class AnswerWords(NamedTuple):
    vocabulary: Vocabulary  # words without a vector come first
    vectors: np.ndarray | None  # [V, E], initial word vectors; None: random ones
    source: str  # for the record
    n_known: int  # words that have a vector in the source; they come last in the vocabulary
    sha256: str | None = None  # of the source
    n_seen: int = 0  # words of the training questions
    n_seen_known: int = 0  # those of them that have a vector

    @property
    def record(self) -> dict[str, Any]:
        """The record for the model folder."""
        return {
            "source": self.source,
            "dim": None if self.vectors is None else self.vectors.shape[1],
            "sha256": self.sha256,
            "n_known": self.n_known,
            "n_training_words": self.n_seen,
            "n_training_words_known": self.n_seen_known,
        }

    def __str__(self) -> str:
        share = f"{self.n_seen_known:,} of the {self.n_seen:,} words of the training questions have one"
        return f"word vectors: {self.source}, {self.record['dim']} dimensions; {share}"


def learn_words(
    train: QuestionAnswers, source: VectorSource, dim: int | None, seed: int, unseen: int = 0
) -> AnswerWords:
    """Words that occur twice in the questions and answers, or once and have a vector; and `unseen` ones with a vector.

    Questions are often about names that no training question has, so the first words of the source, in most files the
    most frequent, are kept too. The order: words without a vector, those with one, unseen ones; each by frequency.
    Vectors are rounded to 16 bits, as the model folder stores those that are not tuned.
    """
    tally = _word_tally(train)
    words = sorted((word for word in tally if is_line(word)), key=lambda word: (-tally[word], word))
    vectors = _source_vectors(source, words, dim, unseen)
    start = None if vectors is None else vectors_for(words, vectors, stream(seed, "initial word vectors"))
    known = np.zeros(len(words), bool) if start is None else start.is_known
    repeated = np.array([tally[word] > 1 for word in words], bool)
    kept = np.concatenate([np.flatnonzero(repeated & ~known), np.flatnonzero(known)])
    if not len(kept):
        raise InputError(f"{train.name} ({train.part}): no word occurs twice or has a vector: nothing to learn from")
    seen = tuple(words[place] for place in kept)
    if start is None or vectors is None:
        return AnswerWords(Vocabulary(seen), None, RANDOM, 0, n_seen=len(seen))
    others = _unseen_words(tally, vectors, unseen)
    matrix = np.concatenate([start.matrix[kept], vectors.vectors[list(others.values())]])
    rounded = matrix.astype(np.float16).astype(np.float32)
    n_known, vocabulary = int(known.sum()), Vocabulary((*seen, *others))
    source_of = (vectors.source, n_known + len(others), vectors.sha256)
    return AnswerWords(vocabulary, rounded, *source_of, len(seen), n_known)


def _unseen_words(tally: Counter[str], vectors: WordVectors, most: int) -> dict[str, int]:
    """Words of the source that training does not have, in their reading form, and the row of each."""
    found: dict[str, int] = {}
    for row, word in enumerate(vectors.words):
        if len(found) == most:
            break
        form = reading_form(word)
        if form not in tally and is_line(form):
            found.setdefault(form, row)
    return found


def _word_tally(train: QuestionAnswers) -> Counter[str]:
    tally: Counter[str] = Counter()
    for question in train.questions:
        for words in (question.words, *(candidate.words for candidate in question.candidates)):
            tally.update(map(reading_form, words))
    return tally


def _source_vectors(source: VectorSource, words: Sequence[str], dim: int | None, unseen: int) -> WordVectors | None:
    """The first there are: those given, those of the data folder or the cache, MiniLM's. None: random ones."""
    vectors: WordVectors | None = None
    if isinstance(source, WordVectors):
        vectors = source
    elif source is None:
        vectors = known_word_vectors(None, words, unseen)
    elif source not in (RANDOM, MINILM):
        vectors = load_word_vectors(source, only=words, first=unseen)
    if source == MINILM or (source is None and vectors is None and is_installed()):
        return minilm_vectors(words, dim or MINILM_DIM)
    return vectors if vectors is None or dim is None else reduce_vectors(vectors, dim)


def minilm_vectors(words: Sequence[str], dim: int) -> WordVectors:
    """Principal components of MiniLM's input vectors, of these words and of its own, at the scale of GloVe's."""
    reduced = reduce_vectors(piece_vectors(words), dim)
    return replace(reduced, vectors=reduced.vectors * np.float32(MINILM_STD / reduced.vectors.std()))


def reduce_vectors(vectors: WordVectors, dim: int) -> WordVectors:
    """The first `dim` principal components of the vectors; unchanged if they have `dim` dimensions."""
    if vectors.dim < dim:
        raise InputError(
            f"the word vectors have {vectors.dim} dimensions: embedding_dim must not be above, but is {dim}"
        )
    if vectors.dim == dim:
        return vectors
    centred = vectors.vectors.astype(np.float64) - vectors.vectors.mean(0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)  # rising eigenvalues
    axes = axes[:, ::-1][:, :dim]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(dim)])  # the sign of a component is arbitrary: fix it
    return replace(vectors, vectors=(centred @ axes).astype(np.float32))
