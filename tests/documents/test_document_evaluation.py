"""Completion against what is known exactly, classification, and everything at once for a fitted model."""

import json
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from synthetic import topic_documents

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch
from varitext.corpora.documents import Documents
from varitext.documents.evaluation import completion_log_likelihoods, completion_of, evaluate_documents
from varitext.evaluation import classification_record
from varitext.evaluation.perplexity import Halves, split_words
from varitext.models.documents.nvdm import NVDM
from varitext.text import Vocabulary

TOPICS = 4
COUNTS = topic_documents(documents=240, topics=TOPICS)
LABELS = tuple(f"topic {topic}" for topic in np.random.default_rng(0).integers(TOPICS, size=240))  # as drawn there
WORDS = Vocabulary(tuple(f"w{chr(97 + i // 8)}{chr(97 + i % 8)}" for i in range(COUNTS.shape[1])))


def part(name: str, rows: slice, labels: bool = True) -> Documents:
    return Documents(
        "synthetic", name, (), counts=COUNTS[rows], vocabulary=WORDS, labels=LABELS[rows] if labels else None
    )


TRAIN, TEST = part("train", slice(0, 180)), part("test", slice(180, 240))


@pytest.fixture(scope="module")
def fits():
    settings = {"latent_dim": 4, "epochs": 20, "batch_size": 32, "learning_rate": 5e-3, "threads": 1}
    return [DocumentModel(**settings, seed=seed).fit(TRAIN) for seed in range(2)]


# Splitting documents

rows = st.lists(st.integers(0, 5), min_size=4, max_size=4)


