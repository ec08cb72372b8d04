"""The corpus that a model was fitted on, found again: by its name, or where the user's own files are."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from varitext.corpora import CORPORA, load_as
from varitext.corpora.columns import Columns
from varitext.corpora.documents import Documents
from varitext.errors import InputError


def place_of(corpus: Mapping[str, str]) -> str | None:
    """Its name, if it is a known one, or a path at which there is something; None if it is not here."""
    if corpus["name"] in CORPORA:
        return corpus["name"]
    for path in (corpus.get("path"), corpus["name"]):  # folders of earlier versions have only what was typed
        if path and Path(path).exists():
            return path
    return None


def load_again(
    corpus: Mapping[str, str], part: str, data_dir: str | Path | None, text_column: str | None = None
) -> Documents:
    """A part of it, read as for the fit. If it is the part that was learned from, it must still be the same."""
    place, name = place_of(corpus), corpus["name"]
    if place is None:
        raise InputError(f"{name}, which the model was fitted on, is not here")
    columns = Columns.recorded(corpus)
    columns = replace(columns, text_column=text_column or columns.text_column)
    documents = load_as(place, part, data_dir, columns)
    if not isinstance(documents, Documents):
        raise InputError(f"{name} is a corpus of questions and answers, not of documents")
    if documents.part == corpus["part"] and documents.sha256 != corpus["sha256"]:
        raise InputError(f"{name} is not what the model was fitted on: the file has changed since; name it to go on")
    return replace(documents, name=name)


def is_fitted_on(corpus: Mapping[str, str] | None, documents: Documents) -> bool:
    """Whether a model learned from these very documents."""
    fitted_on = corpus or {}
    return (fitted_on.get("sha256"), fitted_on.get("part")) == (documents.sha256, documents.part)
