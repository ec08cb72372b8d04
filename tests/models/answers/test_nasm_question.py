"""NASM with a question-level latent: bound by quadrature, likelihood by enumeration, order, labels, and without h."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from made_up_questions import WORDS, built, made_up, some_pairs
from torch.distributions import Normal, kl_divergence

from varitext import AnswerRanker, InputError
from varitext.answers.task import mean_over_pairs
from varitext.batches.pairs import PairBatch, PairBatches
from varitext.latent import DiagonalGaussian, draw, elbo, kl
from varitext.layers.attention import LatentAttention, ScalingAttention
from varitext.layers.words import Sentences
from varitext.models.answers.nasm_question import QuestionNASM

SMALL = {"embedding_dim": 8, "hidden_dim": 6, "layers": 1}
QUESTIONS = made_up(4, seed=0)


@pytest.fixture(autouse=True)
def same_random_state():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def network(**changes) -> QuestionNASM:
    """In double precision, with weights large enough for attention and both Gaussians to matter."""
    model = built("nasm_question", **SMALL | {"latent_dim": 3} | changes).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
        model.word_vectors.weight[0] = 0
    return model


def reordered(batch: PairBatch, order: torch.Tensor) -> PairBatch:
    return replace(
        batch,
        answers=type(batch.answers)(batch.answers.tokens[order], batch.answers.mask[order]),
        question_of=batch.question_of[order],
        labels=batch.labels[order],
        weights=batch.weights[order],
    )


def parts(model: QuestionNASM, batch: PairBatch) -> list[torch.Tensor]:
    """Of each question: prior, posterior, and the log likelihood at the posterior's mean."""
    encoding = model.encode(batch)
    prior, posterior = model.prior(encoding), model.posterior(encoding)
    return [*prior, *posterior, model.log_likelihood(posterior.mean[None], encoding)[0]]


# The bound


@torch.no_grad()
def test_bounds_stand_in_their_order_below_the_evidence_by_quadrature():
    """log p(y | q) of all labels of a question, h integrated out once."""
    model, batch, samples = network(latent_dim=1), some_pairs(3, seed=4), 20_000
    for parameter in (*model.prior_head.parameters(), *model.posterior_head.parameters()):
        parameter *= 0.1  # a posterior that covers what it approximates
    encoding = model.encode(batch)
    prior = model.prior(encoding)
    axis = torch.linspace(-8, 8, 2001, dtype=torch.float64)[:, None, None]
    h = prior.mean + prior.std * axis  # [S, Q, 1]
    weight = Normal(0.0, 1.0).log_prob(axis)[..., 0] + math.log(16 / 2000)  # [S, 1]
    exact = torch.logsumexp(model.log_likelihood(h, encoding) + weight, 0)  # [Q]
    found = elbo(model, batch, samples)
    bound, draws = found.elbo, found.draws
    ratios = draws.log_likelihood + prior.log_prob(draws.h) - draws.posterior.log_prob(draws.h)
    tightened = (torch.logsumexp(ratios.view(-1, 8, 3), 1) - math.log(8)).mean(0)
    error = 4 * ratios.std(0) / math.sqrt(samples) + 1e-6
    assert exact.shape == (3,) and (bound <= tightened + error).all() and (tightened <= exact + error).all()
    assert (exact - bound > 3 * error).all()  # the order is not there by chance
    torch.testing.assert_close(draws.importance_weighted(), exact, atol=0.05, rtol=0)


def test_kl_is_between_the_two_gaussians_once_for_a_question():
    model, batch = network(), some_pairs()
    encoding = model.encode(batch)
    q, p = model.posterior(encoding), model.prior(encoding)
    reference = kl_divergence(Normal(q.mean, q.std), Normal(p.mean, p.std))
    found = elbo(model, batch)
    assert found.kl_per_dimension.shape == (4, 3)
    torch.testing.assert_close(found.kl_per_dimension, reference)
    assert (found.kl > 0.01).all() and not torch.allclose(found.kl, kl(q, DiagonalGaussian.standard(q.mean)).sum(1))


def test_what_questions_cost_is_shared_by_the_pairs_they_stand_for():
    batch = replace(some_pairs(2), weights=torch.tensor([1.0, 1, 1, 1, 4] * 2))
    torch.testing.assert_close(mean_over_pairs(torch.tensor([3.0, 5.0]), batch, True), torch.tensor(8 / 16))
    of_pairs = torch.arange(10.0)
    expected = (of_pairs * batch.weights).sum() / 16
    torch.testing.assert_close(mean_over_pairs(of_pairs, batch, False), expected)


# The likelihood of a question's labels


