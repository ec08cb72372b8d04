"""NASM, LSTM and LSTM + Att: formulas, padding, batches and samples, the order of the bounds, and that they learn."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_up_questions import WORDS, built, made_up, some_pairs
from torch.distributions import Bernoulli, Normal, kl_divergence

from varitext.batches.pairs import FIRST_WORD, UNKNOWN, PairBatch, PairBatches, word_numbers
from varitext.batches.tokens import TokenBatch
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.errors import InputError
from varitext.evaluation.ranking import ranking_record
from varitext.latent import DiagonalGaussian, draw, elbo, importance_weighted_bound, kl
from varitext.layers.attention import LatentAttention
from varitext.layers.lstm import SentenceLSTM
from varitext.layers.lstm import read as read_sentences
from varitext.layers.words import Dropout, WordEmbedding
from varitext.models.answers import ANSWER_MODELS
from varitext.models.answers.nasm import NASM
from varitext.models.answers.recurrent import INITIALIZATIONS
from varitext.text import Vocabulary
from varitext.training.settings import Score, StepLoss, TrainingSettings
from varitext.training.trainer import Trainer

SMALL = {"embedding_dim": 8, "hidden_dim": 6, "layers": 2}

NETWORKS = [name for name, entry in ANSWER_MODELS.items() if entry.trained_by_gradient and not entry.extra]
for_every_model = pytest.mark.parametrize("name", NETWORKS)
with_attention = pytest.mark.parametrize("name", ["lstm_attention", "nasm", "nasm_question"])


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
    torch.set_num_threads(threads)


@torch.no_grad()
def predicted(model: torch.nn.Module, batch: PairBatch, samples: int) -> torch.Tensor:
    """p(y = 1 | q, a, h) under samples of the prior, [S, P]."""
    encoding = model.encode(batch)
    return model.logits(model.prior_samples(encoding, samples), encoding).sigmoid()


@torch.no_grad()
def attention(model: torch.nn.Module, batch: PairBatch, samples: int) -> torch.Tensor | None:
    encoding = model.encode(batch)
    return model.attention_given(model.prior_samples(encoding, samples), encoding)  # [S, P, T]


def model_named(name: str, **changes) -> torch.nn.Module:
    """In double precision, with weights large enough for attention and both Gaussians to matter."""
    model = built(name, **SMALL | changes).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.7 * torch.randn_like(parameter))
        if "word_vectors.weight" in dict(model.named_parameters()):
            model.word_vectors.weight[0] = 0
    return model


def lengthened(sentences: TokenBatch, by: int) -> TokenBatch:
    """More padding; with another word's number on it, which must not matter either."""
    tokens = torch.nn.functional.pad(sentences.tokens, (0, by), value=FIRST_WORD + 3)
    return TokenBatch(tokens, torch.nn.functional.pad(sentences.mask, (0, by)))


# Batches


def test_unknown_words_share_a_number_and_case_is_optional():
    assert word_numbers(("WHO", "xyz", "zyx"), WORDS).tolist() == [FIRST_WORD, UNKNOWN, UNKNOWN]
    years = Vocabulary(("0000", "00.0"))
    assert word_numbers(("1969", "33.3", "٣٣.٣", "12345"), years).tolist() == [2, 3, 3, UNKNOWN]
    assert TokenBatch.from_lists([np.array([5, 6]), np.array([], np.int64)]).tokens.tolist() == [[5, 6], [0, 0]]


@pytest.mark.parametrize(("questions", "batch_size"), [(1, 1), (7, 3), (7, 12), (7, 10_000)])
def test_batches_hold_whole_questions_each_once(questions, batch_size):
    corpus = made_up(questions, seed=1)
    batches = PairBatches(corpus, WORDS, batch_size)
    for every in (list(batches.in_order()), list(batches.shuffled((0, 1)))):
        assert len(every) == len(batches)
        assert sum(len(batch.questions) for batch in every) == questions
        assert sum(map(len, every)) == corpus.n_pairs
        assert all(len(batch) == 5 * len(batch.questions) > 0 for batch in every)
    in_order = list(batches.in_order())
    assert torch.cat([batch.labels for batch in in_order]).tolist() == corpus.labels.tolist()


