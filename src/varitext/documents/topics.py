"""The topics of a fitted model: regions of the latent space, and what the documents reveal about each.

A topic is one component of the mixture, or several that a user has merged. Users never change the components
themselves; their changes (merges, names, dropped topics) are a list of groups of components (`topic_model.py`).

p(w | region)   the mean over its documents of the model's p(w | h); for a model without a linear decoder, the word
                frequencies of its documents, smoothed towards the unigram model. Words and names: `topic_words.py`
size            the number of documents whose most probable region it is: all are counted, and regions are numbered by
                size
seed words      are read as a document. A component starts at the direction of its posterior mean, which a prior counts
                as a share of the documents. The documents may still draw the component elsewhere: `seeds_used`
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch

from varitext.corpora.sharded_counts import Counts, ShardedCounts, blocks_of, some_rows
from varitext.documents.mixture import (
    STARTS,
    Choice,
    Directions,
    Mixture,
    Seeds,
    choose_number,
    directions_of,
    fit_mixture,
)
from varitext.documents.posterior import LengthLine, Posterior, posterior_of
from varitext.documents.topic_records import TYPICAL, TopicInfo, TypicalDocument
from varitext.documents.topic_words import (
    DEFAULT_WORDING,
    KEPT_WORDS,
    MIN_SUPPORT,
    Phrases,
    WordCounts,
    Wording,
    cohesion_of,
    documents_having,
    name_topics,
    phrase_candidates,
    phrase_probabilities,
)
from varitext.errors import InputError
from varitext.evaluation.coherence import coherence_record
from varitext.files import read_json
from varitext.models.documents.base import DocumentNetwork
from varitext.text import TokenRules, Vocabulary, count_texts
from varitext.text.boilerplate import Boilerplate

MAX_DOCUMENTS = 20_000  # used to find regions
DIRECTIONS_AT_ONCE = 16_384  # of documents, in memory
EXCERPT = 300  # characters of a typical document
COHERENCE_WORDS = 10
MAX_UNDO = 5  # changes that are kept
SMOOTHING = 50.0  # words of the unigram model that are added to the counts of a region's documents
MAX_PROBABILITIES = 2 * 10**8  # computed for p(w | region): a second or two
BLOCK = 512

PUNCTUATION = re.compile(r"[^\w\s'’-]+")
CLAUSE_END = " xclausex "  # marks the end of a clause; no phrase contains it

PRIOR_DOCUMENTS = 0.02  # share of all documents that each seed counts as
REPEATS = 5  # of each word in the document of seed words: a short document would be too uncertain


class Group(NamedTuple):
    """A topic, as the components that it consists of."""

    number: int
    components: tuple[int, ...]
    name: str | None = None  # if the user gave one


@dataclass(frozen=True)
class Regions:
    """The topics of a model; arrays are by component of the mixture."""

    mixture: Mixture
    word_probabilities: np.ndarray  # [T, V]   p(w | component)
    word_documents: np.ndarray  # [T, V]   training documents of each component that have a word
    cohesion: np.ndarray  # [T, V]   of words, component by component
    phrases: Phrases
    documents: np.ndarray  # [T]   training documents of each component
    distinct: np.ndarray  # [T]   the same, with copies counted once, as in `word_documents`
    tokens: np.ndarray  # [T]   words in these documents
    coherence: tuple[float | None, ...]
    typical: tuple[tuple[TypicalDocument, ...], ...]
    groups: tuple[Group, ...]  # the largest first
    words: tuple[str, ...]  # the vocabulary
    choice: Choice
    line: LengthLine | None
    seeds: tuple[dict[str, Any], ...] = ()  # how the seed words were used
    wording: Wording = DEFAULT_WORDING
    stability: tuple[tuple[int, float], ...] = ()  # by number, for topics that have one
    before: "Regions | None" = None  # the last change, for undo; at most `MAX_UNDO` of them

    def after(self, earlier: "Regions | None") -> "Regions":
        """The same topics, with `earlier` stored as those before the change."""
        states: list[Regions] = []
        while earlier is not None and len(states) < MAX_UNDO:
            states.append(earlier)
            earlier = earlier.before
        oldest: Regions | None = None
        for state in reversed(states):
            oldest = replace(state, before=oldest)
        return replace(self, before=oldest)

    def memberships(self, documents: Directions) -> np.ndarray:
        """p(topic | X), dropped topics left out; columns in the order of `groups`.  [D, topics]"""
        every = self.mixture.memberships(documents)
        kept = np.stack([every[:, list(group.components)].sum(1) for group in self.groups], 1)
        return np.asarray(kept / np.maximum(kept.sum(1, keepdims=True), 1e-300))

    def group_probabilities(self) -> np.ndarray:
        """p(w | topic), components weighted by their documents.  [topics, V]"""
        return np.stack([self._average(self.word_probabilities, group) for group in self.groups])

    def group_centres(self) -> np.ndarray:
        return np.stack([self._average(self.mixture.centres, group) for group in self.groups])

    def _average(self, values: np.ndarray, group: Group) -> np.ndarray:
        components = list(group.components)
        return np.asarray(np.average(values[components], axis=0, weights=self.mixture.weights[components]))

    def group_documents(self, group: Group) -> int:
        return int(self.documents[list(group.components)].sum())

    def word_counts(self) -> WordCounts:
        """Word counts of the topics, in the order of `groups`."""
        cohesion = np.stack([self._average(self.cohesion, group) for group in self.groups])
        counts = self._summed(self.words[: self.word_documents.shape[1]], self.word_documents)
        return counts._replace(cohesion=cohesion)

    def _summed(self, terms: tuple[str, ...], having: np.ndarray) -> WordCounts:
        of_groups = np.stack([having[list(group.components)].sum(0) for group in self.groups])
        sizes = np.array([self.distinct[list(group.components)].sum() for group in self.groups])
        return WordCounts(terms, of_groups, sizes, having.sum(0), int(self.distinct.sum()))

    def info(self) -> list[TopicInfo]:
        """What is known about each topic, in the order of `groups`."""
        return list(self._info)

    @cached_property
    def _info(self) -> tuple[TopicInfo, ...]:
        """Cached, because ranking the whole vocabulary for every topic takes longer than placing a text."""
        counts, phrases, weights = self.word_counts(), self._summed(*self.phrases), self.group_probabilities()
        best = counts.best(KEPT_WORDS, self.wording)
        given = [(group.number, group.name) for group in self.groups]
        names = name_topics(given, best, counts, phrases)
        if self.wording.ngrams > 1:
            weights = np.hstack([weights, phrase_probabilities(weights, counts, phrases)])
            counts = counts.and_also(phrases)
            best = counts.best(KEPT_WORDS, self.wording)
        return tuple(
            self._topic(group, names[row], [counts.terms[column] for column in best[row]], weights[row, best[row]])
            for row, group in enumerate(self.groups)
        )

    def _topic(self, group: Group, name: str, words: Sequence[str], weights: np.ndarray) -> TopicInfo:
        components = list(group.components)
        by_size = sorted(components, key=lambda component: -self.documents[component])
        documents = self.group_documents(group)
        return TopicInfo(
            number=group.number,
            name=name,
            documents=documents,
            share=documents / max(1, int(self.documents.sum())),
            tokens=int(self.tokens[components].sum()),
            words=tuple(words),
            weights=tuple(weights.tolist()),
            coherence=self.coherence[components[0]] if len(components) == 1 else None,
            typical=tuple(one for component in by_size for one in self.typical[component])[:TYPICAL],
            stability=dict(self.stability).get(group.number),
        )


class RegionDocuments(NamedTuple):
    """The documents that regions are found from."""

    counts: Counts
    rows: np.ndarray | None = None  # the row of each document in what the user gave, if some were left out
    texts: Sequence[str] | None = None  # what the user gave
    token_rules: TokenRules | None = None  # how texts become words; None: a function of the user
    copies: np.ndarray | None = None  # how many documents each stands for
    ids: Sequence[str] | None = None  # of the documents that the user gave
    excerpts: Sequence[str] | None = None  # the texts of `counts`, if they are passages of what the user gave
    posterior: Posterior | None = None  # of `counts`, if it is known already
    boilerplate: Boilerplate | None = None  # removed from the texts that are shown

    def text(self, row: int) -> str | None:
        """The text of a row of the counts."""
        if self.excerpts is not None:
            return self.excerpts[row]
        return None if self.texts is None else self.texts[self.row(row)]

    def row(self, row: int) -> int:
        """The row in the user's input."""
        return row if self.rows is None else int(self.rows[row])


