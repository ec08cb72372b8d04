"""Do groups of documents agree with labels that somebody gave them?

purity   the share of documents whose label is the most frequent one of their group; goes up with the number of groups
NMI      mutual information of groups and labels over the mean of their entropies
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from varitext.errors import InputError


@dataclass(frozen=True)
class ClusteringRecord:
    purity: float
    nmi: float
    n_documents: int
    n_groups: int
    n_labels: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def clustering_record(groups: Sequence[int] | np.ndarray, labels: Sequence[str]) -> ClusteringRecord:
    if len(groups) != len(labels) or not len(labels):
        raise InputError(f"{len(groups)} documents in groups have {len(labels)} labels")
    together = contingency_matrix(labels, groups)  # [labels, groups]
    return ClusteringRecord(
        purity=float(together.max(0).sum() / together.sum()),
        nmi=float(normalized_mutual_info_score(labels, groups)),
        n_documents=len(labels),
        n_groups=together.shape[1],
        n_labels=together.shape[0],
    )
