"""Load a model folder of either kind, for the command line and the service. Its config.json is read once.

Instead of a folder, the name of a ranker that needs no fit may be given: `minilm` or `bm25`. A folder of that name
takes precedence.

`trust` names the class of a plug-in (`package.module:Class`) that the folder may import; see `models/registry.py`.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from varitext.errors import InputError

if TYPE_CHECKING:  # the command line imports this before anything heavy is loaded
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel
    from varitext.store import Builder

Estimator = TypeVar("Estimator", bound="DocumentModel | AnswerRanker")


def load_any(
    folder: Path, threads: int | None = None, device: str = "cpu", trust: str | None = None
) -> "DocumentModel | AnswerRanker":
    """The model of documents or the ranker of answers in the folder, or the ranker of that name."""
    if _is_name(folder):
        return untrained_ranker(str(folder), threads, device)
    builders: dict[str, Builder[DocumentModel | AnswerRanker]] = {**_of_documents(trust), **_of_answers(trust)}
    return _load(folder, builders, {}, threads, device)


def load_document_model(
    folder: Path, threads: int | None = None, device: str = "cpu", trust: str | None = None
) -> "DocumentModel":
    """The model of documents in the folder; a ranker of answers is refused."""
    from varitext.store import ANSWER_RANKER

    refused = "holds a ranker of answers, not a model of documents. Use it with evaluate, rank, compare or report."
    return _load(folder, _of_documents(trust), {ANSWER_RANKER: refused}, threads, device)


def load_ranker(
    folder: Path, threads: int | None = None, device: str = "cpu", trust: str | None = None
) -> "AnswerRanker":
    """The ranker of answers in the folder, or of that name; a model of documents is refused."""
    from varitext.store import CALIBRATED_RANKER, DOCUMENT_MODEL

    if _is_name(folder):
        return untrained_ranker(str(folder), threads, device)
    refused = "holds a model of documents, not a ranker of answers. Fit one to questions with `varitext fit`."
    of_scores = "holds the calibration of another ranker's scores. Use it with `varitext rank DIR --scores FILE`."
    refusals = {DOCUMENT_MODEL: refused, CALIBRATED_RANKER: of_scores}
    return _load(folder, _of_answers(trust), refusals, threads, device)


def untrained_ranker(model: str, threads: int | None = None, device: str = "cpu") -> "AnswerRanker":
    """A ranker that needs no fit; models that do are refused."""
    from varitext.answers.fitted import ranks_untrained
    from varitext.answers.ranker import AnswerRanker

    ranker = AnswerRanker(model, threads=threads, device=device)
    if not ranks_untrained(ranker):
        raise InputError(f"{model} must be fitted before it can rank. minilm and bm25 rank without a fit.")
    return ranker.move_to(device)


def general_ranker(threads: int | None = None, device: str = "cpu") -> "AnswerRanker":
    """The best ranker that needs no fit: minilm if its extra is installed, otherwise bm25."""
    from varitext.corpora.minilm import is_installed

    return untrained_ranker("minilm" if is_installed() else "bm25", threads, device)


def _is_name(folder: Path) -> bool:
    from varitext.models.answers import ANSWER_MODELS

    return str(folder) in ANSWER_MODELS and not folder.is_dir()


def _load(
    folder: Path,
    builders: "Mapping[str, Builder[Estimator]]",
    refusals: Mapping[str, str],
    threads: int | None,
    device: str,
) -> Estimator:
    from varitext.runtime.devices import check_device
    from varitext.store import load_one_of

    check_device(device)
    estimator = load_one_of(folder, builders, refusals)
    estimator.set_params(threads=threads)
    estimator.move_to(device)
    return estimator


def _of_documents(trust: str | None = None) -> "dict[str, Builder[DocumentModel]]":
    from varitext.documents.model import DocumentModel
    from varitext.store import DOCUMENT_MODEL

    return {DOCUMENT_MODEL: partial(DocumentModel.from_stored, trust=trust)}


def _of_answers(trust: str | None = None) -> "dict[str, Builder[AnswerRanker]]":
    from varitext.answers.ranker import AnswerRanker
    from varitext.store import ANSWER_RANKER

    return {ANSWER_RANKER: partial(AnswerRanker.from_stored, trust=trust)}