def find_regions(
    network: DocumentNetwork,
    vocabulary: Vocabulary,
    given: RegionDocuments,
    number: int | None,
    seed: int,
    line: LengthLine | None = None,
    seed_topics: "Sequence[SeedTopic]" = (),
    minimum: int | None = None,
) -> Regions:
    """Find the regions in which documents lie, largest first, each with at least `minimum` documents unless it has seed
    words. If their number is None, it is chosen on held-out documents."""
    sample = _sampled(network, given, seed)
    seeds = seed_directions(network, vocabulary, seed_topics, len(sample.rows))
    choice = choose_number(sample.directions.unit, number, seed, len(seed_topics))
    starts = STARTS if seeds is None else 1  # seeds say where to start
    mixture = fit_mixture(sample.directions.unit, choice.number, seed, seeds, starts)
    order, counted = _by_size(network, given, sample, mixture, minimum or 1, len(seed_topics))
    if small := choice.number - len(order):
        how = f"{choice.how}, less {small} with fewer than {minimum or 1} documents"
        choice = replace(choice, number=len(order), how=how)
    names = [topic.name for topic in seed_topics] + [None] * (len(mixture.weights) - len(seed_topics))
    groups = tuple(Group(place, (place,), names[component]) for place, component in enumerate(order))
    mixture = mixture.only(order)
    regions = _described(network, given, sample, counted, mixture, groups, vocabulary.words, choice, line)
    top = [topic.words[:COHERENCE_WORDS] for topic in regions.info()]
    places = [int(np.flatnonzero(order == component)[0]) for component in range(len(seed_topics))]
    return replace(regions, seeds=seeds_used(seed_topics, vocabulary, seeds, mixture, top, places))


