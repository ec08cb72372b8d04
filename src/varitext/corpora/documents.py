"""The record in which every corpus of documents arrives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from varitext.corpora.columns import ANY_COLUMNS, Columns
from varitext.corpora.sharded_counts import Counts
from varitext.corpora.sources import SourceFile, combined_sha256
from varitext.text import Vocabulary


@dataclass(frozen=True, eq=False)
class Documents:
    """One part of a corpus: either texts, or counts with their vocabulary.

    A table also says which document is which: `ids`, `labels`, `dates`, and all its other columns as they stand there.
    """

    name: str
    part: str
    files: tuple[SourceFile, ...]
    texts: Sequence[str] | None = None
    counts: Counts | None = None  # [documents, V]
    vocabulary: Vocabulary | None = None
    labels: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    dates: Sequence[datetime | None] | None = None
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    path: Path | None = None  # of the user's own files: where they are
    read_as: Columns = ANY_COLUMNS

    def __post_init__(self) -> None:
        if (self.texts is None) == (self.counts is None):
            raise ValueError("documents are either texts or counts")
        if (self.counts is None) != (self.vocabulary is None):
            raise ValueError("counts come with their vocabulary, texts without one")
        about = {"labels": self.labels, "ids": self.ids, "dates": self.dates, **self.columns}
        for name, values in about.items():
            if values is not None and len(values) != len(self):
                raise ValueError(f"{len(self)} documents have {len(values)} {name}")

    def __len__(self) -> int:
        if self.counts is not None:
            return int(self.counts.shape[0])
        return len(self.texts or ())

    @property
    def sha256(self) -> str:
        """One fingerprint of all files this part was read from: `corpus_sha256` in results."""
        return combined_sha256(self.files)

    def recorded(self) -> dict[str, str]:
        """Which corpus it is, for the model folder, so that it is found again: from any folder, and read alike."""
        found = {"name": self.name, "part": self.part, "sha256": self.sha256}
        return found | ({} if self.path is None else {"path": str(self.path)}) | self.read_as.as_dict()
