"""The words and names of topics, from counts of documents.

A word occurs in a of the n documents of a topic, and in b of the m documents of other topics.

significance    the signed root of the likelihood ratio G2 of this 2 x 2 table (Dunning 1993). The words of a topic are
                significantly more frequent in it than elsewhere, and in enough of its documents; a topic may have few
relevance       log s(w | topic) - (1 - lambda) log s(w), after Sievert and Shirley (2014), with the share s of the
                documents that have the word in place of p: words are bursty, and a signature that one author repeats is
                not what a topic is about
cohesion        the mean NPMI, in whole documents, of a word with the most relevant words of the topic: among these,
                words that occur together come first
name            the most relevant of the first ten words, in the form that most documents have (bike, bikes; atheism,
                atheist), and as a phrase if they mostly occur as one (machine learning). A topic that would have the
                same name as a larger one takes further words of its own
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import rel_entr

from varitext.text.tokens import SPACE

KEPT_WORDS = 30  # of each topic, in the table
RELEVANCE = 0.6  # lambda: a smaller value gives topics fewer words in common, a larger one more cohesive words
SMALL = 1e-12  # share of documents: keeps the NPMI of two words that never occur together finite
MIN_SIGNIFICANCE = 3.0  # standard deviations
MIN_SUPPORT = 2  # documents of the topic that have a word
MIN_SHARE = 0.1  # of the documents that have the topic's most frequent word
COHESION, COHESIVE_WORDS = 3.0, 15  # weight relative to relevance, and number of words that it orders
NAME_CANDIDATES = 10
NAME_WORDS = 4  # of a name; a phrase has two
MIN_WORDS = 3  # of a topic in which no word is significant
MIN_STEM_LENGTH, MAX_SUFFIX_LENGTH = 3, 2  # letters: bike and bikes are forms of one word
MIN_ROOT_LENGTH = 4  # letters that words with English suffixes share: atheism and atheist, utility and utilities
SUFFIXES = frozenset(
    " e s es y ies ed er ers ing or ion ions ist ists ism ity al ally ic ics ical ian ians ship ment ly ness ance ence"
    " able ive".split(SPACE)
)
PHRASE_SHARE = 0.5  # of the topic's documents with one of its words: the least share that must have the phrase


class Wording(NamedTuple):
    """How the words of topics are chosen from the counts."""

    relevance: float = RELEVANCE  # lambda
    stop_words: tuple[str, ...] = ()  # not shown
    ngrams: int = 1  # 2: phrases count as words


DEFAULT_WORDING = Wording()


class WordCounts(NamedTuple):
    """How many documents of each topic have a word or a phrase."""

    terms: tuple[str, ...]
    having: np.ndarray  # [T, V]
    sizes: np.ndarray  # [T]   documents of each topic
    every_having: np.ndarray  # [V]   of all documents
    every: int
    cohesion: np.ndarray | None = None  # [T, V]

    def and_also(self, others: "WordCounts") -> "WordCounts":
        """Append other terms, counted in the same documents."""
        cohesion = None
        if self.cohesion is not None:  # the other terms get the mean
            cohesion = np.hstack(
                [self.cohesion, np.broadcast_to(self.cohesion.mean(1, keepdims=True), others.having.shape)]
            )
        return self._replace(
            terms=self.terms + others.terms,
            having=np.hstack([self.having, others.having]),
            every_having=np.hstack([self.every_having, others.every_having]),
            cohesion=cohesion,
        )

    def significance(self) -> np.ndarray:
        """Standard deviations by which a word is more frequent in a topic than elsewhere.  [T, V]"""
        shares = self.every_having / max(self.every, 1)  # [V]
        statistic = np.zeros(self.having.shape)
        outside = self.every_having - self.having, (self.every - self.sizes)[:, None]
        for having, size in ((self.having, self.sizes[:, None]), outside):
            statistic += rel_entr(having, size * shares) + rel_entr(size - having, size * (1 - shares))
        sign = np.sign(self.having * self.every - self.sizes[:, None] * self.every_having)
        return np.asarray(sign * np.sqrt(2 * np.maximum(statistic, 0)))

    def relevance(self, weight: float = RELEVANCE) -> np.ndarray:
        """Relevance; minus infinity for a word that no document of the topic has.  [T, V]"""
        with np.errstate(divide="ignore", invalid="ignore"):
            of_topics, of_all = np.log(self.having / self.sizes[:, None]), np.log(self.every_having / self.every)
            values = of_topics - (1 - weight) * of_all
        return np.where(self.having > 0, np.round(values, 9), -np.inf)  # rounding errors must not break ties

    def best(self, number: int, wording: Wording) -> list[np.ndarray]:
        """The columns of each topic's words, the most relevant first."""
        relevance, significance = self.relevance(wording.relevance), self.significance()
        stop_words = set(wording.stop_words)
        shown = np.array([stop_words.isdisjoint((term, *term.split(SPACE))) for term in self.terms], bool)
        possible = shown & (self.having > 0) & ((significance > 0) | (self.sizes[:, None] == self.every))
        clear = possible & ((significance >= MIN_SIGNIFICANCE) | (self.sizes[:, None] == self.every))
        found = []
        for row, having in enumerate(self.having):
            support = max(min(MIN_SUPPORT, self.sizes[row]), MIN_SHARE * having[clear[row]].max(initial=0))
            chosen = clear[row] & (having >= support)
            if np.count_nonzero(chosen) < MIN_WORDS:  # a topic of few documents
                chosen = _largest(np.where(possible[row], significance[row], -np.inf), MIN_WORDS)
            found.append(self._ordered(row, np.flatnonzero(chosen), relevance[row])[:number])
        return found

    def _ordered(self, row: int, columns: np.ndarray, relevance: np.ndarray) -> np.ndarray:
        """Sort columns by relevance, and the first of them by relevance and cohesion."""
        columns = columns[np.argsort(-relevance[columns], kind="stable")]
        first, others = np.split(columns, [COHESIVE_WORDS])
        cohesion = 0.0 if self.cohesion is None else self.cohesion[row, first]
        merit = np.round(relevance[first] + COHESION * cohesion, 5)
        return np.concatenate([first[np.argsort(-merit, kind="stable")], others])


