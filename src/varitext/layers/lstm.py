"""LSTMs over sentences of different lengths, in parallel on all threads, without waiting for the longest sentence.

An LSTM goes word by word. Each step is too small to share among cores, and a batch takes as many steps as its longest
sentence has words. So sentences are sorted by length and split into chunks, each padded to its own longest. Chunks are
independent: every thread takes one at a time. The result does not depend on the chunks or threads.
"""

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from varitext.batches.tokens import TokenBatch
from varitext.layers.words import Dropout, Sentences
from varitext.runtime.devices import workers

Result = TypeVar("Result")
NOISE = 0.3  # factor of PyTorch's initial weights if an LSTM starts as a sum of words
CALL = 200  # measured overhead of calling a small LSTM, in steps of one sentence
ROUND = 4  # sizes of chunks are multiples of this, since the kernel for a size is created once and reused


class SentenceLSTM(nn.Module):
    """An LSTM of several layers over word vectors, with dropout on the vectors.

    `forget_bias` is added to the bias of the forget gates at initialization. With PyTorch's own bias of about zero, a
    state is halved at every word.
    """

    def __init__(
        self, input_dim: int, hidden_dim: int = 50, layers: int = 3, dropout: float = 0.4, forget_bias: float = 0.0
    ):
        super().__init__()
        self.dropout = Dropout(dropout)
        self.lstm = nn.LSTM(input_dim, hidden_dim, layers, batch_first=True)
        with torch.no_grad():
            for layer in range(layers):
                bias = getattr(self.lstm, f"bias_ih_l{layer}")  # [4H]   of input, forget, cell and output gates
                bias[hidden_dim : 2 * hidden_dim] += forget_bias

    @torch.no_grad()
    def start_as_word_sum(self, projection: Tensor) -> None:
        """Initialize so that the last state is about the sum of the projected word vectors, squashed.

        `projection`, [H, E], has orthonormal rows. Lower layers pass each word on: input and output gates open, forget
        gates nearly closed. The top layer adds words up: its forget gates are open. PyTorch's own weights are kept on a
        smaller scale.
        """
        layers, (hidden_dim, input_dim) = self.lstm.num_layers, projection.shape
        words, states = math.sqrt(input_dim / hidden_dim) * projection, torch.eye(hidden_dim)
        for layer in range(layers):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(self.lstm, f"{name}_l{layer}").mul_(NOISE if name.startswith("weight") else 0)
            is_top = layer == layers - 1
            of_cell = getattr(self.lstm, f"weight_ih_l{layer}").chunk(4)[2]
            of_cell += 0.3 * (1 if is_top else 2) * (2 * states if layer else words)
            gates = (0.0, 4.0, 0.0, 2.0) if is_top else (2.0, -1.0, 0.0, 2.0)  # input, forget, cell, output
            getattr(self.lstm, f"bias_ih_l{layer}").view(4, -1).add_(torch.tensor(gates)[:, None])

    def forward(self, batch: TokenBatch, word_vectors: Callable[[Tensor], Tensor]) -> Sentences:
        return read([self], [batch], word_vectors)[0]


def read(
    readers: Sequence[SentenceLSTM], batches: Sequence[TokenBatch], word_vectors: Callable[[Tensor], Tensor]
) -> list[Sentences]:
    chunks = [list(_chunks(*pair, word_vectors)) for pair in zip(readers, batches, strict=True)]
    jobs = [Job(reader.lstm, one.words) for reader, many in zip(readers, chunks, strict=True) for one in many]
    states = iter(run_in_parallel(jobs))
    return [_together(batch, many, states) for batch, many in zip(batches, chunks, strict=True)]


# Sentences to chunks and back


class _Chunk(NamedTuple):
    words: Tensor  # [b, t, E] its sentences' word vectors, zero on padding
    places: Tensor  # [n] flat indices of its real words in [b, t]
    places_in_batch: Tensor  # [n] their flat indices in the batch's [B, T]


def _chunks(reader: SentenceLSTM, batch: TokenBatch, word_vectors: Callable[[Tensor], Tensor]) -> Iterator[_Chunk]:
    order = torch.sort(batch.lengths, descending=True, stable=True).indices
    mask = batch.mask[order]
    width = mask.shape[1]
    # on other devices lengths would have to be copied, and chunks do not help: use a single chunk
    lengths = batch.lengths[order].tolist() if mask.device.type == "cpu" else [width] * len(mask)
    rows, columns = mask.nonzero(as_tuple=True)  # [N] of all real words, longest sentence first
    words = reader.dropout(word_vectors(batch.tokens[order][rows, columns]))  # [N, E]   none on padding
    places_in_batch = order[rows] * width + columns
    bounds = chunk_bounds(lengths)
    word_counts = [sum(lengths[start:end]) for start, end in bounds[:-1]]
    word_counts.append(len(words) - sum(word_counts))
    # `split`, because the gradient of each slice would be as large as the whole
    parts = (one.split(word_counts) for one in (words, rows, columns, places_in_batch))
    for (start, end), inside, row, column, place_in_batch in zip(bounds, *parts, strict=True):
        size, longest = (ROUND * math.ceil(max(1, one) / ROUND) for one in (end - start, lengths[start]))
        places = (row - start) * longest + column
        padded = inside.new_zeros(size * longest, inside.shape[1]).index_copy_(0, places, inside)
        yield _Chunk(padded.view(size, longest, -1), places, place_in_batch)


