"""Counts from tf-idf weights: real corpora there and back; documents that must not pass."""

import numpy as np
import pytest
from refusal import refused
from scipy.sparse import csr_matrix
from weights import tf_idf

from varitext.corpora import load_documents
from varitext.corpora.tfidf import LEAST_DOCUMENTS, recover_counts


def known_only(counts: csr_matrix) -> csr_matrix:
    """The counts of words of enough documents."""
    kept = counts.copy()
    kept.data[np.bincount(counts.indices, minlength=counts.shape[1])[counts.indices] < LEAST_DOCUMENTS] = 0
    kept.eliminate_zeros()
    return kept


def rounded(weights: csr_matrix, digits: int = 6) -> csr_matrix:
    weights.data = weights.data.round(digits)
    return weights


def test_rcv1_is_recovered_exactly(data_dir):
    """The test part, with the idf of the training part and six digits."""
    train, test = (load_documents("rcv1-sample", part, data_dir).counts for part in ("train", "test"))
    frequencies = np.bincount(train.indices, minlength=train.shape[1])
    found = recover_counts(rounded(tf_idf(test, frequencies, train.shape[0])))
    assert found.passed.all() and (found.counts != known_only(test)).nnz == 0


@pytest.fixture(scope="module")
def newsgroups(data_dir) -> csr_matrix:
    return load_documents("20newsgroups-nvdm", "test", data_dir).counts


def test_20_newsgroups_is_recovered_but_for_what_cannot_be_known(newsgroups):
    found = recover_counts(rounded(tf_idf(newsgroups)))
    assert (~found.passed).sum() <= 1
    difference = found.counts != known_only(newsgroups)
    wrong = [row for row in np.flatnonzero(difference.getnnz(axis=1)) if found.passed[row]]
    assert len(wrong) <= 1
    for row in wrong:  # all its words occur equally often
        assert len(set(newsgroups[row].data)) == 1 and set(found.counts[row].data) == {1}


def test_documents_that_must_not_pass(newsgroups):
    counts = newsgroups[:2000]
    weights = tf_idf(counts)
    rows = np.flatnonzero(counts.getnnz(axis=1) > 20)[:4]
    places = [weights.indptr[row] for row in rows]
    weights.data[places[0]] *= 1.2  # another weight: no whole count
    for row in rows[1:3]:  # other norms
        weights.data[weights.indptr[row] : weights.indptr[row + 1]] *= 0.9 if row == rows[1] else 1.1
    weights.data[places[3]] = 0.9  # a large one
    found = recover_counts(weights)
    assert not found.passed[rows].any() and found.counts[rows].nnz == 0
    others = np.setdiff1d(np.arange(2000), rows)
    assert found.passed[others].mean() > 0.999


def test_words_of_few_documents_are_not_counted():
    drawn = np.random.default_rng(0).poisson(0.7, (60, 12)).astype(np.float32)
    drawn[:, 11] = 0
    drawn[0, 11] = 1  # one document has this word
    drawn[1] = 2 * np.eye(12)[11]  # and another has no others
    counts = csr_matrix(drawn)
    found = recover_counts(tf_idf(counts))
    assert found.counts[:, 11].nnz == 0 and found.passed[0] and not found.passed[1]
    assert (found.counts[:, :11] != counts[:, :11])[found.passed].nnz == 0
    refused(lambda: recover_counts(csr_matrix(np.array([[-0.5, 0.5]]))), "above zero")
