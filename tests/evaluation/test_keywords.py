"""Keywords of documents and of classes, and shares with their intervals."""

import math

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import beta, norm

from varitext import InputError
from varitext.evaluation.keywords import distinct_words, document_keywords, keyword_columns
from varitext.evaluation.shares import shares_by_value

WORDS = [f"word{number}" for number in range(400)]


def counts_of(documents: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).poisson(0.15, (documents, len(WORDS))).astype(np.float32)


def test_words_that_one_class_has_more_often_are_found():
    counts, values = counts_of(300), ["a", "b", "c"] * 100
    counts[::3, 7] += np.random.default_rng(1).poisson(1.0, 100)
    counts[1::3, [3, 5]] += np.random.default_rng(2).poisson(1.0, (100, 2))
    found = {one.value: one for one in distinct_words(scipy.sparse.csr_matrix(counts), values, WORDS, 10)}
    assert found["a"].words == ("word7",) and set(found["b"].words) == {"word3", "word5"} and found["c"].words == ()
    assert [one.documents for one in found.values()] == [100, 100, 100]
    assert list(found["b"].z) == sorted(found["b"].z, reverse=True)


def test_classes_drawn_by_chance_do_not_differ():
    generator, shown = np.random.default_rng(3), 0
    for seed in range(40):
        values = generator.choice(["left", "right"], 200)
        found = distinct_words(scipy.sparse.csr_matrix(counts_of(200, seed)), list(values), WORDS, 10)
        shown += sum(bool(one.words) for one in found)
    assert shown <= 10  # of 80; .05 of them are expected


def test_a_word_that_one_document_repeats_does_not_stand_for_its_class():
    counts = counts_of(100)
    counts[0, 9] = 5000
    found = distinct_words(scipy.sparse.csr_matrix(counts), ["a", "b"] * 50, WORDS, 10)
    assert all("word9" not in one.words for one in found)


def test_odd_columns():
    counts = scipy.sparse.csr_matrix(counts_of(6))
    (only,) = distinct_words(counts, ["same"] * 6, WORDS, 10)
    assert only.words == () and only.documents == 6
    assert len(distinct_words(counts, list("abcdef"), WORDS, 10)) == 6
    with pytest.raises(InputError, match="6 documents have 2 values"):
        distinct_words(counts, ["a", "b"], WORDS, 10)


def z_by_hand(counts, values, value, column, s=10.0):
    """The formula, for one word of one class; None where there is none: a word that all have, or nobody."""
    has = counts[:, column] > 0
    here = [bool(one) for one, its in zip(has, values, strict=True) if its == value]
    there = [bool(one) for one, its in zip(has, values, strict=True) if its != value]
    a, n, b, m, p = sum(here), len(here), sum(there), len(there), sum(has) / len(has)
    if p in (0, 1):
        return -math.inf
    ratio = math.log((a + s * p) / (n - a + s * (1 - p))) - math.log((b + s * p) / (m - b + s * (1 - p)))
    return ratio / math.sqrt(1 / (a + s * p) + 1 / (b + s * p))


@pytest.mark.parametrize("width", [1, 2, 12])
@pytest.mark.parametrize("seed", range(5))
def test_words_and_their_z_are_those_of_the_formula(width, seed):
    generator = np.random.default_rng(seed)
    values = list(generator.choice(["a", "b", "c"], 90))
    rates = generator.uniform(0.05, 0.6, (3, width))
    counts = (generator.random((90, width)) < rates[["abc".index(value) for value in values]]) * 2.0
    if width > 2:
        counts[:, 0], counts[:, 1] = 1.0, 0.0  # in all documents, and in none
    names, least = [f"w{column}" for column in range(width)], norm.isf(0.05 / width)
    for found in distinct_words(scipy.sparse.csr_matrix(counts), values, names, 5):
        z = {name: z_by_hand(counts, values, found.value, column) for column, name in enumerate(names)}
        expected = sorted((name for name in names if z[name] >= least), key=lambda name: -z[name])[:5]
        assert list(found.words) == expected
        assert found.z == pytest.approx([z[name] for name in expected]) and found.documents == values.count(found.value)


