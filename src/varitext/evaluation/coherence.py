"""Topic coherence: do the words of a topic occur together in a reference corpus?

P(a), P(a, b)   shares of windows that have the word, or both; e = 1e-12
npmi            mean over pairs of   log[(P(a,b) + e) / (P(a) P(b))] / -log(P(a,b) + e)              windows of 10 words
c_v             mean over words a of   cos(v(a), sum_b v(b)),   v(a)_b = npmi(a, b) in the topic    windows of 110 words
u_mass          mean over pairs, b ranked before a, of   log[(P(a,b) + e) / P(b)]                        whole documents

The values are those of gensim's CoherenceModel (`c_npmi`, `c_v`, `u_mass`, with a dictionary made of the reference).
Where it gives NaN, infinity or an error, these give a number or a reason: words that the reference lacks are left out
and listed; a topic with fewer than two words left has no coherence, is None, and is counted. One pass over the
reference in this process: there is no worker to wait for.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varitext.corpora.document_input import DocumentInput
from varitext.errors import InputError
from varitext.evaluation.cooccurrence import Cooccurrence, Reference, count_together
from varitext.evaluation.topic_quality import topic_words
from varitext.records import DictRecord, check_choice
from varitext.text import TokenRules, Vocabulary

SMALL = 1e-12  # e above: a pair that is never together gets a finite value


@dataclass(frozen=True)
class CoherenceRecord(DictRecord):
    """The coherence of topics, and the counts behind it."""

    measure: str
    coherence: float  # mean over the topics that have one
    n_topics: int
    n_topics_left_out: int  # fewer than two of their words are in the reference
    n_words: int  # in all topics, with those left out
    n_unknown_words: int  # of these, not in the reference
    n_repeated_words: int  # of these, given before in the same topic: each counts as a perfect pair
    window: int | None  # words; None: whole documents
    window_rule: str
    n_windows: int
    by_topic: tuple[float | None, ...]
    unknown_words: tuple[str, ...]


def coherence_record(
    topics: Iterable[Any],
    reference: DocumentInput,
    measure: str = "npmi",
    *,
    window: int | str | None = None,
    words: int | None = None,
    vocabulary: Vocabulary | Sequence[str] | None = None,
    token_rules: TokenRules | None = None,
    window_rule: str = "gensim",
) -> CoherenceRecord:
    """Measure the coherence of topics from any tool.

    Parameters
    ----------
    topics : iterable of topics
        Each a list of words, best first, of (word, weight) pairs, or a record with `words`.
    reference : texts, lists of tokens, or counts with their `vocabulary`
        The corpus that decides which words belong together.
    measure : {"npmi", "c_v", "u_mass"}, default "npmi"
    window : int or "document", optional
        Words per window (default: 10 for npmi, 110 for c_v, whole documents for u_mass).
    words : int, optional
        Take only the first words of each topic (default: all).
    vocabulary : Vocabulary or sequence of str, optional
        The words of the columns, if `reference` holds counts.
    token_rules : TokenRules, optional
        How texts are tokenised.
    window_rule : {"gensim", "exact"}, default "gensim"
        How a word repeated within a window is counted: as gensim does, or by the definition.

    Returns
    -------
    CoherenceRecord

    Examples
    --------
    >>> coherence_record([["sun", "moon"]], [["sun", "moon"], ["tree"]], window="document").coherence
    1.0
    """
    check_choice("measure", measure, tuple(MEASURES))
    of_topic, usual = MEASURES[measure]
    given = topic_words(topics, words)
    if window is None:
        window = usual
    elif window == "document":
        window = None
    elif isinstance(window, bool) or not isinstance(window, (int, np.integer)):
        raise InputError(f'a window is a number of words or "document", not {window!r}')
    size = None if window is None else int(window)
    source = Reference(reference, size, window_rule, vocabulary, token_rules or TokenRules())
    counted = count_together(given, source)
    values: list[float | None] = []
    for topic in given:
        places = np.array([counted.index[word] for word in topic], np.int64)
        places = places[counted.occurrences[places] > 0]  # those that the reference has
        values.append(of_topic(places, counted) if len(places) > 1 else None)
    found = [value for value in values if value is not None]
    if not found:
        raise InputError(f"none of the {len(given)} topics has two words in the reference corpus")
    unknown = {word for word, place in counted.index.items() if not counted.occurrences[place]}
    return CoherenceRecord(
        measure=measure,
        coherence=float(np.mean(found)),
        n_topics=len(given),
        n_topics_left_out=len(given) - len(found),
        n_words=sum(map(len, given)),
        n_unknown_words=sum(word in unknown for topic in given for word in topic),
        n_repeated_words=sum(len(topic) - len(set(topic)) for topic in given),
        window=source.window,
        window_rule=source.rule,
        n_windows=counted.n_windows,
        by_topic=tuple(values),
        unknown_words=tuple(word for word in counted.index if word in unknown),
    )


# The measures, of the places of a topic's words


def _npmi(places: np.ndarray, counted: Cooccurrence) -> float:
    first, second = np.triu_indices(len(places), 1)
    return float(_npmi_of_pairs(places[first], places[second], counted).mean())


def _c_v(places: np.ndarray, counted: Cooccurrence) -> float:
    distinct, times = np.unique(places, return_counts=True)
    pairs = _npmi_of_pairs(distinct[:, None], distinct[None], counted)
    vectors = pairs * times  # a repeated word is added to its own coordinate again
    whole = times @ vectors
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(whole)
    cosines = np.divide(vectors @ whole, lengths, out=np.zeros(len(distinct)), where=lengths > 0)
    return float(np.average(cosines, weights=times))


def _u_mass(places: np.ndarray, counted: Cooccurrence) -> float:
    before, after = np.triu_indices(len(places), 1)
    together = counted.of(places[after], places[before]) / counted.n_windows
    return float(np.log((together + SMALL) / (counted.occurrences[places[before]] / counted.n_windows)).mean())


def _npmi_of_pairs(first: np.ndarray, second: np.ndarray, counted: Cooccurrence) -> np.ndarray:
    together = counted.of(first, second) / counted.n_windows + SMALL
    alone = counted.occurrences / counted.n_windows
    npmi: np.ndarray = np.log(together / (alone[first] * alone[second])) / -np.log(together)
    return npmi


# each with its usual window, in words
MEASURES: dict[str, tuple[Callable[[np.ndarray, Cooccurrence], float], int | None]] = {
    "npmi": (_npmi, 10),
    "c_v": (_c_v, 110),
    "u_mass": (_u_mass, None),
}