def test_the_number_of_batches_never_changes_also_with_one_huge_question():
    candidate = Candidate("c", ("old",), "old", 0)
    sizes = (1, 1, 1, 500, 1, 1, 1, 1)
    questions = tuple(Question(str(n), ("who",), "who", (candidate,) * size) for n, size in enumerate(sizes))
    batches = PairBatches(QuestionAnswers("huge", "train", (), questions), WORDS, batch_size=100)
    for epoch in range(10):
        assert [len(batch.questions) > 0 for batch in batches.shuffled((0, epoch))] == [True] * len(batches)


def test_shuffling_follows_seed_and_epoch():
    batches = PairBatches(made_up(9, seed=1), WORDS, 15)
    first, again, other = (
        [batch.answers.tokens.tolist() for batch in batches.shuffled(seed)] for seed in ((3, 0), (3, 0), (3, 1))
    )
    assert first == again != other


def test_no_questions_are_refused():
    with pytest.raises(InputError, match="no questions"):
        PairBatches(QuestionAnswers("none", "train", (), ()), WORDS)


# Layers


def test_attention_is_the_papers_formula():
    embedding, lstm = WordEmbedding(18, 8).double(), SentenceLSTM(8, 6).double().eval()
    answers = lstm(TokenBatch.from_lists([np.array([4, 7, 5]), np.array([9])]), embedding)
    attention, query = LatentAttention(3, 6).double(), torch.randn(2, 2, 3, dtype=torch.float64)
    states, h = answers.states[0], query[1, 0]
    energy = torch.tanh(attention.from_query(h) + attention.from_state(states)) @ attention.score.weight[0]
    alpha = energy.exp() / energy.exp().sum()
    z_a = torch.tanh(attention.from_context.weight @ (alpha @ states) + attention.from_last.weight @ states[2])
    torch.testing.assert_close(attention.weights(query, answers)[1, 0], alpha)
    torch.testing.assert_close(attention(query, answers)[1, 0], z_a)
    torch.testing.assert_close(attention.weights(query, answers)[:, 1], torch.tensor([[1.0, 0, 0]] * 2).double())


@pytest.mark.parametrize("name", ["lstm", "lstm_attention", "nasm", "nasm_question"])
def test_how_networks_start(name):
    def started(**changes) -> torch.nn.Module:
        torch.manual_seed(1)
        return built(name, **SMALL | changes)

    plain, biased, sums = (started(initialization=start) for start in INITIALIZATIONS)
    hidden = SMALL["hidden_dim"]
    usual = biased if name == "nasm_question" else sums
    for part, weight in plain.named_parameters():
        assert torch.equal(usual.get_parameter(part), started().get_parameter(part))  # the default
        changed = torch.zeros_like(weight)
        if "bias_ih" in part:
            changed[hidden : 2 * hidden] = 1
        torch.testing.assert_close(biased.get_parameter(part), weight + changed)
    noise, limit = sums.match.weight - 2 * torch.eye(*sums.match.weight.shape), plain.match.weight.abs().max()
    assert 0 < noise.abs().max() < 0.4 * limit and sums.match.bias == -2
    if name != "lstm":
        assert torch.equal(sums.attention.from_last.weight, torch.eye(hidden))


