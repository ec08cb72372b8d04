"""The documents that a command is about: those that were named, or those that the model was fitted on."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.corpora import Columns, Documents
    from varitext.documents.model import DocumentModel


def load_documents(
    corpus: str, part: str | None, data_dir: Path | None, text_column: str | None, columns: "Columns | None" = None
) -> "Documents":
    """The part asked for; if none was, the test part, or all documents of files that are not divided."""
    from varitext.corpora import Columns, Documents, load_as, parts

    if part is None:
        part = "test" if "test" in parts(corpus) else parts(corpus)[0]
    documents = load_as(corpus, part, data_dir, columns or Columns(text_column))
    if not isinstance(documents, Documents):
        raise InputError(
            f"{corpus} is a corpus of questions and answers, not of documents: models such as compare take it"
        )
    return documents


def documents_for(
    model: "DocumentModel",
    corpus: str | None,
    part: str | None,
    data_dir: Path | None,
    text_column: str | None,
    hint: str,
) -> "Documents":
    """The documents named, or a part of the corpus that the model was fitted on.

    That is its test part if none is asked for; of files that are not divided it is all documents: those it was fitted
    on, which every command then says.
    """
    from varitext.corpora import load_again, parts

    if corpus is not None:
        return load_documents(corpus, part, data_dir, text_column)
    known = parts(own_corpus(model, "documents", hint))
    part = part or ("test" if "test" in known else known[0])
    with warnings.catch_warnings():  # what is odd about the table was said when the model was fitted
        warnings.simplefilter("ignore", UserWarning)
        return load_again(model.fitted_.corpus or {}, part, data_dir, text_column)


def training_documents(
    model: "DocumentModel",
    corpus: str | None,
    test: "Documents",
    data_dir: Path | None,
    text_column: str | None,
    hint: str,
) -> "Documents":
    """The train part of the corpus that `test` is a part of."""
    from varitext.corpora import parts

    named = corpus or own_corpus(model, "documents", hint)
    if test.part == "train" or not {"train", test.part} <= set(parts(named)):
        raise InputError(f"{named} ({test.part}): --full needs a corpus with a train part and another one to evaluate")
    return documents_for(model, corpus, "train", data_dir, text_column, hint)


def own_corpus(model: "DocumentModel | AnswerRanker", things: str, hint: str) -> str:
    """The corpus that the model was fitted on, if it is here: its name, or the path where it is."""
    from varitext.corpora import place_of

    if not model.fitted_.corpus:
        raise InputError(f"the model does not say which corpus it was fitted on: name {things}, {hint}")
    place = place_of(model.fitted_.corpus)
    if place is None:
        name = model.fitted_.corpus["name"]
        raise InputError(f"{name}, which the model was fitted on, is not here: name {things}, {hint}")
    return place


def own_questions(
    ranker: "AnswerRanker", part: str | None, parts_of: Callable[[str], tuple[str, ...]], hint: str
) -> str:
    """The questions that the ranker was fitted on, if they have a test part or another part is asked for."""
    place = own_corpus(ranker, "questions", hint)
    if part is None and "test" not in parts_of(place):
        raise InputError(
            f"{place}, which the model was fitted on, has no test part: "
            f"name questions that the model has not seen, {hint}"
        )
    return place
