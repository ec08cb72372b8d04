"""From the words that were typed to models, documents and settings, or to an `InputError` that says what is wrong."""

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from varitext.errors import InputError
from varitext.loading import load_any

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.corpora import Documents
    from varitext.documents.model import DocumentModel


# Settings


# Models


def load_model(folder: Path, threads: int | None = None, device: str = "cpu") -> "DocumentModel":
    from varitext.documents.model import DocumentModel

    model = load_any(folder, threads, device)
    if not isinstance(model, DocumentModel):
        raise InputError(
            f"{folder} holds a ranker of answers: evaluate, rank, compare, report and figures take it, this does not"
        )
    return model


def load_ranker(folder: Path, threads: int | None = None, device: str = "cpu") -> "AnswerRanker":
    from varitext.answers.ranker import AnswerRanker

    model = load_any(folder, threads, device)
    if not isinstance(model, AnswerRanker):
        raise InputError(f"{folder} holds a model of documents: this needs one of answers, as `fit --model nasm` gives")
    return model


# Documents


def load_documents(corpus: str, part: str | None, data_dir: Path | None, text_column: str | None) -> "Documents":
    """The part asked for; if none was, the test part, or all documents of files that are not divided."""
    from varitext.corpora import Documents, load, parts

    if part is None:
        part = "test" if "test" in parts(corpus) else parts(corpus)[0]
    documents = load(corpus, part, data_dir=data_dir, text_column=text_column)
    if not isinstance(documents, Documents):
        raise InputError(
            f"{corpus} is a corpus of questions and answers, not of documents: models such as nasm take it"
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
        text_column = text_column or model.corpus_.get("text_column")
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


def known_word(model: "DocumentModel", word: str) -> str:
    """The word as the model knows it, or an `InputError` with one that is spelt alike."""
    known = model.vocabulary_.index
    if found := next((form for form in (word, word.lower()) if form in known), None):
        return found
    close = difflib.get_close_matches(word.lower(), known, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise InputError(f"{word!r} is not among the {len(known)} words of the model{hint}")