@pytest.mark.parametrize("layers", [1, 3])
def test_an_untrained_network_compares_sums_of_words(layers):
    """The last state points where the sum of the centred words does, whatever their order."""
    torch.manual_seed(2)
    network = built("lstm", **SMALL | {"layers": layers, "hidden_dim": 8, "embedding_dim": 8, "dropout": 0.0}).double()
    torch.nn.init.normal_(network.word_vectors.weight, 0.3, 0.4)
    batches = PairBatches(made_up(20, seed=3), WORDS)
    network.prepare(batches, made_up(20, seed=3))
    batch = next(batches.in_order())
    sums, states = [], []
    for lstm, read in ((network.question_lstm, batch.questions), (network.answer_lstm, batch.answers)):
        centred = (network.word_vectors(read.tokens) - network.centre) * read.mask[..., None]
        of_cell = lstm.lstm.weight_ih_l0.chunk(4)[2]
        sums.append(centred.sum(1) @ of_cell.T)
        states.append(read_sentences([lstm], [read], lambda tokens: network.word_vectors(tokens) - network.centre)[0])
    for total, state in zip(sums, states, strict=True):
        assert torch.cosine_similarity(total, state.last).median() > 0.8


def test_words_are_centred_by_how_often_training_has_them():
    network, corpus = built("nasm", **SMALL), made_up(6, seed=1)
    batches = PairBatches(corpus, WORDS)
    network.prepare(batches, corpus)
    read = [*batches.questions, *(answer for answers in batches.answers for answer in answers)]
    vectors = torch.cat([network.word_vectors(torch.from_numpy(words)) for words in read])
    torch.testing.assert_close(network.centre, vectors.mean(0))
    assert "centre" in network.state_dict() and "centre" not in built("nasm", initialization="pytorch").state_dict()


def test_some_wrong_answers_stand_for_all_of_them():
    corpus = made_up(30, seed=3)
    every, some = PairBatches(corpus, WORDS, 40), PairBatches(corpus, WORDS, 40, most_wrong=2)
    assert len(some) < len(every)
    for batch in some.shuffled((0, 1)):
        wrong = torch.bincount(batch.question_of, batch.labels == 0)
        assert wrong.max() <= 2
    passes = [batch for epoch in range(2) for batch in some.shuffled((0, epoch))]
    right = sum(float((batch.weights * batch.labels).sum()) for batch in passes)
    assert right == 2 * corpus.n_positive
    assert sum(float(batch.weights.sum()) for batch in passes) == pytest.approx(2 * corpus.n_pairs)
    first, second = (torch.cat([b.answers.tokens.sum(1) for b in some.shuffled((0, epoch))]) for epoch in range(2))
    assert not torch.equal(first.sort().values, second.sort().values)  # drawn anew
    assert all((batch.weights == 1).all() for batch in [*every.shuffled((0, 0)), *some.in_order()])


@given(share=st.sampled_from([0.0, 0.1, 0.4, 0.9]), size=st.integers(0, 9))
def test_dropout_keeps_the_mean(share, size):
    torch.manual_seed(size)
    dropout, ones = Dropout(share), torch.ones(size, 4001)
    dropped = dropout(ones)
    assert dropped.shape == ones.shape and set(dropped.unique().tolist()) <= {
        0.0,
        dropped.max().item() if size else 0.0,
    }
    if size:
        torch.testing.assert_close(dropped.mean(), torch.tensor(1.0), atol=0.3, rtol=0)
        assert abs((dropped == 0).float().mean() - share) < 0.03
    assert torch.equal(dropout.eval()(ones), ones)


def test_word_vectors_start_where_told_and_stay_frozen():
    matrix = torch.randn(len(WORDS), 8)
    model = NASM(len(WORDS), **SMALL, fixed_words=len(WORDS) - 1)
    model.word_vectors.start_from(matrix)
    tokens = torch.tensor([FIRST_WORD, FIRST_WORD + 1, FIRST_WORD + len(WORDS) - 1, 0])
    expected = torch.stack([matrix[0], matrix[1], matrix[-1], 0 * matrix[0]])
    torch.testing.assert_close(model.word_vectors(tokens), expected)
    torch.testing.assert_close(model.word_vectors(torch.tensor([UNKNOWN])), matrix.mean(0, keepdim=True))
    assert len(model.word_vectors.weight) == FIRST_WORD + 1
    assert "word_vectors.fixed" not in dict(model.named_parameters()) and "word_vectors.fixed" in model.state_dict()
    elbo(model, some_pairs()).elbo.sum().backward()
    with pytest.raises(InputError, match="22 x 9"):
        model.word_vectors.start_from(torch.zeros(22, 9))


