"""DocumentModel as users hold it: inputs, scikit-learn's own checks, identities, saving, bad input."""

import json
import math
import runpy
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from synthetic import topic_documents

from varitext import DocumentModel, InputError
from varitext.corpora.documents import Documents
from varitext.documents.posterior import means_of, posterior_of
from varitext.text import Vocabulary, VocabularyRules

COUNTS = topic_documents()
FOLDER_V1 = Path(__file__).parent / "folder_v1"
SMALL = {"latent_dim": 4, "epochs": 8, "batch_size": 32, "learning_rate": 5e-3, "threads": 1, "n_topics": 2}


@pytest.fixture(scope="module")
def fitted():
    return DocumentModel(**SMALL).fit(COUNTS)


# to the last bit, which no matrix product promises; tests/models/test_contract.py asks it to 1e-5
TO_THE_BIT = {"check_methods_sample_order_invariance": "to 1e-5", "check_methods_subset_invariance": "to 1e-5"}


# scikit-learn's own checks send real numbers as features, hence fractional_counts
@parametrize_with_checks(
    [DocumentModel(latent_dim=2, epochs=2, fractional_counts=True, threads=1)],
    expected_failed_checks=lambda estimator: TO_THE_BIT,
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_works_in_a_pipeline_and_a_grid_search():
    labels = np.asarray(COUNTS[:, :15].sum(1) > COUNTS.sum(1) / 2).ravel()
    pipeline = make_pipeline(DocumentModel("nvdm", **SMALL), LogisticRegression())
    assert cross_val_score(pipeline, COUNTS, labels, cv=3).mean() > 0.9
    search = GridSearchCV(DocumentModel("nvdm", **SMALL), {"latent_dim": [1, 4]}, cv=2).fit(COUNTS)
    assert search.best_params_ == {"latent_dim": 4}  # four topics made these documents


def test_texts_tokens_and_counts_give_the_same_model():
    words = [f"w{chr(97 + i // 8)}{chr(97 + i % 8)}" for i in range(COUNTS.shape[1])]
    tokens = [[words[w] for w in row.indices for _ in range(int(row[0, w]))] for row in COUNTS]
    texts = [" ".join(document) for document in tokens]
    rules = VocabularyRules(minimum_documents=1, maximum_document_share=1.0, stop_words="none")
    few = SMALL | {"epochs": 2}
    by_text = DocumentModel(**few, vocabulary_rules=rules).fit(texts)
    by_token = DocumentModel(**few, vocabulary_rules=rules).fit(tokens)
    counter = CountVectorizer(vocabulary=by_text.fitted_.vocabulary.words).fit(texts)
    by_count = DocumentModel(**few).fit(counter.transform(texts).astype(np.float32))
    assert by_text.fitted_.vocabulary == by_token.fitted_.vocabulary
    expected = by_text.transform(texts[:5])
    assert np.array_equal(expected, by_token.transform(tokens[:5]))
    assert np.array_equal(expected, by_count.transform(counter.transform(texts[:5])))


def test_counts_over_another_vocabulary_are_translated(fitted):
    order = np.random.default_rng(0).permutation(60)
    names = (*(f"word{i + 1}" for i in order), "unheard")
    extra = scipy.sparse.hstack([COUNTS[:, order], scipy.sparse.csr_matrix(np.ones((300, 1)))]).tocsr()
    documents = Documents("shuffled", "test", (), counts=extra, vocabulary=Vocabulary(names))
    assert np.array_equal(fitted.transform(documents), fitted.transform(COUNTS))


def test_identities_of_score_perplexity_and_record(fitted):
    record = fitted.perplexity_record(COUNTS)
    assert fitted.perplexity(COUNTS) == pytest.approx(math.exp(-fitted.score(COUNTS)))
    assert record.per_document_perplexity == pytest.approx(fitted.perplexity(COUNTS))
    per_word = record.reconstruction_per_word + record.kl_per_word
    assert math.log(record.per_document_perplexity) == pytest.approx(per_word)
    assert record.iwae_per_document_perplexity < record.per_document_perplexity
    low, high = record.per_document_interval_95
    assert low < record.per_document_perplexity < high
    assert record.ratio_to_unigram == record.per_document_perplexity / record.unigram_per_document_perplexity < 0.8
    assert (record.n_documents, record.n_tokens) == (300, int(COUNTS.sum()))


def test_unigram_perplexity_equals_a_hand_worked_case():
    counts = scipy.sparse.csr_matrix(np.array([[2, 0], [1, 1]] * 20, np.float32))
    model = DocumentModel(latent_dim=1, epochs=1).fit(counts, dev=counts)
    shares = np.array([3 * 20 + 1, 20 + 1]) / (80 + 2)  # add-one
    expected = math.exp(-(math.log(shares[0]) + 0.5 * math.log(shares[0] * shares[1])) / 2)
    record = model.perplexity_record(counts)
    assert record.unigram_per_document_perplexity == pytest.approx(expected, rel=1e-6)
    assert record.unigram_corpus_perplexity == pytest.approx(expected, rel=1e-6)  # all documents have two words


def test_it_finds_the_topics_that_made_the_documents():
    model = DocumentModel("nvdm", **SMALL | {"epochs": 40}).fit(topic_documents(600))  # drawn from multinomials
    held_out = topic_documents(300, seed=1)
    stretches = [set(range(15 * k, 15 * k + 15)) for k in range(4)]
    own = np.array([np.asarray(held_out[:, sorted(stretch)].sum(1)).ravel() for stretch in stretches])
    labels = own.argmax(0)
    accuracy = cross_val_score(LogisticRegression(), model.transform(held_out), labels, cv=3).mean()
    assert accuracy > 0.95
    # words of one stretch are each other's neighbours
    neighbours = [name for name, _ in model.similar_words("word1", 10)]
    assert sum(int(name[4:]) <= 15 for name in neighbours) >= 9
    # the best possible: the true topic is known, its word probabilities are known
    probabilities = np.full((4, 60), 0.2 / 60)
    for k in range(4):
        probabilities[k, 15 * k : 15 * k + 15] += 0.8 / 15
    probabilities /= probabilities.sum(1, keepdims=True)
    log_joint = held_out @ np.log(probabilities.T) + math.log(1 / 4)
    exact = np.logaddexp.reduce(log_joint, axis=1)
    best = math.exp(-(exact / np.asarray(held_out.sum(1)).ravel()).mean())
    record = model.perplexity_record(held_out)
    assert best < record.iwae_per_document_perplexity < record.per_document_perplexity < 1.12 * best


def test_vectors_do_not_depend_on_what_else_is_in_the_call(fitted):
    together = fitted.posterior(COUNTS)
    for rows in (slice(0, 1), slice(17, 40), slice(250, 300)):
        alone = fitted.posterior(COUNTS[rows])
        np.testing.assert_allclose(alone.mean, together.mean[rows], rtol=1e-5, atol=1e-5)  # the prior's std is 1
        np.testing.assert_allclose(alone.std, together.std[rows], rtol=1e-5)


def test_vectors_that_are_not_refined_are_those_of_the_inference_network(fitted):
    steps, refined = fitted.fitted_.network.refinement_steps, fitted.transform(COUNTS)
    fast = fitted.transform(COUNTS, refine=False)
    assert fitted.fitted_.network.refinement_steps == steps > 0 and not np.allclose(fast, refined, atol=1e-3)
    with fitted.fitted_.network.refining(False):
        assert np.array_equal(fitted.transform(COUNTS), fast)
    assert np.array_equal(fitted.transform(COUNTS), refined)


def test_documents_without_known_words_get_the_prior(fitted):
    counts = scipy.sparse.vstack([COUNTS[:1], scipy.sparse.csr_matrix((1, 60))]).tocsr()
    posterior = fitted.posterior(counts)
    assert (posterior.mean[1] == 0).all() and (posterior.std[1] == 1).all()
    assert (posterior.std[0] < 1).any()
    assert fitted.perplexity_record(counts).n_empty_documents == 1


def test_longer_documents_are_more_certain(fitted):
    short, long = COUNTS[:100], COUNTS[:100] * 5
    assert fitted.posterior(long).std.mean() < fitted.posterior(short).std.mean()


def test_empty_documents_are_dropped_counted_and_said():
    counts = scipy.sparse.vstack([COUNTS, scipy.sparse.csr_matrix((7, 60))]).tocsr()
    with pytest.warns(UserWarning, match="7 empty documents"):
        model = DocumentModel(**SMALL).fit(counts)
    assert model.fitted_.n_empty_documents == 7
    assert model.fitted_.n_training_documents + model.fitted_.n_dev_documents == 300


def test_similar_documents_are_found(fitted):
    found = fitted.similar_documents(COUNTS[:3], among=COUNTS, n=2)
    assert [neighbours[0].index for neighbours in found] == [0, 1, 2]
    assert all(neighbours[0].similarity == pytest.approx(1) for neighbours in found)


def test_latent_dimensions_are_ordered_by_what_they_carry(fitted):
    topics = fitted.latent_dimensions(words=5)
    assert [topic.kl for topic in topics] == sorted((topic.kl for topic in topics), reverse=True)
    for topic in topics:
        assert len(topic.words) == len(topic.weights) == 5
        assert list(topic.weights) == sorted(topic.weights, reverse=True)
        assert not set(topic.words) & set(topic.opposite_words)


def test_what_is_asked_of_a_model_before_it_is_fitted_is_refused(tmp_path):
    model = DocumentModel()
    questions = (model.transform, model.perplexity, model.perplexity_record, model.count, model.posterior)
    for ask in (*(partial(question, COUNTS) for question in questions), model.topics, partial(model.save, tmp_path)):
        with pytest.raises(NotFittedError):
            ask()


# The model folder


@pytest.fixture
def folder(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_is_the_same_model(fitted, folder):
    loaded = DocumentModel.load(folder)
    assert np.array_equal(loaded.transform(COUNTS), fitted.transform(COUNTS))
    assert loaded.perplexity(COUNTS) == fitted.perplexity(COUNTS)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.topics() == fitted.topics() and loaded.fitted_.history == fitted.fitted_.history
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "metrics.jsonl", "topics.json", "topics.safetensors", "vocabulary.txt", "weights.safetensors",
    ]  # fmt: skip


def test_version_1_of_the_folder_stays_readable():
    """tests/documents/folder_v1/make.py wrote it once."""
    expected = json.loads((FOLDER_V1 / "expected.json").read_text())
    model, queries = DocumentModel.load(FOLDER_V1 / "model"), runpy.run_path(str(FOLDER_V1 / "make.py"))["QUERIES"]
    found = (*model.posterior(queries), model.topic_memberships(queries), model.perplexity(queries))
    for name, value in zip(("mean", "std", "memberships", "perplexity"), found, strict=True):
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)
    topics = [[topic.number, topic.documents, list(topic.words[:4])] for topic in model.topics()]
    assert topics == [[number, *others] for number, _, *others in expected["topics"]]
    assert model.topics()[0].name == expected["topics"][0][1]  # the user's; those of words follow the current rule
    assert [list(one.words[:4]) for one in model.latent_dimensions()] == expected["dimensions"]


