"""What holds for every model of both registries: a new line there is tested here without another."""

import functools
import inspect
import json
import math
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_up_questions import made_up
from scipy.special import logit
from synthetic import topic_documents

from varitext import AnswerRanker, DocumentModel, InputError
from varitext.answers.settings import AnswerRecipe
from varitext.batches.counts import CountBatch
from varitext.batches.pairs import PairBatches
from varitext.corpora.question_answers import Candidate
from varitext.documents.evaluation import completion_of
from varitext.documents.stored_words import similar_words_in_folder
from varitext.latent import Bound, elbo
from varitext.latent.bound import draw_from
from varitext.models.answers import ANSWER_MODELS, cross_encoder, model_class, pretrained
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.scorer import AnswerScorer
from varitext.models.documents import DOCUMENT_MODELS, check_preset
from varitext.models.documents.base import FitsWithoutGradients, HasWordProbabilities
from varitext.training.settings import HasInferenceParameters

NEEDS = {"lda": "tomotopy", "pv": "gensim"}  # to be fitted
NETWORKS = [name for name, entry in ANSWER_MODELS.items() if entry.trained_by_gradient]
COUNTS = topic_documents(80, 30, 3, 15)
TRAIN, DEV, TEST = made_up(24, 0), made_up(8, 1), made_up(12, 2)

every_document_model = pytest.mark.parametrize("name", DOCUMENT_MODELS)
every_answer_model = pytest.mark.parametrize("name", ANSWER_MODELS)
every_answer_network = pytest.mark.parametrize("name", NETWORKS)


@pytest.fixture(scope="module", autouse=True)
def short_encoder():
    """A cross-encoder of one of MiniLM's six layers: what is asked here is asked of each of them."""

    def one_layer():
        encoder = pretrained.new_encoder()
        encoder.layers = encoder.layers[:1]
        return encoder

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cross_encoder, "new_encoder", one_layer)
        yield


def fit_documents(name: str) -> DocumentModel:
    pytest.importorskip(NEEDS.get(name, "torch"))
    return DocumentModel(name, latent_dim=3, epochs=4, threads=1, n_topics=3).fit(COUNTS)


def fit_answers(name: str) -> AnswerRanker:
    if name.startswith("minilm") and not pretrained.is_installed():
        pytest.skip("MiniLM is not installed")
    pytest.importorskip(NEEDS.get(name, "torch"))
    sizes = {"latent_dim": 4, "embedding_dim": 8, "vectors": "random", "recipe": AnswerRecipe(hidden_dim=6, layers=1)}
    return AnswerRanker(name, **sizes, epochs=2, prediction_samples=4, threads=1).fit(TRAIN, DEV)


documents = functools.cache(fit_documents)
answers = functools.cache(fit_answers)


def check_inference_parameters(network) -> None:
    inference, every = (set(map(id, group)) for group in (network.inference_parameters(), network.parameters()))
    assert inference and inference < every


# Documents


@every_document_model
def test_a_document_model_is_what_its_line_says(name):
    entry = DOCUMENT_MODELS[name]
    kind = entry.load()
    assert entry.title and ("estimator" in inspect.signature(kind).parameters) == bool(entry.estimators)
    assert kind.reads_vectors == entry.reads_vectors
    for preset in entry.presets:
        check_preset(name, preset)
        for size in (2, 300, 1_000_000):
            recipe = kind.recipe(preset, size, 50.0)
            assert recipe.training.epochs > 0 and recipe.training.batch_size > 0
        kind(vocabulary_size=9, latent_dim=2, **recipe.architecture)
    for estimator in entry.estimators:
        kind(vocabulary_size=9, latent_dim=2, estimator=estimator)
    with pytest.raises(InputError, match=f"no preset is called 'best'; there are: {', '.join(entry.presets)}"):
        check_preset(name, "best")


