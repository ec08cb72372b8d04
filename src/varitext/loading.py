"""A model folder of either kind, whoever asks for it: the command line or the service."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel


def load_any(folder: Path, threads: int | None = None, device: str = "cpu") -> "DocumentModel | AnswerRanker":
    """The model in the folder, of documents or of answers."""
    from varitext.answers.folder import KIND as ANSWERS
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.folder import KIND as DOCUMENTS
    from varitext.documents.model import DocumentModel
    from varitext.runtime.devices import check_device
    from varitext.store import Builder, load_by_kind

    check_device(device)
    builders: dict[str, Builder[DocumentModel | AnswerRanker]] = {
        ANSWERS: AnswerRanker.from_stored,
        DOCUMENTS: DocumentModel.from_stored,
    }
    model = load_by_kind(folder, builders)
    model.set_params(threads=threads)
    return model.move_to(device)