def test_saving_never_overwrites_unasked(fitted, folder):
    with pytest.raises(InputError, match="exists already"):
        fitted.save(folder)
    fitted.save(folder, overwrite=True)
    DocumentModel.load(folder)


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors", "vocabulary.txt", "metrics.jsonl"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "tampered", "empty"])
def test_a_damaged_folder_is_refused_in_one_line(folder, name, damage):
    path = folder / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        middle = len(content) // 2
        changed = {
            "truncated": content[:middle],
            "empty": b"",
            "tampered": content[:middle] + b"\x00" + content[middle + 1 :],
        }
        path.write_bytes(changed[damage])
    with pytest.raises(InputError) as caught:
        DocumentModel.load(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 99}, "format version 99, but this varitext reads version 1"),
        ({"kind": "answer-ranker"}, "kind 'answer-ranker'"),
        ({"format": "something"}, "does not belong to a varitext model"),
        ({"model": "unheard"}, "does not have"),
        ({"settings": {"latent_dim": 4, "evil": 1}}, "does not describe"),
        ({"settings": None}, "does not describe"),
        ({"architecture": {"vocabulary_size": 60, "latent_dim": 5}}, "do not fit"),
        ({"architecture": {"vocabulary_size": 61, "latent_dim": 4}}, "differ in size"),
        ({"architecture": {"vocabulary_size": "60"}}, "differ in size"),
        ({"sha256": {}}, "hashes"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, change, message):
    config = json.loads((folder / "config.json").read_text())
    del config["config_sha256"]  # which would tell before anything else
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=message):
        DocumentModel.load(folder)


