"""A model folder of either kind, whoever asks for it: the command line or the service."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel


def load_any(folder: Path, threads: int | None = None, device: str = "cpu") -> "DocumentModel | AnswerRanker":
    """The model in the folder, of documents or of answers."""
    from varitext.answers.folder import KIND
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel
    from varitext.runtime.devices import check_device
    from varitext.store import stored_kind

    check_device(device)
    kind = AnswerRanker if stored_kind(folder) == KIND else DocumentModel
    return kind.load(folder).set_params(threads=threads).move_to(device)
