"""What estimates rest on: words drawn, annealing's steps and errors, orders of words, readable axes, LDA's shares."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import topic_documents
from torch.distributions import Dirichlet

from varitext.batches.counts import CountBatch
from varitext.models.documents import model_class, rsm
from varitext.models.documents.base import varimax
from varitext.models.documents.bounds import (
    bernoulli_kl_per_dimension,
    direction_information,
    gaussian_kl_per_dimension,
    proportion_information,
)
from varitext.models.documents.dcm_decoder import group_words
from varitext.models.documents.docnade import in_random_order, stacked
from varitext.models.documents.lda import _chunks, _expected_log, _sampler, infer_topics
from varitext.models.documents.rsm import (
    LogPartition,
    ReplicatedSoftmax,
    _estimates,
    anneal,
    draw_counts,
    draw_words,
    peak_energies,
)
from varitext.runtime.randomness import seeded
from varitext.training.settings import TrainingSettings


def batch_of(dense) -> CountBatch:
    batch = CountBatch.from_rows(scipy.sparse.csr_matrix(np.asarray(dense, np.float32)))
    return dataclasses.replace(batch, counts=batch.counts.double(), lengths=batch.lengths.double())


def boltzmann(words: int = 6, hidden: int = 4, spread: float = 0.7) -> ReplicatedSoftmax:
    with seeded(0):
        return ReplicatedSoftmax(
            *(spread * torch.randn(*shape).double() for shape in ((words, hidden), (words,), (hidden,)))
        )


# Words drawn


def test_a_rare_word_is_as_rare_in_the_last_of_many_rows():
    """Rows lie one after another on one line, where single precision would have five digits less at its end."""
    rows = 2**18
    scores = torch.tensor([[0.99, 0.01]]).log().expand(rows, 2)
    with seeded(0):
        drawn = draw_words(scores, torch.arange(rows)).double()
    assert abs(drawn.mean() - 0.01) < 4 * math.sqrt(0.01 * 0.99 / rows)
    assert abs(drawn[rows // 2 :].mean() - 0.01) < 4 * math.sqrt(0.01 * 0.99 / (rows // 2))


@pytest.mark.parametrize(("edge", "word"), [(0.0, 1), (1 - 2.0**-53, 2)])
def test_the_edges_of_a_random_number_draw_words_that_can_be(monkeypatch, edge, word):
    """The first word is impossible; in row 3 a number just below one is rounded to the next row."""
    scores = torch.tensor([[-math.inf, 0.0, 0.0]]).expand(4, 3)
    monkeypatch.setattr(torch, "rand", lambda size, dtype, device: torch.full((size,), edge, dtype=dtype))
    assert draw_words(scores, torch.arange(4)).tolist() == [word] * 4


def test_an_impossible_last_word_is_not_drawn_where_probabilities_are_rounded(monkeypatch):
    """In single precision they add up to a little less than one."""
    monkeypatch.setattr(
        torch, "rand", lambda size, dtype, device: torch.full((size,), 1 - 2.0**-53, dtype=torch.double)
    )
    with seeded(0):
        scores = torch.randn(40, 1000)
    scores[:, -1] = -math.inf
    assert all(draw_words(row[None], torch.zeros(1, dtype=torch.long)).item() < 999 for row in scores)


def test_no_two_draws_of_counts_are_the_same():
    with seeded(0):
        drawn = {tuple(draw_counts(torch.zeros(1, 50), 10_000)[0].tolist()) for _ in range(60)}
    assert len(drawn) == 60


def test_words_are_summed_whether_named_or_counted():
    """a + W_w over the words drawn: with one word that is certain there is nothing left to chance."""
    model = boltzmann()
    scores = torch.full((2, 6), -1e4).double()
    scores[0, 2], scores[1, 5] = 0, 0
    for length in (1, 6, 7, 40):  # up to V they are named, beyond they are counted
        expected = length * (model.word_weights[[2, 5]] + model.hidden_bias)
        torch.testing.assert_close(model.summed_words(scores, length), expected)
    assert model.summed_words(scores, 0).tolist() == [[0.0] * 4] * 2
    with seeded(0):
        first, second = (draw_counts(torch.zeros(1, 50), 10_000) for _ in range(2))
    assert not torch.equal(first, second) and first.sum() == second.sum() == 10_000


# Annealing


@pytest.mark.parametrize(("longest", "growth"), [(1, 4), (30, 4), (200, 16)])
def test_steps_are_of_one_word_and_then_a_share_of_the_length(longest, growth, monkeypatch):
    parts = []
    following = rsm._next_state
    monkeypatch.setattr(rsm, "_next_state", lambda *arguments: (parts.append(arguments[2:]), following(*arguments))[1])
    with seeded(0):
        found = anneal(boltzmann(), longest, chains=2, growth=growth, bridges=3)
    lengths = found.lengths.tolist()
    assert lengths[0] == 0 and lengths[-1] == longest
    assert found.values.dtype == found.standard_errors.dtype == np.float64
    for before, after in itertools.pairwise(lengths):
        assert after - before == min(max(1, before // growth), longest - before)
        strengths = [strength for length, added, strength in parts if length == before]
        assert len(strengths) == max(3, growth // (before + 1))  # the first words, which change most, in more parts
        np.testing.assert_allclose(strengths, np.arange(1, len(strengths) + 1) / len(strengths))
        assert {added for length, added, _ in parts if length == before} == {after - before}


def test_standard_errors_are_those_of_the_mean_weight():
    weights = np.random.default_rng(0).gamma(2.0, 1.0, (3, 50)) + 0.1
    found = _estimates(np.arange(3), torch.from_numpy(np.log(weights) + 700))  # far beyond what exp() can hold
    np.testing.assert_allclose(found.values, np.log(weights.mean(1)) + 700)
    np.testing.assert_allclose(
        found.standard_errors, weights.std(1, ddof=1) / weights.mean(1) / math.sqrt(50), rtol=1e-6
    )


def test_lengths_up_to_the_longest_are_known_and_no_others():
    known = LogPartition(np.array([0, 2, 6]), np.array([1.0, 2.0, 8.0]), np.array([0.0, 0.2, 0.4]))
    np.testing.assert_allclose(known.at(np.array([0, 1, 6.0])), [1, 1.5, 8])
    np.testing.assert_allclose(known.standard_error_at(np.array([1, 4, 6.0])), [0.1, 0.3, 0.4])
    assert known.at(np.array([])).shape == known.standard_error_at(np.array([])).shape == (0,)
    for ask in (known.at, known.standard_error_at):
        with pytest.raises(ValueError, match=r"up to 6 words, not for 6\.5"):
            ask(np.array([0.0, 6.5, 1.0]))


def test_from_everywhere_the_highest_peak_is_found_and_no_unit_can_raise_a_peak():
    model = boltzmann(words=5, hidden=6, spread=1.5)
    every = torch.tensor(list(itertools.product((0.0, 1.0), repeat=6))).double()
    energies = model.energy_per_word(every)
    found = peak_energies(model, every, sweeps=6)
    local = [
        energy.item()
        for h, energy in zip(every, energies, strict=True)
        if all(model.energy_per_word((h + one)[None] % 2).item() <= energy for one in torch.eye(6).double())
    ]
    np.testing.assert_allclose(np.sort(found.numpy()), np.sort(local))
    torch.testing.assert_close(found.max(), energies.max())


def test_more_samples_are_more_chains_and_documents_share_their_errors():
    model = model_class("rsm")(12, 3)
    counts = topic_documents(5, 12, 3, 6)
    few, many = model.evaluate(counts, 3, 0), model.evaluate(counts, 20, 0)
    assert (few.drawn, many.drawn) == (50, 200)
    assert few.standard_errors.shape == (5,) and (few.lengths == counts.sum(1).A1).all()


def test_more_samples_anneal_more_slowly(monkeypatch):
    model, asked = model_class("rsm")(12, 3), []
    found = model.log_partition(80, 50, 1)
    monkeypatch.setattr(model, "log_partition", lambda *sizes: (asked.append(sizes[1:]), found)[1])
    for samples in (1, 9, 20):
        model.evaluate(topic_documents(5, 12, 3, 6), samples, 0)
    assert asked == [(50, 1), (90, 1), (200, 4)]  # chains and bridges


def test_a_boltzmann_machine_completes_by_the_ratio_of_probabilities():
    """p(w | X) = p(X, w) / sum_v p(X, v): Z is the same in both, and log_unnormalised has the rest."""
    with seeded(0):
        model = model_class("rsm")(5, 3).double()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
    observed, hidden = np.array([[2, 0, 1, 0, 0], [0, 0, 0, 1, 0]]), np.array([[0, 2, 0, 0, 1], [1, 0, 0, 0, 0]])
    found = model.completion_log_likelihood(batch_of(observed), batch_of(hidden), 1)
    with torch.no_grad():
        longer = torch.stack([model.log_unnormalised(batch_of(row + np.eye(5))) for row in observed])  # [B, V]
    torch.testing.assert_close(found, (torch.from_numpy(hidden) * longer.log_softmax(1)).sum(1))


# Orders


def test_words_stay_in_their_document_however_many_there_are():
    rows = scipy.sparse.identity(4096, np.float32, "csr") * 60
    with seeded(0):
        words, documents, size = in_random_order(CountBatch.from_rows(rows.tocsr()))
    assert size == 4096 and torch.equal(words, documents)


def test_versions_of_a_batch_are_stacked():
    batch = batch_of([[2, 0, 1], [0, 0, 0], [0, 3, 0]])
    parts = torch.tensor([[1.0, 0.0, 3.0], [2.0, 1.0, 1.0]]).double()
    found = stacked(batch, parts)
    expected = CountBatch.from_rows(
        scipy.sparse.csr_matrix(np.array([[2, 0, 1], [0, 0, 0], [0, 3, 0]] * 2, np.float32))
    )
    for name in ("words", "documents", "starts"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert found.counts.tolist() == [1, 0, 3, 2, 1, 1] and found.lengths.tolist() == [1, 0, 3, 3, 0, 1]
    assert len(found) == 6 and found.vocabulary_size == 3


def test_an_order_for_every_five_samples():
    model, counts = model_class("docnade")(12, 3), topic_documents(4, 12, 3, 6)
    assert [model.evaluate(counts, samples, 0).drawn for samples in (1, 9, 10, 25)] == [1, 1, 2, 5]


def test_information_of_docnade_is_at_the_mean_length():
    with seeded(0):
        model = model_class("docnade")(12, 3)
    vectors = model.document_vectors(CountBatch.from_rows(topic_documents(4, 12, 3, 6)))
    found = model.kl_per_dimension(vectors, torch.tensor([2.0, 4.0]))
    expected = direction_information(vectors.mean, model.output.weight, model.word_log_frequencies, 3.0)
    torch.testing.assert_close(found, expected)


# Axes and information


def test_no_small_turn_makes_readable_axes_more_readable():
    """Varimax: the variance of squared coordinates, summed over axes, is at a maximum over all rotations."""
    generator = np.random.default_rng(0)
    means = generator.normal(size=(60, 5)) ** 3 @ generator.normal(size=(5, 5))
    axes, centred = varimax(means, rounds=2000, tolerance=1e-12), means - means.mean(0)

    def criterion(turned):
        return (turned**2).var(0).sum()

    best = criterion(centred @ axes)
    for first, second in itertools.combinations(range(5), 2):
        for angle in (-1e-2, 1e-2):
            turn = np.eye(5)
            turn[np.ix_([first, second], [first, second])] = [
                [math.cos(angle), -math.sin(angle)],
                [math.sin(angle), math.cos(angle)],
            ]
            assert criterion(centred @ axes @ turn) < best
    assert (((centred @ axes) ** 3).sum(0) > 0).all()


def test_information_against_torch_distributions_and_sums():
    generator = torch.Generator().manual_seed(0)
    mean, std = torch.randn(7, 3, generator=generator), torch.rand(7, 3, generator=generator) + 0.2
    normals = torch.distributions.Normal(mean, std), torch.distributions.Normal(0.0, 1.0)
    torch.testing.assert_close(
        gaussian_kl_per_dimension(mean, std), torch.distributions.kl_divergence(*normals).mean(0)
    )
    p = torch.rand(7, 3, generator=generator).double()
    units = torch.distributions.Bernoulli(p), torch.distributions.Bernoulli(p.mean(0).expand(7, 3))
    torch.testing.assert_close(bernoulli_kl_per_dimension(p), torch.distributions.kl_divergence(*units).mean(0))
    shares = torch.softmax(torch.randn(7, 3, generator=generator), 1).double()
    topics = torch.distributions.Categorical(shares), torch.distributions.Categorical(shares.mean(0).expand(7, 3))
    found = proportion_information(shares)
    torch.testing.assert_close(found.sum(), torch.distributions.kl_divergence(*topics).mean())
    torch.testing.assert_close(found, (shares * (shares / shares.mean(0)).log()).mean(0))
    assert bernoulli_kl_per_dimension(torch.tensor([[0.0], [1.0]])).item() == pytest.approx(math.log(2), abs=1e-4)
    same = direction_information(mean, torch.ones(4, 3), torch.full((4,), 0.25, dtype=torch.double).log(), 9.0)
    torch.testing.assert_close(same, torch.zeros(3).double(), atol=1e-12, rtol=0)  # words that all go the same way


# LDA


def lda(words: int = 9, topics: int = 3):
    model = model_class("lda")(words, topics)
    with seeded(0):
        model.word_topics.copy_(Dirichlet(torch.ones(words).double()).sample((topics,)).T)
        model.alpha.copy_(torch.tensor([0.2, 0.5, 0.9]).double())
    return model


def test_an_lda_begins_with_even_topics():
    model = model_class("lda")(8, 3, alpha=0.3)
    assert (model.word_topics == 1 / 8).all() and model.alpha.tolist() == [0.3] * 3
    assert model.word_topics.dtype == model.alpha.dtype == torch.double


def test_the_sampler_is_what_was_asked_for():
    pytest.importorskip("tomotopy")
    counts = topic_documents(6, 12, 3, 9)
    sampler = _sampler(counts, 5, 0.7, 0.25, 3)
    assert (sampler.k, sampler.eta) == (5, pytest.approx(0.25))
    sampler.train(0, workers=1)
    assert list(sampler.alpha) == pytest.approx([0.7] * 5)
    read = [sorted(int(sampler.vocabs[word]) for word in document.words) for document in sampler.docs]
    assert read == [np.repeat(np.arange(12), row.astype(int)).tolist() for row in counts.toarray()]
    topics = []
    for seed in (3, 3, 4):
        other = _sampler(counts, 5, 0.7, 0.25, seed)
        other.train(20, workers=1)
        topics.append(np.array([other.get_topic_word_dist(topic) for topic in range(5)]))
    assert np.array_equal(topics[0], topics[1]) and not np.array_equal(topics[0], topics[2])


def test_topic_shares_are_those_of_the_dirichlet():
    model, counts = lda(), topic_documents(6, 9, 3, 12)
    batch = CountBatch.from_rows(counts)
    gamma = infer_topics(model._topic_prior(), counts)
    vectors = model.document_vectors(batch)
    torch.testing.assert_close(vectors.mean.double(), Dirichlet(gamma).mean, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(vectors.std.double(), Dirichlet(gamma).variance.sqrt(), atol=1e-6, rtol=1e-5)
    weights = _expected_log(gamma).exp()  # gamma is where the updates stand still
    mixed = weights @ model.word_topics.T
    again = model.alpha + weights * ((torch.from_numpy(counts.toarray()).double() / mixed) @ model.word_topics)
    torch.testing.assert_close(again, gamma, atol=1e-3, rtol=0)
    with seeded(1):
        draws = Dirichlet(gamma).sample((20_000,))  # E_q[log theta]
    torch.testing.assert_close(_expected_log(gamma), draws.log().mean(0), atol=0.1, rtol=0)


def test_hidden_words_come_from_the_mean_shares():
    model, counts = lda(), topic_documents(3, 9, 3, 12)
    hidden = np.zeros((3, 9), np.float32)
    hidden[0, 2], hidden[0, 5], hidden[2, 8] = 2, 1, 4
    found = model.completion_log_likelihood(CountBatch.from_rows(counts), batch_of(hidden), 1)
    shares = model.document_vectors(CountBatch.from_rows(counts)).mean.double()
    expected = (torch.from_numpy(hidden).double() * (shares @ model.word_topics.T).log()).sum(1)
    torch.testing.assert_close(found, expected)


def test_chunks_hold_every_document_with_words_once(monkeypatch):
    monkeypatch.setattr("varitext.models.documents.lda.MAX_CHUNK", 60)
    model, dense = lda(), topic_documents(9, 9, 3, 6).toarray()
    dense[4] = 0
    chunks = list(_chunks(model._topic_prior(), scipy.sparse.csr_matrix(dense)))
    assert sorted(np.concatenate([chunk.documents for chunk in chunks])) == [0, 1, 2, 3, 5, 6, 7, 8]
    for chunk in chunks:
        assert chunk.topics.numel() <= 60 or len(chunk.documents) == 1
        assert chunk.counts.shape[1] == (dense[chunk.documents] > 0).sum(1).max()
        np.testing.assert_allclose(chunk.counts.sum(1), dense[chunk.documents].sum(1))


@pytest.mark.parametrize(("epochs", "shares"), [(3, [1 / 3, 2 / 3, 1.0]), (20, [part / 10 for part in range(1, 11)])])
def test_gibbs_rounds_add_up_to_all_passes(epochs, shares):
    pytest.importorskip("tomotopy")
    model = model_class("lda")(12, 2)
    found = list(model.fit_without_gradients(topic_documents(10, 12, 3, 6), TrainingSettings(epochs=epochs)))
    assert found == pytest.approx(shares)
    torch.testing.assert_close(model.word_topics.sum(0), torch.ones(2).double(), rtol=0, atol=1e-12)
    fitted = _sampler(topic_documents(10, 12, 3, 6), 2, model.first_alpha, model.eta, TrainingSettings().seed)
    for part in np.diff([0, *(round(epochs * share) for share in shares)]):
        fitted.train(int(part), workers=1)
    assert model.alpha.tolist() == pytest.approx(list(fitted.alpha))  # the same run: alpha is its own


# Groups of words


def test_groups_are_no_more_than_words_can_fill():
    counts = topic_documents(200, 60, 4)
    assert [len(np.unique(group_words(counts, groups))) for groups in (1, 4, 300)] == [1, 4, 12]  # five words each


def test_groups_look_at_whether_a_word_is_there_and_not_at_chance():
    dense = topic_documents(80, 60, 4, 12).toarray()
    dense[:, 17] = 0  # in no document
    groups = []
    for seed, times in ((0, 1), (1, 1), (2, 7)):
        np.random.seed(seed)
        groups.append(group_words(scipy.sparse.csr_matrix(dense * times), 4))
    assert np.array_equal(groups[0], groups[1]) and np.array_equal(groups[0], groups[2])
