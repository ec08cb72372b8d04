"""A cache beside the model of what was computed for documents: counts of texts, posteriors and bounds.

A command on documents that an earlier command has read then neither counts words nor infers vectors again. Documents
are identified by a hash of their content, so copies, parts and reorderings of a file are found, too:

    texts       hash of a text -> its counts and, if the model reads sentence vectors, its vector
    vectors     hash of counts -> posterior mean, standard deviation and minus the bound per word

The file is `cache.safetensors` in the model folder. It is valid only for the weights, the vocabulary, the rules for
words and the version that it was written with. A file that is invalid or damaged, or that differs from what the model
computes for some of its documents, is ignored and replaced. It may be removed at any time. It holds the words of the
documents: VARITEXT_CACHE=0 switches it off.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import varitext
from varitext.corpora.document_vectors import CountsWithVectors, vectors_of
from varitext.documents.posterior import FEW
from varitext.errors import InputError
from varitext.files import atomic_file, read_json
from varitext.store import CACHE, MAX_HEADER_BYTES

MAX_DOCUMENTS = 50_000
MAX_BYTES = 256 << 20
CHECKED = 8  # documents of a file that are computed again before the others are trusted
TOLERANCE = 1e-3
KEY = 16  # bytes of a hash
SWITCH = "VARITEXT_CACHE"

Rows = tuple[Any, ...]  # arrays or sparse matrices with a row per document
Compute = Callable[[np.ndarray], Rows]  # computes the missing rows, of the documents at these positions


@dataclass
class Table:
    """Rows, looked up by the hash of their document."""

    places: dict[bytes, int] = field(default_factory=dict)
    columns: Rows | None = None
    unchecked: bool = False  # read from a file
    changed: bool = False  # since it was read

    def recall(self, keys: Sequence[bytes], compute: Compute, needed: np.ndarray | None = None) -> Rows:
        """The rows of documents: known ones are looked up, the others computed now.

        `needed` marks the documents that count as known only if the last column holds a number for them.
        """
        rows = np.array([self.places.get(key, -1) for key in keys], np.int64)
        if self.columns is not None and needed is not None:
            rows[(rows >= 0) & needed & np.isnan(self.columns[-1][rows])] = -1
        if self.unchecked and (rows >= 0).any() and not self._is_right(rows, compute):
            self.places, self.columns, rows[:] = {}, None, -1
        known, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        if self.columns is None or not len(known):
            found = compute(new)
        elif not len(new):
            found = _taken(self.columns, rows)
        else:
            order = np.argsort(np.concatenate([known, new]))
            found = _taken(_stacked(_taken(self.columns, rows[known]), compute(new)), order)
        if len(new):
            self.add([keys[place] for place in new.tolist()], _taken(found, new))
        return found

    def add(self, keys: Sequence[bytes], columns: Rows) -> None:
        """Add rows until there are `MAX_DOCUMENTS`."""
        before = 0 if self.columns is None else self.columns[0].shape[0]
        chosen = list(dict(zip(keys, range(len(keys)), strict=True)).values())[: max(0, MAX_DOCUMENTS - before)]
        if chosen:
            columns = _taken(columns, np.array(chosen))
            self.columns = columns if self.columns is None else _stacked(self.columns, columns)
            self.changed = True
            self.places |= {keys[place]: before + number for number, place in enumerate(chosen)}

    def _is_right(self, rows: np.ndarray, compute: Compute) -> bool:
        """Check a few of the rows against what is computed now."""
        self.unchecked, known = False, np.flatnonzero(rows >= 0)
        places = np.random.default_rng().choice(known, min(CHECKED, len(known)), replace=False)
        computed, there = compute(places), _taken(self.columns or (), rows[places])
        return all(map(_are_close, there, computed))

    def kept(self) -> tuple[np.ndarray, Rows] | None:
        """The keys, [D, 16], and the rows in use."""
        if self.columns is None or not self.places:
            return None
        keys = np.frombuffer(b"".join(self.places), np.uint8).reshape(-1, KEY)
        return keys, _taken(self.columns, np.fromiter(self.places.values(), np.int64))


def _taken(columns: Rows, rows: np.ndarray) -> Rows:
    return tuple(column[rows] for column in columns)


def _stacked(one: Rows, other: Rows) -> Rows:
    def stack(parts: tuple[Any, Any]) -> Any:
        return scipy.sparse.vstack(parts, format="csr") if scipy.sparse.issparse(parts[0]) else np.concatenate(parts)

    return tuple(map(stack, zip(one, other, strict=True)))


def _are_close(one: Any, other: Any) -> bool:
    """Whether two columns are nearly equal; NaN marks a number that was not computed."""
    if one.shape != other.shape:
        return False
    if scipy.sparse.issparse(one):
        return not (one != other).nnz
    return bool((np.isnan(one) | np.isnan(other) | np.isclose(one, other, TOLERANCE, TOLERANCE)).all())


class DocumentCache:
    """What is known about documents; `folder` is the model folder, if the model has been saved."""

    def __init__(self, folder: Path | None = None):
        self.texts, self.vectors = Table(), Table()
        self.folder, self._is_read = folder, folder is None

    def counts(self, texts: Sequence[str], count: Callable[[list[str]], Any]) -> scipy.sparse.csr_matrix:
        """The counts of texts, with sentence vectors if `count` has them."""

        def computed(places: np.ndarray) -> Rows:
            return _split(count([texts[place] for place in places]))

        if len(texts) < FEW:
            few: scipy.sparse.csr_matrix = count(list(texts))
            return few
        self._read()
        counts, vectors = self.texts.recall(_keys_of_texts(texts), computed)
        return CountsWithVectors.of(counts, vectors) if vectors.shape[1] else counts

    def described(self, counts: scipy.sparse.csr_matrix, describe: Callable[[Any], Rows], bounds: bool) -> Rows:
        """Mean, standard deviation and nats per word, which may be NaN unless `bounds` are needed."""
        if counts.shape[0] < FEW:
            return describe(counts)
        self._read()
        needed = counts.getnnz(1) > 0 if bounds else None
        return self.vectors.recall(keys_of(counts), lambda places: describe(counts[places]), needed)

    def learn(self, texts: Sequence[str] | None, counts: scipy.sparse.csr_matrix, described: Rows) -> None:
        """Add what a fit has computed."""
        if texts is not None:
            self.texts.add(_keys_of_texts(texts), _split(counts))
        self.vectors.add(keys_of(counts), described)

    # The file

    def write(self, folder: Path) -> None:
        """Write new entries to the model folder if it is writable."""
        if not (self.texts.changed or self.vectors.changed):
            return
        tables = {"texts": self.texts.kept(), "vectors": self.vectors.kept()}
        tensors: dict[str, np.ndarray] = {}
        for name, kept in tables.items():
            of_table = {} if kept is None else _tensors(name, *kept)
            if sum(each.nbytes for each in (*tensors.values(), *of_table.values())) <= MAX_BYTES:
                tensors |= of_table
        with suppress(OSError, InputError), atomic_file(folder / CACHE) as temporary:
            save_file(tensors, temporary, {"key": cache_key(folder)})

    def _read(self) -> None:
        if self._is_read or self.folder is None:
            return
        self._is_read = True
        with suppress(OSError, SafetensorError, KeyError, ValueError, TypeError, IndexError, InputError):
            self.texts, self.vectors = _read_tables(self.folder)


def new_cache(folder: Path | None) -> DocumentCache | None:
    """The cache of a model folder, read on first use; None if caches are switched off."""
    return None if os.environ.get(SWITCH) == "0" else DocumentCache(folder)


def _keys_of_texts(texts: Sequence[str]) -> list[bytes]:
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY).digest() for text in texts]


def keys_of(counts: scipy.sparse.csr_matrix) -> list[bytes]:
    """A hash of each row of counts, with its sentence vector."""
    data, indices = counts.data.astype(np.float32).tobytes(), counts.indices.astype(np.int32).tobytes()
    ends, vectors, keys = (4 * counts.indptr.astype(np.int64)).tolist(), vectors_of(counts), []
    for row in range(counts.shape[0]):
        start, end = ends[row], ends[row + 1]
        content = [indices[start:end], data[start:end]]
        content += [] if vectors is None else [vectors[row].astype(np.float32).tobytes()]
        keys.append(hashlib.blake2b(b"".join(content), digest_size=KEY).digest())
    return keys


def cache_key(folder: Path) -> str:
    """A key for what a cache depends on besides the documents."""
    config = read_json(folder / "config.json")
    files = {name: config["sha256"][name] for name in ("weights.safetensors", "vocabulary.txt")}
    learned = {name: config["learned"].get(name) for name in ("token_rules", "boilerplate", "vectors")}
    settings = {name: config["settings"][name] for name in ("seed", "tokeniser", "fractional_counts")}
    said = [varitext.__version__, config["model"], config["architecture"], files, learned, settings]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _split(counts: scipy.sparse.csr_matrix) -> Rows:
    vectors = vectors_of(counts)
    width = np.zeros((counts.shape[0], 0), np.float32) if vectors is None else np.asarray(vectors, np.float32)
    return scipy.sparse.csr_matrix(counts), width


def _tensors(name: str, keys: np.ndarray, columns: Rows) -> dict[str, np.ndarray]:
    if name == "vectors":
        arrays = dict(zip(("mean", "std", "nats"), columns, strict=True))
    else:
        counts, vectors = columns
        arrays = {"data": counts.data, "indices": counts.indices, "indptr": counts.indptr, "vectors": vectors}
        arrays["words"] = np.array([counts.shape[1]])
    return {f"{name}.{one}": np.ascontiguousarray(array) for one, array in {"keys": keys, **arrays}.items()}


def _read_tables(folder: Path) -> tuple[Table, Table]:
    """Read the tables; raises an error if anything is not as it was written."""
    path = folder / CACHE
    with path.open("rb") as stream:
        header = int.from_bytes(stream.read(8), "little")
    if path.stat().st_size > MAX_BYTES + MAX_HEADER_BYTES or header > MAX_HEADER_BYTES:
        raise ValueError
    with safe_open(path, "numpy") as file:
        if (file.metadata() or {}).get("key") != cache_key(folder):
            raise ValueError
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    texts, vectors = Table(), Table()
    if "texts.keys" in arrays:
        parts = tuple(arrays[f"texts.{name}"] for name in ("data", "indices", "indptr"))
        counts = scipy.sparse.csr_matrix(parts, (len(arrays["texts.keys"]), int(arrays["texts.words"][0])))
        counts.check_format()
        texts = _table(arrays["texts.keys"], (counts, arrays["texts.vectors"]))
    if "vectors.keys" in arrays:
        vectors = _table(arrays["vectors.keys"], tuple(arrays[f"vectors.{name}"] for name in ("mean", "std", "nats")))
    return texts, vectors


def _table(keys: np.ndarray, columns: Rows) -> Table:
    if keys.dtype != np.uint8 or keys.shape[1:] != (KEY,) or not 0 < len(keys) <= MAX_DOCUMENTS:
        raise ValueError
    if any(column.shape[0] != len(keys) or column.dtype.kind != "f" for column in columns):
        raise ValueError
    for column in columns[:2]:
        if not np.isfinite(column if isinstance(column, np.ndarray) else column.data).all():
            raise ValueError
    whole = keys.tobytes()
    places = {whole[KEY * row : KEY * (row + 1)]: row for row in range(len(keys))}
    return Table(places, columns, unchecked=True)
