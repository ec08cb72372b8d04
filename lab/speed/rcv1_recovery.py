"""Time and peak memory of reading all of RCV1 from its tf-idf vectors, estimated from the sample.

The sample's counts are turned into weights with 16 digits. A file of them is read as text, and its seconds are scaled
to 804,414 documents. Then counts are recovered from the same weights, repeated to that many documents.
"""

import gzip
import math
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from lab.child import in_child
from lab.speed.timing import best_seconds, seconds_of
from varitext.corpora import load_documents, rcv1
from varitext.corpora.documents import Documents
from varitext.corpora.sharded_counts import in_memory
from varitext.corpora.sources import LocalFile
from varitext.files import sha256_of
from varitext.runtime.memory import peak_so_far


def measure(quick: bool) -> dict[str, Any]:
    rows, documents = (500, 2000) if quick else (None, rcv1.DOCUMENTS)
    reading = in_child("lab.speed.rcv1_recovery:read", {"rows": rows}, 1)
    recovering = in_child("lab.speed.rcv1_recovery:recover", {"rows": rows, "documents": documents}, 1)
    seconds = reading["seconds"] / reading["documents"] * documents
    return {"reading_seconds": seconds, "recovering_seconds": recovering.pop("seconds")} | recovering


def recover(rows: int | None, documents: int) -> dict[str, Any]:
    sample = sample_weights(rows)
    warnings.simplefilter("ignore")  # that it is not the whole corpus

    def train() -> Documents:
        parts = [sample] * math.ceil(documents / sample.shape[0])
        return rcv1.part_of(rcv1.recovered(vstack(parts, "csr")[:documents], ()), "train")

    taken = seconds_of(train, time.process_time)
    return {"documents": documents, "seconds": taken, "peak_megabytes": peak_so_far()}


def read(rows: int | None) -> dict[str, Any]:
    weights = sample_weights(rows)
    with tempfile.TemporaryDirectory() as folder:
        file = LocalFile(Path(folder) / "vectors.dat.gz", "vectors.dat.gz")
        with gzip.open(file.path, "wt") as stream:
            for row, (start, end) in enumerate(zip(weights.indptr, weights.indptr[1:], strict=False)):
                pairs = zip(weights.indices[start:end] + 1, weights.data[start:end], strict=True)
                stream.write(f"{row}  {' '.join(f'{word}:{weight:.16g}' for word, weight in pairs)}\n")
        sha256 = sha256_of(file.path)
        taken = best_seconds(lambda: rcv1.weights_of(file, sha256), 2, time.process_time)
    return {"documents": weights.shape[0], "seconds": taken}


def sample_weights(rows: int | None) -> csr_matrix:
    """(1 + ln tf) ln(N / df) / norm of the sample's training documents, in the columns of all 47,236 terms."""
    sample = load_documents("rcv1-sample")
    assert sample.vocabulary is not None and sample.counts is not None
    counts = in_memory(sample.counts)[:rows].astype(np.float64)
    idf = np.log(counts.shape[0] / np.maximum(np.bincount(counts.indices, minlength=counts.shape[1]), 1))
    weights = (1 + np.log(counts.data)) * idf[counts.indices]
    norms = np.sqrt(np.add.reduceat(weights**2, counts.indptr[:-1]))
    weights /= np.repeat(norms, np.diff(counts.indptr))
    terms = np.array(sample.vocabulary.words, np.int32) - 1
    return csr_matrix((weights.astype(np.float32), terms[counts.indices], counts.indptr), (counts.shape[0], rcv1.TERMS))