# The framework's methods


def test_kl_is_between_the_two_gaussians():
    model, batch = model_named("nasm", latent_dim=5), some_pairs()
    encoding = model.encode(batch)
    q, p = model.posterior(encoding), model.prior(encoding)
    bound = elbo(model, batch)
    reference = kl_divergence(Normal(q.mean, q.std), Normal(p.mean, p.std))
    torch.testing.assert_close(bound.kl_per_dimension, reference)
    difference = q.mean - p.mean  # the paper's equation 49
    log_determinants = q.std.square().log().sum(1) - p.std.square().log().sum(1)
    trace, distance = (q.std / p.std).square().sum(1), (difference / p.std).square().sum(1)
    torch.testing.assert_close(bound.kl, -0.5 * (5 + log_determinants - trace - distance))
    assert (bound.kl > 0.01).all() and not torch.allclose(bound.kl, kl(q, DiagonalGaussian.standard(q.mean)).sum(1))


def test_both_gaussians_start_with_log_std_zero():
    model = NASM(len(WORDS), **SMALL)
    encoding = model.encode(some_pairs())
    assert not model.prior(encoding).log_std.any() and not model.posterior(encoding).log_std.any()


def test_sizes_are_the_papers_by_default():
    default = {name: one.default for name, one in inspect.signature(NASM).parameters.items()}
    sizes = {"embedding_dim": 50, "hidden_dim": 50, "latent_dim": 50, "prior_dim": 50, "posterior_dim": 150}
    assert default | sizes | {"layers": 3, "dropout": 0.4} == default


@for_every_model
def test_padding_changes_no_output(name):
    model, batch = model_named(name), some_pairs()
    longer = replace(batch, questions=lengthened(batch.questions, 3), answers=lengthened(batch.answers, 4))
    results = []
    for one in (batch, longer):
        torch.manual_seed(1)
        bound = elbo(model, one, samples=3)
        results.append((bound.log_likelihood, bound.kl, predicted(model, one, 3)))
    torch.testing.assert_close(*results)


@for_every_model
def test_a_question_with_all_candidates_equals_one_by_one(name):
    model, corpus = model_named(name), made_up(3, seed=2)
    batches = PairBatches(corpus, WORDS)
    encoding, pair = model.encode(batches.batch([0, 1, 2])), 0
    h = model.prior_by_question(encoding).mean[None]
    expected = model.logits(h.index_select(1, encoding.question_of), encoding)[0]
    for question in corpus.questions:
        for candidate in question.candidates:
            single = QuestionAnswers("one", "test", (), (question._replace(candidates=(candidate,)),))
            alone = model.encode(PairBatches(single, WORDS).batch([0]))
            mean = model.prior_by_question(alone).mean[None]
            torch.testing.assert_close(model.logits(mean, alone)[0, 0], expected[pair])
            pair += 1


@for_every_model
def test_an_examples_loss_does_not_depend_on_its_batch(name):
    model, batches = model_named(name), PairBatches(made_up(6, seed=3), WORDS)

    def parts(chosen: list[int]) -> list[torch.Tensor]:
        encoding = model.encode(batches.batch(chosen))
        posterior = model.posterior(encoding)
        return [kl(posterior, model.prior(encoding)).sum(1), model.log_likelihood(posterior.mean[None], encoding)[0]]

    for whole, *halves in zip(parts([0, 1, 2, 3, 4, 5]), parts([0, 1, 2]), parts([3, 4, 5]), strict=True):
        torch.testing.assert_close(whole, torch.cat(halves))


