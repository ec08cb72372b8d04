"""Inspect and edit the topics of a fitted model: the functions behind the topic methods of `DocumentModel`.

The similarity of topics comes from agglomerative clustering of their directions: average linkage on cosine distance. A
topic keeps its number when others are merged, split or dropped.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from varitext.corpora.document_vectors import is_known
from varitext.documents.fitting import FittedDocuments
from varitext.documents.mixture import Mixture, directions_of, fit_mixture, number_of_places
from varitext.documents.posterior import Posterior, nats_per_word, posterior_of, surprises
from varitext.documents.topic_records import DocumentInfo, Records, TopicShare
from varitext.documents.topic_words import RELEVANCE, Wording
from varitext.documents.topics import Group, RegionDocuments, Regions, described_components, document_directions
from varitext.errors import InputError
from varitext.evaluation.shares import Bins, binned, shares_by_value
from varitext.evaluation.vectors import unit_rows
from varitext.models.documents.base import DocumentNetwork
from varitext.text.passages import Passages


class TopicMatrices(NamedTuple):
    """The input of pyLDAvis: `pyLDAvis.prepare(**matrices._asdict(), sort_topics=False, start_index=0)`."""

    topic_term_dists: np.ndarray  # [topics, V]   p(word | topic)
    doc_topic_dists: np.ndarray  # [D, topics]   p(topic | document)
    doc_lengths: np.ndarray  # [D]   known words of each document
    vocab: list[str]  # the vocabulary
    term_frequency: np.ndarray  # [V]   how often each word occurs


class TreeMerge(NamedTuple):
    """One step up the tree of topics."""

    left: tuple[int, ...]  # numbers of the topics on one side
    right: tuple[int, ...]  # numbers of the topics on the other side
    distance: float  # 1 - cosine, the average over pairs


# Looking at topics


def regions_of(fitted: FittedDocuments) -> Regions:
    if fitted.regions is None:
        raise InputError(
            "the model has no topics yet because its fit was interrupted: call refit_topics(documents), "
            "or use `varitext topics DIR --from CORPUS`"
        )
    return fitted.regions


def nearest_topics(regions: Regions, posterior: Posterior, n: int) -> list[tuple[int, float]]:
    """The topics whose centres have the largest cosine with the mean of one posterior."""
    likeness = unit_rows(regions.group_centres()) @ unit_rows(posterior.mean)[0]
    best = np.argsort(-likeness, kind="stable")[:n]
    return [(regions.groups[place].number, float(likeness[place])) for place in best]


def document_info(
    fitted: FittedDocuments,
    counts: scipy.sparse.csr_matrix,
    posterior: Posterior,
    nats: np.ndarray | None,
    seed: int,
    passages: Passages | None = None,
) -> Records[DocumentInfo]:
    """Info on each row of counts, or on the documents that they are `passages` of; `nats` per word where known."""
    regions = regions_of(fitted)
    memberships = regions.memberships(directions_of(posterior))
    surprise = None
    if regions.line is not None:
        surprise = surprises(nats_per_word(fitted.network, counts, seed, nats), counts, regions.line)
    spread = np.sqrt(np.square(posterior.std, dtype=np.float64).mean(1))
    known, has_topic = np.asarray(counts.sum(1)).ravel().astype(int), is_known(counts)
    if passages is not None:
        memberships, spread = (passages.averaged(one, known) for one in (memberships, spread))
        surprise = None if surprise is None else passages.averaged(surprise, known)
        known = np.bincount(passages.owners, known, passages.documents).astype(int)
        has_topic = known > 0
    names = [(topic.number, topic.name) for topic in regions.info()]
    found: Records[DocumentInfo] = Records()
    for row, shares in enumerate(memberships):
        about: dict[str, Any] = dict.fromkeys(("topic", "name", "probability", "second_topic", "second_probability"))
        if has_topic[row]:
            first, *others = np.argsort(-shares, kind="stable")[:2]
            about |= {"topic": names[first][0], "name": names[first][1], "probability": float(shares[first])}
            for second in others:
                about |= {"second_topic": names[second][0], "second_probability": float(shares[second])}
        surprising = float(surprise[row]) if surprise is not None and known[row] else None
        about |= {"spread": float(spread[row]), "surprise": surprising, "known_words": int(known[row])}
        found.append(DocumentInfo(row, **about))
    return found


def topic_shares(
    regions: Regions, memberships: np.ndarray, known: np.ndarray, values: Sequence[object], bins: Bins
) -> Records[TopicShare]:
    """Shares of topics by value; `known` marks the documents that have a known word or a vector."""
    most_probable = [regions.groups[place].number for place in memberships.argmax(1)]
    assigned = [topic if words else None for topic, words in zip(most_probable, known, strict=True)]
    names = {topic.number: topic.name for topic in regions.info()}
    inside = binned(values, bins)
    found = shares_by_value(assigned, inside.names, list(names), inside.order)
    return Records(TopicShare(one.value, one.category, names[one.category], *one[2:]) for one in found)


def topic_matrices(fitted: FittedDocuments, counts: scipy.sparse.csr_matrix, threads: int | None) -> TopicMatrices:
    """The input of pyLDAvis; documents without a known word are left out."""
    counts = counts[np.flatnonzero(counts.getnnz(1))]
    regions, posterior = regions_of(fitted), posterior_of(fitted.network, counts, threads=threads)
    lengths, frequency = (np.asarray(counts.sum(axis), np.float64).ravel() for axis in (1, 0))
    probabilities, memberships = regions.group_probabilities(), regions.memberships(directions_of(posterior))
    new_words = len(fitted.vocabulary) - probabilities.shape[1]  # which an update has added
    probabilities = np.pad(probabilities / probabilities.sum(1, keepdims=True), ((0, 0), (0, new_words)))
    return TopicMatrices(probabilities, memberships, lengths, list(fitted.vocabulary.words), frequency)


def topic_tree(regions: Regions) -> list[TreeMerge]:
    """Merge topics, starting with the two most similar, until all are one."""
    if len(regions.groups) < 2:
        return []
    leaves: list[tuple[int, ...]] = [(group.number,) for group in regions.groups]
    merges = []
    centres = regions.group_centres()
    unit = centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    for left, right, distance, _ in linkage(np.maximum(pdist(unit, "sqeuclidean") / 2, 0.0), "average"):
        first, second = sorted((leaves[int(left)], leaves[int(right)]))
        merges.append(TreeMerge(first, second, float(distance)))
        leaves.append(tuple(sorted(first + second)))
    return merges


# Changing topics


def with_words(
    regions: Regions,
    stop_words: Sequence[str],
    ngrams: int,
    relevance: float | None,
    given: RegionDocuments | None,
    network: DocumentNetwork,
) -> Regions:
    """The same topics with words and names chosen again, from `given` or from the stored counts."""
    if isinstance(stop_words, str) or not all(isinstance(word, str) for word in stop_words):
        raise InputError("stop_words is a list of words")
    if ngrams not in (1, 2):
        raise InputError(f"ngrams must be one of 1, 2, not {ngrams}")
    if relevance is not None and not 0 <= relevance <= 1:
        raise InputError(f"relevance must lie between 0 and 1, not {relevance}")
    wording = Wording(RELEVANCE if relevance is None else float(relevance), tuple(sorted(set(stop_words))), ngrams)
    changed = replace(regions, wording=wording)
    changed = changed if given is None else described_components(changed, network, given)
    if ngrams > 1 and not changed.phrases.terms:
        raise InputError("phrases need texts, and the model has none: give the texts to update_words, or use --from")
    return _with(changed, changed.groups)


def renamed(regions: Regions, number: int, name: str) -> Regions:
    if not name.strip():
        raise InputError(f"topic {number} needs a name")
    group = _group_numbered(regions, number)
    _check_is_free(regions, name.strip(), [group])
    return _with(regions, [group._replace(name=name.strip()) if one is group else one for one in regions.groups])


def merged(regions: Regions, numbers: Sequence[int], name: str | None = None) -> Regions:
    """Merge several topics into one, with the lowest of their numbers. A name that a user gave to one of them stays if
    that one has more than half of the documents."""
    groups = [_group_numbered(regions, number) for number in sorted(set(numbers))]
    if len(groups) < 2:
        raise InputError("merging needs at least two topics")
    if name is not None:
        _check_is_free(regions, name, groups)
    whole = Group(groups[0].number, tuple(component for group in groups for component in group.components), name)
    whole = whole._replace(name=name or _name_of_most(regions, whole, groups))
    return _with(regions, [whole if one is groups[0] else one for one in regions.groups if one not in groups[1:]])


def _name_of_most(regions: Regions, whole: Group, parts: Sequence[Group]) -> str | None:
    """The name of the part that has more than half of the documents."""
    half = regions.group_documents(whole) / 2
    return next((part.name for part in parts if regions.group_documents(part) > half), None)


def _check_is_free(regions: Regions, name: str, own: Sequence[Group]) -> None:
    for group in regions.groups:
        if group.name == name and group not in own:
            raise InputError(f"topic {group.number} is called {name!r} already: choose another name, or merge the two")


def reduced(regions: Regions, number: int) -> Regions:
    """Merge the most similar topics until `number` are left."""
    joined: dict[tuple[int, ...], None] = {(group.number,): None for group in regions.groups}
    for merge in topic_tree(regions)[: max(0, len(regions.groups) - number)]:
        del joined[merge.left], joined[merge.right]
        joined[tuple(sorted(merge.left + merge.right))] = None
    for numbers in joined:
        regions = merged(regions, numbers) if len(numbers) > 1 else regions
    return regions


def dropped(regions: Regions, numbers: Sequence[int]) -> Regions:
    """Remove these topics: their documents go to the next most probable topic."""
    gone = [_group_numbered(regions, number) for number in numbers]
    left = [group for group in regions.groups if group not in gone]
    if not left:
        raise InputError("at least one topic must stay")
    return _with(regions, left)


def split(
    regions: Regions,
    number: int,
    network: DocumentNetwork,
    given: RegionDocuments | None,
    seed: int,
    n_parts: int = 2,
) -> Regions:
    """Restore the parts that a topic was merged from; otherwise divide it into `n_parts`, by documents."""
    group = _group_numbered(regions, number)
    if len(group.components) == 1:
        if given is None:
            raise InputError(f"topic {number} was not merged from others: splitting it needs documents")
        return _divided(regions, group, network, given, seed, n_parts)
    first = Group(number, group.components[:1], group.name)
    parts = [first._replace(name=_name_of_most(regions, group, [first]))]
    parts += [Group(_new_number(regions) + place, (one,)) for place, one in enumerate(group.components[1:])]
    return _with(regions, [*(parts[0] if one is group else one for one in regions.groups), *parts[1:]])


def _divided(
    regions: Regions, group: Group, network: DocumentNetwork, given: RegionDocuments, seed: int, n_parts: int
) -> Regions:
    """Replace one component by several, fitted to the documents that belong to it."""
    component = group.components[0]
    directions = document_directions(network, given)
    own = regions.mixture.memberships(directions).argmax(1) == component
    unit = directions.unit[own]
    if number_of_places(unit) < n_parts:
        raise InputError(f"topic {group.number} has too few distinct documents among these to be split")
    parts, old = fit_mixture(unit, n_parts, seed), regions.mixture
    parts = parts._replace(weights=old.weights[component] * parts.weights)
    columns = []
    for values, own in zip(old, parts, strict=True):  # the first in its place, the others at the end
        columns.append(np.concatenate([values, own[1:]]))
        columns[-1][component] = own[0]
    mixture = Mixture(*columns)
    new = [Group(_new_number(regions) + one, (len(old.weights) + one,)) for one in range(n_parts - 1)]
    groups = (*regions.groups, *new)
    described = described_components(replace(regions, mixture=mixture, groups=groups), network, given)
    return _with(described, described.groups)


def _group_numbered(regions: Regions, number: int) -> Group:
    for group in regions.groups:
        if group.number == number:
            return group
    numbers = ", ".join(str(group.number) for group in regions.groups)
    raise InputError(f"there is no topic {number}; there are {numbers}")


def _new_number(regions: Regions) -> int:
    return max(max(group.number for group in regions.groups) + 1, len(regions.mixture.weights))


def _with(regions: Regions, groups: Sequence[Group]) -> Regions:
    """Sort the topics, largest first. Stability is dropped, because it holds only for an unchanged set of topics."""
    same = {group[:2] for group in groups} == {group[:2] for group in regions.groups}
    groups = tuple(sorted(groups, key=lambda group: -regions.group_documents(group)))
    return replace(regions, groups=groups, stability=regions.stability if same else ())
