"""Which topics are like which: agglomerative clustering of their directions, average linkage on cosine distance."""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from varitext.documents.regions import Regions


class TreeMerge(NamedTuple):
    """One step up the tree; the topics on both sides, by their numbers."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    distance: float  # 1 - cosine, the average over pairs


def topic_tree(regions: Regions) -> list[TreeMerge]:
    """From the two topics most alike to all of them."""
    if len(regions.groups) < 2:
        return []
    leaves: list[tuple[int, ...]] = [(group.number,) for group in regions.groups]
    merges = []
    for left, right, distance, _ in linkage(_distances(regions.group_centres()), "average"):
        first, second = sorted((leaves[int(left)], leaves[int(right)]))
        merges.append(TreeMerge(first, second, float(distance)))
        leaves.append(tuple(sorted(first + second)))
    return merges


def _distances(centres: np.ndarray) -> np.ndarray:
    lengths = np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    return np.asarray(np.maximum(pdist(centres / lengths, "sqeuclidean") / 2, 0.0))


def merges_to(regions: Regions, number: int) -> list[tuple[int, ...]]:
    """Which topics to merge so that `number` are left."""
    joined: dict[tuple[int, ...], None] = {(group.number,): None for group in regions.groups}
    for merge in topic_tree(regions)[: max(0, len(regions.groups) - number)]:
        del joined[merge.left], joined[merge.right]
        joined[tuple(sorted(merge.left + merge.right))] = None
    return [numbers for numbers in joined if len(numbers) > 1]
