"""A network with more words: those it has stay where they are, new ones come after them.

A network over V words has tensors that are V long in one dimension. The larger network is built anew, as for a first
fit, and the old values go to the first V places. A new word starts as a word of its frequency would at a first fit,
moved by what training has done to the words since, on average by frequency: like an ordinary word of no topic.

Where words come from softmax(h R + b), one Newton step on log p(X | h) from there puts a new word where its documents
lie, the less so the rarer it is; h_d is the vector that the old network gives document d, f_w the word's frequency:

    R_w  +=  sum_d (x_dw - N_d f_w) (h_d - mean h) / (1 + sum_d N_d f_w)
"""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from varitext.batches.counts import CountBatches
from varitext.corpora.sharded_counts import Counts, blocks_of
from varitext.documents.fitted import FittedDocuments
from varitext.errors import InputError
from varitext.models.documents.base import DocumentNetwork
from varitext.runtime.randomness import seeded, stream

BLOCK = 256


def with_new_documents(earlier: FittedDocuments, train: Counts, seed: int) -> DocumentNetwork:
    """A copy of the network with the frequencies of earlier and new documents, and with new words if there are any."""
    network = earlier.network
    frequencies = _joint_log_frequencies(network, train, earlier.n_training_documents).to(network.device)
    if train.shape[1] == len(earlier.vocabulary):
        same = copy.deepcopy(network)
        same.word_log_frequencies.copy_(frequencies)
        return same
    larger = grown(network, earlier.architecture, frequencies, seed)
    place_new_words(larger.eval(), network, train)
    larger.settle_new_words(len(earlier.vocabulary))
    return larger


def _joint_log_frequencies(network: DocumentNetwork, train: Counts, earlier_documents: int) -> Tensor:
    """Of earlier and new documents, each by how many they are; add-one for what is new."""
    counts = _word_counts(train) + 1
    shares = np.zeros(len(counts))
    old = network.word_log_frequencies.double().exp().cpu().numpy()
    shares[: len(old)] = old
    joint = earlier_documents * shares + train.shape[0] * counts / counts.sum()
    return torch.from_numpy(np.log(joint / joint.sum())).float()


def grown(
    network: DocumentNetwork, architecture: dict[str, Any], log_frequencies: Tensor, seed: int
) -> DocumentNetwork:
    """The network over as many words as there are frequencies, [V]; the first ones are its own, in their order."""
    with seeded(stream(seed, "initial weights")):
        larger = type(network)(**architecture | {"vocabulary_size": len(log_frequencies)})
    larger.word_log_frequencies.copy_(log_frequencies)
    larger.start_from_frequencies()
    larger.to(log_frequencies.device)
    started, shares = larger.state_dict(), torch.softmax(log_frequencies[: len(network.word_log_frequencies)], 0)
    for name, old in network.state_dict().items():
        if name != "word_log_frequencies":
            started[name].copy_(_widened(name, old, started[name], shares))
    return larger


def _widened(name: str, old: Tensor, started: Tensor, shares: Tensor) -> Tensor:
    """The old values in the first places; in the others how new words start."""
    differing = [place for place, pair in enumerate(zip(old.shape, started.shape, strict=True)) if pair[0] != pair[1]]
    if not differing:
        return old
    if len(differing) > 1 or old.shape[differing[0]] != len(shares):
        raise InputError(f"this kind of network cannot learn new words: {name} does not have a place for each")
    words = differing[0]
    was = started.narrow(words, 0, len(shares))
    new = started.narrow(words, len(shares), started.shape[words] - len(shares))
    moved = torch.tensordot(old - was, shares.to(old), ([words], [0])).unsqueeze(words)
    return torch.cat([old, new + moved], words)


@torch.no_grad()
def place_new_words(network: DocumentNetwork, old: DocumentNetwork, counts: Counts) -> None:
    """The Newton step, where the network has a decoder of that kind; `counts` are over the words of `network`."""
    if (decoder := network.linear_decoder()) is None:
        return
    known = len(old.word_log_frequencies)
    frequencies = network.word_log_frequencies[known:].double().exp().cpu().numpy()  # [new]
    by_word, by_length, summed = 0.0, 0.0, 0.0  # of h: weighted by x_dw [new, K], by N_d [K], plain [K]
    for block in blocks_of(counts):
        h = _vectors(old, block[:, :known])  # [B, K]
        lengths = np.asarray(block.sum(1), np.float64)  # [B, 1]
        by_word, by_length = by_word + block[:, known:].T @ h, by_length + (lengths * h).sum(0)
        summed = summed + h.sum(0)
    word_counts = _word_counts(counts)
    words = float(word_counts.sum())
    mean = summed / counts.shape[0]
    pulled = by_word - np.outer(word_counts[known:], mean) - np.outer(frequencies, by_length - words * mean)
    step = pulled / (1 + words * frequencies)[:, None]
    decoder.weight[known:] += torch.from_numpy(step).to(decoder.weight)


def _vectors(network: DocumentNetwork, counts: Counts) -> np.ndarray:
    """h of each document on the network's own axes, [D, K]."""
    batches = CountBatches(counts, network.word_log_frequencies.device).in_order(BLOCK)
    h = torch.cat([network.document_means(batch) for batch in batches]).double()
    return (h @ network.axes.T.double() if network.free_axes else h).cpu().numpy()


def _word_counts(counts: Counts) -> np.ndarray:
    """How often each word occurs, [V]."""
    total = np.zeros(counts.shape[1])
    for block in blocks_of(counts):
        total += np.asarray(block.sum(0), np.float64).ravel()
    return total
