"""What `varitext topics` changes about the topics of a model folder: found anew, merged, split, renamed, dropped."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.cli.inputs import documents_for
from varitext.cli.printing import log
from varitext.cli.running_fit import topics_found
from varitext.errors import InputError
from varitext.loading import load_document_model

if TYPE_CHECKING:
    from varitext.corpora import Documents
    from varitext.documents.model import DocumentModel


@dataclass(frozen=True)
class TopicChanges:
    number: int | None
    seed_topics: Path | None
    merge: list[str]
    merge_to: int | None
    split: list[int]
    rename: list[str]
    drop: list[int]

    def any(self) -> bool:
        return any(value not in (None, []) for value in vars(self).values())


@dataclass(frozen=True)
class Place:
    """Where documents are, if any are needed."""

    corpus: str | None
    text_column: str | None
    data_dir: Path | None

    def documents(self, model: "DocumentModel") -> "Documents":
        part = "train" if self.corpus is None else None
        return documents_for(model, self.corpus, part, self.data_dir, self.text_column, "--from CORPUS")


def change_topics(folder: Path, changes: TopicChanges, place: Place) -> None:
    """Load the model, change its topics, and write the folder again, whole or not at all."""
    from varitext.documents.topics import read_seed_topics

    model = load_document_model(folder)
    seeds = read_seed_topics(changes.seed_topics) if changes.seed_topics else None
    if model.fitted_.regions is None or changes.number is not None or seeds is not None:
        wanted = None if seeds is None else {topic.name: topic.words for topic in seeds}
        model.refit_topics(place.documents(model), changes.number, wanted)
        log(topics_found(model))
    for numbers in changes.merge:
        model.merge_topics([_number(one) for one in numbers.split(",")])
    if changes.merge_to is not None:
        model.reduce_topics(changes.merge_to)
    for number in changes.split:
        merged = any(group.number == number and len(group.components) > 1 for group in _groups(model))
        model.split_topic(number, None if merged else place.documents(model))
    for named in changes.rename:
        renamed, _, name = named.partition("=")
        model.rename_topic(_number(renamed), name)
    if changes.drop:
        model.drop_topics(changes.drop)
    model.save(folder, overwrite=True)


def _groups(model: "DocumentModel") -> Any:
    return model.fitted_.regions.groups if model.fitted_.regions else ()


def _number(text: str) -> int:
    if not text.strip().isdecimal():
        raise InputError(f"{text!r} is not the number of a topic: --merge 4,7 and --rename 3=NAME take numbers")
    return int(text)