def described_components(regions: Regions, network: DocumentNetwork, given: RegionDocuments, seed: int = 0) -> Regions:
    """The same regions with words, sizes and typical documents taken from these documents."""
    sample = _sampled(network, given, seed)
    mixture, groups = regions.mixture, regions.groups
    counted = _counted(network, given, sample, mixture)
    described = _described(
        network, given, sample, counted, mixture, groups, regions.words, regions.choice, regions.line, regions.wording
    )
    return replace(described, seeds=regions.seeds)


def document_directions(network: DocumentNetwork, given: RegionDocuments, seed: int = 0) -> Directions:
    return _sampled(network, given, seed).directions


class _Sample(NamedTuple):
    rows: np.ndarray
    counts: scipy.sparse.csr_matrix
    vectors: np.ndarray
    directions: Directions


def _sampled(network: DocumentNetwork, given: RegionDocuments, seed: int) -> _Sample:
    rows = np.sort(some_rows(np.random.default_rng((seed, 3)), given.counts.shape[0], MAX_DOCUMENTS))
    counts, known = given.counts[rows], given.posterior
    posterior = posterior_of(network, counts) if known is None else Posterior(known.mean[rows], known.std[rows])
    return _Sample(rows, counts, posterior.mean, directions_of(posterior))


class _Counted(NamedTuple):
    """Counts of all documents, each in its most probable component."""

    documents: np.ndarray  # [T]
    tokens: np.ndarray  # [T]
    word_documents: np.ndarray  # [T, V]   documents that have a word, copies counted once
    distinct: np.ndarray  # [T]   documents, copies counted once