@given(st.lists(rows, min_size=1, max_size=6), st.integers(0, 99))
def test_halves_make_up_the_document(documents, seed):
    counts = scipy.sparse.csr_matrix(np.array(documents, np.float32))
    observed, hidden = split_words(counts, seed)
    assert (observed + hidden != counts).nnz == 0
    assert np.array_equal(hidden.sum(1), counts.sum(1) // 2)
    assert all((part.data > 0).all() for part in (observed, hidden))
    again = split_words(counts, seed)
    assert (again.hidden != hidden).nnz == 0


def test_every_token_is_hidden_equally_often():
    counts = scipy.sparse.csr_matrix(np.tile([3.0, 1.0, 2.0], (4000, 1)))
    assert np.asarray(split_words(counts).hidden.mean(0)).ravel() == pytest.approx([1.5, 0.5, 1.0], abs=0.05)


# Completion


def small_network(words: int = 6) -> NVDM:
    torch.manual_seed(0)
    network = NVDM(words, latent_dim=2, inference="statistics", hidden_dim=8).eval().requires_grad_(False)
    network.learn_frequencies(torch.arange(words))
    return network


def small_halves() -> Halves:
    return split_words(scipy.sparse.csr_matrix(np.random.default_rng(0).poisson(2, (5, 6)).astype(np.float32)))


def test_a_model_without_topics_completes_as_the_unigram_model():
    network = small_network()
    network.decoder.weight.zero_()
    frequencies = network.word_log_frequencies.double().numpy()
    counts = scipy.sparse.csr_matrix(np.array([[3, 0, 1, 0, 2, 0], [0, 1, 0, 0, 0, 0], [0] * 6], np.float32))
    record = completion_of(network, counts, frequencies)
    assert record.per_document_perplexity == pytest.approx(record.unigram_per_document_perplexity, rel=1e-5)
    assert record.n_documents == 1 and record.n_documents_left_out == 2
    assert record.n_hidden_tokens == 3 and record.n_observed_tokens == 3
    assert record.estimator == "each word by itself"


def test_a_sure_posterior_predicts_by_its_mean():
    network, halves = small_network(), small_halves()
    network.decoder.weight.normal_()
    network.head.log_std.bias.fill_(-100)  # clamped to the smallest spread there is
    mean = network.posterior(network.encode(CountBatch.from_rows(halves.observed))).mean
    expected = (halves.hidden.toarray() * torch.log_softmax(network.decoder(mean), -1).numpy()).sum(1)
    assert completion_log_likelihoods(network, halves) == pytest.approx(expected, abs=0.01)


def test_mean_over_samples_is_that_of_probabilities():
    network, halves = small_network(), small_halves()
    network.decoder.weight.normal_()
    ones = scipy.sparse.csr_matrix(np.eye(6, dtype=np.float32)[:5])  # each hides one word: both estimators agree
    halves = halves._replace(hidden=ones)
    each = completion_log_likelihoods(network, halves, samples=7, seed=3)
    assert each == pytest.approx(completion_log_likelihoods(FourMethods(network), halves, samples=7, seed=3), abs=1e-5)


class FourMethods:
    """A model that gives no more than the framework asks."""

    def __init__(self, network: NVDM):
        self.encode, self.posterior, self.prior = network.encode, network.posterior, network.prior
        self.log_likelihood = network.log_likelihood


def test_with_one_sample_the_two_estimators_are_one():
    network, halves = small_network(), small_halves()
    network.decoder.weight.normal_()
    each, at_once = (completion_log_likelihoods(m, halves, samples=1) for m in (network, FourMethods(network)))
    assert each == pytest.approx(at_once, abs=1e-4)


def test_a_model_may_complete_by_itself():
    class Own:
        def completion_log_likelihood(self, observed, hidden, samples):
            return -math.log(7) * hidden.lengths

    record = completion_of(Own(), COUNTS, np.full(COUNTS.shape[1], -math.log(60)))
    assert record.per_document_perplexity == pytest.approx(7, rel=1e-5) and record.estimator == "the model's own"
    assert record.unigram_corpus_perplexity == pytest.approx(60)


def test_nothing_to_complete():
    with pytest.raises(InputError, match="nothing to complete"):
        completion_of(small_network(), scipy.sparse.csr_matrix(np.eye(6, dtype=np.float32)), np.zeros(6))


# Classification


def separable(size: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = np.arange(size) % 3
    return np.eye(3)[labels] + 0.05 * generator.standard_normal((size, 3)), labels


def test_test_documents_change_neither_penalty_nor_fit():
    (train, labels), (test, truth) = separable(), separable(30, seed=1)
    first = classification_record(train, labels, test, truth)
    second = classification_record(train, labels, -1000 * test, np.roll(truth, 1))
    assert (first.penalty, first.cross_validated_accuracy) == (second.penalty, second.cross_validated_accuracy)


@pytest.mark.parametrize("labels", [["a"] * 9, ["a"] * 8 + ["b"]])
def test_too_few_labels_are_refused(labels):
    with pytest.raises(InputError, match="two labels with 3 training documents"):
        classification_record(np.eye(9), labels, np.eye(9), labels)


def test_vectors_that_say_nothing_are_no_error():
    record = classification_record(np.ones((9, 2)), list("aaabbbccc"), np.ones((3, 2)), list("abc"))
    assert record.accuracy == pytest.approx(1 / 3)


# All at once


def test_everything_about_a_fitted_model(fits):
    evaluation = evaluate_documents(fits[0], TRAIN, TEST, other_fits=fits[1:])
    assert evaluation.classification.accuracy > 0.9  # the four topics lie far apart
    assert evaluation.retrieval.precision_at_2_percent > 0.9 > 2 * evaluation.retrieval.by_chance
    assert evaluation.completion.ratio_to_unigram < 0.7
    assert evaluation.neighbourhood_stability.overlap > 2 * evaluation.neighbourhood_stability.by_chance
    assert evaluation.c_v is None and evaluation.npmi.window is None
    record = json.loads(json.dumps(evaluation.as_dict(), allow_nan=False))
    assert record["retrieval"]["n_queries"] == record["completion"]["n_documents"] == 60


def test_without_labels_and_other_fits_the_rest_is_there(fits):
    evaluation = evaluate_documents(fits[0], part("train", slice(0, 180), False), part("test", slice(180, 240), False))
    assert evaluation.retrieval is evaluation.classification is evaluation.topic_stability is None
    assert evaluation.as_dict()["classification"] is None and evaluation.diversity.n_topics == 4


def test_coherence_on_texts_slides_over_them(fits):
    texts = [" ".join(WORDS.words[i] for i in row.indices) for row in COUNTS[:180]]
    evaluation = evaluate_documents(fits[0], TRAIN, TEST, reference=texts)
    assert evaluation.npmi.window == 10 and evaluation.c_v.window == 110