@every_document_model
def test_a_saved_document_model_is_the_same_model(name, tmp_path):
    model = documents(name)
    model.save(tmp_path / "model")
    again = DocumentModel.load(tmp_path / "model")
    assert type(again.fitted_.network) is DOCUMENT_MODELS[name].load()
    assert np.array_equal(again.transform(COUNTS), model.transform(COUNTS))
    assert again.perplexity_record(COUNTS) == model.perplexity_record(COUNTS) and again.topics() == model.topics()


@every_document_model
def test_words_are_compared_without_building_a_network(name, tmp_path):
    model = documents(name)
    model.save(tmp_path / "model")
    found = similar_words_in_folder(tmp_path / "model", word := model.fitted_.vocabulary.words[0], 5)
    assert (found is None) == (DOCUMENT_MODELS[name].word_weight is None)
    if found is not None:
        words, cosines = zip(*model.similar_words(word, 5), strict=True)
        assert [each for each, _ in found] == list(words)
        assert [cosine for _, cosine in found] == pytest.approx(cosines, abs=1e-5)


@every_document_model
def test_the_same_seed_gives_the_same_document_model(name):
    first, second = (model.fitted_.network.state_dict() for model in (documents(name), fit_documents(name)))
    assert all(torch.equal(first[key], second[key]) for key in first)


@every_document_model
def test_bounds_of_documents_have_their_signs(name):
    network = documents(name).fitted_.network
    bounds = network.evaluate(COUNTS, 20, 0)
    assert network.estimate_kind.kind in ("bound", "exact", "estimate") and network.estimate_kind.description
    assert (bounds.log_likelihood < 0).all() and np.isfinite(bounds.importance_weighted).all()
    np.testing.assert_allclose(bounds.lengths, np.asarray(COUNTS.sum(1)).ravel())
    np.testing.assert_allclose(bounds.elbo, bounds.log_likelihood - bounds.kl)
    if network.estimate_kind.kind == "bound":
        # fDARN's KL comes from draws: above zero on average only
        assert bounds.kl.mean() > 0 if name == "fdarn" else (bounds.kl >= 0).all()
        gap = bounds.importance_weighted - bounds.elbo  # not below zero, but for the noise of draws
        assert gap.mean() > -3 * gap.std() / math.sqrt(len(gap))
    else:
        assert not bounds.kl.any()


@every_document_model
def test_documents_do_not_depend_on_their_company(name):
    model = documents(name)
    together, order = model.posterior(COUNTS), np.random.default_rng(0).permutation(COUNTS.shape[0])
    assert together.mean.shape == together.std.shape == (COUNTS.shape[0], model.fitted_.network.vector_dim)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    for found in (model.posterior(COUNTS[order]), model.posterior(COUNTS[order], block=7)):  # the last one filled up
        close(found.mean, together.mean[order])
        close(found.std, together.std[order])


@every_document_model
def test_figures_of_a_document_do_not_depend_on_the_words_of_others(name):
    """Only on their lengths and places, which decide its noise."""
    network, own = documents(name).fitted_.network, slice(0, 80, 4)
    other = COUNTS[:, np.random.default_rng(7).permutation(COUNTS.shape[1])].tolil()
    other[own] = COUNTS[own]
    clean, poisoned = (network.evaluate(counts.tocsr(), 5, 0) for counts in (COUNTS, other))
    bounds = ("log_likelihood", "kl", "importance_weighted")
    for bound in bounds[: 2 if name == "lda" else 3]:  # how much noise a draw of theta takes depends on others
        one, two = (getattr(each, bound)[own] for each in (clean, poisoned))
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-4)
    assert np.abs(clean.elbo - poisoned.elbo).max() > 1  # of the others


