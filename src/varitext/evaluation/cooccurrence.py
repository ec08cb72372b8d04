"""How many windows of a reference corpus contain a word, or two words together: the counts behind every coherence.

A window is a whole document, or slides over a document word by word; a document shorter than the window is one window.
A word at position p is in the windows that start at p - size + 1, ..., p: a stretch of them. Two words are together in
as many windows as their stretches overlap. So no work is done per window, and only the words asked for are counted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.counts import check_counts
from varitext.corpora.document_input import DocumentInput, kind_of, unwrap
from varitext.errors import InputError
from varitext.evaluation.topic_quality import TopicWords
from varitext.text import TokenRules, Vocabulary
from varitext.text.counting import (
    CHUNK_SIZE,
    FindWords,
    KnownIds,
    Occurrences,
    WordIds,
    in_chunks,
    words_of_texts,
    words_of_token_lists,
)

WINDOW_RULES = ("gensim", "exact")


class Reference(NamedTuple):
    """The corpus that says which words belong together, and how it is read."""

    documents: DocumentInput
    window: int | None  # words; None: whole documents
    rule: str = "gensim"  # or "exact"
    vocabulary: Vocabulary | Sequence[str] | None = None  # of counts
    token_rules: TokenRules = TokenRules()  # of texts


class Stretches(NamedTuple):
    """`words[i]` is in the windows from `starts[i]` to before `ends[i]`; windows are numbered through the corpus."""

    starts: np.ndarray
    ends: np.ndarray
    words: np.ndarray


def stretches_of(reference: Reference, ids: KnownIds) -> Iterator[tuple[Stretches, int]]:
    """The stretches of some documents at a time, and how many windows these have."""
    if reference.window is not None and reference.window < 1:
        raise InputError(f"a window holds at least one word, not {reference.window}")
    if reference.rule not in WINDOW_RULES:
        raise InputError(f"windows are counted by the rule {' or '.join(WINDOW_RULES)}, not {reference.rule!r}")
    documents, vocabulary = unwrap(reference.documents)
    kind = kind_of(documents)
    if kind == "counts":
        yield _stretches_of_counts(documents, vocabulary or reference.vocabulary, reference.window, ids)
        return
    find_words = words_of_texts(reference.token_rules) if kind == "texts" else _words_of_lists
    for chunk in in_chunks(_checked(documents, kind), CHUNK_SIZE):
        yield _stretches_of_words(chunk, find_words, reference, ids)


def _checked(documents: Iterable[Any], kind: str) -> Iterator[Any]:
    for number, document in enumerate(documents, start=1):
        if isinstance(document, str) != (kind == "texts") or not isinstance(document, Sequence | np.ndarray):
            raise InputError(f"document {number} of the reference is {type(document).__name__}, the first is {kind}")
        yield document


def _words_of_lists(token_lists: list[Any], ids: WordIds) -> Occurrences:
    try:
        return words_of_token_lists(token_lists, ids)
    except TypeError:  # lists in lists
        raise InputError("a document of the reference is not a list of words") from None


def _stretches_of_counts(counts: Any, vocabulary: Any, window: int | None, ids: KnownIds) -> tuple[Stretches, int]:
    if window is not None:
        raise InputError("counts do not say in which order the words stood: use whole documents as windows, or texts")
    counts = check_counts(counts, "the reference", allow_fractional=True)
    words = getattr(vocabulary, "words", vocabulary)
    if words is None or len(words) != counts.shape[1]:
        known = "none" if words is None else f"{len(words)} words"
        raise InputError(f"a reference of counts needs the word of each of its {counts.shape[1]} columns; got {known}")
    chosen = ids.of(list(words))[counts.indices]
    documents = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))[chosen >= 0]
    return Stretches(documents, documents + 1, chosen[chosen >= 0]), counts.shape[0]


def _stretches_of_words(
    documents: list[Any], find_words: FindWords, reference: Reference, ids: KnownIds
) -> tuple[Stretches, int]:
    found = find_words(documents, ids)
    by_document = np.argsort(found.documents, kind="stable")  # texts that are not ASCII come last
    document, word = found.documents[by_document], found.word_ids[by_document]
    lengths = np.bincount(document, minlength=len(documents))
    if reference.window is None:
        entries = np.unique(document[word >= 0] * len(ids) + word[word >= 0])
        return Stretches(entries // len(ids), entries // len(ids) + 1, entries % len(ids)), len(documents)
    starts = np.cumsum(lengths) - lengths  # a document's windows are numbered from its first word on
    windows = np.maximum(lengths - reference.window + 1, 1)  # an empty document, too, is a window with nothing in it
    place = np.flatnonzero(word >= 0)
    place = place[np.argsort(word[place], kind="stable")]
    words, document = word[place], document[place]
    stretches = _sliding(place, words, starts[document], reference.window, reference.rule)
    ends = np.minimum(stretches.ends, (starts + windows)[document])
    return _without_overlap(stretches._replace(ends=ends)), int(windows.sum())


def _sliding(place: np.ndarray, word: np.ndarray, document_start: np.ndarray, window: int, rule: str) -> Stretches:
    """The windows each occurrence is in, from occurrences sorted by word and then by place.

    gensim's accumulator forgets a word as soon as one occurrence of it leaves the window, although another may still
    be there, and remembers it when the next one enters. So the stretch that begins when an occurrence enters ends
    when the first one that was then in the window leaves.
    """
    starts = np.maximum(place - window + 1, document_start)
    if rule == "exact" or not len(place):
        return Stretches(starts, place + 1, word)
    line = int(place.max()) + 1  # words one after the other on one line of places
    first_inside = np.searchsorted(word * line + place, word * line + starts)
    return Stretches(starts, place[first_inside] + 1, word)


def _without_overlap(stretches: Stretches) -> Stretches:
    """Each stretch of a word starts where its last one ended, so that no window counts twice."""
    starts, ends, words = stretches
    starts = starts.copy()
    again = np.flatnonzero(words[1:] == words[:-1]) + 1
    starts[again] = np.maximum(starts[again], ends[again - 1])
    real = starts < ends
    return Stretches(starts[real], ends[real], words[real])


# Pairs: the stretches are sorted once, and each meets only those that start before it ends


MAX_BLOCK = 2**17  # pairs of stretches held at once


@dataclass(frozen=True)
class Cooccurrence:
    """Numbers of windows: of each word, and of those pairs that occur together in a topic."""

    index: dict[str, int]
    occurrences: np.ndarray  # [U]
    pairs: np.ndarray  # [P]   first * U + second, first < second; sorted
    together: np.ndarray  # [P]
    n_windows: int

    def of(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Windows with both words; a word with itself counts as often as it occurs."""
        keys = _pair_keys(first, second, len(self.index))
        places = np.minimum(np.searchsorted(self.pairs, keys), max(len(self.pairs) - 1, 0))
        counted = self.together[places] if len(self.pairs) else np.zeros(np.shape(keys))
        return np.where(first == second, self.occurrences[first], counted)


