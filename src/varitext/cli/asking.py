"""From the words that were typed to models, documents and settings, or to an `InputError` that says what is wrong."""

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.corpora import Documents
    from varitext.document_model import DocumentModel


def check_place_for_model(out: Path, resume: bool) -> None:
    """Nothing of a user's is overwritten: a new folder, or with --resume one that holds an unfinished run."""
    from varitext.files import check_can_write
    from varitext.store import CHECKPOINT, refuse_to_overwrite

    check_can_write(out)
    if (out / CHECKPOINT).exists():
        if not resume:
            raise InputError(f"{out} holds an unfinished run: add --resume to go on, or remove it first")
    elif resume and (out / "config.json").exists():
        if load_model(out).stopped_ != "interrupted":
            raise InputError(f"{out} holds a finished model: there is nothing to resume")
    else:
        refuse_to_overwrite(out)


def check_model(name: str, preset: str) -> None:
    from varitext.models import MODELS

    if name not in MODELS:
        raise InputError(f"no model is called {name!r}; there are: {', '.join(MODELS)}")
    MODELS[name].recipe(preset, documents=1000, words_per_document=100.0)  # refuses a preset that it does not have


def check_device(name: str) -> None:
    import torch

    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise InputError(f"--device {name!r} is not a device: cpu or cuda")
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"--device {name} cannot be used here ({reason}); cpu can") from None


def load_model(folder: Path, threads: int | None = None) -> "DocumentModel":
    from varitext.document_model import DocumentModel

    return DocumentModel.load(folder).set_params(threads=threads, device="cpu")


def load_documents(corpus: str, part: str | None, data_dir: Path | None, text_column: str | None) -> "Documents":
    """The part asked for; if none was, the test part, or all documents of files that are not divided."""
    from varitext.corpora import Documents, load, parts

    if part is None:
        part = "test" if "test" in parts(corpus) else parts(corpus)[0]
    documents = load(corpus, part, data_dir=data_dir, text_column=text_column)
    if not isinstance(documents, Documents):
        raise InputError(f"{corpus} is a corpus of questions and answers, not of documents")
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
    from varitext.corpora import CORPORA, parts

    if corpus is not None:
        return load_documents(corpus, part, data_dir, text_column)
    if not model.corpus_:
        raise InputError(f"the model does not say which corpus it was fitted on: name documents, {how_to_name}")
    name = model.corpus_["name"]
    if name not in CORPORA and not Path(name).exists():
        raise InputError(f"{name}, which the model was fitted on, is not here: name documents, {how_to_name}")
    if part is None and "test" not in parts(name):
        raise InputError(
            f"{name}, which the model was fitted on, has no test part: "
            f"name documents that the model has not seen, {how_to_name}"
        )
    return load_documents(name, part, data_dir, text_column or model.corpus_.get("text_column"))


def known_word(model: "DocumentModel", word: str) -> str:
    """The word as the model knows it, or an `InputError` with one that is spelt alike."""
    known = model.vocabulary_.index
    if found := next((form for form in (word, word.lower()) if form in known), None):
        return found
    close = difflib.get_close_matches(word.lower(), known, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise InputError(f"{word!r} is not among the {len(known)} words of the model{hint}")


def seconds_of(duration: str | None) -> float | None:
    if duration is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", duration.strip())
    if not match or float(match[1]) == 0:
        raise InputError(f"--time-limit {duration!r} is not a duration such as 60s, 10m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match[2]]
