"""Where words stand in the windows of a reference corpus, as stretches of windows.

A window is a whole document, or slides over a document word by word; a document shorter than the window is one window.
A word that stands at place p is in the windows that start at p - size + 1, ..., p: a stretch of them. So nothing is
done per window, and only for the words that are asked for.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.document_input import DocumentInput, kind_of, unwrap
from varitext.corpora.documents import check_counts
from varitext.errors import InputError
from varitext.text import TokenRules, Vocabulary
from varitext.text.ascii_text import Occurrences, WordIds
from varitext.text.counting import (
    CHUNK_SIZE,
    FindWords,
    KnownIds,
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
    _check_rules(reference)
    documents, vocabulary = unwrap(reference.documents)
    kind = kind_of(documents)
    if kind == "counts":
        yield _stretches_of_counts(documents, vocabulary or reference.vocabulary, reference.window, ids)
        return
    find_words = words_of_texts(reference.token_rules) if kind == "texts" else _words_of_lists
    for chunk in in_chunks(_checked(documents, kind), CHUNK_SIZE):
        yield _stretches_of_words(chunk, find_words, reference, ids)


def _check_rules(reference: Reference) -> None:
    if reference.window is not None and reference.window < 1:
        raise InputError(f"a window holds at least one word, not {reference.window}")
    if reference.rule not in WINDOW_RULES:
        raise InputError(f"windows are counted by the rule {' or '.join(WINDOW_RULES)}, not {reference.rule!r}")


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
        return _whole_documents(document[word >= 0], word[word >= 0], len(ids)), len(documents)
    starts = np.cumsum(lengths) - lengths  # a document's windows are numbered from its first word on
    windows = np.maximum(lengths - reference.window + 1, 1)  # also an empty document is a window, with nothing in it
    place = np.flatnonzero(word >= 0)
    place = place[np.argsort(word[place], kind="stable")]
    words, document = word[place], document[place]
    stretches = _sliding(place, words, starts[document], reference.window, reference.rule)
    ends = np.minimum(stretches.ends, (starts + windows)[document])
    return _without_overlap(stretches._replace(ends=ends)), int(windows.sum())


def _whole_documents(document: np.ndarray, word: np.ndarray, width: int) -> Stretches:
    entries = np.unique(document * width + word)
    return Stretches(entries // width, entries // width + 1, entries % width)


def _sliding(place: np.ndarray, word: np.ndarray, document_start: np.ndarray, window: int, rule: str) -> Stretches:
    """The windows each occurrence is in, from occurrences sorted by word and then by place.

    gensim's accumulator forgets a word as soon as one occurrence of it leaves the window, although another may still
    stand there, and remembers it when the next one enters. So the stretch that begins when an occurrence enters ends
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
