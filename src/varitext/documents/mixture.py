"""The mixture whose components are topics: spherical Gaussians over the directions of documents' posterior means.

    p(u)      =  sum_t  weight_t  N(u; centre_t, variance_t I)                        u = mean / |mean|, by EM
    p(t | X)  ∝  weight_t  N(u; centre_t, (variance_t + s^2) I)                       s^2 = mean_k std_k^2 / |mean|^2

The spread of q(h | X) widens every component alike: a short document, whose h is uncertain, belongs to several topics.
A document without a known word has no direction; its memberships are the weights of the topics.

The number of components is the one requested, or chosen by the cross-validated likelihood of held-out documents.
Documents at the same place, such as copies of one text, are held out together: otherwise one component per place would
be best. More components fit better until they divide what belongs together. So we take the fewest that are within one
standard error of the best (of the paired difference, after Breiman et al. 1984) or that have nearly all of its gain
over a single component.

Stability: the mixture is refitted to documents drawn with replacement. The stability of a topic is the Jaccard
similarity of its documents with those of the most similar new component, averaged over draws (Hennig 2007).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from varitext.documents.posterior import Posterior
from varitext.records import DictRecord
from varitext.runtime.devices import in_parallel

ITERATIONS = 50
STARTS, SHORT_RUN = 10, 10  # initializations of the topics, and the iterations after which the best is chosen
TOLERANCE = 1e-3  # nats per document: EM ends when an iteration gains less
MIN_VARIANCE = 1e-4  # of a direction: a region never shrinks to one document

NUMBERS = (2, 3, 4, 5, 6, 8, 12, 20, 30, 50, 75, 100)  # of components that are tried
MIN_DOCUMENTS = 15  # per component, on average
MAX_CHOSEN_ON, FOLDS = 2000, 4  # number of documents, and of the folds that are held out in turn
MAX_REPEATS = 6  # repetitions of the division into folds, if there are few documents
ROUNDING = 1e-4  # of a unit vector: documents closer than this count as one place
ROWS_AT_ONCE = 256  # documents whose distances to all others are in memory
COPIES = 1e-2  # of a unit vector: documents closer than this are held out together
TIE = 0.1  # of the best number's gain over one component: fewer components that lose less are as good
REFITS = 20  # of the mixture to documents drawn with replacement, for stability
PATIENCE = 2  # the search ends after this many numbers in a row that are worse than the best


class Directions(NamedTuple):
    """Directions of documents' posterior means, and the variance of each."""

    unit: np.ndarray  # [D, K]   zero for a document without a known word
    variance: np.ndarray  # [D]   infinite for such a document, and 0 for a model with a point estimate of h