def _largest(values: np.ndarray, number: int) -> np.ndarray:
    """Whether each value is among the `number` largest finite ones; of equal values the first count."""
    chosen = np.zeros(len(values), bool)
    chosen[np.argsort(-np.round(values, 9), kind="stable")[:number]] = True
    return np.asarray(chosen & np.isfinite(values))


def documents_having(counts: scipy.sparse.csr_matrix, topics: np.ndarray, number: int) -> np.ndarray:
    """How many documents of each topic have each word; `topics` is the topic of every document.  [T, V]"""
    places = topics, np.arange(len(topics))
    member = scipy.sparse.csr_matrix((np.ones(len(topics), np.int32), places), (number, len(topics)))
    return np.asarray((member @ (counts > 0).astype(np.int32)).todense())


def cohesion_of(counts: scipy.sparse.csr_matrix, words: Sequence[np.ndarray]) -> np.ndarray:
    """Mean NPMI of each topic's words, given by their columns, with the first of them; all other words get the mean
    of these values.  [T, V]"""
    present = (counts > 0).astype(np.float32).tocsc()
    shares = np.asarray(present.mean(0), np.float64).ravel()
    found = np.zeros((len(words), counts.shape[1]), np.float32)
    for row, columns in enumerate(words):
        first = columns[:COHESIVE_WORDS]
        documents = (present[:, columns].T @ present[:, first]).toarray().astype(np.float64)
        together = np.maximum(documents / counts.shape[0], SMALL)
        npmi = np.log(together / np.outer(shares[columns], shares[first])) / np.maximum(-np.log(together), SMALL)
        npmi[columns[:, None] == first] = 0.0  # a word with itself
        values = npmi.sum(1) / np.maximum(np.count_nonzero(columns[:, None] != first, axis=1), 1)
        found[row] = values.mean() if len(columns) else 0.0
        found[row, columns] = values
    return found


# Phrases


class Phrases(NamedTuple):
    """Pairs of adjacent words in texts."""

    terms: tuple[str, ...]  # "machine learning"
    having: np.ndarray  # [T, P]   documents of each topic


