"""The tree softmax: a word's probability as a walk down a binary tree whose leaves are the words.

    log p(w | h) = sum over the turns of w's path of log sigmoid(turn * (h . node + bias)),   turn = +1 or -1

At every node the two turns sum to one, so the leaves do. A word costs the length of its path, about log2 V, in place
of V. `balanced` puts all words at the same depth, give or take one; `huffman` puts frequent words near the root, which
makes the mean path of a running word as short as it can be.
"""

import heapq

import torch
from torch import Tensor, nn
from torch.nn import functional

from varitext.batches.counts import CountBatch
from varitext.errors import InputError

SHAPES = ("balanced", "huffman")
DEEPEST = 64  # steps; Huffman's longest path for words counted n times in all has about 1.44 log2 n
MAX_BLOCK = 2**16  # words walked at once: paths x K values are held for each


class WordTree(nn.Module):
    """p(w | h) for every word. The paths are buffers: a saved model has its own tree."""

    paths: Tensor  # [V, depth]   nodes
    turns: Tensor  # [V, depth]   +1 or -1, and 0 where the path has ended

    def __init__(self, vocabulary_size: int, hidden_dim: int, shape: str = "balanced"):
        super().__init__()
        if shape not in SHAPES:
            raise InputError(f"a tree is {' or '.join(map(repr, SHAPES))}, not {shape!r}")
        self.shape = shape
        depth = _balanced_depth(vocabulary_size) if shape == "balanced" else DEEPEST
        self.nodes = nn.Embedding(vocabulary_size - 1, hidden_dim)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size - 1))
        nn.init.normal_(self.nodes.weight, std=0.05)
        self.register_buffer("paths", torch.zeros(vocabulary_size, depth, dtype=torch.int32))
        self.register_buffer("turns", torch.zeros(vocabulary_size, depth, dtype=torch.int8))
        self._grow(torch.ones(vocabulary_size))

    def start_from_frequencies(self, frequencies: Tensor) -> None:
        """Grow the tree, and set every node's bias so that at h = 0 the leaves have these probabilities."""
        self._grow(frequencies)
        right, left = torch.zeros(2, len(self.bias), dtype=torch.double)
        for side, turn in ((right, 1), (left, -1)):
            words, places = torch.nonzero(self.turns == turn, as_tuple=True)
            side.index_add_(0, self.paths[words, places], frequencies[words].double())
        with torch.no_grad():
            self.bias.copy_((right / left).log())

    def log_likelihood(self, hidden: Tensor, batch: CountBatch) -> Tensor:
        """sum_w count_w log p(w | h) for each row of `hidden`, [R]; the batch's documents are the rows."""
        total = hidden.new_zeros(len(hidden))
        for block in torch.split(torch.arange(len(batch.words), device=hidden.device), MAX_BLOCK):
            rows, words = batch.documents[block], batch.words[block]
            values = batch.counts[block].to(hidden.dtype) * self._walk(hidden, rows, words)
            total = total.index_add(0, rows, values)
        return total

    def word_gradients(self) -> Tensor:
        """How log p of each word changes with h where every turn is as likely as the other, [V, K]."""
        with torch.no_grad():
            nodes: Tensor = self.nodes(self.paths)  # [V, depth, K]
            return 0.5 * (nodes * self.turns[..., None]).sum(1)

    def _walk(self, hidden: Tensor, rows: Tensor, words: Tensor) -> Tensor:
        """log p(words[i] | hidden[rows[i]])."""
        turns = self.turns[words]  # [n, depth]
        longest = int((turns != 0).any(0).sum())
        nodes, turns = self.paths[words, :longest], turns[:, :longest].to(hidden.dtype)
        scores = (self.nodes(nodes) @ hidden[rows][:, :, None]).squeeze(2) + self.bias[nodes]  # [n, depth]
        return (functional.logsigmoid(turns * scores) * turns.abs()).sum(1)

    def _grow(self, frequencies: Tensor) -> None:
        size = len(frequencies)
        codes = _balanced_codes(size) if self.shape == "balanced" else _huffman_codes(frequencies.tolist())
        while max(map(len, codes)) > DEEPEST:  # no counts are so uneven, but somebody's frequencies may be
            frequencies = frequencies.sqrt()
            codes = _huffman_codes(frequencies.tolist())
        self.paths.zero_()
        self.turns.zero_()
        for word, code in enumerate(codes):
            nodes, turns = zip(*code, strict=True)
            self.paths[word, : len(code)] = torch.tensor(nodes, dtype=torch.int32)
            self.turns[word, : len(code)] = torch.tensor(turns, dtype=torch.int8)


Code = list[tuple[int, int]]  # (node, turn) from the root to the leaf


def _balanced_depth(size: int) -> int:
    return (size - 1).bit_length()


def _balanced_codes(size: int) -> list[Code]:
    """A heap: the children of node i are 2i + 1 and 2i + 2, and the leaves come after the size - 1 nodes."""
    codes = []
    for leaf in range(size - 1, 2 * size - 1):
        code, place = [], leaf
        while place:
            parent = (place - 1) // 2
            code.append((parent, 1 if place == 2 * parent + 1 else -1))
            place = parent
        codes.append(code[::-1])
    return codes


def _huffman_codes(frequencies: list[float]) -> list[Code]:
    """The two lightest trees become one, until one is left; node numbers are counted from the leaves up."""
    size = len(frequencies)
    heap = [(frequency, place) for place, frequency in enumerate(frequencies)]  # places below `size` are leaves
    heapq.heapify(heap)
    parents: list[tuple[int, int]] = [(0, 0)] * (2 * size - 1)
    for place in range(size, 2 * size - 1):
        (first_weight, first), (second_weight, second) = heapq.heappop(heap), heapq.heappop(heap)
        parents[first], parents[second] = (place, 1), (place, -1)
        heapq.heappush(heap, (first_weight + second_weight, place))
    codes = []
    for leaf in range(size):
        code, place = [], leaf
        while place != 2 * size - 2:
            place, turn = parents[place]
            code.append((place - size, turn))
        codes.append(code[::-1])
    return codes
