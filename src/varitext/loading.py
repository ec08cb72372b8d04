"""A model folder of either kind, whoever asks for it: the command line or the service. It is read once."""

from pathlib import Path
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel


def load_any(
    folder: Path, threads: int | None = None, device: str = "cpu", refused: dict[str, str] | None = None
) -> "DocumentModel | AnswerRanker":
    """The model in the folder, of documents or of answers; `refused` says of a kind why it will not do."""
    from varitext.answers.folder import KIND as ANSWERS
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.folder import KIND as DOCUMENTS
    from varitext.documents.model import DocumentModel
    from varitext.runtime.devices import check_device
    from varitext.store import Builder, built, load_model

    check_device(device)
    builders: dict[str, Builder[DocumentModel | AnswerRanker]] = {
        DOCUMENTS: DocumentModel.from_stored,
        ANSWERS: AnswerRanker.from_stored,
    }
    stored = load_model(folder, tuple(builders))
    if refused and stored.kind in refused:
        raise InputError(f"{folder} {refused[stored.kind]}")
    model = built(stored, folder, builders[stored.kind])
    model.set_params(threads=threads)
    return model.move_to(device)
