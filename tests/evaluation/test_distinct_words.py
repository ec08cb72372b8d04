"""Words that differ between classes: found where they are, and not by chance."""

import numpy as np
import pytest
import scipy.sparse

from varitext import InputError
from varitext.evaluation.distinct_words import distinct_words

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