@every_document_model
def test_document_models_can_do_what_they_declare(name):
    model = documents(name)
    network, batch = model.fitted_.network, CountBatch.from_rows(COUNTS[:10])
    if not isinstance(network, FitsWithoutGradients):
        surrogate, bound = network.train().objective(batch, 2, 1.0)
        network.eval()
        assert surrogate.shape == (10,) and isinstance(bound, Bound) and bound.elbo.shape == (10,)
    if isinstance(network, HasInferenceParameters):
        check_inference_parameters(network)
    if (decoder := network.linear_decoder()) is not None:
        assert torch.equal(network.word_directions(), decoder.weight)
    if isinstance(network, HasWordProbabilities):
        h = draw_from(network.posterior(network.encode(batch)), 2)
        sums = network.word_log_probabilities(h).exp().sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))
    assert network.word_directions().shape == (30, network.vector_dim)
    assert (model.fitted_.kl_per_dimension >= 0).all() and len(model.fitted_.kl_per_dimension) == network.vector_dim
    frequencies = network.word_log_frequencies.double().numpy()
    assert math.isfinite(completion_of(network, COUNTS, frequencies, 4).per_document_perplexity)


# Answers


def log_odds(name: str, corpus) -> np.ndarray:
    return logit(answers(name).predict_proba(corpus))


def close_for(name: str):
    """Networks compute in single precision."""
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if name in NETWORKS else {"rtol": 1e-5, "atol": 1e-6}
    return functools.partial(np.testing.assert_allclose, **tolerance)


@every_answer_model
def test_an_answer_model_is_what_its_line_says(name):
    entry = ANSWER_MODELS[name]
    kind = entry.load()
    assert issubclass(kind, AnswerNetwork if entry.trained_by_gradient else AnswerScorer) and entry.title
    assert (kind.has_latent, kind.trained_by_gradient) == (entry.has_latent, entry.trained_by_gradient)
    assert bool(kind.feature_names) == entry.has_features


@every_answer_model
def test_a_saved_ranker_is_the_same_ranker(name, tmp_path):
    ranker = answers(name)
    ranker.save(tmp_path / "model")
    again = AnswerRanker.load(tmp_path / "model")
    assert type(again.fitted_.network) is ANSWER_MODELS[name].load()
    assert np.array_equal(again.predict_proba(TEST), ranker.predict_proba(TEST))
    assert again.sample_proba(TEST).shape == (4 if ANSWER_MODELS[name].has_latent else 1, TEST.n_pairs)


@every_answer_model
def test_the_same_seed_gives_the_same_ranker(name):
    first, second = (ranker.fitted_.network.state_dict() for ranker in (answers(name), fit_answers(name)))
    assert all(np.array_equal(first[key], second[key]) for key in first)


@every_answer_model
def test_answers_do_not_depend_on_order_and_company(name):
    backwards = [one._replace(candidates=one.candidates[::-1]) for one in TEST.questions[::-1]]
    expected, close = log_odds(name, TEST), close_for(name)
    close(log_odds(name, replace(TEST, questions=tuple(backwards)))[::-1], expected)
    alone = [log_odds(name, replace(TEST, questions=(one,))) for one in TEST.questions[:3]]
    close(np.concatenate(alone), expected[:15])


@every_answer_model
def test_a_longer_neighbour_changes_nothing(name):
    """Candidates are padded to the longest."""
    one = TEST.questions[0]
    found = []
    for times in (1, 60):
        longer = one._replace(candidates=(*one.candidates, Candidate("x", ("near",) * times, "near", 0)))
        found.append(log_odds(name, replace(TEST, questions=(longer,)))[:5])
    close_for(name)(*found)


@every_answer_model
def test_labels_are_not_looked_at(name):
    other = [
        one._replace(candidates=tuple(pair._replace(label=1 - pair.label) for pair in one.candidates))
        for one in TEST.questions
    ]
    assert np.array_equal(log_odds(name, replace(TEST, questions=tuple(other))), log_odds(name, TEST))


