"""Count words, chunk by chunk, on any number of cores.

The counts of the chunks are concatenated in the order of the documents, so the result does not depend on how many
threads or processes counted them. Texts under plain rules are counted in C (`compiled/words.py`), in threads; the
Python code here has the same result, and counts everything else.
"""

import itertools
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from varitext import compiled
from varitext.compiled import words as compiled_words
from varitext.compiled.words import EncodedTexts, WordRules
from varitext.errors import InputError
from varitext.text.tokens import (
    SPACE,
    TokenRules,
    ascii_bytes,
    ascii_letters,
    character_table,
    is_plain,
    join_phrases,
    simplify,
    tokenise,
    tokenise_simple,
    utf32,
    without_markup,
)
from varitext.text.vocabulary import WordStatistics

CHUNK_SIZE = 1 << 20  # characters: large enough to hide numpy's overhead, small enough for the processor's cache
TRANSFER_SIZE = 1 << 22  # for another process, to exchange fewer messages
DOCUMENT_OVERHEAD = 64  # so that empty documents fill a chunk, too
PACKED_LETTERS = 8
_SPACE = ord(" ")
_FIRST_LETTERS = np.array([(1 << 8 * letters) - 1 for letters in range(PACKED_LETTERS + 1)], dtype="<u8")
MAX_TABLE = 1 << 20  # words; about 200 MB
MAX_ID = (1 << 31) - 1
Document = TypeVar("Document", bound=Sized)
Item = TypeVar("Item")
Result = TypeVar("Result")


class WordIds(Protocol):
    def of(self, words: list[str]) -> np.ndarray: ...


class Occurrences(NamedTuple):
    """For every token: its document and the id of its word."""

    documents: np.ndarray
    word_ids: np.ndarray


@dataclass(frozen=True)
class ChunkCounts:
    """`counts[i]` occurrences of the word `word_ids[i]`, document by document."""

    distinct_words: np.ndarray  # entries of each document  [B]
    word_ids: np.ndarray  # sorted within each document
    counts: np.ndarray
    words: list[str] | None = None  # the words of the ids, if the ids are the chunk's own


FindWords = Callable[[list[Any], WordIds], Occurrences]  # in documents that are texts, or lists of words


class GrowingIds(defaultdict[str, int]):
    """Ids in the order in which words are first seen."""

    def __init__(self) -> None:
        super().__init__(itertools.count().__next__)

    def of(self, words: list[str]) -> np.ndarray:
        return np.fromiter(map(self.__getitem__, words), np.int64, len(words))


class KnownIds(dict[str, int]):
    """The ids of a given vocabulary; -1 for any other word."""

    def of(self, words: list[str]) -> np.ndarray:
        return np.fromiter(map(self.get, words, itertools.repeat(-1)), np.int64, len(words))


# Chunks


def count_chunks(
    documents: Iterable[Sized], find_words: FindWords, ids: WordIds, processes: int | None
) -> Iterator[ChunkCounts]:
    """The counts of all documents in order, chunk by chunk; new words are added to `ids` if it can grow.

    `processes`: threads if words are counted in C (default: one per core), otherwise processes (default: this one).
    """
    known = ids if isinstance(ids, KnownIds) else None
    counted: Iterable[ChunkCounts]
    if is_compiled(find_words):
        count_chunk = partial(count_alone, find_words=find_words, known=known)
        counted = in_threads(count_chunk, in_chunks(documents, CHUNK_SIZE), processes or usable_cores())
    elif processes in (None, 1):
        counted = (count(chunk, find_words, ids) for chunk in in_chunks(documents, CHUNK_SIZE))
    else:
        from joblib import Parallel, delayed  # here, because its import is slow

        calls = (delayed(count_alone)(chunk, find_words, known) for chunk in in_chunks(documents, TRANSFER_SIZE))
        counted = Parallel(processes, return_as="generator", batch_size=1)(calls)
    for chunk in counted:
        yield with_ids(chunk, ids)