def phrase_candidates(words: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """All ordered pairs of words of one topic."""
    single = [[word for word in topic if SPACE not in word] for topic in words]
    return tuple(dict.fromkeys(SPACE.join(pair) for topic in single for pair in itertools.permutations(topic, 2)))


def phrase_probabilities(probabilities: np.ndarray, words: WordCounts, phrases: WordCounts) -> np.ndarray:
    """p(first word | topic) times the share of the documents with that word that have the phrase.  [T, P]"""
    places = {word: column for column, word in enumerate(words.terms)}
    first = [places[phrase.partition(SPACE)[0]] for phrase in phrases.terms]
    return np.asarray(probabilities[:, first] * phrases.having / np.maximum(words.having[:, first], 1))


# Names


def name_topics(
    given: Sequence[tuple[int, str | None]], words: Sequence[np.ndarray], counts: WordCounts, phrases: WordCounts
) -> list[str]:
    """A unique name for each topic, given its number and, if the user has named it, that name."""
    used = {_parts_of(name) for _, name in given if name}
    names = []
    relevance = counts.relevance()
    for row, (number, name) in enumerate(given):
        if not name:
            first, others = np.split(words[row], [NAME_CANDIDATES])
            first = first[np.argsort(-relevance[row, first], kind="stable")]
            parts = _name_parts(row, np.concatenate([first, others]), counts, phrases)
            name = next(name for name in _possible_names(parts, number) if _parts_of(name) not in used)
            used.add(_parts_of(name))
        names.append(name)
    return names


def _parts_of(name: str) -> frozenset[str]:
    return frozenset(name.split(", "))


def _possible_names(parts: Sequence[str], number: int) -> Iterator[str]:
    """Candidate names, best first: enough parts for a name's words, the same with the last replaced, all, a number."""
    words = np.cumsum([len(part.split(SPACE)) for part in parts])
    number_of_parts = min(int(np.searchsorted(words, NAME_WORDS)) + 1, len(parts))
    for last in parts[number_of_parts - 1 :]:
        yield ", ".join([*parts[: number_of_parts - 1], last])
    if parts:
        yield ", ".join(parts)
    for unused in itertools.count(number):
        yield f"topic {unused}"


def _name_parts(row: int, columns: np.ndarray, counts: WordCounts, phrases: WordCounts) -> list[str]:
    """Words and phrases of a topic, best first, without two forms of one word."""
    frequent = {counts.terms[column]: int(counts.having[row, column]) for column in columns}
    partner = _phrase_of_words(frequent, dict(zip(phrases.terms, phrases.having[row].tolist(), strict=True)))
    parts: list[str] = []
    taken: list[str] = []
    for term in frequent:
        forms = [other for other in frequent if _forms_of_one(term, other)]
        shown = max(forms, key=lambda form: frequent[form])
        shown = partner.get(shown, partner.get(term, shown))
        if not any(_forms_of_one(word, other) for word in (term, *shown.split(SPACE)) for other in taken):
            parts.append(shown)
            taken += [term, *shown.split(SPACE)]
    return parts


def _phrase_of_words(words: Mapping[str, int], phrases: Mapping[str, int]) -> dict[str, str]:
    """The phrase in which a word mostly occurs, for the words that have one; values are numbers of documents."""
    found = {}
    for phrase, documents in sorted(phrases.items(), key=lambda one: one[1]):  # the most frequent wins
        first, _, second = phrase.partition(SPACE)
        few, many = sorted((words.get(first, 0), words.get(second, 0)))
        if few and documents >= max(MIN_SUPPORT, PHRASE_SHARE * few, PHRASE_SHARE**2 * many):
            found[first] = found[second] = phrase
    return found


def _forms_of_one(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    is_suffix = len(short) >= MIN_STEM_LENGTH and len(long) - len(short) <= MAX_SUFFIX_LENGTH
    if one == other or (is_suffix and long.startswith(short)):
        return True
    roots = (end for end in range(MIN_ROOT_LENGTH, len(short) + 1) if one[:end] == other[:end])
    return any(one[end:] in SUFFIXES and other[end:] in SUFFIXES for end in roots)
