"""Neural variational inference for text: topics, document vectors and answer ranking with uncertainty."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"  # the only place: pyproject.toml reads it from here

if TYPE_CHECKING:
    from varitext.answers.calibrated import CalibratedRanker as CalibratedRanker
    from varitext.answers.index import CandidateIndex as CandidateIndex
    from varitext.answers.ranker import AnswerRanker as AnswerRanker
    from varitext.answers.ranking import AnswerSet as AnswerSet
    from varitext.answers.ranking import Ranking as Ranking
    from varitext.answers.segment import IndexedDocument as IndexedDocument
    from varitext.answers.settings import AnswerRecipe as AnswerRecipe
    from varitext.corpora import load_documents as load_documents
    from varitext.corpora import load_questions as load_questions
    from varitext.corpora.documents import Documents as Documents
    from varitext.corpora.own_questions import QuestionColumns as QuestionColumns
    from varitext.corpora.prepare import prepare as prepare
    from varitext.corpora.question_answers import Candidate as Candidate
    from varitext.corpora.question_answers import Question as Question
    from varitext.corpora.question_answers import QuestionAnswers as QuestionAnswers
    from varitext.documents.model import DocumentModel as DocumentModel
    from varitext.documents.posterior import Posterior as Posterior
    from varitext.documents.topic_records import DocumentInfo as DocumentInfo
    from varitext.documents.topic_records import TopicInfo as TopicInfo
    from varitext.errors import InputError as InputError
    from varitext.evaluation.perplexity import PerplexityRecord as PerplexityRecord
    from varitext.integrations.rerankers import Reranker as Reranker
    from varitext.text.tokens import TokenRules as TokenRules
    from varitext.text.vocabulary import Vocabulary as Vocabulary
    from varitext.text.vocabulary import VocabularyRules as VocabularyRules

_HOMES = {  # module: its public names
    "answers.calibrated": "CalibratedRanker",
    "answers.index": "CandidateIndex",
    "answers.segment": "IndexedDocument",
    "answers.ranker": "AnswerRanker",
    "answers.ranking": "AnswerSet Ranking",
    "answers.settings": "AnswerRecipe",
    "corpora": "load_documents load_questions",
    "corpora.documents": "Documents",
    "corpora.own_questions": "QuestionColumns",
    "corpora.prepare": "prepare",
    "corpora.question_answers": "Candidate Question QuestionAnswers",
    "documents.model": "DocumentModel",
    "documents.posterior": "Posterior",
    "documents.topic_records": "DocumentInfo TopicInfo",
    "errors": "InputError",
    "evaluation.perplexity": "PerplexityRecord",
    "integrations.rerankers": "Reranker",
    "text.tokens": "TokenRules",
    "text.vocabulary": "Vocabulary VocabularyRules",
}
_MODULES = {name: f"varitext.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import varitext` does not import torch."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'varitext' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
