"""Shards: the counts of a corpus as plain files that are memory-mapped, never read whole.

A shard folder has `config.json`, `vocabulary.txt` and, for every shard, the three arrays of a CSR matrix as .npy:

    00000.starts.npy   [documents + 1]   where the entries of each document begin, and where the last one ends
    00000.words.npy    [entries]         column of each entry, ascending within a document
    00000.counts.npy   [entries]         count of each entry

`config.json` records the number of documents, empty documents, words and entries of each shard, and the hashes of its
files. Documents are in the order of the corpus, one shard after the other. Nothing is pickled.

While a vocabulary is learned, shards are drafts: words are numbered in the order in which they were first seen. Once
the vocabulary is chosen, each draft becomes a shard in which the numbers are columns and the other words are gone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import varitext
from varitext.corpora.counts import MAX_COUNT
from varitext.corpora.sources import SourceFile
from varitext.errors import InputError
from varitext.files import check_sha256, read_config, sha256_of, write_json
from varitext.records import record_from_dict
from varitext.text import Vocabulary
from varitext.text.counting import MAX_TABLE, ChunkCounts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FORMAT = "varitext-shards"
FORMAT_VERSION = 1
SHARD_DOCUMENTS = 1 << 15
SHARD_ENTRIES = 1 << 21  # three to eight bytes each
ARRAYS = ("starts", "words", "counts")
TOTALS = ("documents", "empty_documents", "words", "entries")  # numbers of each shard and of all


class ShardArrays(NamedTuple):
    starts: np.ndarray  # [documents + 1]
    words: np.ndarray  # [entries]
    counts: np.ndarray  # [entries]


@dataclass(frozen=True)
class ShardRecord:
    """The entry of one shard in `config.json`."""

    documents: int
    empty_documents: int
    words: int  # counted with repetition
    entries: int
    sha256: dict[str, str]  # of its files, by array


@dataclass(frozen=True)
class ShardFolder:
    """A shard folder with checked `config.json` and file sizes; a shard is checked when it is first opened."""

    path: Path
    shards: tuple[ShardRecord, ...]
    vocabulary: Vocabulary
    sha256: str  # of config.json, which has the hashes of all other files

    @classmethod
    def open(cls, path: Path) -> "ShardFolder":
        config = _read_config(path)
        try:
            shards = tuple(record_from_dict(ShardRecord, entry) for entry in config["shards"])
            for number, shard in enumerate(shards):
                _check_shard(path, number, shard)
            _check_totals(config, shards)
            words = config["sha256"]["vocabulary.txt"]
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path / 'config.json'} does not describe shards ({error!r})") from None
        check_sha256(path / "vocabulary.txt", words, "shard folder")
        return cls(path, shards, Vocabulary.load(path / "vocabulary.txt"), sha256_of(path / "config.json"))

    @cached_property
    def _checked(self) -> set[int]:
        return set()

    def map_shard(self, number: int) -> ShardArrays:
        """The memory-mapped arrays of a shard; hashes and values are checked the first time."""
        if number not in self._checked:
            for array in ARRAYS:
                check_sha256(array_path(self.path, number, array), self.shards[number].sha256[array], "shard folder")
        try:
            starts, words, counts = (
                np.load(array_path(self.path, number, array), mmap_mode="r", allow_pickle=False) for array in ARRAYS
            )
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"shard {number} of {self.path} cannot be read ({error})") from None
        shard = ShardArrays(np.array(starts), words, counts)
        if number not in self._checked:
            self._check_values(number, shard)
            self._checked.add(number)
        return shard

    def _check_values(self, number: int, shard: ShardArrays) -> None:
        """Check the values: a wrong index would crash compiled code or read another document."""
        record, (starts, words, counts) = self.shards[number], shard
        whole = all(array.ndim == 1 and array.dtype.kind in "ui" for array in shard)
        whole = whole and len(starts) == record.documents + 1 and len(words) == len(counts) == record.entries
        whole = whole and bool(starts[0] == 0 and starts[-1] == record.entries and (np.diff(starts) >= 0).all())
        if whole and record.entries:
            whole = bool(words.min() >= 0 and words.max() < len(self.vocabulary))
            whole = whole and bool(counts.min() >= 1 and counts.max() <= MAX_COUNT)
        if not whole:
            raise InputError(f"shard {number} of {self.path} does not match its config.json")


def is_shard_folder(path: Path) -> bool:
    """Whether a folder holds shards, damaged or not. Model folders have a config.json, too."""
    config = path / "config.json"
    if not path.is_dir() or not config.is_file():
        return False
    with config.open("rb") as stream:  # the first lines only; other errors are reported later
        return f'"{FORMAT}"'.encode() in stream.read(200)


def array_path(folder: Path, number: int, array: str) -> Path:
    return folder / f"{number:05}.{array}.npy"


def write_shard(folder: Path, number: int, shard: ShardArrays, vocabulary_size: int) -> ShardRecord:
    """Write one shard with the smallest integer types that hold it."""
    words = shard.words.astype(np.min_scalar_type(max(vocabulary_size - 1, 0)))
    counts = shard.counts.astype(np.min_scalar_type(int(shard.counts.max(initial=1))))
    arrays = ShardArrays(shard.starts.astype(np.int64), words, counts)
    for name, array in zip(ARRAYS, arrays, strict=True):
        write_array(array_path(folder, number, name), array)
    return ShardRecord(
        documents=len(arrays.starts) - 1,
        empty_documents=int((np.diff(arrays.starts) == 0).sum()),
        words=int(counts.sum(dtype=np.int64)),
        entries=len(counts),
        sha256={name: sha256_of(array_path(folder, number, name)) for name in ARRAYS},
    )


def write_array(path: Path, array: np.ndarray) -> None:
    """Like np.save, which does not notice a full disk in the last few kilobytes."""
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        stream.write(array.data)


def finish_folder(
    folder: Path, shards: list[ShardRecord], vocabulary: Vocabulary, sources: list[SourceFile], details: dict[str, Any]
) -> None:
    """Write vocabulary.txt and config.json; `details` record how the counts were made."""
    vocabulary.save(folder / "vocabulary.txt")
    header = {"format": FORMAT, "format_version": FORMAT_VERSION, "varitext_version": varitext.__version__}
    totals = {name: sum(getattr(shard, name) for shard in shards) for name in TOTALS}
    totals["vocabulary_size"] = len(vocabulary)
    listed = {
        "sources": [asdict(source) for source in sources],
        "sha256": {"vocabulary.txt": sha256_of(folder / "vocabulary.txt")},
        "shards": [asdict(shard) for shard in shards],
    }
    write_json(folder / "config.json", header | totals | details | listed)


# Inside


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_dir() or not (path / "config.json").is_file():
        raise InputError(f"{path} is not a shard folder: it has no config.json. `varitext prepare --out` writes one.")
    return read_config(path, FORMAT, FORMAT_VERSION, "shard folder")


def _check_totals(config: dict[str, Any], shards: tuple[ShardRecord, ...]) -> None:
    """Notice a shard that config.json does not list."""
    for name in TOTALS:
        total = sum(getattr(shard, name) for shard in shards)
        if config.get(name, total) != total:
            raise ValueError(f"the shards have {total} {name}, not {config[name]}")


def _check_shard(path: Path, number: int, shard: ShardRecord) -> None:
    """Refuse missing or truncated files before an hour of work, without reading them."""
    numbers = [getattr(shard, name) for name in TOTALS]
    if not all(type(one) is int and one >= 0 for one in numbers) or set(shard.sha256) != set(ARRAYS):
        raise ValueError(f"a shard of {numbers} documents, empty documents, words and entries")
    lengths = (shard.documents + 1, shard.entries, shard.entries)
    for array, length in zip(ARRAYS, lengths, strict=True):
        file = array_path(path, number, array)
        if not file.is_file():
            raise InputError(f"{file} is missing: the shard folder is incomplete")
        if file.stat().st_size < length:
            raise InputError(f"{file} is truncated. Prepare the shards again.")


DRAFTS = "drafts"


@dataclass(frozen=True)
class ShardSizes:
    """The largest number of documents and entries in a shard, and of distinct words while counting."""

    documents: int = SHARD_DOCUMENTS
    entries: int = SHARD_ENTRIES
    table: int = MAX_TABLE


DEFAULT_SIZES = ShardSizes()


def chunk_of(counts: "csr_matrix") -> ChunkCounts:
    return ChunkCounts(np.diff(counts.indptr).astype(np.int64), counts.indices, counts.data)


def write_shards(
    folder: Path, chunks: Iterable[ChunkCounts], vocabulary_size: int, sizes: ShardSizes = DEFAULT_SIZES
) -> list[ShardRecord]:
    """Write shards of counts whose word ids are columns already."""
    shards = enumerate(in_shards(chunks, sizes))
    return [write_shard(folder, number, shard, vocabulary_size) for number, shard in shards]


def in_shards(chunks: Iterable[ChunkCounts], sizes: ShardSizes) -> Iterator[ShardArrays]:
    """The documents divided into shards, independently of how they were chunked."""
    lengths, words, counts = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint32)
    for chunk in chunks:
        lengths = np.concatenate([lengths, chunk.distinct_words])
        words = np.concatenate([words, chunk.word_ids])
        counts = np.concatenate([counts, chunk.counts.astype(np.uint32)])
        while len(lengths) > sizes.documents or len(words) > sizes.entries:
            size = min(sizes.documents, int(np.searchsorted(np.cumsum(lengths), sizes.entries, side="right")))
            size = max(1, size)  # one document may fill a shard
            if size == len(lengths):
                break
            entries = int(lengths[:size].sum())
            yield _shard(lengths[:size], words[:entries], counts[:entries])
            lengths, words, counts = lengths[size:], words[entries:], counts[entries:]
    if len(lengths):
        yield _shard(lengths, words, counts)


def remapped(shard: ShardArrays, columns: np.ndarray) -> ShardArrays:
    """The same entries in other columns, one for each entry; entries with a negative one are left out."""
    kept = columns >= 0
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[shard.starts]
    documents = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    columns, counts = columns[kept], shard.counts[kept]
    order = np.lexsort((columns, documents))
    return ShardArrays(starts, columns[order], counts[order])


def _shard(lengths: np.ndarray, words: np.ndarray, counts: np.ndarray) -> ShardArrays:
    return ShardArrays(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), words, counts)


# Drafts


def write_drafts(folder: Path, chunks: Iterable[ChunkCounts], sizes: ShardSizes) -> list[int]:
    """Write shards of counts whose word ids are not columns yet; returns the number of documents of each."""
    drafts = folder / DRAFTS
    drafts.mkdir()
    documents = []
    for number, draft in enumerate(in_shards(chunks, sizes)):
        for name, array in zip(ARRAYS, draft, strict=True):
            write_array(array_path(drafts, number, name), array)
        documents.append(len(draft.starts) - 1)
    return documents


def finish_drafts(folder: Path, drafts: int, chosen: np.ndarray) -> list[ShardRecord]:
    """Turn drafts into shards in which word id `chosen[column]` is the column, and remove the drafts."""
    shards = [_finish_draft(folder, number, chosen) for number in range(drafts)]
    (folder / DRAFTS).rmdir()
    return shards


def _finish_draft(folder: Path, number: int, chosen: np.ndarray) -> ShardRecord:
    paths = [array_path(folder / DRAFTS, number, name) for name in ARRAYS]
    starts, ids, counts = (np.load(path, allow_pickle=False) for path in paths)
    order = np.argsort(chosen)
    places = np.searchsorted(chosen[order], ids).clip(max=len(chosen) - 1)
    columns = np.where(chosen[order][places] == ids, order[places], -1)
    shard = remapped(ShardArrays(starts, ids, counts), columns)
    record = write_shard(folder, number, shard, len(chosen))
    for path in paths:
        path.unlink()
    return record
