"""varitext: neural variational inference for text."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from varitext.answer_ranker import AnswerRanker
    from varitext.corpora import load_questions
    from varitext.document_model import DocumentModel
    from varitext.errors import InputError
    from varitext.reranking import Reranker

_HOMES = {
    "AnswerRanker": "varitext.answer_ranker",
    "DocumentModel": "varitext.document_model",
    "InputError": "varitext.errors",
    "Reranker": "varitext.reranking",
    "load_questions": "varitext.corpora",
}

__all__ = ["AnswerRanker", "DocumentModel", "InputError", "Reranker", "__version__", "load_questions"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import varitext` itself must not wait for torch."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'varitext' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
