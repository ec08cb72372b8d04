"""From texts to sparse counts: token rules, the vocabulary, and one pass that learns it and counts."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from varitext import compiled
from varitext.compiled import words as compiled_words
from varitext.compiled.words import CountedWords
from varitext.errors import InputError
from varitext.text import counting
from varitext.text.counting import ChunkCounts, FindWords, GrowingIds, KnownIds
from varitext.text.tokens import DEFAULT_TOKEN_RULES, TokenRules, choose_phrases, phrases_among, tokenise
from varitext.text.vocabulary import DEFAULT_VOCABULARY_RULES, Vocabulary, VocabularyRules, WordStatistics, choose_words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "Counted",
    "TokenRules",
    "Vocabulary",
    "VocabularyRules",
    "checked_texts",
    "choose_vocabulary",
    "count_texts",
    "count_tokens",
    "tokenise",
]


BLOCK = 1 << 20  # entries


@dataclass(frozen=True)
class Counted:
    """The count of each vocabulary word in each document."""

    counts: "csr_matrix"  # [documents, V], float32, columns sorted in each row
    vocabulary: Vocabulary


def count_texts(
    texts: Iterable[str],
    token_rules: TokenRules = DEFAULT_TOKEN_RULES,
    vocabulary: Vocabulary | None = None,
    vocabulary_rules: VocabularyRules = DEFAULT_VOCABULARY_RULES,
    processes: int | None = None,
) -> Counted:
    """Count the words of `texts` over `vocabulary`, or learn the vocabulary by the rules in the same pass.

    Documents without a known word keep their row, which is empty. Memory holds the counts and some documents at a time;
    the result does not depend on the number of `processes`.
    """
    phrases: frozenset[str] = frozenset()
    if token_rules.phrases:
        if vocabulary is None:
            texts = list(checked_texts(texts))  # because they are read twice
            phrases = find_phrases(texts, token_rules, vocabulary_rules)
        else:
            phrases = phrases_among(vocabulary.words)
    find_words = counting.words_of_texts(token_rules, phrases)
    of_ngrams = token_rules.longest_ngram > 1
    return _count(checked_texts(texts), find_words, vocabulary, vocabulary_rules, processes, of_ngrams)


def find_phrases(texts: Iterable[str], token_rules: TokenRules, vocabulary_rules: VocabularyRules) -> frozenset[str]:
    """The pairs of words that belong together in these texts."""
    with_pairs = replace(token_rules, phrases=False, shortest_ngram=1, longest_ngram=2)
    ids = GrowingIds()
    counts = _stack(counting.count_chunks(texts, counting.words_of_texts(with_pairs), ids, 1), ids.__len__)
    tokens = np.bincount(counts.indices, counts.data, len(ids))
    return choose_phrases(list(ids), tokens, vocabulary_rules.stop_word_set())


def count_tokens(
    token_lists: Iterable[Sequence[str]],
    vocabulary: Vocabulary | None = None,
    vocabulary_rules: VocabularyRules = DEFAULT_VOCABULARY_RULES,
    processes: int | None = None,
) -> Counted:
    """Like `count_texts`, for documents that are lists of words already."""
    return _count(_checked_tokens(token_lists), counting.words_of_token_lists, vocabulary, vocabulary_rules, processes)


def _count(
    documents: Iterable[Sized],
    find_words: FindWords,
    vocabulary: Vocabulary | None,
    rules: VocabularyRules,
    processes: int | None,
    of_ngrams: bool = False,
) -> Counted:
    if processes is not None and processes < 1:
        raise InputError(f"processes must be at least 1, not {processes}")
    if vocabulary is not None:
        chunks = counting.count_chunks(documents, find_words, KnownIds(vocabulary.index), processes)
        return Counted(_stack(chunks, vocabulary.__len__), vocabulary)
    ids = GrowingIds()
    counts = _stack(counting.count_chunks(documents, find_words, ids, processes), ids.__len__)
    return choose_vocabulary(counts, list(ids), rules, of_ngrams=of_ngrams)


def _stack(chunks: Iterable[ChunkCounts], width: Callable[[], int]) -> "csr_matrix":
    """The counts of all chunks, stacked; `width` is called when the last word has been seen."""
    from scipy.sparse import csr_matrix  # slow to import, and a ranking needs none

    listed = list(chunks)
    distinct = np.concatenate([np.zeros(1, np.int64), *(chunk.distinct_words for chunk in listed)])
    word_ids, counts = np.empty(distinct.sum(), np.int32), np.empty(distinct.sum(), np.float32)
    end = len(counts)
    while listed:  # so that most counts are in memory once
        chunk = listed.pop()
        start = end - len(chunk.counts)
        word_ids[start:end], counts[start:end], end = chunk.word_ids, chunk.counts, start
    return csr_matrix((counts, word_ids, np.cumsum(distinct)), (len(distinct) - 1, width()))


def choose_vocabulary(
    counts: "csr_matrix",
    words: Sequence[str],
    rules: VocabularyRules,
    learn_from: np.ndarray | None = None,
    of_ngrams: bool = False,
) -> Counted:
    """Choose words and keep only their columns; the rules apply to the documents `learn_from` (default: all)."""
    seen = counts if learn_from is None else counts[learn_from]
    if seen.shape[0] == 0:
        raise InputError("There are no documents to learn a vocabulary from")
    tokens, documents = np.zeros(len(words)), np.zeros(len(words), np.int64)
    for start in range(0, seen.nnz, BLOCK):  # bincount widens what it gets
        some = slice(start, start + BLOCK)
        tokens += np.bincount(seen.indices[some], seen.data[some], len(words))
        documents += np.bincount(seen.indices[some], minlength=len(words))
    chosen = choose_words(WordStatistics(words, documents, tokens), seen.shape[0], rules, of_ngrams)
    return Counted(_select_columns(counts, chosen), Vocabulary(tuple(words[place] for place in chosen)))


def _select_columns(counts: "csr_matrix", chosen: np.ndarray) -> "csr_matrix":
    """The `chosen` columns in that order, several times faster than scipy for thousands of columns."""
    from scipy.sparse import csr_matrix  # slow to import, and a ranking needs none

    columns = np.full(counts.shape[1], -1, np.int32)
    columns[chosen] = np.arange(len(chosen), dtype=np.int32)
    shape = (counts.shape[0], len(chosen))
    if compiled.available():
        found = compiled_words.use_columns(
            CountedWords(np.diff(counts.indptr), counts.indices, counts.data, []), columns
        )
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.distinct)])
        return csr_matrix((found.counts, found.ids, ends), shape)
    indices = columns[counts.indices]
    kept = indices >= 0
    kept_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    selected = csr_matrix((counts.data[kept], indices[kept], kept_before[counts.indptr]), shape)
    selected.sort_indices()
    return selected


def checked_texts(texts: Iterable[str]) -> Iterator[str]:
    if isinstance(texts, str):
        raise InputError("Expected a list of texts, not a single string")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"document {number} (from 0) must be text, not {kind_name(text)}")
        yield text


def kind_name(value: object) -> str:
    return "None" if value is None else type(value).__name__


def _checked_tokens(token_lists: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    for number, document in enumerate(token_lists):
        tokens = list(document) if isinstance(document, Iterable) and not isinstance(document, str) else None
        if tokens is None or not all(issubclass(kind, str) for kind in set(map(type, tokens))):
            raise InputError(f"document {number} (from 0) must be a list of words")
        yield tokens
