"""The replicated softmax against enumeration: probabilities, annealed partition function, contrastive divergence."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import batch_of, topic_documents

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch
from varitext.models.documents import model_class
from varitext.models.documents.rsm import (
    RSM,
    LogPartition,
    ReplicatedSoftmax,
    _estimates,
    anneal,
    draw_counts,
    draw_states,
    draw_words,
    highest_peaks,
    peak_energies,
)
from varitext.runtime.randomness import seeded

WORDS, HIDDEN = 4, 3


def network(words: int = WORDS, hidden: int = HIDDEN, **settings) -> RSM:
    torch.manual_seed(0)
    model = RSM(words, hidden, **settings).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def every_sequence(length: int) -> np.ndarray:
    """The counts of all sequences of some length, [V^N, V]."""
    sequences = np.array(list(itertools.product(range(WORDS), repeat=length)))
    return (sequences[:, :, None] == np.arange(WORDS)).sum(1)


def states(hidden: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=hidden)), dtype=torch.double)  # [2^K, K]


def exact_log_partition(model: ReplicatedSoftmax, lengths: np.ndarray) -> np.ndarray:
    """log sum_h exp(N g(h)), over all h."""
    energy = model.energy_per_word(states(len(model.hidden_bias))).detach()
    return torch.stack([(length * energy).logsumexp(0) for length in torch.from_numpy(lengths)]).numpy()


@pytest.mark.parametrize("length", [1, 3, 4])
def test_words_summed_out_or_hidden_units_summed_out_is_the_same(length):
    """Z_N over all sequences by `log_unnormalised`, against Z_N over all h by `energy_per_word`; and both against
    the double sum as the paper writes it."""
    model, counts = network(), every_sequence(length)
    over_words = model.log_unnormalised(batch_of(counts)).logsumexp(0).item()
    over_hidden = exact_log_partition(model.softmax(), np.array([length]))[0]
    words, h = torch.from_numpy(counts).double(), states(HIDDEN)
    energies = (words @ model.word_bias)[:, None] + length * (h @ model.hidden_bias) + words @ model.word_weights @ h.T
    assert over_words == pytest.approx(over_hidden)
    assert over_words == pytest.approx(energies.logsumexp((0, 1)).item())


@pytest.mark.parametrize("bridges", [1, 4])
def test_annealing_finds_the_partition_function_of_every_length(bridges):
    model = network(words=30, hidden=8).softmax()
    torch.manual_seed(1)
    found = anneal(ReplicatedSoftmax(*(part.detach() for part in model)), 200, chains=400, growth=32, bridges=bridges)
    error = found.values - exact_log_partition(model, found.lengths)
    assert error[0] == pytest.approx(0, abs=1e-9)  # no words: 2^K
    assert (found.standard_errors[1:] > 0).all() and (found.standard_errors < 0.3).all()
    assert (np.abs(error[1:]) < 4 * found.standard_errors[1:]).all()


def test_annealings_weights_are_without_bias():
    """The mean of Z itself over many small runs, in units of the truth."""
    model = ReplicatedSoftmax(*(part.detach() for part in network().softmax()))
    torch.manual_seed(2)
    found = np.array([anneal(model, 6, chains=20, growth=4, bridges=1).values for _ in range(300)])
    ratios = np.exp(found - exact_log_partition(model, np.arange(7)))  # [300, 7]
    error = ratios.std(0) / math.sqrt(300)
    assert (np.abs(ratios.mean(0) - 1) < 4 * error + 1e-9).all()


def test_a_straight_line_between_lengths_never_overstates_a_probability():
    model = ReplicatedSoftmax(*(part.detach() for part in network(words=30, hidden=8).softmax()))
    every, visited = np.arange(201.0), np.array([0, 1, 2, 3, 5, 8, 13, 30, 60, 120, 200])
    exact = exact_log_partition(model, every)
    known = LogPartition(visited, exact[visited], np.zeros(len(visited)))
    gap = known.at(every) - exact
    assert (gap > -1e-9).all() and gap.max() > 0.01  # convex: above, and not all on the line
    with pytest.raises(ValueError, match="up to 200 words"):
        known.at(np.array([201.0]))


def peaked() -> ReplicatedSoftmax:
    """All ten units on make one word very probable; with some of them off the word is nearly impossible."""
    weights, bias = torch.zeros(5, 10, dtype=torch.double), torch.zeros(5, dtype=torch.double)
    weights[0], bias[0] = 1.2, -8.0
    return ReplicatedSoftmax(weights, bias, torch.full((10,), -0.15, dtype=torch.double))


def test_peaks_are_climbed_and_together_never_exceed_the_partition_function():
    model, lengths = peaked(), np.array([0, 1, 5, 20, 100])
    few_off = torch.ones(4, 10, dtype=torch.double)
    few_off[0, 3], few_off[1, [2, 7]], few_off[2] = 0, 0, 0  # two go to the same peak, one to that of all off
    peaks = peak_energies(model, few_off)
    assert len(peaks) == 2
    floor = np.logaddexp.reduce(np.outer(lengths, peaks.numpy()), axis=1)
    exact = exact_log_partition(model, lengths)
    assert (floor <= exact + 1e-9).all()
    assert floor[-1] == pytest.approx(exact[-1], abs=1e-3)  # of a long document the peak is all there is


def test_an_estimate_below_its_peaks_is_raised_to_them():
    model = peaked()
    torch.manual_seed(0)
    found = anneal(model, 100, chains=50, growth=8, bridges=1)
    assert found.values[-1] >= 100 * peak_energies(model, torch.ones(1, 10, dtype=torch.double)).item() - 1e-6


def hidden_away(units: int = 20) -> ReplicatedSoftmax:
    """As `peaked`, but from fewer than 16 of 20 units there is no way up: 6 h of 1,000."""
    weights, bias = torch.zeros(5, units, dtype=torch.double), torch.zeros(5, dtype=torch.double)
    weights[0], bias[0] = 1.2, -19.0
    return ReplicatedSoftmax(weights, bias, torch.full((units,), -0.15, dtype=torch.double))


def test_a_peak_that_no_chain_finds_is_found_from_elsewhere():
    model, lengths = hidden_away(), np.array([0, 10, 100])
    on = torch.tril(torch.ones(21, 20, dtype=torch.double), -1)  # row n has n units on
    choices = torch.tensor([math.comb(20, n) for n in range(21)], dtype=torch.double).log()
    energy = model.energy_per_word(on)
    exact = torch.stack([(choices + length * energy).logsumexp(0) for length in lengths]).numpy()
    torch.manual_seed(0)
    found = anneal(model, 100, chains=20, bridges=1)
    assert found.at(lengths)[2] == pytest.approx(exact[2], abs=0.1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("varitext.models.documents.rsm._at_least", lambda estimated, peaks: estimated)
        assert anneal(model, 100, chains=20, bridges=1).values[-1] < exact[2] - 50


@pytest.mark.parametrize("seed", range(5))
def test_uphill_is_never_down_and_ends_at_a_fixed_point(seed):
    torch.manual_seed(seed)
    model = ReplicatedSoftmax(
        2 * torch.randn(40, 12, dtype=torch.double),
        torch.randn(40, dtype=torch.double),
        -torch.rand(12, dtype=torch.double),
    )
    before = draw_states(model, 200)
    assert set(before.unique().tolist()) == {0.0, 1.0} and len(torch.unique(before, dim=0)) > 100
    energy = model.energy_per_word(before)
    for _ in range(20):
        there = model.uphill(before, most=1)
        assert (model.energy_per_word(there) >= energy - 1e-12).all()
        before, energy = there, model.energy_per_word(there)
    assert torch.equal(model.uphill(before), before)
    assert energy.max() == pytest.approx(model.energy_per_word(states(12)).max().item())  # of all 4,096


def test_the_highest_peaks_come_first_and_once():
    model = peaked()
    torch.manual_seed(0)
    both = highest_peaks(model, 500, kept=5)
    assert both.tolist() == [[1.0] * 10, [0.0] * 10] and highest_peaks(model, 500, kept=1).tolist() == [[1.0] * 10]


def test_chains_find_a_peak_that_no_document_leads_to_and_training_wears_it_off():
    """Twenty units that together make one word all but certain, far from every document; chains of Gibbs steps alone
    never see it."""
    planted = hidden_away()
    documents = np.tile([0, 1, 1, 1, 1], (64, 5))[:, :5] * 4
    counts = CountBatch.from_rows(scipy.sparse.csr_matrix(documents.astype(np.float32)))
    left = {}
    for restarted in (8, 10**6):  # one in eight; none
        torch.manual_seed(0)
        model = RSM(5, 20, most_steps=1)
        model.word_weights.data, model.word_bias.data, model.hidden_bias.data = (part.float() for part in planted)
        model.chains.zero_()
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("varitext.models.documents.rsm.RESTARTED", restarted)
            for _ in range(40):
                optimizer.zero_grad()
                (-model.objective(counts, 1, 1.0).surrogate.mean()).backward()
                optimizer.step()
        left[restarted] = model.softmax().energy_per_word(torch.ones(1, 20)).item()
    before = planted.energy_per_word(torch.ones(1, 20, dtype=torch.double)).item()
    assert left[10**6] > before - 0.2 and left[8] < before - 1


def test_between_lengths_visited_the_error_is_small():
    """At the growth we use a step is 1/64 of the length."""
    model = ReplicatedSoftmax(*(part.detach() for part in network(words=30, hidden=8).softmax()))
    torch.manual_seed(0)
    visited = anneal(model, 400, chains=2).lengths
    every = np.arange(401)
    exact = exact_log_partition(model, every)
    known = LogPartition(visited, exact[visited], np.zeros(len(visited)))
    assert len(visited) < 250 and (known.at(every) - exact).max() < 0.01


def test_words_are_drawn_from_the_softmax():
    torch.manual_seed(0)
    scores = torch.tensor([[0.0, 1.0, -50.0, 2.0], [3.0, 0.0, 0.0, 0.0]])
    rows = torch.arange(2).repeat_interleave(torch.tensor([40_000, 40_000]))
    words = draw_words(scores, rows)
    for row in range(2):
        shares = torch.bincount(words[rows == row], minlength=4) / 40_000
        torch.testing.assert_close(shares, torch.softmax(scores[row], 0), atol=0.01, rtol=0)
    counts = draw_counts(scores, 40_000)
    assert (counts.sum(1) == 40_000).all()
    torch.testing.assert_close(counts / 40_000, torch.softmax(scores, 1), atol=0.01, rtol=0)


def test_the_gradient_is_that_of_contrastive_divergence():
    """Up at the document, down at the fantasy: by hand from the three sufficient statistics."""
    model = network(most_steps=2, updates_per_step=1, persistent=0.0)
    batch = batch_of(np.array([[3, 0, 1, 0], [0, 2, 0, 5]]))
    torch.manual_seed(5)
    fantasy, _ = model.gibbs(batch, 1)
    torch.manual_seed(5)
    model.objective(batch, 1, 1.0).surrogate.sum().backward()
    expected_weights, expected_words, expected_hidden = 0.0, 0.0, 0.0
    for sign, state in ((1, batch), (-1, fantasy)):
        dense = torch.zeros(2, WORDS, dtype=torch.double).index_put_((state.documents, state.words), state.counts, True)
        hidden = torch.sigmoid(dense @ model.word_weights + dense.sum(1, keepdim=True) * model.hidden_bias)
        expected_weights += sign * dense.T @ hidden
        expected_words += sign * dense.sum(0)
        expected_hidden += sign * (dense.sum(1, keepdim=True) * hidden).sum(0)
    torch.testing.assert_close(model.word_weights.grad, expected_weights.detach())
    torch.testing.assert_close(model.word_bias.grad, expected_words.detach())
    torch.testing.assert_close(model.hidden_bias.grad, expected_hidden.detach())


def test_persistent_chains_go_on_and_take_their_share_of_the_way_down():
    model = network(persistent=0.25).train()
    batch = batch_of(np.array([[3, 0, 1, 0], [0, 2, 0, 5]]))
    before = model.chains.clone()
    torch.manual_seed(5)
    fantasy, dream = model.gibbs(batch, 1)[0], model.dream(batch)
    assert torch.bincount(dream.documents).tolist() == [4, 7]
    assert not torch.equal(model.chains[:2], before[:2]) and torch.equal(model.chains[2:], before[2:])
    with torch.no_grad():
        down = 0.75 * model.log_unnormalised(fantasy) + 0.25 * model.log_unnormalised(dream)
        expected = model.log_unnormalised(batch) - down
        model.chains.copy_(before)
        torch.manual_seed(5)
        torch.testing.assert_close(model.objective(batch, 1, 1.0).surrogate, expected)


def test_gibbs_steps_keep_lengths_and_grow_in_number():
    model = network(most_steps=3, updates_per_step=2).train()
    batch = batch_of(np.array([[3, 0, 1, 0], [0, 2, 0, 5], [0, 0, 0, 1]]))
    fantasy, _ = model.gibbs(batch, 2)
    assert torch.bincount(fantasy.documents).tolist() == fantasy.lengths.tolist() == [4, 7, 1]
    taken = []
    for _ in range(7):
        taken.append(model.steps())
        model.objective(batch, 1, 1.0)
    assert taken == [1, 1, 2, 2, 3, 3, 3]


def test_a_batch_of_one_document_is_learned_from():
    model = network().train()
    estimate = model.objective(batch_of(np.array([[3, 0, 1, 0]])), 1, 1.0)
    assert estimate.surrogate.shape == (1,) and torch.isfinite(estimate.surrogate).all()


def test_gibbs_sampling_has_the_models_distribution():
    """Documents of three words after many steps, against their probabilities."""
    model, counts = network(), every_sequence(3)
    probabilities = torch.softmax(model.log_unnormalised(batch_of(counts)).detach(), 0)
    torch.manual_seed(0)
    start = batch_of(np.tile([[3, 0, 0, 0]], (20_000, 1)))
    fantasy, _ = model.gibbs(start, 15)
    numbers = (fantasy.words.view(-1, 3) * torch.tensor([WORDS**2, WORDS, 1])).sum(1)
    shares = torch.bincount(numbers, minlength=WORDS**3) / 20_000
    torch.testing.assert_close(shares.double(), probabilities, atol=0.015, rtol=0)


def test_it_learns_and_is_evaluated():
    model = DocumentModel("rsm", 4, epochs=15, learning_rate=2e-2, threads=1, n_topics=4).fit(topic_documents(400))
    held_out = topic_documents(100, seed=1)
    record = model.perplexity_record(held_out)
    assert (record.kind, record.n_samples) == ("estimate", 200) and "annealed importance sampling" in record.description
    assert 0 < record.standard_error < 0.02 * record.per_document_perplexity
    assert record.ratio_to_unigram < 0.85
    lengths = np.asarray(held_out.sum(1)).ravel()
    double = ReplicatedSoftmax(*(part.double() for part in model.fitted_.network.softmax()))
    exact = model.fitted_.network.log_unnormalised(CountBatch.from_rows(held_out)).numpy() - exact_log_partition(
        double, lengths
    )
    assert record.per_document_perplexity == pytest.approx(np.exp(-(exact / lengths).mean()), rel=0.03)
    vectors = model.posterior(held_out)
    assert ((vectors.mean >= 0) & (vectors.mean <= 1)).all() and (vectors.std <= 0.5).all()
    assert len(model.latent_dimensions()) == 4


def test_what_it_cannot_do_is_said():
    with pytest.raises(InputError, match="rsm needs whole counts"):
        DocumentModel("rsm", 2, fractional_counts=True).fit(topic_documents(20))


# Draws


def boltzmann(words: int = 6, hidden: int = 4, spread: float = 0.7) -> ReplicatedSoftmax:
    with seeded(0):
        return ReplicatedSoftmax(
            *(spread * torch.randn(*shape).double() for shape in ((words, hidden), (words,), (hidden,)))
        )


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


def test_words_are_summed_whether_named_or_counted():
    """a + W_w over the words drawn: with one word that is certain there is nothing left to chance."""
    model = boltzmann()
    scores = torch.full((2, 6), -1e4).double()
    scores[0, 2], scores[1, 5] = 0, 0
    for length in (1, 6, 7, 40):  # up to V they are named, beyond they are counted
        expected = length * (model.word_weights[[2, 5]] + model.hidden_bias)
        torch.testing.assert_close(model.summed_words(scores, length), expected)
    assert model.summed_words(scores, 0).tolist() == [[0.0] * 4] * 2


# Annealing


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