def is_compiled(find_words: FindWords) -> bool:
    return isinstance(find_words, WordsOfTexts) and compiled.available()


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(action: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """The results in the order of the items, of which only as many are read ahead as there are threads."""
    if threads == 1:
        yield from map(action, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        running: deque[Future[Result]] = deque()
        for item in items:
            running.append(pool.submit(action, item))
            if len(running) > threads:
                yield running.popleft().result()
        yield from (each.result() for each in running)


def in_chunks(
    documents: Iterable[Document], size: int, length: Callable[[Document], int] = len
) -> Iterator[list[Document]]:
    """Lists of documents with about `size` characters each, so that memory is bounded."""
    chunk: list[Document] = []
    filled = 0
    for document in documents:
        chunk.append(document)
        filled += length(document) + DOCUMENT_OVERHEAD
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
    """Count elsewhere, without the ids of the corpus: the result has the chunk's own words, or ids that are known."""
    if isinstance(find_words, WordsOfTexts) and compiled.available():
        return find_words.count(documents, known)
    if known is not None:
        return count(documents, find_words, known)
    ids = GrowingIds()
    counted = count(documents, find_words, ids)
    return replace(counted, words=list(ids))


def with_ids(counted: ChunkCounts, ids: WordIds) -> ChunkCounts:
    """`counted` with the ids of the corpus instead of the chunk's own."""
    if counted.words is None:
        return counted
    return replace(counted, word_ids=ids.of(counted.words).astype(np.int32)[counted.word_ids], words=None)


# Words of documents


def words_of_texts(rules: TokenRules, phrases: frozenset[str] = frozenset()) -> FindWords:
    if rules.longest_ngram > 1 or phrases:
        return partial(_runs_of_texts, rules, phrases)  # a partial, because closures cannot go to another process
    return WordsOfTexts(rules)


@dataclass(frozen=True)
class WordsOfTexts:
    rules: TokenRules

    def __call__(self, texts: list[str], ids: WordIds) -> Occurrences:
        texts = [simplify(text, self.rules) for text in texts]
        plain = np.array([is_plain(text, self.rules) for text in texts])
        plain_places, other_places = np.flatnonzero(plain), np.flatnonzero(~plain)
        plain_words = plain_occurrences([texts[place] for place in plain_places], self.rules, ids)
        other_words = words_of_token_lists([tokenise_simple(texts[place], self.rules) for place in other_places], ids)
        documents = np.concatenate([plain_places[plain_words.documents], other_places[other_words.documents]])
        return Occurrences(documents, np.concatenate([plain_words.word_ids, other_words.word_ids]))

    def count(self, texts: list[str], known: KnownIds | None) -> ChunkCounts:
        """The same, counted in C; only texts with rare characters are split into words in Python."""
        rules = self.rules
        texts = [without_markup(text, rules) for text in texts]
        plain = [is_plain(text, rules) for text in texts]
        table = None if all(plain) else character_table(rules.lowercase)
        encoded = [ascii_bytes(text, rules) if one else utf32(text) for text, one in zip(texts, plain, strict=True)]
        kinds = [compiled_words.ASCII if one else compiled_words.UNICODE for one in plain]
        joined = EncodedTexts.of(encoded, kinds)
        if table is not None and (rare := compiled_words.rare_texts(joined, table)):
            for place in rare:
                words = tokenise_simple(simplify(texts[place], rules), rules)
                encoded[place], kinds[place] = SPACE.join([*words, ""]).encode(), compiled_words.SPLIT
            joined = EncodedTexts.of(encoded, kinds)
        lengths = rules.minimum_length, min(rules.maximum_length, MAX_ID)
        counted = compiled_words.count_words(joined, WordRules(*lengths, rules.lowercase, table))
        if known is None:
            return ChunkCounts(*counted)
        return ChunkCounts(*compiled_words.use_columns(counted, known.of(counted.words))[:3])


def _runs_of_texts(rules: TokenRules, phrases: frozenset[str], texts: list[str], ids: WordIds) -> Occurrences:
    token_lists = [tokenise(text, rules) for text in texts]
    if phrases:
        token_lists = [join_phrases(words, phrases) for words in token_lists]
    return words_of_token_lists(token_lists, ids)


def words_of_token_lists(token_lists: list[list[str]], ids: WordIds) -> Occurrences:
    lengths = np.fromiter(map(len, token_lists), np.int64, len(token_lists))
    documents = np.repeat(np.arange(len(token_lists)), lengths)
    return Occurrences(documents, ids.of(list(itertools.chain.from_iterable(token_lists))))


# ASCII text, in numpy for many documents at once, with the same result as `tokenise`. Most words have at most eight
# letters, and eight letters are one 64-bit integer, so finding the distinct words of a chunk means sorting integers.
# Only those, and the long words, are looked up in a dictionary.


def plain_occurrences(texts: list[str], rules: TokenRules, ids: WordIds) -> Occurrences:
    """The tokens of `texts` that are ASCII, or of which only ASCII letters count."""
    encoded = [ascii_letters(text, rules) for text in texts]
    # a space between texts, and room to read eight letters from the start of the last word
    letters = b" ".join([b"", *encoded, b" " * PACKED_LETTERS])
    is_letter = np.frombuffer(letters, np.uint8) != _SPACE
    edges = np.flatnonzero(is_letter[1:] != is_letter[:-1]) + 1
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    allowed = (lengths >= rules.minimum_length) & (lengths <= rules.maximum_length)
    starts, lengths = starts[allowed], lengths[allowed]
    first_of_text = np.cumsum([1, *(len(text) + 1 for text in encoded)])
    tokens_in_text = np.diff(np.searchsorted(starts, first_of_text))
    documents = np.repeat(np.arange(len(texts)), tokens_in_text)
    return Occurrences(documents, _word_ids(letters, starts, lengths, ids))


def _word_ids(letters: bytes, starts: np.ndarray, lengths: np.ndarray, ids: WordIds) -> np.ndarray:
    word_ids, is_short = np.empty(len(starts), np.int64), lengths <= PACKED_LETTERS
    eight_letters = np.ndarray((len(letters) - PACKED_LETTERS + 1,), "<u8", letters, strides=(1,))  # at every position
    packed = eight_letters[starts[is_short]] & _FIRST_LETTERS[lengths[is_short]]
    distinct, places = np.unique(packed, return_inverse=True)
    short_words = distinct.view(f"S{PACKED_LETTERS}").astype(f"U{PACKED_LETTERS}").tolist()
    word_ids[is_short] = ids.of(short_words)[places]
    text, first, ends = letters.decode("ascii"), starts[~is_short], (starts + lengths)[~is_short]
    word_ids[~is_short] = ids.of(list(map(text.__getitem__, map(slice, first.tolist(), ends.tolist()))))
    return word_ids


class BoundedIds(GrowingIds):
    """Word ids for a corpus of any size: a table that drops its rarest words when it grows too large.

    A word's id is a number that no other word ever has; ids ascend in the order of the table. Zipf's law makes dropping
    safe: most words of a large corpus occur once or twice, and none of those can be among the most frequent. When the
    table is full, the rarer half goes, with all words that are as rare as the most frequent of them: t occurrences so
    far. A word that returns starts again with a new id, so a drop costs a word at most t of its count. For every word,

        count - (t_1 + t_2 + ...)  <=  count in the table  <=  count

    and a word that occurs more than t_1 + t_2 + ... times is in the table at the end.
    """

    def __init__(self, largest: int = MAX_TABLE) -> None:
        super().__init__()
        self.largest = largest
        self.undercount = 0  # t_1 + t_2 + ...: the most that any count is too low
        self.drops = 0
        self._old = np.zeros(0, np.int64)  # ids of the words that survived the last drop; newer ones follow
        self._first_new = 0
        self._tokens = np.zeros(0, np.int64)  # [table]
        self._documents = np.zeros(0, np.int64)  # [table]

    def add(self, chunk: ChunkCounts) -> None:
        """Add the counts of these documents; then drop words if the table is full."""
        grown = len(self) - len(self._tokens)
        self._tokens, self._documents = (np.pad(array, (0, grown)) for array in (self._tokens, self._documents))
        places = self._places(chunk.word_ids.astype(np.int64))
        np.add.at(self._tokens, places, chunk.counts.astype(np.int64))
        np.add.at(self._documents, places, 1)
        while len(self) > self.largest:
            self._drop()

    @property
    def ids(self) -> np.ndarray:
        """Ids in the order of the table."""
        return np.concatenate([self._old, np.arange(self._first_new, self._next_id())])

    def statistics(self) -> WordStatistics:
        return WordStatistics(list(self), self._documents, self._tokens)

    def _next_id(self) -> int:
        return self._first_new + len(self) - len(self._old)

    def _places(self, ids: np.ndarray) -> np.ndarray:
        is_new = ids >= self._first_new
        return np.where(is_new, ids - self._first_new + len(self._old), np.searchsorted(self._old, ids))

    def _drop(self) -> None:
        threshold = int(np.partition(self._tokens, len(self) // 2)[len(self) // 2])
        kept = self._tokens > threshold
        words, ids, following = list(itertools.compress(self, kept)), self.ids[kept], self._next_id()
        if following > MAX_ID - 2 * self.largest:
            raise InputError("The corpus has more than two billion different words. Is it text?")
        self.clear()
        self.update(zip(words, ids.tolist(), strict=True))
        self._old, self._first_new = ids, following
        self._tokens, self._documents = self._tokens[kept], self._documents[kept]
        self.undercount += threshold
        self.drops += 1