def _counted(network: DocumentNetwork, given: RegionDocuments, sample: _Sample, mixture: Mixture) -> _Counted:
    components, parts, begin = len(mixture.weights), [], 0
    every = np.ones(given.counts.shape[0]) if given.copies is None else given.copies
    for counts, directions in _blocks_with_directions(network, given, sample):
        copies = every[begin : (begin := begin + counts.shape[0])]
        topics, lengths = mixture.memberships(directions).argmax(1), np.asarray(counts.sum(1), np.float64).ravel()
        sums = [np.bincount(topics, weights, components) for weights in (copies, copies * lengths, None)]
        parts.append((*sums, documents_having(counts, topics, components)))
    documents, tokens, distinct, having = (np.sum(values, axis=0) for values in zip(*parts, strict=True))
    documents, tokens = (np.rint(values).astype(np.int64) for values in (documents, tokens))
    return _Counted(documents, tokens, having.astype(np.int32), distinct.astype(np.int64))


def _blocks_with_directions(
    network: DocumentNetwork, given: RegionDocuments, sample: _Sample
) -> Iterator[tuple[scipy.sparse.csr_matrix, Directions]]:
    if len(sample.rows) == given.counts.shape[0]:
        yield sample.counts, sample.directions
        return
    known, end = None if isinstance(given.counts, ShardedCounts) else given.posterior, 0
    for window in blocks_of(given.counts):
        for first in range(0, window.shape[0], DIRECTIONS_AT_ONCE):
            counts = window[first : first + DIRECTIONS_AT_ONCE]
            rows = slice(end, end := end + counts.shape[0])
            posterior = posterior_of(network, counts) if known is None else Posterior(known.mean[rows], known.std[rows])
            yield counts, directions_of(posterior)


def _by_size(
    network: DocumentNetwork, given: RegionDocuments, sample: _Sample, mixture: Mixture, minimum: int, fixed: int
) -> tuple[np.ndarray, _Counted]:
    """The components, largest first. The smallest is removed, and its documents go to their next most probable one,
    until all but the first `fixed` have `minimum` documents."""
    kept, least = np.arange(len(mixture.weights)), minimum * len(sample.rows) / given.counts.shape[0]
    while len(kept) > 1:
        sizes = np.bincount(mixture.only(kept).memberships(sample.directions).argmax(1), minlength=len(kept))
        if (smallest := _too_small(sizes, kept, least, fixed)) is None:
            break
        kept = np.delete(kept, smallest)
    counted = _counted(network, given, sample, mixture.only(kept))
    while len(kept) > 1 and (smallest := _too_small(counted.documents, kept, minimum, fixed)) is not None:
        kept = np.delete(kept, smallest)
        counted = _counted(network, given, sample, mixture.only(kept))
    order = np.argsort(-counted.documents, kind="stable")
    return kept[order], _Counted(*(values[order] for values in counted))


def _too_small(sizes: np.ndarray, components: np.ndarray, minimum: float, fixed: int) -> int | None:
    """The index of the smallest component that may be removed, if it is too small."""
    free = np.where(components < fixed, np.inf, sizes)
    return int(free.argmin()) if free.min() < minimum else None


