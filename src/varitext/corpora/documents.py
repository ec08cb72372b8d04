"""The record in which every corpus of documents arrives."""

from collections.abc import Sequence
from dataclasses import dataclass

from varitext.corpora.sharded_counts import Counts
from varitext.corpora.sources import SourceFile, combined_sha256
from varitext.text import Vocabulary


@dataclass(frozen=True, eq=False)
class Documents:
    """One part of a corpus: either texts, or counts with their vocabulary."""

    name: str
    part: str
    files: tuple[SourceFile, ...]
    texts: Sequence[str] | None = None
    counts: Counts | None = None  # [documents, V]
    vocabulary: Vocabulary | None = None
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if (self.texts is None) == (self.counts is None):
            raise ValueError("documents are either texts or counts")
        if (self.counts is None) != (self.vocabulary is None):
            raise ValueError("counts come with their vocabulary, texts without one")
        if self.labels is not None and len(self.labels) != len(self):
            raise ValueError(f"{len(self)} documents have {len(self.labels)} labels")

    def __len__(self) -> int:
        if self.counts is not None:
            return int(self.counts.shape[0])
        return len(self.texts or ())

    @property
    def sha256(self) -> str:
        """One fingerprint of all files this part was read from: `corpus_sha256` in results."""
        return combined_sha256(self.files)
