"""All that can be said about a fitted document model with a labelled corpus at hand, in one record."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from varitext.corpora.document_input import DocumentInput, kind_of, unwrap
from varitext.corpora.documents import Documents
from varitext.corpora.sharded_counts import in_memory
from varitext.documents.completion import completion_of
from varitext.documents.model import DocumentModel
from varitext.evaluation.coherence import CoherenceRecord, coherence_record
from varitext.evaluation.perplexity import CompletionRecord, PerplexityRecord
from varitext.evaluation.topic_quality import (
    DiversityRecord,
    NeighbourhoodStabilityRecord,
    TopicStabilityRecord,
    diversity_record,
    neighbourhood_stability_record,
    topic_stability_record,
)
from varitext.evaluation.vectors import ClassificationRecord, RetrievalRecord, classification_record, retrieval_record


@dataclass(frozen=True)
class DocumentEvaluation:
    """One record per question; None where the corpus or the call does not have what it takes."""

    perplexity: PerplexityRecord
    completion: CompletionRecord
    npmi: CoherenceRecord
    c_v: CoherenceRecord | None  # texts only
    diversity: DiversityRecord
    retrieval: RetrievalRecord | None  # labels only
    classification: ClassificationRecord | None  # labels only
    topic_stability: TopicStabilityRecord | None  # other fits only
    neighbourhood_stability: NeighbourhoodStabilityRecord | None  # other fits only

    def as_dict(self) -> dict[str, Any]:
        records = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: None if record is None else record.as_dict() for name, record in records.items()}


def evaluate_documents(
    model: DocumentModel,
    train: Documents,
    test: Documents,
    *,
    reference: DocumentInput | None = None,
    other_fits: Sequence[DocumentModel] = (),
    words: int = 10,
    samples: int = 20,
    seed: int = 0,
) -> DocumentEvaluation:
    """Evaluate a fitted model on a corpus in two parts.

    Coherence is measured on the `reference`, or else on the training documents: over sliding windows if they are texts,
    over whole documents if they are counts. `other_fits` are the same model with other seeds.
    """
    frequencies = model.fitted_.network.word_log_frequencies.double().cpu().numpy()
    topics = model.latent_dimensions(words)
    npmi, c_v = _coherence(topics, train if reference is None else reference, model.fitted_.token_rules)
    train_vectors, test_vectors = model.posterior(train).mean, model.posterior(test).mean
    labelled = train.labels is not None and test.labels is not None
    parts = (train_vectors, train.labels, test_vectors, test.labels)
    fits = [model, *other_fits]
    return DocumentEvaluation(
        perplexity=model.perplexity_record(test, samples),
        completion=completion_of(
            model.fitted_.network,
            in_memory(model.count(test)),
            frequencies,
            samples,
            seed,
            model.fitted_.network.device,
        ),
        npmi=npmi,
        c_v=c_v,
        diversity=diversity_record(topics),
        retrieval=retrieval_record(*parts, seed=seed) if labelled else None,
        classification=classification_record(*parts, seed=seed) if labelled else None,
        topic_stability=topic_stability_record([fit.latent_dimensions(words) for fit in fits]) if other_fits else None,
        neighbourhood_stability=_neighbourhoods(test_vectors, other_fits, test, seed) if other_fits else None,
    )


def _coherence(
    topics: list[Any], reference: DocumentInput, token_rules: Any
) -> tuple[CoherenceRecord, CoherenceRecord | None]:
    if kind_of(unwrap(reference)[0]) == "counts":
        return coherence_record(topics, reference, "npmi", window="document"), None
    npmi = coherence_record(topics, reference, "npmi", token_rules=token_rules)
    return npmi, coherence_record(topics, reference, "c_v", token_rules=token_rules)


def _neighbourhoods(
    vectors: np.ndarray, other_fits: Sequence[DocumentModel], test: Documents, seed: int
) -> NeighbourhoodStabilityRecord:
    return neighbourhood_stability_record([vectors, *(fit.transform(test) for fit in other_fits)], seed=seed)