@every_answer_model
def test_a_candidate_without_a_known_word_never_wins(name):
    ranker, empty = answers(name), ("", "...", " ?! ", "xyzzy plugh")
    strange = "_" if model_class(name).knows_every_word else "xyzzy plugh"
    empty = (*empty[:3], strange)
    ranking = ranker.rank("who was the king ?", ["...", "the old queen", "", " ?! ", "a lake", strange])
    assert [one.known for one in ranking.candidates] == [True, True, False, False, False, False]
    for one in ranking.candidates[:2]:
        assert one.probability > 0 and one.probability_best > 0 and one.rank <= 2
    for one in ranking.candidates[2:]:
        assert one.text in empty and one.rank == 3 and one.probability == one.probability_best == 0
        assert one.rank_interval == (3, 6)
    assert sum(one.probability_best for one in ranking.candidates) + ranking.probability_none == pytest.approx(1)


@every_answer_model
def test_right_answers_without_a_known_word_are_evaluated(name):
    """As the last, tied; and no figure is infinite."""
    unknown = "_" if model_class(name).knows_every_word else "xyz"
    silent = tuple(
        Candidate(f"x{number}", (word,), word, label) for number, word, label in ((0, "...", 1), (1, unknown, 0))
    )
    questions = tuple(one._replace(candidates=(*one.candidates, *silent)) for one in TEST.questions)
    corpus = replace(TEST, questions=questions)
    probability, sampled = answers(name).predict_proba(corpus), answers(name).sample_proba(corpus)
    nothing = np.tile([False] * 5 + [True] * 2, TEST.n_questions)
    assert not probability[nothing].any() and not sampled[:, nothing].any() and (probability[~nothing] > 0).all()
    record = answers(name).evaluate(corpus).as_dict()
    assert all(math.isfinite(value) for value in record.values() if isinstance(value, float))
    only = answers(name).evaluate(replace(TEST, questions=(TEST.questions[0]._replace(candidates=silent),)))
    assert only.ranking.map == 0.75  # a tie, in expectation


@every_answer_network
def test_bounds_of_answers_have_their_signs_and_networks_do_what_they_declare(name):
    ranker = answers(name)
    network = ranker.fitted_.network
    inputs = ranker.fitted_.first_stage.inputs(TEST)
    batch = PairBatches(TEST, ranker.fitted_.vocabulary, inputs=inputs).batch(range(TEST.n_questions))
    with torch.no_grad():
        bound = elbo(network, batch, 3)
        encoding = network.encode(batch)
        attention = network.attention_given(network.prior_samples(encoding, 3), encoding)
    examples = TEST.n_questions if network.latent_of_question else TEST.n_pairs
    assert bound.elbo.shape == (examples,) and (bound.log_likelihood < 0).all()
    assert (bound.kl > 0).all() if network.has_latent else not bound.kl.any()
    if attention is not None:
        torch.testing.assert_close(attention.sum(-1), torch.ones(3, TEST.n_pairs))
    if isinstance(network, HasInferenceParameters):
        check_inference_parameters(network)


# A stranger's folder


@contextmanager
def little_memory() -> Iterator[None]:
    """Half a gigabyte more than this process has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (512 << 20), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def refuse_large_numbers(model: DocumentModel | AnswerRanker, kind: type, folder: Path) -> None:
    model.save(folder)
    whole = json.loads((folder / "config.json").read_text())
    del whole["config_sha256"]
    numbers = [name for name, one in inspect.signature(kind).parameters.items() if isinstance(one.default, int)]
    refused = 0
    for name in {*numbers, *whole["architecture"], "members"}:
        for size in (20_000, 10**7 - 1, 10**12):
            changed = whole | {"architecture": whole["architecture"] | {name: size}}
            (folder / "config.json").write_text(json.dumps(changed))
            try:
                with little_memory():
                    type(model).load(folder)
            except InputError as error:
                refused += 1
                assert "allocate" not in str(error) and "\n" not in str(error) and len(str(error)) < 500, error
    assert refused > 2


@every_document_model
def test_no_number_in_a_folder_makes_a_document_model_large(name, tmp_path):
    refuse_large_numbers(documents(name), DOCUMENT_MODELS[name].load(), tmp_path / "model")


@every_answer_model
def test_no_number_in_a_folder_makes_a_ranker_large(name, tmp_path):
    refuse_large_numbers(answers(name), model_class(name), tmp_path / "model")
