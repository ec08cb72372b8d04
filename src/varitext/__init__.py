"""Neural variational inference for text: topics, document vectors and answer ranking with uncertainty."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"  # the only place: pyproject.toml reads it from here

if TYPE_CHECKING:
    from varitext.answers.index import CandidateIndex as CandidateIndex
    from varitext.answers.ranker import AnswerRanker as AnswerRanker
    from varitext.answers.ranking import Ranking as Ranking
    from varitext.answers.reranker import Reranker as Reranker
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
    from varitext.text.tokens import TokenRules as TokenRules
    from varitext.text.vocabulary import Vocabulary as Vocabulary
    from varitext.text.vocabulary import VocabularyRules as VocabularyRules

_HOMES = (
    "varitext.answers.index:CandidateIndex",
    "varitext.answers.ranker:AnswerRanker",
    "varitext.answers.ranking:Ranking",
    "varitext.answers.reranker:Reranker",
    "varitext.answers.settings:AnswerRecipe",
    "varitext.corpora:load_documents",
    "varitext.corpora:load_questions",
    "varitext.corpora.documents:Documents",
    "varitext.corpora.own_questions:QuestionColumns",
    "varitext.corpora.prepare:prepare",
    "varitext.corpora.question_answers:Candidate",
    "varitext.corpora.question_answers:Question",
    "varitext.corpora.question_answers:QuestionAnswers",
    "varitext.documents.model:DocumentModel",
    "varitext.documents.posterior:Posterior",
    "varitext.documents.topic_records:DocumentInfo",
    "varitext.documents.topic_records:TopicInfo",
    "varitext.errors:InputError",
    "varitext.evaluation.perplexity:PerplexityRecord",
    "varitext.text.tokens:TokenRules",
    "varitext.text.vocabulary:Vocabulary",
    "varitext.text.vocabulary:VocabularyRules",
)
_MODULES = {name: module for module, _, name in (home.partition(":") for home in _HOMES)}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import varitext` does not import torch."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'varitext' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
