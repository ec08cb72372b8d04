"""The topics of a fitted model: regions of the latent space, with what was learned about each from the documents.

A topic is one component of the mixture, or several that a user has merged. What belongs to components never changes by
hand; what users change, merges, names and what was dropped, is a list of groups over them (`topic_model.py`).

p(w | region)   the mean over its documents of the model's p(w | h); for a model without a linear decoder, the words
                that its documents have, smoothed towards the unigram model
relevance       lambda log s(w | region) + (1 - lambda) log (s(w | region) / s(w)), after Sievert and Shirley (2014),
                with the share s of documents that have the word in place of p: words are bursty, and a signature that
                one author repeats is not what a region is about
name            the first words that are not also among those of the nearest other region
seed words      read as a document, they have a posterior mean; its direction is where a component starts, and a prior
                counts it as a share of the documents. These may still draw the component elsewhere: `seeds_used`
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch

from varitext.corpora.sharded_counts import Counts, some_rows
from varitext.documents.mixture import Choice, Directions, Mixture, Seeds, choose_number, directions_of, fit_mixture
from varitext.documents.posterior import LengthLine, posterior_of
from varitext.documents.topic_records import TYPICAL, TopicInfo, TypicalDocument
from varitext.errors import InputError
from varitext.evaluation.coherence import coherence_record
from varitext.files import read_json
from varitext.models.documents.base import DocumentNetwork
from varitext.text import Vocabulary

MAX_DOCUMENTS = 20_000  # that regions are found from
KEPT_WORDS = 30  # of each topic, in the table
EXCERPT = 300  # characters of a typical document
COHERENCE_WORDS = 10

RELEVANCE = 0.55  # lambda: less of it, and topics share fewer words; more, and their words go together better
NAME_WORDS, NAME_CANDIDATES = 3, 10
MIN_STEM_LENGTH, MAX_SUFFIX_LENGTH = 3, 2  # letters: bike and bikes are forms of one word
SMOOTHING = 50.0  # words of the unigram model that are added to what a region's documents have
DOCUMENT_SMOOTHING = 0.5  # documents with the words of all that are added to those of a region
MAX_PROBABILITIES = 2 * 10**8  # computed for p(w | region): a second or two
BLOCK = 512

PRIOR_DOCUMENTS = 0.02  # share of all documents that each seed counts as
REPEATS = 5  # of each word in the document of seed words: a short document would be too uncertain


class Group(NamedTuple):
    """A topic as the components that it is made of."""

    number: int
    components: tuple[int, ...]
    name: str | None = None  # the user's


@dataclass(frozen=True)
class Regions:
    """The topics of a model; arrays are by component of the mixture."""

    mixture: Mixture
    word_probabilities: np.ndarray  # [T, V]   p(w | component)
    shares: "DocumentShares"  # of documents that have a word, component by component
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
        return list(self._info)

    @cached_property
    def _info(self) -> tuple[TopicInfo, ...]:
        """Ranking the whole vocabulary for every topic takes longer than placing a text."""
        probabilities, centres = self.group_probabilities(), self.group_centres()
        of_groups = np.stack([self._average(self.shares.of_regions, group) for group in self.groups])
        order = self.shares._replace(of_regions=of_groups).most_relevant(KEPT_WORDS)
        names = name_columns(order, centres, self.words)
        every = max(1, int(self.documents.sum()))
        return tuple(
            self._topic(group, probabilities[row], order[row], names[row], every)
            for row, group in enumerate(self.groups)
        )

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
    rows: np.ndarray | None = None  # the row of each document in what the user gave, if some were left out
    texts: Sequence[str] | None = None  # what the user gave
    copies: np.ndarray | None = None  # how many documents each stands for
    ids: Sequence[str] | None = None  # of what the user gave
    excerpts: Sequence[str] | None = None  # the texts of `counts`, if they are passages of what the user gave


def find_regions(
    network: DocumentNetwork,
    vocabulary: Vocabulary,
    given: RegionDocuments,
    number: int | None,
    seed: int,
    line: LengthLine | None = None,
    seed_topics: "Sequence[SeedTopic]" = (),
) -> Regions:
    """The regions in which documents lie; their number is chosen on held-out documents if it is None."""
    sample = _sampled(network, given, seed)
    seeds = seed_directions(network, vocabulary, seed_topics, len(sample.rows))
    choice = choose_number(sample.directions.unit, number, seed, len(seed_topics))
    mixture = fit_mixture(sample.directions.unit, choice.number, seed, seeds)
    names = [topic.name for topic in seed_topics] + [None] * (len(mixture.weights) - len(seed_topics))
    groups = tuple(Group(topic, (topic,), name) for topic, name in enumerate(names))
    regions = _described(network, given, sample, mixture, groups, vocabulary.words, choice, line)
    top = regions.shares.most_relevant(COHERENCE_WORDS)
    return replace(regions, seeds=seeds_used(seed_topics, vocabulary, seeds, mixture, top))


def described_components(regions: Regions, network: DocumentNetwork, given: RegionDocuments, seed: int = 0) -> Regions:
    """The same regions with words, sizes and typical documents taken from these documents."""
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
    rows = np.sort(some_rows(np.random.default_rng((seed, 3)), given.counts.shape[0], MAX_DOCUMENTS))
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
    topics, lengths = memberships.argmax(1), np.asarray(sample.counts.sum(1)).ravel()
    copies = np.ones(given.counts.shape[0]) if given.copies is None else given.copies
    copies, scale = copies[sample.rows], copies.sum() / copies[sample.rows].sum()  # up to all documents
    documents, tokens = (np.bincount(topics, copies * one, len(mixture.weights)) for one in (np.ones(1), lengths))
    return Regions(
        mixture=mixture,
        word_probabilities=word_probabilities(network, sample.counts, sample.vectors, _hard(nearest)),
        shares=shares,
        documents=np.rint(scale * documents).astype(np.int64),
        tokens=np.rint(scale * tokens).astype(np.int64),
        coherence=_coherence(shares.most_relevant(COHERENCE_WORDS), sample.counts),
        typical=_typical(mixture, sample.directions, memberships, sample.rows, given),
        groups=groups,
        words=words,
        choice=choice,
        line=line,
    )


def _hard(memberships: np.ndarray) -> np.ndarray:
    """Every document in its most probable region only: the words of soft regions are less distinct."""
    return np.asarray(np.eye(memberships.shape[1], dtype=np.float32)[memberships.argmax(1)])


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
    """The documents of each region nearest to its centre."""
    near = documents.unit @ mixture.centres.T  # [D, T]
    near = np.where(memberships.argmax(1)[:, None] == np.arange(near.shape[1]), near, -np.inf)
    places = np.argsort(-near, axis=0, kind="stable")[:TYPICAL]

    def shown(place: int) -> TypicalDocument:
        row = place if given.rows is None else int(given.rows[place])
        text = given.texts[row] if given.texts is not None else None
        text = given.excerpts[place] if given.excerpts is not None else text
        text = None if text is None else " ".join(text[: 2 * EXCERPT].split())[:EXCERPT]
        return TypicalDocument(row, text, None if given.ids is None else given.ids[row])

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
        h = h @ network.axes.T if network.free_axes else h  # from the readable axes to the network's own
        probabilities = torch.softmax(network.word_logits(h), -1).cpu().numpy()  # [B, V]
        sums += memberships[start : start + BLOCK].T @ probabilities
    sums = sums + 1e-6 * frequencies  # a region without documents has the unigram model
    return np.asarray(sums / sums.sum(1, keepdims=True), np.float32)  # as it is kept in the folder


class DocumentShares(NamedTuple):
    """Share of documents that have a word, by region and overall."""

    of_regions: np.ndarray  # [T, V]
    of_all: np.ndarray  # [V]

    def relevance(self, weight: float = RELEVANCE) -> np.ndarray:
        """[T, V]"""
        of_regions, of_all = (np.log(np.maximum(shares, 1e-30)) for shares in self)
        return np.asarray(of_regions - (1 - weight) * of_all)

    def most_relevant(self, words: int) -> np.ndarray:
        """The columns of the most relevant words, best first.  [T, words]"""
        return np.asarray(np.argsort(-self.relevance(), axis=1, kind="stable")[:, :words])


def document_shares(counts: scipy.sparse.csr_matrix, memberships: np.ndarray) -> DocumentShares:
    """From documents and their memberships; a region's shares are smoothed towards those of all documents."""
    present = (counts > 0).astype(np.float32)
    of_all = np.asarray(present.mean(0), np.float32).ravel()
    with_word = np.asarray((present.T @ memberships).T) + DOCUMENT_SMOOTHING * of_all
    size = memberships.sum(0)[:, None] + DOCUMENT_SMOOTHING
    return DocumentShares(np.asarray(with_word / size, np.float32), of_all)


