"""What users change about topics: names, merges, splits, and topics that they do not want. Numbers stay as they are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from varitext.documents.mixture import Mixture, fit_mixture
from varitext.documents.number_of_topics import number_of_places
from varitext.documents.regions import Group, RegionDocuments, Regions, described_components, document_directions
from varitext.errors import InputError
from varitext.models.documents.base import DocumentNetwork


def renamed(regions: Regions, number: int, name: str) -> Regions:
    if not name.strip():
        raise InputError(f"topic {number} needs a name")
    group = group_numbered(regions, number)
    return _with(regions, [group._replace(name=name.strip()) if one is group else one for one in regions.groups])


def merged(regions: Regions, numbers: Sequence[int], name: str | None = None) -> Regions:
    """One topic of several; it keeps the lowest number, and a name that a user gave it."""
    groups = [group_numbered(regions, number) for number in sorted(set(numbers))]
    if len(groups) < 2:
        raise InputError("merging takes at least two topics")
    name = name or next((group.name for group in groups if group.name), None)
    whole = Group(groups[0].number, tuple(component for group in groups for component in group.components), name)
    return _with(regions, [whole if one is groups[0] else one for one in regions.groups if one not in groups[1:]])


def dropped(regions: Regions, numbers: Sequence[int]) -> Regions:
    """Without these: their documents go to the next most probable topic."""
    gone = [group_numbered(regions, number) for number in numbers]
    left = [group for group in regions.groups if group not in gone]
    if not left:
        raise InputError("at least one topic must stay")
    return _with(regions, left)


def split(regions: Regions, number: int, network: DocumentNetwork, given: RegionDocuments | None, seed: int) -> Regions:
    """The parts that it was merged from; a topic that was not merged is divided in two, which takes documents."""
    group = group_numbered(regions, number)
    if len(group.components) == 1:
        if given is None:
            raise InputError(f"topic {number} was not merged from others: splitting it takes documents")
        return _divided(regions, group, network, given, seed)
    parts = [Group(number, group.components[:1], group.name)]
    parts += [Group(_new_number(regions) + place, (one,)) for place, one in enumerate(group.components[1:])]
    return _with(regions, [*(parts[0] if one is group else one for one in regions.groups), *parts[1:]])


def group_numbered(regions: Regions, number: int) -> Group:
    for group in regions.groups:
        if group.number == number:
            return group
    numbers = ", ".join(str(group.number) for group in regions.groups)
    raise InputError(f"there is no topic {number}; there are {numbers}")


def _divided(regions: Regions, group: Group, network: DocumentNetwork, given: RegionDocuments, seed: int) -> Regions:
    """Two components in the place of one, from the documents that belong to it."""
    component = group.components[0]
    directions = document_directions(network, given)
    own = regions.mixture.memberships(directions).argmax(1) == component
    unit = directions.unit[own]
    if number_of_places(unit) < 2:
        raise InputError(f"topic {group.number} has too few different documents among these to be split")
    halves = fit_mixture(unit, 2, seed)
    old = regions.mixture
    weights = old.weights[component] * halves.weights
    mixture = Mixture(
        np.concatenate([_put(old.centres, component, halves.centres[0]), halves.centres[1:]]),
        np.concatenate([_put(old.variances, component, halves.variances[0]), halves.variances[1:]]),
        np.concatenate([_put(old.weights, component, weights[0]), weights[1:]]),
    )
    new = Group(_new_number(regions), (len(old.weights),))
    groups = (*regions.groups, new)
    return described_components(replace(regions, mixture=mixture, groups=groups), network, given)


def _put(values: np.ndarray, place: int, value: np.ndarray) -> np.ndarray:
    changed = values.copy()
    changed[place] = value
    return changed


def _new_number(regions: Regions) -> int:
    return max(max(group.number for group in regions.groups) + 1, len(regions.mixture.weights))


def _with(regions: Regions, groups: Sequence[Group]) -> Regions:
    return replace(regions, groups=tuple(groups))
