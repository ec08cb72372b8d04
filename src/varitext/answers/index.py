"""An index of documents, in memory or in a folder: BM25 finds the few that a ranker then ranks.

The formula is that of `features/overlap.py`, with document frequencies and the mean length of the documents that are
in the index now: after any changes the results are those of a new index of the same documents.

An index folder has `config.json`, which lists segments (`segment.py`), and one folder per segment. Segments never
change. Added documents become a new segment; deleted ones are marked in an array beside it. `config.json` is replaced
last and atomically, so a folder is always in the state before or after a change. Small segments are joined, and those
with mostly deleted documents are written again, so there are never many. Nothing is pickled. `states.sqlite` is a cache
(`models/answers/state_store.py`).
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import varitext
from varitext.answers.segment import (
    IndexedDocument,
    LiveSegment,
    Segment,
    chunks_of,
    hashes_of,
    index_words,
    indexed_form,
)
from varitext.corpora.question_answers import sentence_words
from varitext.corpora.shards import write_array
from varitext.errors import InputError
from varitext.files import atomic_folder, locked, read_config, refuse_to_overwrite, remove_unfinished, write_json
from varitext.models.answers.features.overlap import Overlap, distinct_words, idf
from varitext.models.answers.state_store import remove_states
from varitext.text import Vocabulary

FORMAT = "varitext-index"
FORMAT_VERSION = 1
SEGMENT_DOCUMENTS = 1 << 17
SEGMENT_CHARACTERS = 1 << 26


class CandidateIndex:
    """Documents that `AnswerRanker.search` answers questions from.

    The index is in memory unless it was opened from a folder; then `add` and `delete` change the folder immediately.

    Parameters
    ----------
    documents : iterable of str or IndexedDocument
        The texts, of any length.

    Examples
    --------
    >>> from varitext import CandidateIndex
    >>> index = CandidateIndex(["Joyce wrote Ulysses", "Oslo is in Norway"])
    >>> [index[place].text for place in index.search("who wrote Emma?", 10)]
    ['Joyce wrote Ulysses']
    """

    folder: Path | None
    _segments: list[LiveSegment]
    _next_id: int  # for the next document without an id
    _next_name: int  # number of the next file in the folder

    def __init__(self, documents: Iterable[str | IndexedDocument]):
        self._begin(None)
        self._add(documents)
        self._check_not_empty()

    @classmethod
    def create(cls, folder: str | Path, documents: Iterable[str | IndexedDocument]) -> "CandidateIndex":
        """Write an index folder, completely or not at all, and open it. Memory does not grow with the documents.

        Parameters
        ----------
        folder : str or Path
            A folder that does not exist yet.
        documents : iterable of str or IndexedDocument
            As for the constructor; read once.

        Returns
        -------
        CandidateIndex
        """
        refuse_to_overwrite(Path(folder))
        with atomic_folder(Path(folder)) as temporary:
            index = cls._in_folder(temporary)
            index._add(documents)
            index._check_not_empty()
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | Path) -> "CandidateIndex":
        """The index in a folder. Its files are memory-mapped: this takes milliseconds, whatever its size.

        Parameters
        ----------
        folder : str or Path
            A folder that `save`, `create` or `varitext index` wrote.

        Returns
        -------
        CandidateIndex
        """
        index = cls._in_folder(Path(folder))
        try:
            index._read()
        except InputError:  # another process may just have replaced a segment
            index._read()
        return index

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the index folder, completely or not at all.

        Parameters
        ----------
        folder : str or Path
            Folder to write.
        overwrite : bool, default=False
            Whether to replace an existing index.
        """
        if not overwrite:
            refuse_to_overwrite(Path(folder))
        with atomic_folder(Path(folder)) as temporary:
            copy = self._in_folder(temporary)
            copy._next_id = self._next_id
            copy._commit([copy._kept(replace(one, name=None, deleted_name=None)) for one in self._segments])

    # Documents

    def __len__(self) -> int:
        return sum(one.n_live for one in self._segments)

    def __getitem__(self, place: int) -> IndexedDocument:
        """The document at a place that `search` returned. Places change with `add` and `delete`; ids do not."""
        for one in self._segments:
            if 0 <= place < len(one.segment):
                with self._damage_reported():
                    return one.segment.document(place)
            place -= len(one.segment)
        raise IndexError(place)

    def __iter__(self) -> Iterator[IndexedDocument]:
        for one in self._segments:
            yield from one.documents()

    def add(self, documents: Iterable[str | IndexedDocument]) -> int:
        """Add documents. One with the id of a document in the index replaces it.

        Parameters
        ----------
        documents : iterable of str or IndexedDocument
            As for the constructor. An id may not occur twice among them.

        Returns
        -------
        int
            The number of documents that were replaced.
        """
        with self._locked():
            return self._add(documents)

    def delete(self, ids: Sequence[str]) -> int:
        """Delete the documents with these ids.

        Parameters
        ----------
        ids : sequence of str
            InputError if the index has no document with one of them.

        Returns
        -------
        int
            The number of documents that were deleted.
        """
        with self._locked():
            wanted = {str(one) for one in ids}
            found = {name for one in self._segments for name in one.places_of(wanted)}
            if missing := sorted(wanted - found):
                raise InputError(f"no document of the index has the id {missing[0]!r}; nothing was deleted")
            self._forget_states()
            self._commit(self._joined([one.without(wanted) for one in self._segments]))
        return len(found)

    # Search

    def search(self, question: str, n: int) -> np.ndarray:
        """The places of the documents with the highest BM25, best first; those that share no word are left out.

        Parameters
        ----------
        question : str
            The question.
        n : int
            The maximum number of documents.

        Returns
        -------
        array of int
            For ``index[place]``.
        """
        terms = np.unique(hashes_of(index_words(question)))
        total, words = len(self), sum(one.n_words for one in self._segments)
        with self._damage_reported():
            weights = idf(total, self._frequencies(terms))  # [terms]
            order = np.argsort(-weights, kind="stable")
            mean, begin, places, scores = max(1.0, words / max(1, total)), 0, [], []
            for one in self._segments:
                found, score = one.best(terms[order], weights[order], mean, n)
                places.append(found + begin)
                scores.append(score)
                begin += len(one.segment)
        every, score = np.concatenate([np.zeros(0, np.int64), *places]), np.concatenate([np.zeros(0), *scores])
        return np.asarray(every[np.lexsort((every, -score))[:n]])

    def overlap(self, question: str) -> Overlap:
        """Document frequencies of the words of a question, for rankers that were never fitted.

        Parameters
        ----------
        question : str
            The question.

        Returns
        -------
        Overlap
        """
        words = sorted(distinct_words(sentence_words(question)))
        with self._damage_reported():
            return Overlap(Vocabulary(tuple(words)), self._frequencies(hashes_of(map(indexed_form, words))), len(self))

    def _frequencies(self, terms: np.ndarray) -> np.ndarray:
        """The number of documents that have each word, [terms]."""
        return sum((one.frequencies(terms) for one in self._segments), np.zeros(len(terms), np.int64))

    # Changes

    def _add(self, documents: Iterable[str | IndexedDocument]) -> int:
        """Add documents; nothing changes until the last one has been read."""
        segments, n_replaced, n_old = list(self._segments), 0, len(self._segments)
        for chunk in chunks_of(self._with_ids(documents), SEGMENT_DOCUMENTS, SEGMENT_CHARACTERS):
            times = Counter(str(one.id) for one in chunk)
            found = [one.places_of(set(times)) for one in segments]
            repeated = [name for name, n in times.items() if n > 1] + [name for new in found[n_old:] for name in new]
            if repeated:
                raise InputError(f"two of the documents to add have the id {repeated[0]!r}; nothing was added")
            n_replaced += sum(map(len, found))
            segments = [*(one.without(set(times)) for one in segments), self._kept(LiveSegment(Segment.of(chunk)))]
        if n_replaced:
            self._forget_states()
        self._commit(self._joined(segments))
        return n_replaced

    def _with_ids(self, documents: Iterable[str | IndexedDocument]) -> Iterator[IndexedDocument]:
        """Documents without an id are numbered; a number that is the id of a document is not given again."""
        if isinstance(documents, str):
            raise InputError("documents must be a list of texts, not one text")
        for number, given in enumerate(documents):
            one = IndexedDocument(given) if isinstance(given, str) else given
            if not isinstance(one, IndexedDocument) or not isinstance(one.text, str):
                kind = type(given).__name__
                raise InputError(f"document {number} is neither a text nor an IndexedDocument, but {kind}")
            one = replace(one, id=str(self._next_id if one.id is None else one.id))
            if str(one.id).isascii() and str(one.id).isdecimal():
                self._next_id = max(self._next_id, int(str(one.id)) + 1)
            yield one

    def _joined(self, segments: Sequence[LiveSegment]) -> list[LiveSegment]:
        """Segments with mostly deleted documents are written again, and small ones at the end are joined.

        If documents are added one by one, each is written about log2(N) times.
        """
        found = []
        for one in segments:
            if 2 * one.n_live >= len(one.segment):
                found.append(one)
            elif one.n_live:
                found.append(self._together([one]))
        while len(found) > 1 and found[-2].n_live <= found[-1].n_live and _are_small(found[-2:]):
            found[-2:] = [self._together(found[-2:])]
        return found

    def _together(self, segments: Sequence[LiveSegment]) -> LiveSegment:
        return self._kept(LiveSegment(Segment.of([document for one in segments for document in one.documents()])))

    def _forget_states(self) -> None:
        """Remove the states that an encoder has cached: those of deleted documents must not stay."""
        if self.folder is not None:
            remove_states(self.folder)

    def _check_not_empty(self) -> None:
        if not len(self):
            raise InputError("there are no documents to index")

    # The folder

    def _begin(self, folder: Path | None) -> None:
        """Start without documents."""
        self.folder, self._segments = folder, []
        self._next_id = self._next_name = 0

    @classmethod
    def _in_folder(cls, folder: Path) -> "CandidateIndex":
        index = cls.__new__(cls)
        index._begin(folder)
        return index

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from changing the folder, and read what they have changed before."""
        if self.folder is None:
            yield
            return
        with locked(self.folder) as is_locked:
            if is_locked:
                remove_unfinished(self.folder)
            self._read()
            yield

    def _read(self) -> None:
        assert self.folder is not None
        if not (self.folder / "config.json").is_file():
            raise InputError(f"{self.folder} is not an index. `varitext index FILE --out DIR` writes one.")
        config = read_config(self.folder, FORMAT, FORMAT_VERSION, "varitext index")
        try:
            self._next_id, self._next_name = int(config["next_id"]), int(config["next_name"])
            self._segments = [self._opened(str(one["name"]), one["deleted"]) for one in config["segments"]]
            whole = len(self) == config["documents"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{self.folder / 'config.json'} does not describe an index ({error!r})") from None
        if not whole:
            raise InputError(f"{self.folder} is damaged: documents are missing. Index them again.")

    def _opened(self, name: str, deleted_name: str | None) -> LiveSegment:
        assert self.folder is not None
        segment, deleted = Segment.open(self.folder / Path(name).name), None  # nothing outside the folder is ever read
        if deleted_name is not None:
            path = self.folder / Path(deleted_name).name
            deleted = np.load(path, allow_pickle=False)
            if deleted.dtype != bool or deleted.shape != (len(segment),):
                raise InputError(f"{path} is damaged: index the documents again")
        return LiveSegment(segment, deleted, name, deleted_name)

    def _kept(self, one: LiveSegment) -> LiveSegment:
        """The segment, saved in the folder and memory-mapped, if there is a folder and it is not there already."""
        if self.folder is None or one.name is not None:
            return one
        name = self._new_name("segment")
        with atomic_folder(self.folder / name) as temporary:
            one.segment.save(temporary)
        return replace(one, segment=Segment.open(self.folder / name), name=name)

    def _new_name(self, what: str) -> str:
        self._next_name += 1
        return f"{what}-{self._next_name:06}"

    def _commit(self, segments: list[LiveSegment]) -> None:
        """Make these the segments of the index."""
        if self.folder is not None:
            segments = [self._with_deleted_kept(one) for one in segments]
            header: dict[str, Any] = {"format": FORMAT, "format_version": FORMAT_VERSION}
            header |= {"varitext_version": varitext.__version__, "documents": sum(one.n_live for one in segments)}
            header |= {"next_id": self._next_id, "next_name": self._next_name}
            listed = [{"name": one.name, "deleted": one.deleted_name} for one in segments]
            write_json(self.folder / "config.json", header | {"segments": listed})
            _remove_others(self.folder, {str(name) for one in listed for name in one.values()})
        self._segments = segments

    def _with_deleted_kept(self, one: LiveSegment) -> LiveSegment:
        if self.folder is None or one.deleted is None or one.deleted_name is not None:
            return one
        name = self._new_name("deleted") + ".npy"
        write_array(self.folder / name, one.deleted)
        return replace(one, deleted_name=name)

    @contextmanager
    def _damage_reported(self) -> Iterator[None]:
        try:
            yield
        except (IndexError, TypeError, ValueError) as error:
            raise InputError(f"{self.folder or 'the index'} is damaged: index the documents again ({error})") from None


def _are_small(segments: Sequence[LiveSegment]) -> bool:
    """Whether they are small enough to be joined into one segment."""
    size = sum(len(one.segment.records) for one in segments)
    return sum(one.n_live for one in segments) <= SEGMENT_DOCUMENTS and size <= SEGMENT_CHARACTERS


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove what config.json no longer lists; processes that have it open keep it."""
    for entry in folder.iterdir():
        if entry.name.startswith(("segment-", "deleted-")) and entry.name not in names:
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