def test_noise_differs_across_rows_and_samples():
    model, batch = model_named("nasm"), some_pairs()
    draws = draw(model, batch, samples=3)
    noise = (draws.h - draws.posterior.mean) / draws.posterior.std  # [S, P, K]
    assert len(noise.flatten().unique()) == noise.numel()


def test_a_questions_candidates_share_the_samples_of_its_prior():
    model, batch = model_named("nasm"), some_pairs()
    h = model.prior_samples(model.encode(batch), 7)  # [S, P, K]
    same = batch.question_of[:, None] == batch.question_of
    equal = (h[:, :, None] == h[:, None]).all(-1)  # [S, P, P]
    assert (equal == same).all()
    assert predicted(model, batch, 7).shape == (7, len(batch)) and len(h[:, 0, 0].unique()) == 7


def test_prediction_does_not_look_at_labels_and_repeats_with_the_random_state():
    model, batch = model_named("nasm"), some_pairs()
    other = replace(batch, labels=1 - batch.labels)
    results = []
    for one in (batch, other):
        torch.manual_seed(2)
        results.append(predicted(model, one, 4))
    assert torch.equal(*results)


@with_attention
def test_attention_sums_to_one_on_words_and_is_zero_on_padding(name):
    model, batch = model_named(name), some_pairs()
    weights = attention(model, batch, 5)  # [S, P, T]
    assert weights.shape == (5, *batch.answers.mask.shape)
    torch.testing.assert_close(weights.sum(-1), torch.ones(5, len(batch), dtype=torch.float64))
    assert not weights[:, ~batch.answers.mask].any() and (weights[:, batch.answers.mask] > 0).all()
    assert (weights.std(0).max() > 1e-3) == model.has_latent


@for_every_model
def test_sentences_of_no_words(name):
    questions = (Question("0", (), "", (Candidate("a", (), "", 1), Candidate("b", ("old",), "old", 0))),)
    batch = PairBatches(QuestionAnswers("empty", "train", (), questions), WORDS).batch([0])
    model = built(name, **SMALL)
    elbo(model, batch).elbo.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    assert predicted(model, batch, 2).isfinite().all()
    if (weights := attention(model, batch, 1)) is not None:
        assert not weights[0, 0].any()


@pytest.mark.parametrize("name", ["lstm", "lstm_attention"])
def test_without_a_latent_variable_the_bound_is_the_log_likelihood(name):
    model, batch = model_named(name), some_pairs()
    bound = elbo(model, batch, samples=2)
    assert bound.kl_per_dimension.shape == (len(batch), 0) and bound.kl.tolist() == [0.0] * len(batch)
    probability = predicted(model, batch, 2)
    assert torch.equal(probability[0], probability[1])
    expected = Bernoulli(probability[0]).log_prob(batch.labels.double())
    torch.testing.assert_close(bound.elbo, expected)
    torch.testing.assert_close(importance_weighted_bound(model, batch, 3), expected)


@pytest.mark.parametrize("latent_dim", [1, 2])
def test_bounds_stand_in_their_order_below_the_exact_evidence(latent_dim):
    model, batch = model_named("nasm", latent_dim=latent_dim), some_pairs(2, seed=4)
    with torch.no_grad():
        encoding, samples = model.encode(batch), 4000
        prior = model.prior(encoding)
        axis = torch.linspace(-8, 8, 161, dtype=torch.float64)
        grid = torch.cartesian_prod(*[axis] * latent_dim).view(-1, 1, latent_dim)  # [S, 1, K]
        h = prior.mean + prior.std * grid  # [S, P, K]
        cell = latent_dim * math.log(16 / 160) + prior.log_std.sum(-1)
        exact = torch.logsumexp(model.log_likelihood(h, encoding) + prior.log_prob(h) + cell, 0)  # [P]
        found = elbo(model, batch, samples)
        bound, draws = found.elbo, found.draws
        ratios = draws.log_likelihood + prior.log_prob(draws.h) - draws.posterior.log_prob(draws.h)
        weighted = (torch.logsumexp(ratios.view(-1, 5, len(batch)), 1) - math.log(5)).mean(0)
        error = 4 * (ratios.std(0) / math.sqrt(samples)) + 1e-6
    assert (bound <= weighted + error).all() and (weighted <= exact + error).all()
    assert (exact < 0).all() and (exact - bound > 3 * error).any()  # the order is not there by chance


