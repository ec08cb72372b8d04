"""Counting words: documents in chunks, each counted by itself, on as many cores as asked.

The counts of the chunks are put together in the order of the documents, so the result does not depend on who counted
what.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import Any, TypeVar

import numpy as np

from varitext.text.ascii_text import Occurrences, WordIds, plain_occurrences
from varitext.text.phrases import join_phrases
from varitext.text.tokens import TokenRules, is_plain, simplify, tokenise, tokenise_simple

CHUNK_SIZE = 1 << 20  # characters: numpy's overhead vanishes, and the work stays near the processor
TRANSFER_SIZE = 1 << 22  # for another process: fewer words and messages pass between the two
DOCUMENT_OVERHEAD = 64  # so that empty documents fill a chunk too

Document = TypeVar("Document", bound=Sized)


@dataclass(frozen=True)
class ChunkCounts:
    """`counts[i]` times the word `word_ids[i]`, one document after the other."""

    distinct_words: np.ndarray  # entries of each document  [B]
    word_ids: np.ndarray  # sorted within each document
    counts: np.ndarray
    words: list[str] | None = None  # what the ids mean, when they are the chunk's own


class GrowingIds(defaultdict[str, int]):
    """A word's id is its place in the order in which words were first met."""

    def __init__(self) -> None:
        super().__init__()
        self.default_factory = self.__len__

    def of(self, words: list[str]) -> np.ndarray:
        return np.fromiter(map(self.__getitem__, words), np.int64, len(words))


class KnownIds(dict[str, int]):
    """The ids of a vocabulary that is already decided; -1 for any other word."""

    def of(self, words: list[str]) -> np.ndarray:
        return np.fromiter(map(self.get, words, repeat(-1)), np.int64, len(words))


FindWords = Callable[[list[Any], WordIds], Occurrences]  # of documents of one kind: texts, or lists of words


def words_of_texts(rules: TokenRules, phrases: frozenset[str] = frozenset()) -> FindWords:
    if rules.longest_ngram > 1 or phrases:
        return partial(_runs_of_texts, rules, phrases)
    return partial(_words_of_texts, rules)  # a partial and not a closure, so that it can go to another process


def _words_of_texts(rules: TokenRules, texts: list[str], ids: WordIds) -> Occurrences:
    texts = [simplify(text, rules) for text in texts]
    plain = np.array([is_plain(text, rules) for text in texts])
    plain_places, other_places = np.flatnonzero(plain), np.flatnonzero(~plain)
    plain_words = plain_occurrences([texts[place] for place in plain_places], rules, ids)
    other_words = words_of_token_lists([tokenise_simple(texts[place], rules) for place in other_places], ids)
    documents = np.concatenate([plain_places[plain_words.documents], other_places[other_words.documents]])
    return Occurrences(documents, np.concatenate([plain_words.word_ids, other_words.word_ids]))


def _runs_of_texts(rules: TokenRules, phrases: frozenset[str], texts: list[str], ids: WordIds) -> Occurrences:
    """n-grams and phrases are made of lists of words."""
    token_lists = [tokenise(text, rules) for text in texts]
    if phrases:
        token_lists = [join_phrases(words, phrases) for words in token_lists]
    return words_of_token_lists(token_lists, ids)


def words_of_token_lists(token_lists: list[list[str]], ids: WordIds) -> Occurrences:
    lengths = np.fromiter(map(len, token_lists), np.int64, len(token_lists))
    documents = np.repeat(np.arange(len(token_lists)), lengths)
    return Occurrences(documents, ids.of(list(chain.from_iterable(token_lists))))


def count_chunks(
    documents: Iterable[Sized], find_words: FindWords, ids: WordIds, processes: int
) -> Iterator[ChunkCounts]:
    """The counts of all documents, chunk by chunk in their order; `ids` grows along if it can."""
    if processes == 1:
        yield from (count(chunk, find_words, ids) for chunk in in_chunks(documents, CHUNK_SIZE))
        return
    from joblib import Parallel, delayed  # here, because importing it takes a while

    known = ids if isinstance(ids, KnownIds) else None
    calls = (delayed(count_alone)(chunk, find_words, known) for chunk in in_chunks(documents, TRANSFER_SIZE))
    for counted in Parallel(processes, return_as="generator", batch_size=1)(calls):
        yield with_ids(counted, ids)


def in_chunks(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    """Lists of documents of about `size` together: memory is bounded, however many documents follow."""
    chunk: list[Document] = []
    filled = 0
    for document in documents:
        chunk.append(document)
        filled += len(document) + DOCUMENT_OVERHEAD
        if filled >= size:
            yield chunk
            chunk, filled = [], 0
    if chunk:
        yield chunk


def count(documents: list[Any], find_words: FindWords, ids: WordIds) -> ChunkCounts:
    """Count equal (document, word) pairs by sorting them as single integers."""
    occurrences = find_words(documents, ids)
    pairs = (occurrences.documents << 32 | occurrences.word_ids)[occurrences.word_ids >= 0]
    pairs.sort()
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    counts = np.diff(firsts, append=len(pairs)).astype(np.float32)
    pairs = pairs[firsts]
    distinct_words = np.bincount(pairs >> 32, minlength=len(documents))
    return ChunkCounts(distinct_words, (pairs & 0xFFFFFFFF).astype(np.int32), counts)


def count_alone(documents: list[Any], find_words: FindWords, known: KnownIds | None) -> ChunkCounts:
    """Count where the ids of the corpus are not at hand, in another process: the chunk brings its own words along."""
    if known is not None:
        return count(documents, find_words, known)
    ids = GrowingIds()
    counted = count(documents, find_words, ids)
    return replace(counted, words=list(ids))


def with_ids(counted: ChunkCounts, ids: WordIds) -> ChunkCounts:
    """`counted` with the ids of the whole corpus in place of the chunk's own."""
    if counted.words is None:
        return counted
    return replace(counted, word_ids=ids.of(counted.words).astype(np.int32)[counted.word_ids], words=None)