@pytest.mark.parametrize(("with_it", "clear"), [(6, False), (7, True), (8, True)])
def test_a_single_word_needs_no_correction(with_it, clear):
    """Of ten documents of each class; one in twenty would be as far by chance: 1.64 standard deviations."""
    counts = np.zeros((20, 1))
    counts[:with_it] = 1.0
    counts[10:13] = 1.0
    values = ["a"] * 10 + ["b"] * 10
    assert (z_by_hand(counts, values, "a", 0) > 1.645) == clear
    first, _ = distinct_words(scipy.sparse.csr_matrix(counts), values, ["word"], 3)
    assert bool(first.words) == clear


def test_without_words_there_is_nothing_to_show():
    found = distinct_words(scipy.sparse.csr_matrix((3, 0)), ["a", "b", "a"], [], 3)
    assert [(one.value, one.documents, one.words) for one in found] == [("a", 2, ()), ("b", 1, ())]


def test_a_keyword_is_frequent_here_and_rare_elsewhere():
    log_frequencies = np.log([0.5, 0.25, 0.15, 0.1])
    counts = scipy.sparse.csr_matrix(np.array([[2, 1, 0, 1], [0, 0, 3, 0], [0, 0, 0, 0]], np.float32))
    # n log(p(w | d) / p(w)): 2 log 1 = 0, log 1 = 0, log 2.5 > 0
    assert [columns.tolist() for columns in keyword_columns(counts, log_frequencies)] == [[3, 0, 1], [2], []]
    assert document_keywords(counts, log_frequencies, "abcd", most=2) == (("d", "a"), ("c",), ())


KINDS = np.arange(60) % 3  # three values, each twenty times


FALLING = [place for kind in (2, 1, 0) for place in range(60) if KINDS[place] == kind]


def test_words_of_a_document():
    counts = scipy.sparse.csr_matrix((KINDS + 1.0)[None])
    (found,) = keyword_columns(counts, np.full(60, np.log(1 / 600)))
    assert found.tolist() == FALLING


def test_words_that_tell_two_classes_apart():
    """Sixty words that all documents of one class have and none of the other; then the same in two strengths."""
    counts = np.zeros((60, 60))
    counts[:30] = 1.0
    values = ["a"] * 30 + ["b"] * 30
    names = [f"word{place}" for place in range(60)]
    (first, second) = distinct_words(scipy.sparse.csr_matrix(counts), values, names, 60)
    assert first.words == tuple(names) and second.words == ()
    counts[:10, KINDS == 0] = 0.0
    (first, _) = distinct_words(scipy.sparse.csr_matrix(counts), values, names, 60)
    stronger = [name for name, kind in zip(names, KINDS, strict=True) if kind]
    assert first.words[:40] == tuple(stronger) and first.words[40:] == tuple(names[::3])
    (few, _) = distinct_words(scipy.sparse.csr_matrix(counts), values, names, 2)
    assert few.words == tuple(stronger[:2])


def test_shares_have_jeffreys_intervals():
    found = shares_by_value([0, 0, 1, None, 1], ["x", "x", "x", "x", "w"], [0, 1])
    assert [(one.value, one.category, one.documents, one.of) for one in found] == [
        ("w", 0, 0, 1), ("w", 1, 1, 1), ("x", 0, 2, 4), ("x", 1, 1, 4),
    ]  # fmt: skip
    assert found[0][4:] == (0.0, 0.0, pytest.approx(beta(0.5, 1.5).ppf(0.975)))
    assert found[1][4:] == (1.0, pytest.approx(beta(1.5, 0.5).ppf(0.025)), 1.0)
    low, high = beta(2.5, 2.5).ppf([0.025, 0.975])
    assert found[2][4:] == (0.5, pytest.approx(low), pytest.approx(high))
    with pytest.raises(InputError, match="1 documents have 2 values"):
        shares_by_value([0], ["x", "y"], [0])