def test_gradients_reach_every_parameter():
    model, batch = NASM(len(WORDS), **SMALL), some_pairs()
    torch.nn.init.normal_(model.prior_head.log_std.weight)
    torch.nn.init.normal_(model.posterior_head.log_std.weight)
    (-elbo(model, batch).elbo.mean()).backward()
    for part, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), f"no gradient reaches {part}"
    inference = {id(parameter) for parameter in model.inference_parameters()}
    assert inference == {
        id(parameter) for part, parameter in model.named_parameters() if part.startswith(("posterior", "read_label"))
    }


# Learning


class AnswerTask:
    """The least that training needs: batches, the bound, held-out MAP under the prior."""

    fingerprint = "made-up questions"

    def __init__(self, train: QuestionAnswers, dev: QuestionAnswers, settings: TrainingSettings):
        self.settings, self.dev = settings, dev
        self.train_batches = PairBatches(train, WORDS, settings.batch_size)
        self.dev_batches = PairBatches(dev, WORDS, 500)
        self.steps_per_epoch = len(self.train_batches)

    def batches(self, epoch: int):
        return self.train_batches.shuffled((self.settings.seed, epoch))

    def loss(self, model, batch: PairBatch, kl_weight: float) -> StepLoss:
        bound = elbo(model, batch, self.settings.samples)
        return StepLoss((kl_weight * bound.kl - bound.log_likelihood).mean(), bound.elbo.mean(), bound.kl.mean())

    def score(self, model) -> Score:
        scores = torch.cat([predicted(model, batch, 5).mean(0) for batch in self.dev_batches.in_order()])
        record = ranking_record(scores.numpy(), self.dev.labels, self.dev.groups)
        return Score(1 - record.map, {"dev_map": record.map})


@for_every_model
def test_a_task_with_a_known_answer_is_learned(name):
    epochs = 25 if name == "nasm_question" else 10
    settings = TrainingSettings(epochs=epochs, batch_size=40, learning_rate=2e-2, patience=50)
    task = AnswerTask(made_up(200, seed=5), made_up(40, seed=6), settings)
    model = built(name, embedding_dim=16, hidden_dim=16, layers=1, dropout=0.1)
    state = Trainer(model, task, settings).train()
    assert state.history[0]["dev_map"] < 0.75
    assert 1 - state.best > 0.9


def test_training_leaves_frozen_word_vectors_alone():
    """The loop switches gradients of all parameters on and off: what is frozen must not be one."""
    settings = TrainingSettings(epochs=1, batch_size=20, learning_rate=1e-2, weight_decay=0.1)
    model = NASM(len(WORDS), **SMALL, fixed_words=len(WORDS) - 5)
    model.word_vectors.start_from(torch.randn(len(WORDS), 8))
    before, learned, match = (
        one.clone() for one in (model.word_vectors.fixed, model.word_vectors.weight, model.match.weight)
    )
    trainer = Trainer(model, AnswerTask(made_up(8, seed=5), made_up(4, seed=6), settings), settings)
    trainer.train()
    model.load_state_dict(
        {
            name.removeprefix("model."): value
            for name, value in trainer.safe.tensors.items()
            if name.startswith("model.")
        }
    )
    assert torch.equal(model.word_vectors.fixed, before) and not torch.equal(model.match.weight, match)
    assert not torch.equal(model.word_vectors.weight, learned)
