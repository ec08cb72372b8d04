"""Measures of topics, groups and vectors on cases small enough to work out by hand."""

import math

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import beta

from varitext.errors import InputError
from varitext.evaluation.latent_dimensions import (
    LatentSpace,
    alignment_record,
    dimension_likeness,
    nearest,
    rank_dimensions,
)
from varitext.evaluation.map_layout import lay_out
from varitext.evaluation.perplexity import Halves, completion_record, hide_words, split_words
from varitext.evaluation.shares import shares_by_value
from varitext.evaluation.significance import bootstrap_interval
from varitext.evaluation.topic_quality import clustering_record
from varitext.evaluation.vectors import PENALTIES, checked_labels, checked_vectors, classification_record, unit_rows

NAMES = ["a", "b", "c", "d", "e", "f"]


def test_topics_rank_frequent_words_by_weight_and_axes_by_kl():
    frequencies = np.array([0.4, 0.3, 0.12, 0.1, 0.05, 0.03])  # the first three reach 0.8 of the text
    vectors = np.array([[3.0, 0.0], [-2.0, 1.0], [1.0, -5.0], [2.0, 7.0], [99.0, 99.0], [-99.0, -99.0]])
    first, second = rank_dimensions(vectors, frequencies, NAMES, np.array([0.1, 0.7]), words=1)
    assert (first.number, second.number) == (1, 0) and (first.kl, second.kl) == (0.7, 0.1)
    assert (first.words, first.weights, first.opposite_words) == (("b",), (1.0,), ("c",))
    assert (second.words, second.weights, second.opposite_words) == (("a",), (3.0,), ("b",))
    wide = rank_dimensions(vectors, frequencies, NAMES, np.array([0.1, 0.7]), words=2)[1]  # twice as many candidates: 4
    assert wide.words == ("a", "d") and wide.opposite_words == ("b", "c")


def test_neighbours_by_cosine():
    vectors = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0], [-1.0, 0.0]])
    found = nearest(vectors, np.array([0.0, 5.0]), 3)
    assert [one.index for one in found] == [1, 0, 2]
    assert [one.similarity for one in found] == pytest.approx([1.0, 0.8, 0.0])


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


def test_groups_against_labels_by_hand():
    found = clustering_record([0, 0, 0, 1, 1, 1], ["x", "x", "y", "y", "z", "y"])
    assert found.purity == pytest.approx(4 / 6) and (found.n_documents, found.n_groups, found.n_labels) == (6, 2, 3)
    assert clustering_record([5, 5, 7], ["x", "x", "y"]).nmi == pytest.approx(1.0)
    assert clustering_record([0, 1, 0, 1], ["x", "x", "y", "y"]).nmi == pytest.approx(0.0, abs=1e-9)
    for groups, labels in (([0], ["x", "y"]), ([], [])):
        with pytest.raises(InputError):
            clustering_record(groups, labels)


@pytest.mark.parametrize("documents", [4, 40])
def test_a_map_keeps_neighbours_together_and_repeats(documents):
    """Two directions far apart, of lengths that do not count: principal components, or t-SNE."""
    generator = np.random.default_rng(0)
    kinds = np.arange(documents) % 2
    vectors = np.where(kinds[:, None] == 0, [5.0, 0.0, 0.0], [0.0, 5.0, 0.0]) + generator.normal(0, 0.2, (documents, 3))
    vectors *= generator.uniform(1, 9, (documents, 1))
    places = lay_out(vectors, seed=1)
    assert places.shape == (documents, 2) and np.array_equal(places, lay_out(vectors, seed=1))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = kinds[:, None] == kinds[None]
    assert apart[same].mean() < 0.5 * apart[~same].mean()


def test_a_map_of_few_documents_is_their_principal_components():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -3.0]])
    places = lay_out(vectors, 0)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.linalg.norm(unit[:, None] - unit[None], axis=2)
    np.testing.assert_allclose(np.linalg.norm(places[:, None] - places[None], axis=2), expected, atol=1e-6)
    np.testing.assert_allclose(places.mean(0), 0, atol=1e-6)
    assert lay_out(np.zeros((3, 2)), 0).tolist() == [[0, 0]] * 3 and lay_out(np.ones((2, 1)), 0).shape == (2, 2)


def test_likeness_is_a_weighted_correlation():
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(7, 2)), generator.normal(size=(7, 3))
    frequencies = generator.integers(1, 6, 7)
    repeated = [np.repeat(values, frequencies, 0) for values in (first, second)]
    expected = np.corrcoef(repeated[0].T, repeated[1].T)[:2, 2:]
    np.testing.assert_allclose(dimension_likeness(first, second, frequencies), expected)
    assert dimension_likeness(np.ones((7, 1)), second, frequencies).tolist() == [[0, 0, 0]]