def by_enumeration(model: QuestionNASM, h: torch.Tensor, batch: PairBatch, question: int) -> float:
    """p(y | q, h) of one question under one h, [K]: a sum over its main answer or none, factor by factor."""
    own = (batch.question_of == question).nonzero()[:, 0]
    logits = model.logits(h.expand(1, len(batch), -1), model.encode(batch))[0, own].tolist()
    of_latent = float(model.also_by_latent.weight[0] @ h) if model.has_latent else 0.0
    slope, level = math.exp(model.also_log_slope.item()), model.also_level.item()
    also = [1 / (1 + math.exp(-(level + slope * one + of_latent))) for one in logits]
    query = torch.cat([model.encode(batch).question[question], h])
    none = model.none(query).item() + model.by_number.item() * math.log(len(own))
    scores = [math.exp(one) for one in (*logits, none)]
    labels = batch.labels[own].tolist()
    found = scores[-1] * (sum(labels) == 0)
    for main, score in enumerate(scores[:-1]):
        others = (also[j] if labels[j] else 1 - also[j] for j in range(len(labels)) if j != main)
        found += score * labels[main] * math.prod(others)
    return found / sum(scores)


@torch.no_grad()
@pytest.mark.parametrize("latent_dim", [3, 0])
def test_the_likelihood_is_that_of_a_main_answer_or_none_and_sums_to_one(latent_dim):
    model = network(latent_dim=latent_dim)
    batch = reordered(some_pairs(2), torch.tensor([7, 0, 1, 5, 2, 3, 6]))  # questions of four and three, mixed
    h, total = torch.randn(2, 2, latent_dim).double(), torch.zeros(2, 2).double()
    for labels in itertools.product((0.0, 1.0), repeat=4):
        given = torch.zeros(7)
        given[batch.question_of == 0] = torch.tensor(labels)
        given[batch.question_of == 1] = torch.tensor(labels[:3])
        labelled = replace(batch, labels=given)
        found = model.log_likelihood(h, model.encode(labelled)).exp()
        for sample, question in itertools.product(range(2), repeat=2):
            expected = by_enumeration(model, h[sample, question], labelled, question)
            assert found[sample, question].item() == pytest.approx(expected, rel=1e-9)
        total += found * torch.tensor([1.0, 0.5])  # the second question has all of its labels twice
    torch.testing.assert_close(total, torch.ones(2, 2).double())


@torch.no_grad()
def test_right_answers_exclude_each_other():
    model, batch = network(), some_pairs(1)
    model.also_level.fill_(-20.0)
    h = torch.zeros(1, 1, 3).double()
    first, second, both = (
        model.log_likelihood(h, model.encode(replace(batch, labels=torch.tensor(labels)))).item()
        for labels in ([1.0, 0, 0, 0, 0], [0.0, 1, 0, 0, 0], [1.0, 1, 0, 0, 0])
    )
    assert both < min(first, second) - 10


@torch.no_grad()
@pytest.mark.parametrize("seed", range(5))
def test_the_probability_of_being_right_falls_in_the_order_of_log_odds(seed):
    torch.manual_seed(seed)
    model, batch = network(), some_pairs(1, seed)
    h, right = torch.randn(1, 1, 3).double(), torch.zeros(5).double()
    for labels in itertools.product((0.0, 1.0), repeat=5):
        y = torch.tensor(labels)
        right += y * model.log_likelihood(h, model.encode(replace(batch, labels=y))).exp()[0]
    logits = model.logits(h.expand(1, 5, 3), model.encode(batch))[0]
    assert torch.equal(right.argsort(), logits.argsort()) and right.std() > 1e-3


@pytest.mark.parametrize("labels", [[0.0] * 5, [1.0] * 5, [0.0], [1.0]], ids=["none", "all", "one wrong", "one right"])
@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_gradients_are_finite_whatever_the_labels(labels, scale):
    model = network()
    batch = reordered(some_pairs(2), torch.arange(5 + len(labels)))  # beside a question of five: padding
    batch = replace(batch, labels=torch.cat([batch.labels[:5], torch.tensor(labels)]))
    with torch.no_grad():
        model.match.weight *= scale
    draws = draw(model, batch, 8)
    (-draws.importance_weighted().sum()).backward()
    assert draws.log_likelihood.isfinite().all()
    for part, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), part


# h in the log odds and in the attention


def test_log_odds_are_linear_in_h_but_for_the_attention():
    model, batch = network(), some_pairs()
    torch.nn.init.zeros_(model.attention.from_query.weight)  # no h in the attention
    encoding, h = model.encode(batch), torch.randn(1, len(batch), 3).double()
    nothing, once, twice = (model.logits(times * h, encoding) for times in (0, 1, 2))
    torch.testing.assert_close(twice - nothing, 2 * (once - nothing))
    answer = model.attention(model._query(h, encoding), encoding.answers)[0]  # [P, H]
    bilinear = torch.einsum("pk,kh,ph->p", h[0], model.match.weight[6:], answer)
    torch.testing.assert_close((once - nothing)[0], bilinear + h[0] @ model.intercept.weight[0])
    assert (once - nothing).abs().max() > 0.1


def test_a_query_scales_the_units_of_states():
    attention = ScalingAttention(3, 6).double()
    states = torch.randn(2, 4, 6).double()
    answers = Sentences(states, states[:, -1], torch.ones(2, 4, dtype=torch.bool))
    query = torch.randn(5, 2, 3).double()
    scale = 1 + query @ attention.from_query.weight.T  # [S, P, H]
    energy = torch.einsum("h,sph,pth->spt", attention.score.weight[0], scale, attention.from_state(states))
    torch.testing.assert_close(attention.weights(query, answers), energy.softmax(-1))
    plain = LatentAttention(3, 6).double()
    plain.load_state_dict(attention.state_dict())
    assert not torch.allclose(plain.weights(query, answers), energy.softmax(-1), atol=1e-3)


