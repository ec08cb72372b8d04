"""Perplexity and completion from numbers alone: every field by its definition, and parts against the whole."""

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from varitext.errors import InputError
from varitext.evaluation.perplexity import (
    Halves,
    completion_record,
    hide_words,
    merge_records,
    perplexity_record,
    split_words,
)
from varitext.evaluation.significance import bootstrap_interval


def values_of(n, seed=0):
    """Five columns of n documents: no two alike, so that none can stand for another."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 9, n).astype(float)
    likelihood, kl = -lengths * generator.uniform(1, 3, n), generator.uniform(0.2, 1.5, n)
    tighter, unigram = likelihood - 0.5 * kl, -lengths * generator.uniform(3, 4, n)
    return {"log_likelihood": likelihood, "kl": kl, "importance_weighted": tighter, "unigram": unigram,
            "lengths": lengths}  # fmt: skip


def record_of(values, seed=0, empty_documents=0, errors=None):
    words = {"kind": "estimate", "description": "drawn", "samples": 9, "likelihood": "urn"}
    return perplexity_record(**values, **words, standard_errors=errors, empty_documents=empty_documents, seed=seed)


def per_document(log_probability, lengths):
    return math.exp(-np.mean([one / length for one, length in zip(log_probability, lengths, strict=True)]))


def per_corpus(log_probability, lengths):
    return math.exp(-math.fsum(log_probability) / math.fsum(lengths))


def test_every_field_of_a_record():
    values = values_of(7)
    errors = np.linspace(0.1, 0.4, 7)
    found = record_of(values, empty_documents=3, errors=errors)
    lengths, bound = values["lengths"], values["log_likelihood"] - values["kl"]
    expected = {
        "per_document_perplexity": per_document(bound, lengths),
        "corpus_perplexity": per_corpus(bound, lengths),
        "iwae_per_document_perplexity": per_document(values["importance_weighted"], lengths),
        "iwae_corpus_perplexity": per_corpus(values["importance_weighted"], lengths),
        "unigram_per_document_perplexity": per_document(values["unigram"], lengths),
        "unigram_corpus_perplexity": per_corpus(values["unigram"], lengths),
        "ratio_to_unigram": per_document(bound, lengths) / per_document(values["unigram"], lengths),
        "reconstruction_per_word": np.mean(
            [-one / n for one, n in zip(values["log_likelihood"], lengths, strict=True)]
        ),
        "kl_per_word": np.mean([one / n for one, n in zip(values["kl"], lengths, strict=True)]),
        "kl_per_document": math.fsum(values["kl"]) / 7,
        "standard_error": per_document(bound, lengths) * np.mean([e / n for e, n in zip(errors, lengths, strict=True)]),
    }
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value), name
    assert (found.n_documents, found.n_empty_documents, found.n_tokens) == (7, 3, lengths.sum())
    assert (found.n_samples, found.kind, found.description, found.likelihood) == (9, "estimate", "drawn", "urn")


@pytest.mark.parametrize("seed", [0, 5])
def test_the_interval_is_that_of_the_mean_of_documents_with_the_seed(seed):
    values = values_of(20)
    nats = (values["kl"] - values["log_likelihood"]) / values["lengths"]
    low, high = np.exp(bootstrap_interval(nats, seed=seed).bounds)
    assert record_of(values, seed).per_document_interval_95 == pytest.approx((low, high))
    assert record_of(values, 5).per_document_interval_95 != record_of(values, 0).per_document_interval_95


def test_a_model_beyond_floating_point_has_a_largest_perplexity():
    values = values_of(3) | {"log_likelihood": np.full(3, -1e6)}
    found = record_of(values)
    largest = math.exp(700)
    assert found.per_document_perplexity == found.corpus_perplexity == largest
    assert found.per_document_interval_95 == (largest, largest)


def rows(values, start, end):
    return {name: column[start:end] for name, column in values.items()}


def test_every_field_of_parts_is_that_of_the_whole():
    values, errors = values_of(30), np.linspace(0.1, 0.4, 30)
    whole = record_of(values, empty_documents=6)
    cuts = [(0, 3, 1), (3, 12, 2), (12, 30, 3)]
    parts = [record_of(rows(values, start, end), empty_documents=empty) for start, end, empty in cuts]
    merged = merge_records(parts)
    for field in dataclasses.fields(whole):
        if field.name != "per_document_interval_95":
            assert getattr(merged, field.name) == pytest.approx(getattr(whole, field.name)), field.name
    # relative errors are averaged over documents: those of parts err together
    parts = [record_of(rows(values, start, end), errors=errors[start:end]) for start, end, _ in cuts]
    assert merge_records(parts).standard_error == pytest.approx(record_of(values, errors=errors).standard_error)


def test_the_interval_of_parts_has_the_sum_of_their_variances():
    """Of 1 and 3 documents: a half width of 0.4 and one of 0.2, in nats, is one of sqrt(0.4^2 + 0.6^2) / 4."""
    record = record_of(values_of(4))
    first, second = (
        dataclasses.replace(
            record, n_documents=n, per_document_perplexity=math.exp(mean),
            per_document_interval_95=(math.exp(mean - half), math.exp(mean + half)),
        )
        for n, mean, half in ((1, 2.0, 0.4), (3, 6.0, 0.2))
    )  # fmt: skip
    merged, half = merge_records([first, second]), math.hypot(0.4, 0.6) / 4
    assert merged.per_document_perplexity == pytest.approx(math.exp(5.0))
    assert merged.per_document_interval_95 == pytest.approx((math.exp(5 - half), math.exp(5 + half)))


def test_the_interval_of_parts_is_about_that_of_the_whole():
    values = values_of(3000)
    parts = [record_of(rows(values, start, start + 500)) for start in range(0, 3000, 500)]
    width_of_parts, width = (
        math.log(one.per_document_interval_95[1] / one.per_document_interval_95[0])
        for one in (merge_records(parts), record_of(values))
    )
    assert width_of_parts == pytest.approx(width, rel=0.1)


def test_one_part_is_the_whole():
    record = record_of(values_of(4))
    assert merge_records([record]) is record


def halves_of(n, seed=0):
    generator = np.random.default_rng(seed)
    return Halves(*(scipy.sparse.csr_matrix(generator.integers(1, 5, (n, 3)).astype(np.float32)) for _ in range(2)))


@pytest.mark.parametrize("seed", [0, 5])
def test_the_interval_of_completion_has_the_seed(seed):
    halves, nats = halves_of(20), np.linspace(-20.0, -9.0, 20)
    hidden = halves.hidden.toarray().sum(1)
    found = completion_record(nats, halves, np.log([0.2, 0.3, 0.5]), estimator="by hand", seed=seed)
    expected = np.exp(bootstrap_interval(-nats / hidden, seed=seed).bounds)
    assert found.per_document_interval_95 == pytest.approx(tuple(expected)) and found.seed == seed
    other = completion_record(nats, halves, np.log([0.2, 0.3, 0.5]), estimator="by hand", seed=5 - seed)
    assert other.per_document_interval_95 != found.per_document_interval_95


def test_splitting_words_leaves_the_counts_as_they_are():
    given = np.array([[1.0, 0.0, 1.0], [3.0, 2.0, 1.0], [0.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
    counts = scipy.sparse.csr_matrix(given)
    halves = split_words(counts, 1)
    np.testing.assert_array_equal(counts.toarray(), given)
    np.testing.assert_array_equal((halves.observed + halves.hidden).toarray(), given)
    assert halves.hidden.toarray().sum(1).tolist() == [1, 3, 2, 0]
    assert halves.hidden.dtype == halves.observed.dtype == np.float32


def test_fractional_counts_cannot_be_split_though_only_one_is():
    with pytest.raises(InputError, match="fractional"):
        split_words(scipy.sparse.csr_matrix(np.array([[1.0, 2.0], [1.5, 0.0]])))


def test_the_room_needs_no_torch():
    """Numbers in, records out: nothing here may load a network."""
    code = "import pkgutil, importlib, sys, varitext.evaluation as room\n"
    code += "[importlib.import_module(f'{room.__name__}.{one.name}') for one in pkgutil.iter_modules(room.__path__)]\n"
    code += "print(*(name for name in sys.modules if name == 'torch' or name.startswith('varitext.models')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == ""


def test_completion_record_by_hand():
    hidden = scipy.sparse.csr_matrix(np.array([[2.0, 0.0], [1.0, 3.0]]))
    observed = scipy.sparse.csr_matrix(np.array([[1.0, 1.0], [4.0, 1.0]]))
    frequencies = np.log([0.25, 0.75])
    found = completion_record(
        np.array([-3.0, -2.0]),
        Halves(observed, hidden),
        frequencies,
        estimator="by hand",
        samples=7,
        seed=3,
        left_out=4,
    )
    per_document = math.exp((3 / 2 + 2 / 4) / 2)
    unigram = [2 * math.log(0.25), math.log(0.25) + 3 * math.log(0.75)]
    assert found.per_document_perplexity == pytest.approx(per_document)
    assert found.corpus_perplexity == pytest.approx(math.exp(5 / 6))
    assert found.unigram_per_document_perplexity == pytest.approx(math.exp(-(unigram[0] / 2 + unigram[1] / 4) / 2))
    assert found.unigram_corpus_perplexity == pytest.approx(math.exp(-sum(unigram) / 6))
    assert found.ratio_to_unigram == pytest.approx(per_document / found.unigram_per_document_perplexity)
    interval = bootstrap_interval([1.5, 0.5], seed=3)
    assert found.per_document_interval_95 == pytest.approx((math.exp(interval.low), math.exp(interval.high)))
    assert (found.n_documents, found.n_documents_left_out, found.n_samples, found.seed) == (2, 4, 7, 3)
    assert (found.n_observed_tokens, found.n_hidden_tokens, found.estimator) == (7, 6, "by hand")
    terrible = completion_record(np.full(2, -4000.0), Halves(observed, hidden), frequencies, estimator="none")
    assert all(map(math.isfinite, terrible.per_document_interval_95))


def test_halves_of_documents():
    counts = scipy.sparse.csr_matrix(np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 2.0], [0.0, 0.0]]))
    halves = hide_words(counts, 0)
    assert halves.hidden.sum(1).ravel().tolist() == [[2, 1]] and halves.observed.sum(1).ravel().tolist() == [[3, 1]]
    np.testing.assert_array_equal((halves.hidden + halves.observed).toarray(), [[2, 3], [0, 2]])
    assert all((part.data > 0).all() for part in halves)
    many = scipy.sparse.csr_matrix(np.full((1, 2), 1000.0))
    first, second = (split_words(many, seed).hidden.toarray()[0, 0] for seed in (0, 1))
    assert first != second and abs(first - 500) < 100 and split_words(many, 0).hidden.toarray()[0, 0] == first
    with pytest.raises(InputError, match="nothing to complete"):
        hide_words(counts[[0, 3]])
