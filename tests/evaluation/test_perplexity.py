"""Perplexity from numbers alone, and the words that tell a document from its corpus."""

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from varitext.evaluation.keywords import document_keywords, keyword_columns
from varitext.evaluation.perplexity import merge_records, perplexity_record


def record_of(log_likelihood, kl, lengths, **others):
    log_likelihood, kl, lengths = (np.array(values, np.float64) for values in (log_likelihood, kl, lengths))
    unigram = -lengths * math.log(8)
    values = {"kind": "bound", "figure": "a lower bound", "samples": 5} | others
    return perplexity_record(log_likelihood, kl, log_likelihood, unigram, lengths, **values)


def test_two_documents_by_hand():
    # one word at 1/2, three words at 1/4 each; the KL costs one bit of each document
    record = record_of([-math.log(2), -3 * math.log(4)], [math.log(2)] * 2, [1, 3], empty_documents=2)
    assert record.per_document_perplexity == pytest.approx(2 ** ((2 + 7 / 3) / 2))
    assert record.corpus_perplexity == pytest.approx(2 ** (9 / 4))
    assert record.iwae_per_document_perplexity == pytest.approx(2 ** ((1 + 2) / 2))
    assert record.unigram_per_document_perplexity == record.unigram_corpus_perplexity == pytest.approx(8)
    assert record.kl_per_word == pytest.approx(math.log(2) * (1 + 1 / 3) / 2)
    assert record.kl_per_document == pytest.approx(math.log(2))
    assert (record.n_documents, record.n_empty_documents, record.n_tokens, record.n_samples) == (2, 2, 4, 5)
    assert (record.kind, record.figure, record.standard_error) == ("bound", "a lower bound", 0.0)


def test_the_standard_error_is_that_of_the_perplexity():
    record = record_of([-6.0, -8.0], [0, 0], [3, 4], standard_errors=np.array([0.03, 0.08]))
    assert record.standard_error == pytest.approx(math.exp(2) * (0.01 + 0.02) / 2)


@given(st.lists(st.tuples(st.floats(-50, -1), st.integers(1, 9)), min_size=2, max_size=12), st.integers(1, 11))
def test_parts_make_up_the_whole(documents, cut):
    cut = min(cut, len(documents) - 1)
    values, lengths = (list(column) for column in zip(*documents, strict=True))
    nothing = [0.0] * len(documents)
    whole = record_of(values, nothing, lengths)
    parts = [record_of(values[s], nothing[s], lengths[s]) for s in (slice(0, cut), slice(cut, None))]
    merged = merge_records(parts)
    for name in ("per_document_perplexity", "corpus_perplexity", "reconstruction_per_word", "n_documents", "n_tokens"):
        assert getattr(merged, name) == pytest.approx(getattr(whole, name)), name


def test_the_room_needs_no_torch():
    """Numbers in, records out: nothing here may load a network."""
    code = "import pkgutil, importlib, sys, varitext.evaluation as room\n"
    code += "[importlib.import_module(f'{room.__name__}.{one.name}') for one in pkgutil.iter_modules(room.__path__)]\n"
    code += "print(*(name for name in sys.modules if name == 'torch' or name.startswith('varitext.models')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == ""


def test_a_telling_word_is_frequent_here_and_rare_elsewhere():
    log_frequencies = np.log([0.5, 0.25, 0.15, 0.1])
    counts = scipy.sparse.csr_matrix(np.array([[2, 1, 0, 1], [0, 0, 3, 0], [0, 0, 0, 0]], np.float32))
    # n log(p(w | d) / p(w)): 2 log 1 = 0, log 1 = 0, log 2.5 > 0
    assert [columns.tolist() for columns in keyword_columns(counts, log_frequencies)] == [[3, 0, 1], [2], []]
    assert document_keywords(counts, log_frequencies, "abcd", most=2) == (("d", "a"), ("c",), ())
