"""How good a model is, each measure in its own file."""

from varitext.evaluation.coherence import CoherenceRecord, coherence_record
from varitext.evaluation.perplexity import CompletionRecord, PerplexityRecord, completion_record, perplexity_record
from varitext.evaluation.topic_quality import (
    DiversityRecord,
    NeighbourhoodStabilityRecord,
    TopicStabilityRecord,
    diversity_record,
    neighbourhood_stability_record,
    topic_stability_record,
)
from varitext.evaluation.vectors import ClassificationRecord, RetrievalRecord, classification_record, retrieval_record

__all__ = [
    "ClassificationRecord",
    "CoherenceRecord",
    "CompletionRecord",
    "DiversityRecord",
    "NeighbourhoodStabilityRecord",
    "PerplexityRecord",
    "RetrievalRecord",
    "TopicStabilityRecord",
    "classification_record",
    "coherence_record",
    "completion_record",
    "diversity_record",
    "neighbourhood_stability_record",
    "perplexity_record",
    "retrieval_record",
    "topic_stability_record",
]
