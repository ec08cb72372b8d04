"""The words of regions: p(word | region), the order in which they are shown, and the few that make a name.

p(w | region)   the mean over its documents of the model's p(w | h); for a model without a linear decoder, the words
                that its documents have, smoothed towards the unigram model
relevance       lambda log s(w | region) + (1 - lambda) log (s(w | region) / s(w)), as Sievert and Shirley (2014) have
                it of p, with the share s of documents that have the word: words come in bursts, and a signature that
                one author repeats is not what a region is about
name            the first words that are not also among those of the nearest other region
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch

from varitext.models.documents.base import DocumentNetwork

RELEVANCE = 0.55  # lambda: less of it, and topics share fewer words; more, and their words go together better
NAME_WORDS, NAME_CANDIDATES = 3, 10
MIN_STEM_LENGTH, MAX_SUFFIX_LENGTH = 3, 2  # letters: bike and bikes are forms of one word
SMOOTHING = 50.0  # words of the unigram model that are added to what a region's documents have
DOCUMENT_SMOOTHING = 0.5  # documents with the words of all that are added to those of a region
MAX_PROBABILITIES = 2 * 10**8  # computed for p(w | region): a second or two
BLOCK = 512


def word_probabilities(
    network: DocumentNetwork, counts: scipy.sparse.csr_matrix, vectors: np.ndarray, memberships: np.ndarray
) -> np.ndarray:
    """p(w | region) from documents, their vectors and how much each belongs to every region.  [T, V]"""
    if network.linear_decoder() is None:
        return _counted(counts, memberships, word_frequencies(network))
    most = max(BLOCK, MAX_PROBABILITIES // max(1, counts.shape[1]))
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


class DocumentShares(NamedTuple):
    """How many documents have a word: what relevance is made of."""

    of_regions: np.ndarray  # [T, V]
    of_all: np.ndarray  # [V]

    def relevance(self, weight: float = RELEVANCE) -> np.ndarray:
        """[T, V]"""
        return np.asarray(_log(self.of_regions) - (1 - weight) * _log(self.of_all))

    def most_relevant(self, words: int) -> np.ndarray:
        """The columns of the most relevant words, best first.  [T, words]"""
        return np.asarray(np.argsort(-self.relevance(), axis=1, kind="stable")[:, :words])


def document_shares(counts: scipy.sparse.csr_matrix, memberships: np.ndarray) -> DocumentShares:
    """From documents and how much each belongs to every region. A region's are smoothed towards those of all."""
    present = (counts > 0).astype(np.float32)
    of_all = np.asarray(present.mean(0), np.float32).ravel()
    with_word = np.asarray((present.T @ memberships).T) + DOCUMENT_SMOOTHING * of_all
    size = memberships.sum(0)[:, None] + DOCUMENT_SMOOTHING
    return DocumentShares(np.asarray(with_word / size, np.float32), of_all)


def _log(shares: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.maximum(shares, 1e-30)))


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
        names.append(_different(by_merit, words)[:NAME_WORDS])
    return names


def _different(columns: Sequence[int], words: Sequence[str]) -> list[int]:
    """Without further forms of a word that is there already."""
    kept: list[int] = []
    for column in columns:
        if not any(_forms_of_one(words[column], words[other]) for other in kept):
            kept.append(column)
    return kept


def _forms_of_one(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= MIN_STEM_LENGTH and len(long) - len(short) <= MAX_SUFFIX_LENGTH and long.startswith(short)