def test_h_moves_attention_and_log_odds():
    model, batch = network(), some_pairs()
    encoding = model.encode(batch)
    h = model.prior_samples(encoding, 5)
    assert model.attention_given(h, encoding).std(0).max() > 1e-3 and model.logits(h, encoding).std(0).max() > 0.01


# Sets, company, labels


def test_the_order_of_candidates_does_not_matter():
    model, batch = network(), some_pairs()
    order = torch.randperm(len(batch))
    assert not torch.equal(batch.question_of[order], batch.question_of)
    for expected, found in zip(parts(model, batch), parts(model, reordered(batch, order)), strict=True):
        torch.testing.assert_close(found, expected)


def test_a_question_does_not_depend_on_what_else_is_in_the_batch():
    model, batches = network(), PairBatches(QUESTIONS, WORDS)
    together = parts(model, batches.batch([0, 1, 2, 3]))
    for number in range(4):
        for expected, found in zip(together, parts(model, batches.batch([number])), strict=True):
            torch.testing.assert_close(found[0], expected[number])


def test_a_candidate_that_stands_for_two_is_as_two():
    model, batches = network(), PairBatches(QUESTIONS, WORDS)
    batch = batches.batch([0])
    twice = reordered(batch, torch.tensor([0, 1, 2, 3, 4, 4]))
    heavier = replace(batch, weights=torch.tensor([1.0, 1, 1, 1, 2]))
    for expected, found in zip(parts(model, twice), parts(model, heavier), strict=True):
        torch.testing.assert_close(found, expected)


def test_the_posterior_sees_every_label_and_the_prior_none():
    model, batch = network(), some_pairs()
    posterior, prior = (one(model.encode(batch)) for one in (model.posterior, model.prior))
    for pair in range(len(batch)):
        labels = batch.labels.clone()
        labels[pair] = 1 - labels[pair]
        encoding = model.encode(replace(batch, labels=labels))
        moved = (model.posterior(encoding).mean - posterior.mean).abs().max(1).values > 1e-4  # [Q]
        assert moved.tolist() == [number == batch.question_of[pair] for number in range(4)]
        assert torch.equal(model.prior(encoding).mean, prior.mean)


def test_gradients_reach_every_parameter():
    model, batch = QuestionNASM(len(WORDS), latent_dim=3, **SMALL), some_pairs()
    for head in (model.prior_head, model.posterior_head):
        torch.nn.init.normal_(head.log_std.weight)
    (-draw(model, batch, 8).importance_weighted().mean()).backward()
    for part, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), f"no gradient reaches {part}"


# Without the latent variable


def test_without_dimensions_it_is_its_deterministic_without():
    without, batch = network(latent_dim=0), some_pairs()
    assert not without.has_latent and QuestionNASM.has_latent
    bound, encoding = elbo(without, batch, 2), without.encode(batch)
    h = torch.zeros(4, 0).double()
    exact = [math.log(by_enumeration(without, h[number], batch, number)) for number in range(4)]
    torch.testing.assert_close(bound.elbo, torch.tensor(exact).double())
    logits = without.logits(without.prior_samples(encoding, 2), encoding)
    torch.testing.assert_close(draw(without, batch, 3).importance_weighted(), bound.elbo)
    assert not bound.kl.any()
    torch.testing.assert_close(logits[0], logits[1])


def test_a_ranker_without_h_has_one_sample_and_other_models_need_an_h():
    small = {"vectors": "random", "embedding_dim": 4, "epochs": 1, "threads": 1}
    ranker = AnswerRanker("nasm_question", 0, **small).fit(QUESTIONS, made_up(3, seed=1))
    assert ranker.sample_proba(QUESTIONS, 7).shape == (1, QUESTIONS.n_pairs)
    assert not ranker.fitted_.latent_carries and ranker.fitted_.training["samples"] == 8
    with pytest.raises(InputError, match="latent_dim must be at least 1, not 0"):
        AnswerRanker("nasm", 0, **small).fit(QUESTIONS, made_up(3, seed=1))


def test_a_labelled_set_is_the_sum_of_right_candidates_and_the_mean_of_all():
    model = network()
    encoding = model.encode(some_pairs(3, seed=4))
    label = model.read_label(encoding.labels[:, None])
    each = model.read_candidate(torch.cat([encoding.question_by_pair, encoding.answers.last, label], 1))
    right, mean = model._labelled_set(encoding)
    for question in range(3):
        own = encoding.question_of == question
        weights = model._number(encoding)[own, None]
        chosen = weights * (encoding.labels[own, None] == 1)
        torch.testing.assert_close(right[question], (chosen * each[own]).sum(0))
        torch.testing.assert_close(mean[question], (weights * each[own]).sum(0) / weights.sum())
    assert right.any() and not torch.allclose(right, mean)
