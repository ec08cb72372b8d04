"""From the words that were typed to models, documents and settings, or to an `InputError` that says what is wrong."""

import difflib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.answer_ranker import AnswerRanker
    from varitext.corpora import Documents
    from varitext.document_model import DocumentModel


# Settings


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were typed: the others keep the estimator's own defaults."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def refuse_options(options: dict[str, Any], reason: str) -> None:
    """None of these may have been typed."""
    if typed := given(options):
        raise InputError(f"--{next(iter(typed)).replace('_', '-')} does not apply: {reason}")


def check_place_for_model(out: Path, resume: bool) -> None:
    """Nothing of a user's is overwritten: a new folder, or with --resume one that holds an unfinished run."""
    from varitext.files import check_can_write
    from varitext.store import CHECKPOINT, refuse_to_overwrite

    check_can_write(out)
    if (out / CHECKPOINT).exists():
        if not resume:
            raise InputError(f"{out} holds an unfinished run: add --resume to go on, or remove it first")
    elif resume and (out / "config.json").exists():
        if load_any(out).stopped_ != "interrupted":
            raise InputError(f"{out} holds a finished model: there is nothing to resume")
    else:
        refuse_to_overwrite(out)


def is_finished_model(folder: Path) -> bool:
    from varitext.store import checkpoints

    return (folder / "config.json").exists() and not checkpoints(folder)


def refuse_many_processes(what: str) -> None:
    from varitext.processes import size_at_launch

    if size_at_launch() > 1:
        raise InputError(
            f"{what} learns in one process: under torchrun only models of documents do, in their first fit"
        )


def check_new_file(path: Path) -> None:
    from varitext.files import check_can_write

    if path.exists():
        raise InputError(f"{path} exists already: name another file, or remove it first")
    check_can_write(path)


def is_answer_model(name: str) -> bool:
    """Whether that is the name of a model of answers, or else of documents; refused if it is neither."""
    from varitext.models import MODELS
    from varitext.models.answer_models import ANSWER_MODELS

    if name not in MODELS and name not in ANSWER_MODELS:
        raise InputError(
            f"no model is called {name!r}; there are: {', '.join(MODELS)} for documents, "
            f"{', '.join(ANSWER_MODELS)} for answers"
        )
    return name in ANSWER_MODELS


def check_preset(model: str, preset: str) -> None:
    """Refuse a preset that the document model does not have, before anything is loaded."""
    from varitext.models import MODELS

    MODELS[model].recipe(preset, documents=1000, words_per_document=100.0)


def check_estimator(model: str, estimator: str | None) -> None:
    """Refuse an estimator that nobody knows, or a model that has no choice, before anything is loaded."""
    from varitext.latent import ESTIMATORS
    from varitext.models import MODELS

    if estimator is None:
        return
    if estimator not in ESTIMATORS:
        raise InputError(f"no estimator is called {estimator!r}; there are: {', '.join(ESTIMATORS)}")
    if "estimator" not in inspect.signature(MODELS[model]).parameters:
        raise InputError(f"--estimator does not apply: {model} has no choice of estimator; sbn and fdarn have")


def check_device(name: str) -> None:
    """Refuse a device that is not here, before anything is loaded."""
    from varitext import devices

    devices.check_device(name)


def seconds_of(duration: str | None) -> float | None:
    if duration is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", duration.strip())
    if not match or float(match[1]) == 0:
        raise InputError(f"--time-limit {duration!r} is not a duration such as 60s, 10m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match[2]]


# Models


def load_any(folder: Path, threads: int | None = None, device: str = "cpu") -> "DocumentModel | AnswerRanker":
    """The model in the folder, of documents or of answers."""
    from varitext.answer_folder import KIND
    from varitext.answer_ranker import AnswerRanker
    from varitext.document_model import DocumentModel
    from varitext.store import stored_kind

    check_device(device)
    kind = AnswerRanker if stored_kind(folder) == KIND else DocumentModel
    return kind.load(folder).set_params(threads=threads).move_to(device)


def load_model(folder: Path, threads: int | None = None, device: str = "cpu") -> "DocumentModel":
    from varitext.answer_folder import KIND
    from varitext.store import stored_kind

    if stored_kind(folder) == KIND:
        raise InputError(
            f"{folder} holds a ranker of answers: evaluate, rank, compare, report and figures take it, this does not"
        )
    return load_any(folder, threads, device)


def load_ranker(folder: Path, threads: int | None = None, device: str = "cpu") -> "AnswerRanker":
    from varitext.document_folder import KIND
    from varitext.store import stored_kind

    if stored_kind(folder) == KIND:
        raise InputError(f"{folder} holds a model of documents: this needs one of answers, as `fit --model nasm` gives")
    return load_any(folder, threads, device)


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