def name_columns(order: np.ndarray, centres: np.ndarray, words: Sequence[str]) -> list[list[int]]:
    """For each region the words of its name: its most relevant ones that are not also first words of the nearest other
    region, and no two forms of one word."""
    likeness = centres @ centres.T
    np.fill_diagonal(likeness, -np.inf)
    first = order[:, :NAME_CANDIDATES].tolist()
    names = []
    for region, columns in enumerate(first):
        taken = set(first[likeness[region].argmax()]) if len(first) > 1 else set()
        by_merit = sorted(columns, key=lambda column: column in taken)  # stable: relevance decides among the others
        kept: list[int] = []
        for column in by_merit:
            if not any(_forms_of_one(words[column], words[other]) for other in kept):
                kept.append(column)
        names.append(kept[:NAME_WORDS])
    return names


def _forms_of_one(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= MIN_STEM_LENGTH and len(long) - len(short) <= MAX_SUFFIX_LENGTH and long.startswith(short)


# Seed topics


class SeedTopic(NamedTuple):
    name: str
    words: tuple[str, ...]


def read_seed_topics(path: Path) -> list[SeedTopic]:
    """A JSON object of names, each with a list of words: {"space": ["orbit", "nasa"]}."""
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
    topics: Sequence[SeedTopic], vocabulary: Vocabulary, seeds: Seeds | None, mixture: Mixture, top: np.ndarray
) -> tuple[dict[str, Any], ...]:
    """For each seeded topic: unknown words, words among its first, cosine of its centre to the seed."""
    if seeds is None:
        return ()
    found = []
    for number, topic in enumerate(topics):
        shown = {vocabulary.words[column] for column in top[number]}
        centre = mixture.centres[number]
        found.append(
            {
                "number": number,
                "name": topic.name,
                "unknown_words": [word for word in topic.words if word not in vocabulary.index],
                "words_shown": [word for word in topic.words if word in shown],
                "cosine_to_seed": float(centre @ seeds.directions[number] / max(np.linalg.norm(centre), 1e-12)),
            }
        )
    return tuple(found)
