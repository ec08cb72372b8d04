"""A model folder of either kind, whoever asks for it: the command line or the service."""

from pathlib import Path
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:  # the command line imports this before anything heavy is loaded
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel


class HoldsRanker(InputError):
    """A model of documents was asked for, and the folder holds a ranker of answers."""


def load_any(folder: Path, threads: int | None = None, device: str = "cpu") -> "DocumentModel | AnswerRanker":
    """The model in the folder, of documents or of answers."""
    try:
        return load_document_model(folder, threads, device)
    except HoldsRanker:
        return load_ranker(folder, threads, device)


def load_document_model(folder: Path, threads: int | None = None, device: str = "cpu") -> "DocumentModel":
    """The model of documents in the folder; a ranker of answers is refused."""
    from varitext.answers.folder import KIND
    from varitext.documents.model import DocumentModel
    from varitext.runtime.devices import check_device
    from varitext.store import OtherKind

    check_device(device)
    try:
        model = DocumentModel.load(folder)
    except OtherKind as other:
        if other.kind != KIND:
            raise
        said = "holds a ranker of answers: evaluate, rank, compare, report and figures take it, this does not"
        raise HoldsRanker(f"{folder} {said}") from None
    model.set_params(threads=threads)
    return model.move_to(device)


def load_ranker(folder: Path, threads: int | None = None, device: str = "cpu") -> "AnswerRanker":
    """The ranker of answers in the folder; a model of documents is refused."""
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.folder import KIND
    from varitext.runtime.devices import check_device
    from varitext.store import OtherKind

    check_device(device)
    try:
        ranker = AnswerRanker.load(folder)
    except OtherKind as other:
        if other.kind != KIND:
            raise
        said = "holds a model of documents: this needs one of answers, as `fit` makes of questions"
        raise InputError(f"{folder} {said}") from None
    ranker.set_params(threads=threads)
    return ranker.move_to(device)