def chunk_bounds(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Where to split sentences sorted from long to short: where padding would cost more than another call."""
    bounds, start, waited = [], 0, 0
    for place, length in enumerate(lengths):
        waited += lengths[start] - length
        if waited > CALL:
            bounds.append((start, place))
            start, waited = place, 0
    return [*bounds, (start, len(lengths))]


def _together(batch: TokenBatch, chunks: list[_Chunk], states: Iterator[Tensor]) -> Sentences:
    found = [next(states).flatten(0, 1).index_select(0, chunk.places) for chunk in chunks]
    size, width = batch.mask.shape
    places = torch.cat([chunk.places_in_batch for chunk in chunks])
    flat = torch.cat(found)
    whole = flat.new_zeros(size * width, flat.shape[1]).index_copy_(0, places, flat).view(size, width, -1)  # [B, T, H]
    last = (batch.lengths - 1).clamp(min=0)
    return Sentences(whole, whole[torch.arange(size, device=whole.device), last], batch.mask)


# In parallel


class Job(NamedTuple):
    lstm: nn.LSTM
    words: Tensor  # [b, t, E]

    def run(self) -> Tensor:
        states: Tensor = self.lstm(self.words)[0]
        return states  # [b, t, H]


def run_in_parallel(jobs: Sequence[Job]) -> list[Tensor]:
    """The states of each job, computed by all workers if there are any; autograd works as if jobs ran one by one."""
    pool = workers()
    if pool is None or len(jobs) == 1 or jobs[0].words.device.type != "cpu":
        return [job.run() for job in jobs]
    if not torch.is_grad_enabled():
        return _in_threads(pool, jobs, [(job,) for job in jobs], Job.run, grad=False)
    lstms = {id(job.lstm): job.lstm for job in jobs}.values()
    weights = [weight for lstm in lstms for weight in lstm.parameters()]
    states: tuple[Tensor, ...] = _InParallel.apply(pool, jobs, *(job.words for job in jobs), *weights)  # type: ignore[no-untyped-call]  # torch has no types there
    return list(states)


class _InParallel(torch.autograd.Function):
    """Every job has its own graph, which its thread builds and later traverses backwards."""

    @staticmethod
    def forward(ctx: Any, pool: ThreadPoolExecutor, jobs: Sequence[Job], *_: Tensor) -> tuple[Tensor, ...]:
        ctx.pool = pool
        ctx.jobs = [job._replace(words=job.words.detach().requires_grad_(job.words.requires_grad)) for job in jobs]
        ctx.states = _in_threads(pool, ctx.jobs, [(job,) for job in ctx.jobs], Job.run, grad=True)
        return tuple(states.detach() for states in ctx.states)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        known = list(zip(ctx.jobs, ctx.states, gradients, strict=True))
        of_words: list[Tensor | None] = []
        of_weights: dict[int, list[list[Tensor | None]]] = {}
        for job, found in zip(ctx.jobs, _in_threads(ctx.pool, ctx.jobs, known, _walk_back, grad=False), strict=True):
            of_words.append(found.pop())
            of_weights.setdefault(id(job.lstm), []).append(found)
        sums = [_sum(column) for found in of_weights.values() for column in zip(*found, strict=True)]
        return None, None, *of_words, *sums


def _walk_back(job: Job, states: Tensor, gradient: Tensor) -> list[Tensor | None]:
    """The gradients of the LSTM's weights and of the words, None for those that need none."""
    every = [*job.lstm.parameters(), job.words]
    found = iter(torch.autograd.grad(states, [one for one in every if one.requires_grad], gradient))
    return [next(found) if one.requires_grad else None for one in every]


def _sum(gradients: Sequence[Tensor | None]) -> Tensor | None:
    """The sum; None if the weight needs no gradient, which is then true of every job."""
    wanted = [gradient for gradient in gradients if gradient is not None]
    return functools.reduce(operator.add, wanted) if wanted else None


def _in_threads(
    pool: ThreadPoolExecutor,
    jobs: Sequence[Job],
    known: Sequence[tuple[Any, ...]],
    work: Callable[..., Result],
    grad: bool,
) -> list[Result]:
    """Run `work` on the arguments of each job, the most expensive first, so that no thread ends with a long one."""

    def one(place: int) -> Result:
        with torch.set_grad_enabled(grad):
            return work(*known[place])

    order = sorted(range(len(jobs)), key=lambda place: jobs[place].words.shape[:2].numel(), reverse=True)
    found = dict(zip(order, pool.map(one, order), strict=True))
    return [found[place] for place in range(len(jobs))]