def _described(
    network: DocumentNetwork,
    given: RegionDocuments,
    sample: _Sample,
    counted: _Counted,
    mixture: Mixture,
    groups: tuple[Group, ...],
    words: tuple[str, ...],
    choice: Choice,
    line: LengthLine | None,
    wording: Wording = DEFAULT_WORDING,
) -> Regions:
    memberships = mixture.memberships(sample.directions)
    topics = memberships.argmax(1)
    counts = WordCounts(
        words, counted.word_documents, counted.distinct, counted.word_documents.sum(0), int(counted.distinct.sum())
    )
    cohesion = cohesion_of(sample.counts, counts.best(KEPT_WORDS, wording))
    columns = counts._replace(cohesion=cohesion).best(KEPT_WORDS, wording)
    best = [[words[column] for column in each] for each in columns]
    own = np.eye(len(mixture.weights), dtype=np.float32)[topics]  # the words of soft regions are less distinct
    return Regions(
        mixture=mixture,
        word_probabilities=word_probabilities(network, sample.counts, sample.vectors, own),
        word_documents=counted.word_documents,
        cohesion=cohesion,
        phrases=_phrases(given, sample.rows, topics, best, counted.distinct),
        documents=counted.documents,
        distinct=counted.distinct,
        tokens=counted.tokens,
        coherence=_coherence([topic[:COHERENCE_WORDS] for topic in best], sample.counts, words),
        typical=_typical(mixture, sample.directions, memberships, sample.rows, given),
        groups=groups,
        words=words,
        choice=choice,
        line=line,
        wording=wording,
    )


def _phrases(
    given: RegionDocuments, rows: np.ndarray, topics: np.ndarray, best: Sequence[Sequence[str]], documents: np.ndarray
) -> Phrases:
    """The pairs of a topic's words that are adjacent, with no punctuation between them, in at least two of its
    documents; none without texts."""
    candidates = phrase_candidates(best)
    if given.texts is None or given.token_rules is None or not candidates:
        return Phrases((), np.zeros((len(documents), 0), np.int32))
    pairs = replace(given.token_rules, phrases=False, shortest_ngram=2, longest_ngram=2)
    texts = (PUNCTUATION.sub(CLAUSE_END, given.text(row) or "") for row in rows)
    found = count_texts(texts, pairs, Vocabulary(candidates)).counts
    having = documents_having(found, topics, len(documents))
    kept = np.flatnonzero(having.max(0) >= MIN_SUPPORT)
    scale = documents / np.maximum(np.bincount(topics, minlength=len(documents)), 1)  # from the sample to all documents
    return Phrases(
        tuple(candidates[place] for place in kept), np.rint(having[:, kept] * scale[:, None]).astype(np.int32)
    )


def _coherence(
    topics: Sequence[Sequence[str]], counts: scipy.sparse.csr_matrix, words: Sequence[str]
) -> tuple[float | None, ...]:
    """NPMI of the first words in whole training documents."""
    if all(len(topic) < 2 for topic in topics):
        return (None,) * len(topics)
    return coherence_record(topics, counts, "npmi", window="document", vocabulary=words).by_topic


def _typical(
    mixture: Mixture, documents: Directions, memberships: np.ndarray, rows: np.ndarray, given: RegionDocuments
) -> tuple[tuple[TypicalDocument, ...], ...]:
    """The documents nearest to each region's centre, weighted by membership: short documents are less certain."""
    near = documents.unit @ mixture.centres.T * memberships  # [D, T]
    near = np.where(memberships.argmax(1)[:, None] == np.arange(near.shape[1]), near, -np.inf)
    places = np.argsort(-near, axis=0, kind="stable")[:TYPICAL]

    def shown(row: int) -> TypicalDocument:
        text, place = given.text(row), given.row(row)
        if text is not None and given.boilerplate is not None:
            text = next(given.boilerplate.clean([text]))
        excerpt = None if text is None else " ".join(text[: 2 * EXCERPT].split())[:EXCERPT]
        return TypicalDocument(place, excerpt, None if given.ids is None else given.ids[place])

    return tuple(
        tuple(shown(int(rows[place])) for place in column if np.isfinite(near[place, topic]))
        for topic, column in enumerate(places.T)
    )


# Words of regions


