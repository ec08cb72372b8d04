"""Documents in two parts at once."""

import numpy as np
import scipy.sparse

from varitext import DocumentModel
from varitext.corpora.repeats import count_repeats, row_hashes, without_repeats


def csr(rows):
    return scipy.sparse.csr_matrix(np.asarray(rows, np.float32))


def test_the_same_counts_are_a_repeat_and_nothing_else_is():
    train = csr([[1, 2, 0], [0, 0, 3], [1, 0, 0]])
    test = csr([[2, 1, 0], [1, 2, 0], [0, 3, 0], [0, 0, 1], [1, 0, 0], [1, 2, 1]])
    assert count_repeats(test, train) == 2
    assert without_repeats(test, train).toarray().tolist() == [[2, 1, 0], [0, 3, 0], [0, 0, 1], [1, 2, 1]]


def test_the_order_of_entries_and_stored_zeros_do_not_matter():
    tidy = csr([[1, 0, 2]])
    untidy = scipy.sparse.csr_matrix((np.array([2.0, 0.0, 1.0]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3))
    assert row_hashes(tidy).tolist() == row_hashes(untidy).tolist()


def test_hashes_tell_many_documents_apart_as_a_set_does():
    counts = csr(np.random.default_rng(0).poisson(0.4, (5000, 8)))
    rows = {tuple(row) for row in counts.toarray()}
    assert 100 < len(rows) < 5000 and len(set(row_hashes(counts).tolist())) == len(rows)


def test_a_fit_counts_held_out_documents_that_it_trains_on():
    train = csr(np.random.default_rng(1).integers(1, 6, (30, 6)))
    dev = scipy.sparse.vstack([train[:4], csr([[9, 0, 0, 0, 0, 9]])]).tocsr()
    model = DocumentModel(latent_dim=2, epochs=1, threads=1).fit(train, dev=dev)
    assert model.fitted_.n_repeated_documents == 4
