"""The documents that a command is about: those that were named, or those that the model was fitted on."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.corpora import Documents
    from varitext.documents.model import DocumentModel


def load_documents(corpus: str, part: str | None, data_dir: Path | None, text_column: str | None) -> "Documents":
    """The part asked for; if none was, the test part, or all documents of files that are not divided."""
    from varitext.corpora import Documents, load, parts

    if part is None:
        part = "test" if "test" in parts(corpus) else parts(corpus)[0]
    documents = load(corpus, part, data_dir=data_dir, text_column=text_column)
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
    how_to_name: str,
) -> "Documents":
    """The documents named, or a part of the corpus that the model was fitted on: its test part if none is asked for."""
    from varitext.corpora import parts

    if corpus is None:
        corpus = own_corpus(model, part, parts, "documents", how_to_name)
        text_column = text_column or (model.corpus_ or {}).get("text_column")
    return load_documents(corpus, part, data_dir, text_column)


def training_documents(
    model: "DocumentModel",
    corpus: str | None,
    test: "Documents",
    data_dir: Path | None,
    text_column: str | None,
    how_to_name: str,
) -> "Documents":
    """The train part of the corpus that `test` is a part of."""
    from varitext.corpora import parts

    named = corpus or own_corpus(model, "train", parts, "documents", how_to_name)
    if test.part == "train" or not {"train", test.part} <= set(parts(named)):
        raise InputError(f"{named} ({test.part}): --full needs a corpus with a train part and another one to evaluate")
    return documents_for(model, corpus, "train", data_dir, text_column, how_to_name)


def own_corpus(
    model: "DocumentModel | AnswerRanker",
    part: str | None,
    parts_of: Callable[[str], tuple[str, ...]],
    things: str,
    how_to_name: str,
) -> str:
    """The corpus that the model was fitted on, if it is here and has a test part or another part is asked for."""
    from varitext.corpora import CORPORA

    if not model.corpus_:
        raise InputError(f"the model does not say which corpus it was fitted on: name {things}, {how_to_name}")
    name = model.corpus_["name"]
    if name not in CORPORA and not Path(name).exists():
        raise InputError(f"{name}, which the model was fitted on, is not here: name {things}, {how_to_name}")
    if part is None and "test" not in parts_of(name):
        raise InputError(
            f"{name}, which the model was fitted on, has no test part: "
            f"name {things} that the model has not seen, {how_to_name}"
        )
    return name
