"""Counts in shards, as tests of several rooms need them."""

from pathlib import Path

import scipy.sparse

from varitext.corpora import Documents, load_documents
from varitext.corpora.prepare import prepare
from varitext.corpora.shards import ShardSizes
from varitext.text import Vocabulary, VocabularyRules

SMALL = {"latent_dim": 4, "epochs": 3, "batch_size": 32, "learning_rate": 5e-3, "threads": 1, "n_topics": 4}
EVERY_WORD = VocabularyRules(minimum_documents=1, maximum_document_share=1.0, stop_words="none")


def record_of(counts: scipy.sparse.csr_matrix) -> Documents:
    names = Vocabulary(tuple(f"word{i + 1}" for i in range(counts.shape[1])))
    return Documents("drawn", "all", (), counts=counts, vocabulary=names)


def shards_of(folder: Path, counts: scipy.sparse.csr_matrix, documents: int = 40) -> Documents:
    prepare([record_of(counts)], folder, sizes=ShardSizes(documents=documents))
    return load_documents(folder)
