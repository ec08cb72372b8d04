"""Measures of the quality of a model, each in its own file."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from varitext.evaluation.coherence import CoherenceRecord as CoherenceRecord
    from varitext.evaluation.coherence import coherence_record as coherence_record
    from varitext.evaluation.perplexity import CompletionRecord as CompletionRecord
    from varitext.evaluation.perplexity import PerplexityRecord as PerplexityRecord
    from varitext.evaluation.perplexity import completion_record as completion_record
    from varitext.evaluation.perplexity import perplexity_record as perplexity_record
    from varitext.evaluation.topic_quality import DiversityRecord as DiversityRecord
    from varitext.evaluation.topic_quality import NeighbourhoodStabilityRecord as NeighbourhoodStabilityRecord
    from varitext.evaluation.topic_quality import TopicStabilityRecord as TopicStabilityRecord
    from varitext.evaluation.topic_quality import diversity_record as diversity_record
    from varitext.evaluation.topic_quality import neighbourhood_stability_record as neighbourhood_stability_record
    from varitext.evaluation.topic_quality import topic_stability_record as topic_stability_record
    from varitext.evaluation.vectors import ClassificationRecord as ClassificationRecord
    from varitext.evaluation.vectors import RetrievalRecord as RetrievalRecord
    from varitext.evaluation.vectors import classification_record as classification_record
    from varitext.evaluation.vectors import retrieval_record as retrieval_record

_HOMES = {  # module: its public names
    "coherence": "CoherenceRecord coherence_record",
    "perplexity": "CompletionRecord PerplexityRecord completion_record perplexity_record",
    "topic_quality": "DiversityRecord NeighbourhoodStabilityRecord TopicStabilityRecord diversity_record "
    "neighbourhood_stability_record topic_stability_record",
    "vectors": "ClassificationRecord RetrievalRecord classification_record retrieval_record",
}
_MODULES = {name: f"varitext.evaluation.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    """Import a measure when it is first used, as in `varitext` itself."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'varitext.evaluation' has no attribute {name!r}")
