"""What is known about a corpus that is asked for by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from varitext.corpora.documents import Documents
from varitext.corpora.question_answers import QuestionAnswers
from varitext.corpora.sources import LocalFile


@dataclass(frozen=True)
class CorpusSpec:
    """A corpus that is known by name.

    `load(part, data_dir)` gives the record, `locate(data_dir)` the files it would be read from without any network,
    none if they are not all here, and `fetch(data_dir)` the same after getting what is missing.
    """

    name: str
    description: str
    parts: tuple[str, ...]
    load: Callable[[str, Path | None], Documents | QuestionAnswers]
    locate: Callable[[Path | None], list[LocalFile]]
    fetch: Callable[[Path | None], list[LocalFile]]