def test_a_failing_save_leaves_nothing_behind(fitted, tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        fitted.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_not_a_model_folder(tmp_path):
    with pytest.raises(InputError, match="not a folder"):
        DocumentModel.load(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"no config\.json"):
        DocumentModel.load(tmp_path)


# Bad input


@pytest.mark.parametrize(
    ("value", "message"), [(-1.0, "egative"), (0.5, "fraction|whole"), (np.inf, "inf"), (np.nan, "NaN")]
)
@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, np.asarray])
def test_counts_that_are_no_counts_are_refused(value, message, make):
    counts = COUNTS.toarray()
    counts[3, 5] = value
    with pytest.raises(ValueError, match=message):
        DocumentModel(**SMALL).fit(make(counts))


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "."),
        (["only one document here"], "."),
        (scipy.sparse.csr_matrix((5, 60)), "none of the 5 documents"),
        (np.ones((20, 1)), "1 feature"),
        ("one string", "Put the text into a list"),
        (["", "   ", "\x00"], "."),
    ],
)
def test_documents_that_cannot_be_learned_from_are_refused(documents, message):
    with pytest.raises(ValueError, match=message):
        DocumentModel(latent_dim=1).fit(documents)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"latent_dim": 0}, "latent_dim=0"),
        ({"model": "lsi"}, "no model is called 'lsi'"),
        ({"preset": "best"}, "no preset is called 'best'"),
        ({"dev_share": 1.5}, "dev_share"),
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": -1.0}, "learning_rate"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        DocumentModel(**{**SMALL, **settings}).fit(COUNTS)