class Mixture(NamedTuple):
    """A mixture of components, each a region of the latent space."""

    centres: np.ndarray  # [T, K]
    variances: np.ndarray  # [T]
    weights: np.ndarray  # [T]   sum to one

    def only(self, components: np.ndarray) -> "Mixture":
        """The mixture of these components only, in this order."""
        weights = self.weights[components]
        return Mixture(self.centres[components], self.variances[components], weights / weights.sum())

    def memberships(self, documents: Directions) -> np.ndarray:
        """p(t | X), which sums to one.  [D, T]"""
        spread = self.variances + documents.variance[:, None]  # [D, T]
        known = np.isfinite(spread)
        log_density = _log_density(documents.unit, self.centres, np.where(known, spread, 1.0))
        log_joint = np.log(self.weights) + np.where(known, log_density, 0.0)
        return _normalised(log_joint)[0]

    def expected(self, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Memberships and log-likelihood of directions without a variance.  [D, T], [D]"""
        return _normalised(_log_joint(unit, self))

    def log_likelihood(self, unit: np.ndarray) -> np.ndarray:
        """Log-likelihood of every direction.  [D]"""
        return self.expected(unit)[1]


class Seeds(NamedTuple):
    """Directions at which the first components start and towards which a prior pulls them."""

    directions: np.ndarray  # [S, K], of unit length
    weight: float  # documents that the prior of each counts as


def directions_of(posterior: Posterior) -> Directions:
    mean = np.asarray(posterior.mean, np.float64)
    lengths = np.linalg.norm(mean, axis=1)
    variance = np.square(np.asarray(posterior.std, np.float64)).mean(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(lengths > 0, variance / np.square(lengths), np.inf)
    return Directions(mean / np.maximum(lengths, 1e-12)[:, None], relative)


def fit_mixture(unit: np.ndarray, components: int, seed: int, seeds: Seeds | None = None, starts: int = 1) -> Mixture:
    """Fit by EM, from the best of `starts` short runs (Biernacki et al. 2003).

    Seeded components come first, the others by size.
    """
    unit = np.asarray(unit, np.float32)  # twice as fast, and exact enough
    if starts > 1:
        short = in_parallel(_short_run, [(unit, components, (seed, start), seeds) for start in range(starts)])
        begun = max(short, key=lambda run: run.fit).mixture
    else:
        begun = _start(unit, components, (seed, 0), seeds)
    best = _expectation_maximisation(unit, begun, seeds, ITERATIONS)
    fixed = 0 if seeds is None else len(seeds.directions)
    order = np.concatenate([np.arange(fixed), fixed + np.argsort(-best.weights[fixed:], kind="stable")])
    return Mixture(*(np.asarray(values[order], np.float64) for values in best))


class _ShortRun(NamedTuple):
    mixture: Mixture
    fit: float  # mean log-likelihood


def _short_run(unit: np.ndarray, components: int, seed: tuple[int, int], seeds: Seeds | None) -> _ShortRun:
    mixture = _expectation_maximisation(unit, _start(unit, components, seed, seeds), seeds, SHORT_RUN)
    return _ShortRun(mixture, float(mixture.log_likelihood(unit).mean()))


def _start(unit: np.ndarray, components: int, seed: tuple[int, int], seeds: Seeds | None) -> Mixture:
    """Initialize the centres at documents far from each other (k-means++), the first ones at the seeds."""
    from sklearn.cluster import kmeans_plusplus  # slow to import, and not needed to load a model

    drawn = np.random.default_rng(seed).integers(2**31)
    centres, _ = kmeans_plusplus(unit, components, random_state=int(drawn))
    if seeds is not None:
        free = len(seeds.directions)
        likeness = (centres @ seeds.directions.T).max(1)
        centres = np.concatenate([seeds.directions, centres[np.argsort(likeness, kind="stable")][: components - free]])
    variance = max(float(_squared_distances(unit, centres).min(1).mean()) / unit.shape[1], MIN_VARIANCE)
    return Mixture(centres, np.full(components, variance, np.float32), np.full(components, 1 / components, np.float32))


def _expectation_maximisation(unit: np.ndarray, mixture: Mixture, seeds: Seeds | None, iterations: int) -> Mixture:
    before = -np.inf
    for _ in range(iterations):
        memberships, evidence = mixture.expected(unit)
        mixture = _maximised(unit, memberships, seeds)
        if (now := float(evidence.mean())) - before < TOLERANCE:
            break
        before = now
    return mixture


def _normalised(log_joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Memberships, which sum to one, and their log normaliser.  [D, T], [D]"""
    largest = log_joint.max(1, keepdims=True)
    joint = np.exp(log_joint - largest)
    sums = joint.sum(1, keepdims=True)
    joint /= sums
    return joint, (largest + np.log(sums))[:, 0]


def _maximised(unit: np.ndarray, memberships: np.ndarray, seeds: Seeds | None) -> Mixture:
    sizes = memberships.sum(0) + 1e-9  # [T]
    own = memberships.T @ unit  # [T, K]
    sums, totals = own.copy(), sizes.copy()
    if seeds is not None:  # a Gaussian prior on a centre acts like extra documents at its mean
        sums[: len(seeds.directions)] += seeds.weight * seeds.directions
        totals[: len(seeds.directions)] += seeds.weight
    centres = sums / totals[:, None]
    second = np.square(unit).sum(1) @ memberships - 2 * (own * centres).sum(1) + sizes * np.square(centres).sum(1)
    squares = second / (sizes * unit.shape[1])
    weights = (sizes + 1) / (sizes + 1).sum()  # add-one: an emptied component keeps a finite log weight
    return Mixture(centres, np.maximum(squares, MIN_VARIANCE), weights)


def _log_joint(unit: np.ndarray, mixture: Mixture) -> np.ndarray:
    """log weight N(u; centre, variance I), in one product of matrices.  [D, T]"""
    centres, variances, weights = mixture
    normaliser = -0.5 * (np.square(centres).sum(1) / variances + unit.shape[1] * np.log(2 * np.pi * variances))
    factors = np.concatenate([centres / variances[:, None], -0.5 / variances[:, None]], 1)  # [T, K + 1]
    terms = np.concatenate([unit, np.square(unit).sum(1, keepdims=True)], 1)
    # with one component, OpenBLAS reads beyond the arrays on some CPUs and warns about values there; the product is
    # not affected
    with np.errstate(invalid="ignore"):
        return np.asarray(terms @ factors.T + (np.log(weights) + normaliser))


def _log_density(unit: np.ndarray, centres: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """log N(u; centre, variance I) of every document under every component.  [D, T]"""
    width = unit.shape[1]
    values: np.ndarray = -0.5 * (_squared_distances(unit, centres) / variances + width * np.log(2 * np.pi * variances))
    return values


def _squared_distances(unit: np.ndarray, centres: np.ndarray) -> np.ndarray:
    squares = np.square(unit).sum(1)[:, None] + np.square(centres).sum(1) - 2 * unit @ centres.T
    return np.asarray(np.maximum(squares, 0.0))


@dataclass(frozen=True)
class Choice(DictRecord):
    """The number of topics, and why it was chosen."""

    number: int
    how: str  # in a few words
    log_likelihoods: tuple[tuple[int, float], ...] = ()  # of held-out documents, nats each, by number of topics
    standard_errors: tuple[float, ...] = ()  # of the differences to the best of them; 0 for the best itself


def choose_number(unit: np.ndarray, asked: int | None, seed: int, least: int = 0) -> Choice:
    """`least` is the number of topics that have seed words."""
    most = number_of_places(unit)
    if asked is not None:
        asked = max(asked, least)
        if asked > most:
            fewer = f"{asked} topics requested, but only {most} documents are distinct; using {most}"
            warnings.warn(fewer, UserWarning, stacklevel=2)
        return Choice(max(1, min(asked, most)), "as requested")
    unit = unit[np.random.default_rng((seed, 4)).permutation(len(unit))[:MAX_CHOSEN_ON]]
    most = min(most, len(unit) * (FOLDS - 1) // FOLDS // MIN_DOCUMENTS)
    distinct = int(_copies(unit).max()) + 1
    if distinct < 2 * FOLDS:  # holding some of them out would leave too few
        return Choice(max(1, least, min(most, distinct)), "too few distinct documents to try more")
    most = min(most, distinct * (FOLDS - 1) // FOLDS)
    grid = [number for number in NUMBERS if number <= most]
    if not grid:
        return Choice(max(1, min(most, max(least, 1))), "too few documents to try more")
    return _chosen(held_out_curve(unit, grid, seed), grid, least)


def held_out_curve(unit: np.ndarray, grid: Sequence[int], seed: int) -> dict[int, np.ndarray]:
    """Log-likelihood of every document when held out, by number of components.  [D]

    The numbers start at one component and end once `PATIENCE` of them in a row are worse than the best.
    """
    copies = _copies(unit)
    divisions = max(1, min(MAX_REPEATS, MAX_CHOSEN_ON // len(unit)))
    orders = [np.random.default_rng((seed, 5, one)).permutation(copies.max() + 1) for one in range(divisions)]
    found: dict[int, np.ndarray] = {}
    for number in (1, *grid):
        found[number] = np.mean([_held_out(unit, order[copies] % FOLDS, number, seed) for order in orders], axis=0)
        means = [float(values.mean()) for values in found.values()]
        if len(means) > PATIENCE + 1 and len(means) - 1 - int(np.argmax(means)) >= PATIENCE:
            break
    return found


def _copies(unit: np.ndarray) -> np.ndarray:
    """A group number for every document, the same for documents at nearly the same place.  [D]"""
    blocks = (unit[start : start + ROWS_AT_ONCE] for start in range(0, len(unit), ROWS_AT_ONCE))
    near = vstack([csr_array(np.square(COPIES) > _squared_distances(block, unit)) for block in blocks])
    _, found = connected_components(near, directed=False)
    return np.asarray(found)


def _held_out(unit: np.ndarray, folds: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Log-likelihood of every document under the mixture fitted to the other folds.  [D]"""
    found, numbers = np.empty(len(unit)), np.unique(folds)

    def held_out(fold: int) -> np.ndarray:
        return fit_mixture(unit[folds != fold], number, seed + fold).log_likelihood(unit[folds == fold])

    for fold, values in zip(numbers, in_parallel(held_out, [(int(fold),) for fold in numbers]), strict=True):
        found[folds == fold] = values
    return found


def _chosen(curve: dict[int, np.ndarray], grid: Sequence[int], least: int) -> Choice:
    means = {number: float(values.mean()) for number, values in curve.items()}
    one = means.pop(1)  # the baseline for the gain of the others
    best = max(means, key=lambda number: means[number])
    errors = {number: float((curve[best] - curve[number]).std()) / len(curve[best]) ** 0.5 for number in means}
    tie = TIE * max(0.0, means[best] - one)
    number = next(number for number in means if means[best] - means[number] <= max(errors[number], tie))
    if len(grid) == 1:
        how = "too few documents to try more"
    else:
        how = f"chosen automatically from {grid[0]} to {max(means)} by held-out log-likelihood"
    return Choice(max(number, least), how, tuple(means.items()), tuple(errors.values()))


def stability(
    unit: np.ndarray, labels: np.ndarray, topics: int, components: int, seed: int, refits: int = REFITS
) -> np.ndarray:
    """Stability of each topic, 0 to 1; `labels` are the topics of documents.  [topics]"""
    found = np.full((refits, topics), np.nan)
    for refit in range(refits):
        drawn = np.random.default_rng((seed, 6, refit)).integers(len(unit), size=len(unit))
        rows = np.unique(drawn)
        again = fit_mixture(unit[drawn], components, seed + refit).expected(unit[rows])[0].argmax(1)
        both = np.zeros((topics, components))
        np.add.at(both, (labels[rows], again), 1)
        sizes = both.sum(1, keepdims=True)
        jaccard = (both / np.maximum(sizes + both.sum(0) - both, 1)).max(1)
        found[refit] = np.where(sizes[:, 0] > 0, jaccard, np.nan)
    drawn_at_all = np.isfinite(found).any(0)
    return np.where(drawn_at_all, np.nansum(found, 0) / np.maximum(np.isfinite(found).sum(0), 1), np.nan)


def number_of_places(unit: np.ndarray) -> int:
    """Number of distinct directions; those that differ by no more than rounding count as one."""
    places = np.unique(np.round(unit, 5), axis=0)
    if len(places) > 1000:  # too many to be a few places that differ by rounding
        return len(places)
    near = cKDTree(places).query_pairs(ROUNDING, output_type="ndarray")  # [pairs, 2]
    graph = coo_array((np.ones(len(near)), (near[:, 0], near[:, 1])), shape=(len(places), len(places)))
    number, _ = connected_components(graph, directed=False)
    return int(number)
