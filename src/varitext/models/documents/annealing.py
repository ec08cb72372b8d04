"""The partition function of a replicated softmax at every document length, by one annealed importance sampling run.

With the words summed out, the hidden units of a document of N words have

    p_N(h) = exp(N g(h)) / Z_N,     g(h) = a . h + log sum_w exp(b_w + W_w . h)

so the length is an inverse temperature. A run that starts at N = 0, where all h are alike and Z_0 = 2^K, and adds word
after word, passes every length on its way, and its weights up to there estimate that length's Z_N (Neal 2001; without
bias, hence log Z_N a little low on average). Between two lengths the added words come in gradually: their a and W are
multiplied by a strength that rises from 0 to 1, which leaves Gibbs sampling as easy as before.

A run can miss a narrow peak of g that only few h lead to, and would then call every document too probable. So from
where its chains end, and from thousands of h drawn at random, it goes uphill to peaks h_1, h_2, .. of g: the value of
log sum_i exp(N g(h_i)) is never above log Z_N, and stands in for the estimate where it is larger.

log Z_N is convex in N, being a log sum of exponentials of N times something. So between the lengths visited a straight
line is never below it: interpolation can only understate a document's probability.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

BLOCK = 1000  # h that go uphill together, each with V numbers
KEPT = 20  # peaks of a block that are looked at closely
BLOCKS_PER_CHAIN = 0.1  # so that 200 chains are accompanied by 20,000 such h


class LogPartition(NamedTuple):
    """Estimates of log Z at the lengths visited, with their standard errors over chains."""

    lengths: np.ndarray  # [G], from 0 up
    values: np.ndarray  # [G]
    standard_errors: np.ndarray  # [G]

    def at(self, lengths: np.ndarray) -> np.ndarray:
        self._refuse_longer(lengths)
        return np.asarray(np.interp(lengths, self.lengths, self.values))

    def standard_error_at(self, lengths: np.ndarray) -> np.ndarray:
        self._refuse_longer(lengths)
        return np.asarray(np.interp(lengths, self.lengths, self.standard_errors))

    def _refuse_longer(self, lengths: np.ndarray) -> None:
        if len(lengths) and lengths.max() > self.lengths[-1]:
            raise ValueError(f"log Z is known up to {self.lengths[-1]} words, not for {lengths.max():g}")


class ReplicatedSoftmax(NamedTuple):
    """The three parameters, and Gibbs sampling; for R documents or chains at once."""

    word_weights: Tensor  # [V, K]   W
    word_bias: Tensor  # [V]   b
    hidden_bias: Tensor  # [K]   a

    def word_scores(self, h: Tensor, strength: float = 1.0) -> Tensor:
        return torch.addmm(self.word_bias, h, self.word_weights.T, alpha=strength)  # [R, V]

    def energy_per_word(self, h: Tensor, strength: float = 1.0) -> Tensor:
        """g(h), with a and W weakened."""
        return strength * (h @ self.hidden_bias) + self.word_scores(h, strength).logsumexp(1)  # [R]

    def uphill(self, h: Tensor, most: int = 20) -> Tensor:
        """Peaks of g above h, by steps of many units at once. g is convex: it lies above its tangent planes, so the h
        that the gradient points to, every unit on where that is positive, is never lower. Each row finds its own."""
        for _ in range(most):
            slope = self.hidden_bias + torch.softmax(self.word_scores(h), 1) @ self.word_weights  # [R, K]
            if torch.equal(pointed_to := (slope > 0).to(h), h):
                break
            h = pointed_to
        return h

    def summed_words(self, scores: Tensor, length: int) -> Tensor:
        """a + W_w summed over `length` words drawn from softmax(scores), [R, K]."""
        if not length:
            return scores.new_zeros(len(scores), len(self.hidden_bias))
        if length > scores.shape[1]:  # then counting words is less work than naming them
            summed = draw_counts(scores, length) @ self.word_weights
        else:
            rows = torch.arange(len(scores), device=scores.device).repeat_interleave(length)
            summed = functional.embedding_bag(draw_words(scores, rows).view(-1, length), self.word_weights, mode="sum")
        return summed + length * self.hidden_bias


def draw_words(scores: Tensor, rows: Tensor) -> Tensor:
    """One word from softmax(scores[row]) for each entry of `rows`, which are in order."""
    vocabulary_size = scores.shape[1]
    cumulative = torch.softmax(scores, 1).double().cumsum(1)
    cumulative /= cumulative[:, -1:].clone()
    # row r's probabilities pile up from r to r + 1: one search serves all rows
    cumulative += torch.arange(len(scores), device=scores.device)[:, None]
    heights = rows + torch.rand(len(rows), dtype=torch.double, device=rows.device)
    words = torch.searchsorted(cumulative.view(-1), heights, right=True) - rows * vocabulary_size
    return words.clamp(0, vocabulary_size - 1)


def draw_counts(scores: Tensor, length: int) -> Tensor:
    """How often each word comes among `length` words drawn from softmax(scores), [R, V]."""
    generator = np.random.default_rng(int(torch.randint(2**62, ())))
    probabilities = torch.softmax(scores.double(), 1).cpu().numpy()
    counts = generator.multinomial(length, probabilities / probabilities.sum(1, keepdims=True))
    return torch.from_numpy(counts).to(scores)


def draw_states(model: ReplicatedSoftmax, number: int) -> Tensor:
    """h of which all are equally probable, [number, K]."""
    drawn = torch.randint(2, (number, len(model.hidden_bias)), device=model.word_bias.device)
    return drawn.to(model.word_bias.dtype)


@torch.no_grad()
def anneal(
    model: ReplicatedSoftmax, longest: int, chains: int = 200, growth: int = 64, bridges: int = 4
) -> LogPartition:
    """log Z_N from N = 0 to `longest`.

    A step adds one word up to N = `growth` and 1/`growth` of the length from there on, in `bridges` parts; the first
    few words, which change h most, come in as many more.
    """
    h = draw_states(model, chains)
    log_weights = torch.full((chains,), h.shape[1] * math.log(2), dtype=torch.double, device=h.device)
    length, lengths, weights = 0, [0], [log_weights.clone()]
    while length < longest:
        added = min(max(1, length // growth), longest - length)
        parts = max(bridges, growth // (length + 1))
        reached = model.word_bias.logsumexp(0).expand(chains)
        log_weights += added * reached.double()
        for part in range(1, parts + 1):
            strength = part / parts
            before, reached = model.energy_per_word(h, (part - 1) / parts), model.energy_per_word(h, strength)
            log_weights += added * (reached - before).double()
            h = _next_state(model, h, length, added, strength)
        length += added
        lengths.append(length)
        weights.append(log_weights.clone())
    elsewhere = (highest_peaks(model, BLOCK, KEPT) for _ in range(math.ceil(BLOCKS_PER_CHAIN * chains)))
    peaks = peak_energies(model, torch.cat([h, *elsewhere]))
    return _at_least(_estimates(np.array(lengths), torch.stack(weights)), peaks.cpu().numpy())


def _next_state(model: ReplicatedSoftmax, h: Tensor, length: int, added: int, strength: float) -> Tensor:
    """Words given h, then h given words."""
    inputs = model.summed_words(model.word_scores(h), length)
    inputs += strength * model.summed_words(model.word_scores(h, strength), added)
    return torch.bernoulli(torch.sigmoid(inputs))


def highest_peaks(model: ReplicatedSoftmax, starts: int, kept: int) -> Tensor:
    """Of the peaks above h drawn at random, at most so many, each once, [<= kept, K]."""
    peaks: Tensor = torch.unique(model.uphill(draw_states(model, starts)), dim=0)
    return peaks[model.energy_per_word(peaks).topk(min(kept, len(peaks))).indices]


def peak_energies(model: ReplicatedSoftmax, h: Tensor, sweeps: int = 2) -> Tensor:
    """g at peaks above h: change a unit wherever that raises g. Each peak once."""
    h = torch.unique(h, dim=0)
    energy = model.energy_per_word(h)
    for unit in list(range(h.shape[1])) * sweeps:
        turned = h.clone()
        turned[:, unit] = 1 - turned[:, unit]
        there = model.energy_per_word(turned)
        higher = there > energy
        h, energy = torch.where(higher[:, None], turned, h), torch.where(higher, there, energy)
    return model.energy_per_word(torch.unique(h, dim=0)).double()


def _at_least(estimated: LogPartition, peaks: np.ndarray) -> LogPartition:
    """Nowhere below what the peaks alone add up to."""
    floor = np.logaddexp.reduce(np.outer(estimated.lengths, peaks), axis=1)
    return estimated._replace(values=np.maximum(estimated.values, floor))


def _estimates(lengths: np.ndarray, log_weights: Tensor) -> LogPartition:
    """log of the mean weight, and by the delta method its standard error."""
    chains = log_weights.shape[1]
    values = log_weights.logsumexp(1) - math.log(chains)
    relative = (log_weights - values[:, None]).exp()  # mean one
    errors = relative.std(1) / math.sqrt(chains)
    return LogPartition(lengths, values.cpu().numpy(), errors.cpu().numpy())