def test_there_are_no_more_latent_dimensions_than_words():
    with pytest.warns(UserWarning, match="only 60 words remain .*; using 60 latent dimensions"):
        model = DocumentModel("nvdm", latent_dim=61, epochs=1, threads=1).fit(COUNTS)
    assert model.fitted_.network.latent_dim == 60


def test_unknown_words_and_wrong_widths_are_refused(fitted):
    with pytest.raises(InputError, match="'zyzzyva' is not among the 60 words"):
        fitted.similar_words("zyzzyva")
    with pytest.raises(ValueError, match="features"):
        fitted.transform(COUNTS[:, :59])
    with pytest.raises(InputError, match="no document has a word"):
        fitted.perplexity_record(scipy.sparse.csr_matrix((3, 60)))


def test_vectors_are_the_same_on_any_number_of_threads_and_with_other_neighbours():
    """A block is the work of one thread; small blocks, so that there are many."""
    counts = topic_documents(documents=50, words=30)
    before = torch.get_num_threads()
    for name in ("nvdm_dcm", "nvdm"):
        network = DocumentModel(name, latent_dim=3, epochs=1, threads=1).fit(counts).fitted_.network
        one, two = (posterior_of(network, counts, block=8, threads=threads) for threads in (1, 2))
        np.testing.assert_allclose(two.mean, one.mean, atol=1e-5)
        np.testing.assert_allclose(two.std, one.std, rtol=1e-5)
        np.testing.assert_allclose(means_of(network, counts[16:], block=8, threads=3), one.mean[16:], atol=1e-5)
        assert (means_of(network, counts, block=8, refine=False, threads=2) != one.mean).any()
    assert torch.get_num_threads() == before


def test_a_fault_in_a_thread_is_told_and_leaves_threads_as_they_were(monkeypatch):
    counts = topic_documents(documents=50, words=30)
    network = DocumentModel("nvdm", latent_dim=3, epochs=1, threads=1).fit(counts).fitted_.network
    before = torch.get_num_threads()
    monkeypatch.setattr(type(network), "document_vectors", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        posterior_of(network, counts, block=8, threads=2)
    assert torch.get_num_threads() == before and network.refinement_steps == 4
