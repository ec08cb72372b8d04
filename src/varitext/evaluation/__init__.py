"""How good a model is, each measure in its own file."""

from varitext.evaluation.classification import ClassificationRecord, classification_record
from varitext.evaluation.coherence import CoherenceRecord, coherence_record
from varitext.evaluation.completion import CompletionRecord, completion_record
from varitext.evaluation.diversity import DiversityRecord, diversity_record
from varitext.evaluation.perplexity import PerplexityRecord, perplexity_record
from varitext.evaluation.retrieval import RetrievalRecord, retrieval_record
from varitext.evaluation.stability import (
    NeighbourhoodStabilityRecord,
    TopicStabilityRecord,
    neighbourhood_stability_record,
    topic_stability_record,
)

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
