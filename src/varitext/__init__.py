"""varitext: neural variational inference for text."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.answers.reranker import Reranker
    from varitext.corpora import load_questions
    from varitext.documents.model import DocumentModel
    from varitext.errors import InputError

_HOMES = {
    "AnswerRanker": "varitext.answers.ranker",
    "DocumentModel": "varitext.documents.model",
    "InputError": "varitext.errors",
    "Reranker": "varitext.answers.reranker",
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
