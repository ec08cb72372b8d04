"""What a fit, an update or a model folder leaves behind, as one record."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from varitext.documents.regions import Regions
from varitext.evaluation.latent_dimensions import LatentSpace
from varitext.models.documents.base import DocumentNetwork
from varitext.text import TokenRules, Vocabulary, VocabularyRules


@dataclass(frozen=True)
class FittedDocuments:
    """A trained network and how it came about. `DocumentModel.fitted_` is one."""

    model: str  # its name
    network: DocumentNetwork
    architecture: dict[str, Any]  # the arguments that build the network
    training: dict[str, Any]  # the settings of training and objective that were used
    vocabulary: Vocabulary
    token_rules: TokenRules
    vocabulary_rules: VocabularyRules
    corpus: dict[str, str] | None  # name, part and sha256, so that `varitext evaluate` finds its test part
    kl_per_dimension: np.ndarray  # [K] nats per training document
    history: list[dict[str, float]]  # one record per round: metrics.jsonl
    stopped: str  # why training ended
    fit_seconds: float
    dev_perplexity: float
    n_training_documents: int
    n_dev_documents: int
    n_empty_documents: int
    n_repeated_documents: int | None  # held-out documents that training has word for word; None: not counted then
    updates: list[dict[str, Any]]  # one `UpdateRecord` per call of `partial_fit`
    regions: Regions | None = None  # the topics; folders written before there were any have none

    def latent_space(self) -> LatentSpace:
        """What topics are ranked, and compared with those of another fit, by."""
        frequencies = self.network.word_log_frequencies.double().exp().cpu().numpy()
        word_vectors = self.network.word_vectors.cpu().numpy()
        return LatentSpace(word_vectors, frequencies, self.vocabulary.words, self.kl_per_dimension)
