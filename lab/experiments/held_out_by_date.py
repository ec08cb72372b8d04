"""Training documents of 20newsgroups-nvdm held out by date, on which settings of document models are compared.

Held out is the last share of each newsgroup in the authors' file, which is sorted by date, because the test documents
are later than all training documents.
"""

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from varitext.corpora import load_documents
from varitext.corpora.counts import parse_feat
from varitext.errors import InputError

CORPUS, HELD_OUT = "20newsgroups-nvdm", 0.09


class ByDate(NamedTuple):
    earlier: scipy.sparse.csr_matrix
    later: scipy.sparse.csr_matrix


def split_by_date() -> ByDate:
    path = Path(os.environ.get("VARITEXT_DATA", ".")) / "20news" / "nvdm" / "train.feat.gz"
    if not path.exists():
        raise InputError(f"{path} is missing: set VARITEXT_DATA to the folder of the corpora")
    documents = parse_feat(
        gzip.decompress(path.read_bytes()), path.name, len(load_documents(CORPUS, "train").vocabulary)
    )
    later = last_of_each_group(documents.labels)
    return ByDate(documents.counts[~later], documents.counts[later])


def last_of_each_group(labels: Sequence[str]) -> np.ndarray:
    """True for the last share of each newsgroup in file order."""
    names, held_out = np.array(labels), np.zeros(len(labels), bool)
    for name in np.unique(names):
        rows = np.flatnonzero(names == name)
        held_out[rows[-round(HELD_OUT * len(rows)) :]] = True
    return held_out
