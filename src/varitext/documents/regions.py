"""The topics of a fitted model: regions of the latent space, with what was learned about each from the documents.

A topic is one component of the mixture, or several that a user has merged. What belongs to components never changes by
hand; what users change, merges, names and what was dropped, is a list of groups over them (`topic_editing.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from varitext.corpora.sharded_counts import Counts, some_rows
from varitext.documents.mixture import Directions, Mixture, Seeds, directions_of, fit_mixture
from varitext.documents.number_of_topics import Choice, choose_number
from varitext.documents.posterior import posterior_of
from varitext.documents.region_words import (
    DocumentShares,
    document_shares,
    name_columns,
    word_frequencies,
    word_probabilities,
)
from varitext.documents.seed_topics import SeedTopic, seed_directions, seeds_used
from varitext.documents.surprise import LengthLine
from varitext.documents.topic_records import TYPICAL, TopicInfo, TypicalDocument
from varitext.evaluation.coherence import coherence_record
from varitext.models.documents.base import DocumentNetwork
from varitext.text import Vocabulary

REGIONS_FROM = 20_000  # documents at most that regions are found from
KEPT_WORDS = 30  # of each topic, in the table
EXCERPT = 300  # characters of a typical document
COHERENCE_WORDS = 10


class Group(NamedTuple):
    """A topic as the components that it is made of."""

    number: int
    components: tuple[int, ...]
    name: str | None = None  # the user's


@dataclass(frozen=True)
class Regions:
    mixture: Mixture
    word_probabilities: np.ndarray  # [T, V]   p(w | component)
    frequencies: np.ndarray  # [V]
    shares: DocumentShares  # of documents that have a word, component by component
    documents: np.ndarray  # [T]   training documents of each component
    tokens: np.ndarray  # [T]   words in these
    coherence: tuple[float | None, ...]
    typical: tuple[tuple[TypicalDocument, ...], ...]
    groups: tuple[Group, ...]
    words: tuple[str, ...]  # the vocabulary
    choice: Choice
    line: LengthLine | None
    seeds: tuple[dict[str, Any], ...] = ()  # what came of seed words

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

    def info(self) -> list[TopicInfo]:
        """What is known about each topic, in the order of `groups`."""
        probabilities, centres = self.group_probabilities(), self.group_centres()
        of_groups = np.stack([self._average(self.shares.of_regions, group) for group in self.groups])
        order = self.shares._replace(of_regions=of_groups).most_relevant(KEPT_WORDS)
        names = name_columns(order, centres, self.words)
        every = max(1, int(self.documents.sum()))
        return [
            self._topic(group, probabilities[row], order[row], names[row], every)
            for row, group in enumerate(self.groups)
        ]

    def _topic(
        self, group: Group, probabilities: np.ndarray, order: np.ndarray, name: list[int], every: int
    ) -> TopicInfo:
        components = list(group.components)
        by_size = sorted(components, key=lambda component: -self.documents[component])
        documents = int(self.documents[components].sum())
        return TopicInfo(
            number=group.number,
            name=group.name or ", ".join(self.words[column] for column in name),
            documents=documents,
            share=documents / every,
            tokens=int(self.tokens[components].sum()),
            words=tuple(self.words[column] for column in order),
            weights=tuple(float(probabilities[column]) for column in order),
            coherence=self.coherence[components[0]] if len(components) == 1 else None,
            typical=tuple(one for component in by_size for one in self.typical[component])[:TYPICAL],
        )


class RegionDocuments(NamedTuple):
    """What regions are found from."""

    counts: Counts
    rows: np.ndarray | None = None  # where each document stands in what the user gave, if some were left out
    texts: Sequence[str] | None = None  # what the user gave


def find_regions(
    network: DocumentNetwork,
    vocabulary: Vocabulary,
    given: RegionDocuments,
    number: int | None,
    seed: int,
    line: LengthLine | None = None,
    seed_topics: Sequence[SeedTopic] = (),
) -> Regions:
    """The regions in which documents lie: as many as asked for, or as held-out documents ask for."""
    sample = _sampled(network, given, seed)
    seeds = seed_directions(network, vocabulary, seed_topics, len(sample.rows))
    mixture, choice = _fitted(sample.directions.unit, number, seed, seeds)
    names = [topic.name for topic in seed_topics] + [None] * (len(mixture.weights) - len(seed_topics))
    groups = tuple(Group(topic, (topic,), name) for topic, name in enumerate(names))
    regions = _described(network, given, sample, mixture, groups, vocabulary.words, choice, line)
    top = regions.shares.most_relevant(COHERENCE_WORDS)
    return replace(regions, seeds=seeds_used(seed_topics, vocabulary, seeds, mixture, top))


def described_components(regions: Regions, network: DocumentNetwork, given: RegionDocuments, seed: int = 0) -> Regions:
    """With words, sizes and typical documents of every component as these documents have them."""
    sample = _sampled(network, given, seed)
    described = _described(
        network, given, sample, regions.mixture, regions.groups, regions.words, regions.choice, regions.line
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
    rows = np.sort(some_rows(np.random.default_rng((seed, 3)), given.counts.shape[0], REGIONS_FROM))
    counts = given.counts[rows]
    posterior = posterior_of(network, counts)
    return _Sample(rows, counts, posterior.mean, directions_of(posterior))


def _described(
    network: DocumentNetwork,
    given: RegionDocuments,
    sample: _Sample,
    mixture: Mixture,
    groups: tuple[Group, ...],
    words: tuple[str, ...],
    choice: Choice,
    line: LengthLine | None,
) -> Regions:
    memberships = mixture.memberships(sample.directions)
    nearest = mixture.memberships(Directions(sample.directions.unit, np.zeros(len(memberships))))
    shares = document_shares(sample.counts, _hard(nearest))
    documents, tokens = _sizes(memberships, sample.counts, given.counts.shape[0] / sample.counts.shape[0])
    return Regions(
        mixture=mixture,
        word_probabilities=word_probabilities(network, sample.counts, sample.vectors, _hard(nearest)),
        frequencies=word_frequencies(network),
        shares=shares,
        documents=documents,
        tokens=tokens,
        coherence=_coherence(shares.most_relevant(COHERENCE_WORDS), sample.counts),
        typical=_typical(mixture, sample.directions, memberships, sample.rows, given),
        groups=groups,
        words=words,
        choice=choice,
        line=line,
    )


def _fitted(unit: np.ndarray, number: int | None, seed: int, seeds: Seeds | None) -> tuple[Mixture, Choice]:
    choice = choose_number(unit, number, seed, 0 if seeds is None else len(seeds.directions))
    return fit_mixture(unit, choice.number, seed, seeds), choice


def _hard(memberships: np.ndarray) -> np.ndarray:
    """Every document in its most probable region alone: words of soft regions run together."""
    return np.asarray(np.eye(memberships.shape[1], dtype=np.float32)[memberships.argmax(1)])


def _sizes(memberships: np.ndarray, counts: scipy.sparse.csr_matrix, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Documents and words by most probable topic, of all documents if regions were found from some."""
    topics, lengths = memberships.argmax(1), np.asarray(counts.sum(1)).ravel()
    documents = np.bincount(topics, minlength=memberships.shape[1])
    tokens = np.bincount(topics, lengths, minlength=memberships.shape[1])
    return np.rint(scale * documents).astype(np.int64), np.rint(scale * tokens).astype(np.int64)