@torch.no_grad()
def word_probabilities(
    network: DocumentNetwork, counts: scipy.sparse.csr_matrix, vectors: np.ndarray, memberships: np.ndarray
) -> np.ndarray:
    """p(w | region) from documents, their vectors and memberships.  [T, V]"""
    frequencies = network.word_log_frequencies.double().exp().cpu().numpy()  # [V]
    if network.linear_decoder() is None:
        sums = np.asarray((counts.T @ memberships).T, np.float64) + SMOOTHING * frequencies
        return np.asarray(sums / sums.sum(1, keepdims=True), np.float32)
    most = max(BLOCK, MAX_PROBABILITIES // max(1, counts.shape[1]))
    sums = np.zeros((memberships.shape[1], counts.shape[1]), memberships.dtype)
    for start in range(0, min(len(vectors), most), BLOCK):
        h = torch.from_numpy(np.asarray(vectors[start : start + BLOCK], np.float32)).to(network.device)
        h = h @ network.axes.T if network.free_axes else h  # from the readable axes to those of the network
        probabilities = torch.softmax(network.word_logits(h), -1).cpu().numpy()  # [B, V]
        sums += memberships[start : start + BLOCK].T @ probabilities
    sums = sums + 1e-6 * frequencies  # a region without documents gets the unigram model
    return np.asarray(sums / sums.sum(1, keepdims=True), np.float32)  # the type that the folder stores


# Seed topics


class SeedTopic(NamedTuple):
    name: str
    words: tuple[str, ...]


def read_seed_topics(path: Path) -> list[SeedTopic]:
    """Read a JSON object that maps each name to a list of words: {"space": ["orbit", "nasa"]}."""
    return seed_topics_of(read_json(path), str(path))


def seed_topics_of(given: Mapping[str, Sequence[str]], where: str = "seed_topics") -> list[SeedTopic]:
    if not isinstance(given, Mapping) or not given:
        raise InputError(f'{where}: needs names with lists of words, such as {{"space": ["orbit", "nasa"]}}')
    for name, words in given.items():
        if isinstance(words, str) or not all(isinstance(word, str) for word in words) or not words:
            raise InputError(f"{where}: {name!r} needs a list of words")
    return [SeedTopic(name, tuple(words)) for name, words in given.items()]


def known_words(topics: Sequence[SeedTopic], vocabulary: Vocabulary) -> list[list[int]]:
    """The columns of each topic's seed words; at least one of them must be known."""
    found = []
    for topic in topics:
        found.append([vocabulary.index[word] for word in topic.words if word in vocabulary.index])
        if not found[-1]:
            raise InputError(f"none of the seed words of {topic.name!r} is among the words of the model")
    return found


def seed_directions(
    network: DocumentNetwork, vocabulary: Vocabulary, topics: Sequence[SeedTopic], documents: int
) -> Seeds | None:
    if not topics:
        return None
    counts = np.zeros((len(topics), len(vocabulary)), np.float32)
    for row, known in enumerate(known_words(topics, vocabulary)):
        counts[row, known] = REPEATS
    posterior = posterior_of(network, scipy.sparse.csr_matrix(counts))
    return Seeds(directions_of(posterior).unit, max(1.0, PRIOR_DOCUMENTS * documents))


def seeds_used(
    topics: Sequence[SeedTopic],
    vocabulary: Vocabulary,
    seeds: Seeds | None,
    mixture: Mixture,
    top: Sequence[Sequence[str]],
    places: Sequence[int],
) -> tuple[dict[str, Any], ...]:
    """For each seeded topic: unknown words, seed words among its top words, cosine of its centre with the seed."""
    if seeds is None:
        return ()
    found = []
    for topic, direction, number in zip(topics, seeds.directions, places, strict=True):
        centre = mixture.centres[number]
        found.append(
            {
                "number": number,
                "name": topic.name,
                "unknown_words": [word for word in topic.words if word not in vocabulary.index],
                "words_shown": [word for word in topic.words if word in top[number]],
                "cosine_to_seed": float(centre @ direction / max(np.linalg.norm(centre), 1e-12)),
            }
        )
    return tuple(found)
