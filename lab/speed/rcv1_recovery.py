"""What it takes to read all of RCV1 from its tf-idf vectors: time and peak memory, estimated from the sample.

The sample's counts are turned into weights with 16 digits. One file of them is read, as text; then counts are recovered
from the same weights, repeated: seconds of the processor and peak memory at two sizes give a line to 804,414 documents.
"""

import gzip
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
from varitext.corpora.sharded_counts import in_memory
from varitext.corpora.sources import LocalFile
from varitext.files import sha256_of
from varitext.runtime.memory import peak_so_far

REPEATS = (6, 12)  # of 20,737 documents: more than show the idf of words, as in the whole corpus


def measure(quick: bool) -> dict[str, Any]:
    rows = 500 if quick else None
    sizes = [in_child("lab.speed.rcv1_recovery:recover", {"rows": rows, "times": times}, 1) for times in REPEATS]
    at = {name: _line([one["documents"] for one in sizes], [one[name] for one in sizes]) for name in sizes[0]}
    reading = in_child("lab.speed.rcv1_recovery:read", {"rows": rows}, 1)
    return {
        "documents": rcv1.DOCUMENTS,
        "reading_seconds": reading["seconds"] / reading["documents"] * rcv1.DOCUMENTS,
        "recovering_seconds": at["seconds"],
        "peak_megabytes": at["peak_megabytes"],
        "measured": {"reading": reading, "recovering": sizes},
    }


def _line(documents: list[int], values: list[float]) -> float:
    slope = (values[1] - values[0]) / (documents[1] - documents[0])
    return values[1] + slope * (rcv1.DOCUMENTS - documents[1])


def recover(rows: int | None, times: int) -> dict[str, Any]:
    weights = vstack([sample_weights(rows)] * times, "csr")
    warnings.simplefilter("ignore")  # that it is not the whole corpus
    taken = seconds_of(lambda: rcv1.part_of(rcv1.recovered(weights, ()), "train"), time.process_time)
    return {"documents": weights.shape[0], "seconds": taken, "peak_megabytes": peak_so_far()}


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