def _coherence(top: np.ndarray, counts: scipy.sparse.csr_matrix) -> tuple[float | None, ...]:
    """NPMI of the first words in whole training documents."""
    if top.shape[1] < 2:
        return (None,) * len(top)
    names = [f"word{column}" for column in range(counts.shape[1])]
    topics = [[names[column] for column in columns] for columns in top]
    return coherence_record(topics, counts, "npmi", window="document", vocabulary=names).by_topic


def _typical(
    mixture: Mixture, documents: Directions, memberships: np.ndarray, rows: np.ndarray, given: RegionDocuments
) -> tuple[tuple[TypicalDocument, ...], ...]:
    """Those of a region that lie nearest to its centre."""
    near = documents.unit @ mixture.centres.T  # [D, T]
    near = np.where(memberships.argmax(1)[:, None] == np.arange(near.shape[1]), near, -np.inf)
    places = np.argsort(-near, axis=0, kind="stable")[:TYPICAL]
    return tuple(
        tuple(_shown(int(rows[place]), given) for place in column if np.isfinite(near[place, topic]))
        for topic, column in enumerate(places.T)
    )


def _shown(row: int, given: RegionDocuments) -> TypicalDocument:
    row = row if given.rows is None else int(given.rows[row])
    text = None if given.texts is None else " ".join(given.texts[row][: 2 * EXCERPT].split())[:EXCERPT]
    return TypicalDocument(row, text)