def test_alignment_of_topics_that_changed_places():
    generator = np.random.default_rng(1)
    vectors, kl = generator.normal(size=(6, 3)), np.array([1.0, 2.0, 5.0])
    before = LatentSpace(vectors, np.full(6, 1 / 6), NAMES, kl)
    same = alignment_record(before, before)
    assert (same.in_place, same.matched, same.top_words) == pytest.approx((1, 1, 1))
    assert same.lowest == pytest.approx(1) and (same.moved, same.n_topics, same.n_words) == (0, 3, 6)
    # words in another order, and one that only the later model has; topics 0 and 1 exchanged
    order = [5, 3, 1, 0, 2, 4]
    turned = np.vstack([vectors[order][:, [1, 0, 2]], np.full((1, 3), 50.0)])
    after = LatentSpace(turned, np.full(7, 1 / 7), [*(NAMES[place] for place in order), "g"], kl)
    found, likeness = alignment_record(before, after), np.corrcoef(vectors.T)
    assert found.in_place == pytest.approx((1 * likeness[0, 1] + 2 * likeness[0, 1] + 5) / 8)
    assert found.matched == pytest.approx(1) and found.moved == 2 and found.n_words == 6
    assert found.lowest == pytest.approx(min(likeness[0, 1], 1))
    unweighted = alignment_record(before._replace(kl_per_dimension=np.zeros(3)), after)
    assert unweighted.in_place == pytest.approx((2 * likeness[0, 1] + 1) / 3)
    with pytest.raises(InputError, match="different numbers of latent dimensions"):
        alignment_record(before, before._replace(word_vectors=vectors[:, :2]))
    with pytest.raises(InputError, match="fewer than two words"):
        alignment_record(before, before._replace(words=["a", *"uvwxy"]))


def test_first_words_that_a_topic_keeps():
    names = [str(number) for number in range(40)]
    weights = np.arange(40.0)[:, None]
    before = LatentSpace(weights, np.full(40, 1 / 40), names, np.ones(1))
    changed = weights.copy()
    changed[[39, 38, 37, 36, 35]] = 0.0  # five of its ten first words
    # each model ranks the most frequent words that make up 0.8 of the text: here the first 32 or 33
    found = alignment_record(before, before._replace(word_vectors=changed))
    assert 0 < found.top_words <= 1 and found.in_place < 1
    frequent = before._replace(frequencies=np.arange(1.0, 41) / 820)
    found = alignment_record(frequent, frequent._replace(word_vectors=changed))
    assert found.top_words == pytest.approx(5 / 15)


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


def test_classification_by_hand():
    generator = np.random.default_rng(0)
    labels = ["x"] * 9 + ["y"] * 6 + ["rare"]
    train = np.array([[5.0 if label == "x" else -5.0, 0.0] for label in labels]) + generator.normal(0, 0.1, (16, 2))
    test = np.array([[5.0, 0.0], [-5.0, 0.0], [-5.0, 0.0], [5.0, 0.0]])
    found = classification_record(train, labels, test, ["x", "y", "x", "x"], seed=2)
    assert found.accuracy == 0.75 and found.majority_accuracy == 0.75 and found.cross_validated_accuracy == 1.0
    assert found.macro_f1 == pytest.approx((2 * 1 * (2 / 3) / (1 + 2 / 3) + 2 * 0.5 * 1 / 1.5) / 2)
    assert found.accuracy_interval_95 == bootstrap_interval([1, 1, 0, 1], seed=2).bounds and found.penalty in PENALTIES
    assert (found.n_train, found.n_test, found.n_labels, found.seed) == (16, 4, 3, 2)
    with pytest.raises(InputError, match="2 dimensions, test vectors 1"):
        classification_record(train, labels, test[:, :1], ["x", "y", "x", "x"])
    few = np.arange(5.0)[:, None]
    with pytest.raises(InputError, match="two labels"):
        classification_record(few, list("xxxyy"), few, list("xxxyy"))
    assert classification_record(np.arange(6.0)[:, None], list("xxxyyy"), few, list("xxxyy")).accuracy > 0.5


@pytest.mark.parametrize("vectors", [[1.0, 2.0], [[]], np.zeros((0, 2)), np.zeros((1, 1, 1)), [["x"]], [[math.nan]]])
def test_what_are_no_vectors_is_said(vectors):
    with pytest.raises(InputError, match="these"):
        checked_vectors(vectors, "these")


def test_the_first_row_that_is_not_finite_is_named():
    with pytest.raises(InputError, match=r"2 of 3 .* row 1"):
        checked_vectors([[1.0, 2.0], [math.inf, 1.0], [1.0, math.nan]], "these")


def test_labels_are_one_a_row():
    vectors = np.zeros((2, 1))
    assert checked_labels([1, "x"], vectors, "these").tolist() == ["1", "x"]
    for labels in (None, ["x"]):
        with pytest.raises(InputError):
            checked_labels(labels, vectors, "these")


def test_unit_rows_of_any_size():
    rows = unit_rows(np.array([[3.0, -4.0], [0.0, 0.0], [3e200, 4e200], [3e-200, -4e-200]]))
    np.testing.assert_allclose(rows, [[0.6, -0.8], [0, 0], [0.6, 0.8], [0.6, -0.8]])
