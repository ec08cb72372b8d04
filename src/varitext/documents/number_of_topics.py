"""How many topics: as many as asked for, or by the likelihood that the mixture gives to documents it was not fitted on.

More components fit held-out documents better until they divide what belongs together. The fewest are taken that come
within one standard error of the best (the one-standard-error rule of Breiman et al. 1984): documents cannot tell those
from the best, and fewer are easier to read.
"""

import math
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from varitext.documents.mixture import fit_mixture

GRID = (2, 3, 5, 8, 12, 20, 30, 50, 75, 100)
LEAST_DOCUMENTS = 15  # per component, on average
FITTED_ON, HELD_OUT = 1500, 750  # documents
ROUNDING = 1e-4  # of a unit vector: documents that are nearer have one place
WORSE = 2  # numbers in a row that are worse than the best: the search ends


@dataclass(frozen=True)
class Choice:
    """How many topics, and why."""

    number: int
    how: str  # in a sentence
    log_likelihoods: tuple[tuple[int, float], ...] = ()  # of held-out documents, nats each, by number of topics

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def choose_number(unit: np.ndarray, asked: int | None, seed: int, least: int = 0) -> Choice:
    """`least` for the topics that have seed words."""
    most = number_of_places(unit)
    if asked is not None:
        if max(asked, least) > most:
            warnings.warn(
                f"{max(asked, least)} topics were asked for; the documents differ in {most} places only",
                UserWarning,
                stacklevel=2,
            )
        return Choice(max(1, min(max(asked, least), most)), "as many as asked for")
    rows = np.random.default_rng((seed, 4)).permutation(len(unit))[: FITTED_ON + HELD_OUT]
    n_held_out = min(HELD_OUT, len(rows) // 4)
    held_out, fitted_on = unit[rows[:n_held_out]], unit[rows[n_held_out:]]
    grid = [number for number in GRID if number <= min(most, len(fitted_on) // LEAST_DOCUMENTS)]
    if not grid or not n_held_out:
        return Choice(max(1, min(most, max(least, 1))), "one topic: there are too few documents to tell more apart")
    found = _search(fitted_on, held_out, grid, seed)
    best = max(found, key=lambda number: float(found[number].mean()))
    error = float(found[best].std()) / math.sqrt(n_held_out)
    number = next(one for one in found if found[one].mean() >= found[best].mean() - error)
    how = (
        f"the fewest within one standard error of the best held-out log-likelihood (best: {best}, of {len(found)} "
        f"numbers from {grid[0]} to {max(found)}; {n_held_out} documents)"
    )
    return Choice(max(number, least), how, tuple((one, float(found[one].mean())) for one in found))


def number_of_places(unit: np.ndarray) -> int:
    """How many different places the documents have, not counting what rounding could have made of one."""
    places = np.unique(np.round(unit, 5), axis=0)
    if len(places) > 1000:  # rounding would have had to make each of hundreds of places of a few
        return len(places)
    near = cKDTree(places).query_pairs(ROUNDING, output_type="ndarray")  # [pairs, 2]
    graph = coo_array((np.ones(len(near)), (near[:, 0], near[:, 1])), shape=(len(places), len(places)))
    number, _ = connected_components(graph, directed=False)
    return int(number)


def _search(fitted_on: np.ndarray, held_out: np.ndarray, grid: list[int], seed: int) -> dict[int, np.ndarray]:
    found: dict[int, np.ndarray] = {}
    for number in grid:
        found[number] = fit_mixture(fitted_on, number, seed).log_likelihood(held_out)
        means = [float(values.mean()) for values in found.values()]
        if len(means) - 1 - int(np.argmax(means)) >= WORSE:
            break
    return found