def count_together(topics: Sequence[TopicWords], reference: Reference) -> Cooccurrence:
    """Count the words and pairs of the topics, and nothing else, in one pass over the reference."""
    index = {word: place for place, word in enumerate(dict.fromkeys(word for topic in topics for word in topic))}
    keys = [np.zeros(0, np.int64)]
    for topic in topics:
        places = np.unique([index[word] for word in topic]).astype(np.int64)
        first, second = np.triu_indices(len(places), 1)
        keys.append(_pair_keys(places[first], places[second], len(index)))
    pairs = np.unique(np.concatenate(keys))
    occurrences, together, n_windows = np.zeros(len(index)), np.zeros(len(pairs)), 0
    for stretches, windows in stretches_of(reference, KnownIds(index)):
        occurrences += np.bincount(stretches.words, stretches.ends - stretches.starts, len(index))
        together += _overlaps(stretches, pairs, len(index))
        n_windows += windows
    if not n_windows:
        raise InputError("the reference corpus has no documents")
    return Cooccurrence(index, occurrences, pairs, together, n_windows)


def _pair_keys(first: np.ndarray, second: np.ndarray, width: int) -> np.ndarray:
    keys: np.ndarray = np.minimum(first, second) * width + np.maximum(first, second)
    return keys


def _overlaps(stretches: Stretches, pairs: np.ndarray, width: int) -> np.ndarray:
    """In how many windows the words of each pair are together."""
    together = np.zeros(len(pairs))
    order = np.argsort(stretches.starts, kind="stable")
    starts, ends, words = (column[order] for column in stretches)
    following = np.searchsorted(starts, ends) - np.arange(len(starts)) - 1  # that start before this one ends
    for rows in _blocks(following):
        # pair every row with each later row that starts before it ends
        first = np.repeat(rows, following[rows])
        within = np.arange(len(first)) - np.repeat(np.cumsum(following[rows]) - following[rows], following[rows])
        second = first + 1 + within
        keys = _pair_keys(words[first], words[second], width)
        places = np.minimum(np.searchsorted(pairs, keys), max(len(pairs) - 1, 0))
        wanted = pairs[places] == keys if len(pairs) else np.zeros(len(keys), bool)
        first, second, places = first[wanted], second[wanted], places[wanted]
        overlap = np.minimum(ends[first], ends[second]) - starts[second]
        together += np.bincount(places, overlap, len(pairs))
    return together


def _blocks(sizes: np.ndarray) -> Iterator[np.ndarray]:
    """Row numbers in blocks of about `MAX_BLOCK` in total size."""
    block = np.cumsum(sizes) // MAX_BLOCK
    edges = np.flatnonzero(np.diff(block)) + 1
    yield from np.split(np.arange(len(sizes)), edges) if len(sizes) else ()
