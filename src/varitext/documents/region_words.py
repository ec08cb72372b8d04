"""The words of regions: p(word | region), the order in which they are shown, and the few that make a name.

p(w | region)   the mean over its documents of the model's p(w | h); for a model without a linear decoder, the words
                that its documents have, smoothed towards the unigram model
relevance       lambda log p(w | region) + (1 - lambda) log (p(w | region) / p(w))   (Sievert and Shirley 2014)
name            of the first words those that the nearest other region uses least
"""

import numpy as np
import scipy.sparse
import torch

from varitext.models.documents.base import DocumentNetwork

RELEVANCE = 0.45  # lambda: less of it, and topics share fewer words; more, and their words go together better
NAME_WORDS, NAME_CANDIDATES = 3, 10
SMOOTHING = 50.0  # words of the unigram model that are added to what a region's documents have
MOST_PROBABILITIES = 2 * 10**8  # computed for p(w | region): a second or two
BLOCK = 512


def word_probabilities(
    network: DocumentNetwork, counts: scipy.sparse.csr_matrix, vectors: np.ndarray, memberships: np.ndarray
) -> np.ndarray:
    """p(w | region) from documents, their vectors and how much each belongs to every region.  [T, V]"""
    if network.linear_decoder() is None:
        return _counted(counts, memberships, word_frequencies(network))
    most = max(BLOCK, MOST_PROBABILITIES // max(1, counts.shape[1]))
    sums = sum(
        memberships[start : start + BLOCK].T @ _word_probabilities_at(network, vectors[start : start + BLOCK])
        for start in range(0, min(len(vectors), most), BLOCK)
    )
    sums = np.asarray(sums) + 1e-6 * word_frequencies(network)  # a region without documents has the unigram model
    return np.asarray(sums / sums.sum(1, keepdims=True), np.float32)  # as it is kept in the folder


def word_frequencies(network: DocumentNetwork) -> np.ndarray:
    frequencies: np.ndarray = network.word_log_frequencies.double().exp().cpu().numpy()
    return frequencies  # [V]


@torch.no_grad()
def _word_probabilities_at(network: DocumentNetwork, vectors: np.ndarray) -> np.ndarray:
    """p(w | h) at h as users see it.  [B, V]"""
    h = torch.from_numpy(np.asarray(vectors, np.float32)).to(network.device)
    h = h @ network.axes.T if network.free_axes else h
    probabilities: np.ndarray = torch.softmax(network.word_logits(h), -1).cpu().numpy()
    return probabilities


def _counted(counts: scipy.sparse.csr_matrix, memberships: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    sums = np.asarray((counts.T @ memberships).T, np.float64) + SMOOTHING * frequencies
    return np.asarray(sums / sums.sum(1, keepdims=True), np.float32)


def relevance(probabilities: np.ndarray, frequencies: np.ndarray, weight: float = RELEVANCE) -> np.ndarray:
    """[T, V]"""
    log_probabilities = np.log(np.maximum(probabilities, 1e-30))
    return np.asarray(log_probabilities - (1 - weight) * np.log(np.maximum(frequencies, 1e-30)))


def most_relevant(probabilities: np.ndarray, frequencies: np.ndarray, words: int) -> np.ndarray:
    """The columns of the most relevant words, best first.  [T, words]"""
    return np.asarray(np.argsort(-relevance(probabilities, frequencies), axis=1, kind="stable")[:, :words])


def telling_columns(probabilities: np.ndarray, order: np.ndarray, centres: np.ndarray) -> list[list[int]]:
    """For each region the words of its name: of its first words, those least probable in the nearest other region."""
    likeness = centres @ centres.T
    np.fill_diagonal(likeness, -np.inf)
    names = []
    for region, columns in enumerate(order[:, :NAME_CANDIDATES]):
        gain = np.log(probabilities[region, columns])
        if len(order) > 1:
            gain = gain - np.log(probabilities[likeness[region].argmax(), columns])
        told = sorted(np.argsort(-gain, kind="stable")[:NAME_WORDS])
        names.append([int(columns[place]) for place in told])
    return names
