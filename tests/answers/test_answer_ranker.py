"""AnswerRanker: it learns, repeats, survives a kill and a folder, and neither file order nor stage two ever cheats."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from varitext.answers.network_prediction import question_seeds
from varitext.answers.prediction import Combination, log_odds
from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe, AnswerSettings
from varitext.answers.task import AnswerObjective, AnswerTask
from varitext.answers.training_data import epochs_for, question_folds
from varitext.batches.pairs import PairBatches
from varitext.corpora.question_answers import MAX_QUESTION_LENGTH, Candidate, Question, QuestionAnswers, canonical_order
from varitext.corpora.word_vectors import WordVectors
from varitext.errors import InputError
from varitext.evaluation.columns import TOLERANCE
from varitext.models.answers.features.overlap import COLUMNS, PairFeatures
from varitext.models.answers.nasm import NASM
from varitext.models.answers.vocabulary import reduce_vectors
from varitext.text import Vocabulary
from varitext.training.settings import TrainingSettings

KINDS = {"who": "king queen author actor", "where": "city river island lake", "when": "year month century day"}
FILLERS = ["the", "of", "a", "was", "and", "near", "old"]
RECIPE = AnswerRecipe(hidden_dim=16, layers=1, dropout=0.1, patience=50)
TWO_FOLDS = replace(RECIPE, folds=2)
SMALL = {
    "model": "nasm",
    "latent_dim": 4,
    "embedding_dim": 16,
    "vectors": "random",
    "epochs": 20,
    "batch_size": 40,
    "learning_rate": 2e-2,
    "threads": 1,
    "recipe": RECIPE,
}


def made_up(questions: int, seed: int, candidates: int = 5, part: str = "train") -> QuestionAnswers:
    """The question's word decides what kind of word a right answer has."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(questions):
        asked, right = str(generator.choice(list(KINDS))), int(generator.integers(candidates))
        others = [kind for kind in KINDS if kind != asked]
        answers = []
        for place in range(candidates):
            kind = asked if place == right else str(generator.choice(others))
            words = list(map(str, generator.choice(FILLERS, int(generator.integers(1, 7)))))
            words.insert(int(generator.integers(len(words) + 1)), str(generator.choice(KINDS[kind].split())))
            answers.append(Candidate(f"{number}-{place}", tuple(words), " ".join(words), int(place == right), place))
        asked_words = (f"topic{number}", *map(str, generator.choice(FILLERS, 1)), asked)
        made.append(Question(str(number), asked_words, " ".join(asked_words), tuple(answers)))
    return QuestionAnswers("made up", part, (), tuple(made))


KILLED_AFTER = 3  # rounds
TRAIN, DEV, TEST = made_up(120, 1), made_up(30, 2, part="dev"), made_up(40, 3, part="test")


@pytest.fixture(scope="module")
def fitted() -> AnswerRanker:
    return AnswerRanker(**SMALL).fit(TRAIN, DEV)


SHORT = SMALL | {"epochs": 8}


@pytest.fixture(scope="module")
def short() -> AnswerRanker:
    """For bits that must repeat it need not have learned all; its best weights are those of a late epoch."""
    ranker = AnswerRanker(**SHORT).fit(TRAIN, DEV)
    assert ranker.fitted_.dev_map > max(row["dev_map"] for row in ranker.fitted_.history[:KILLED_AFTER])
    return ranker


def of_one(question: Question) -> QuestionAnswers:
    return QuestionAnswers("one", "test", (), (question,))


def reversed_corpus(corpus: QuestionAnswers) -> QuestionAnswers:
    questions = tuple(one._replace(candidates=one.candidates[::-1]) for one in corpus.questions[::-1])
    return replace(corpus, questions=questions)


def same_network(first: AnswerRanker, second: AnswerRanker) -> bool:
    ours, theirs = first.fitted_.network.state_dict(), second.fitted_.network.state_dict()
    return all(np.array_equal(ours[name], theirs[name]) for name in ours)


# Learning


def test_learns_and_records_what_it_watches(fitted):
    record = fitted.evaluate(TEST)
    assert record.ranking.map > 0.9 and record.calibration.log_loss < 0.35
    assert {"map", "mrr", "protocol", "n_questions", "n_pairs", "log_loss", "brier", "ece", "corpus"} <= set(
        json.loads(json.dumps(record.as_dict()))
    )
    watched = {
        "dev_map",
        "dev_mrr",
        "dev_log_loss",
        "dev_kl",
        "active_units",
        "posterior_prior_gap",
        "dev_map_shuffled_h",
    }
    assert all(watched <= set(row) for row in fitted.fitted_.history)
    assert fitted.fitted_.dev_map in [row["dev_map"] for row in fitted.fitted_.history] and fitted.fitted_.dev_map > 0.9


@pytest.mark.parametrize("model", ["lstm", "lstm_attention"])
def test_models_without_a_latent_variable_have_one_sample(model):
    ranker = AnswerRanker(**SMALL | {"model": model, "epochs": 1}).fit(TRAIN, DEV)
    ranking = ranker.rank("who was the", ["a king", "the old lake", "near"], samples=7)
    assert ranking.n_samples == ranker.evaluate(TEST, samples=7).n_samples == 1
    assert np.array_equal(ranker.sample_proba(TEST, 7), ranker.predict_proba(TEST)[None])
    with pytest.raises(InputError, match="samples must be a whole number from 1 to 10,000, not 0"):
        ranker.predict_proba(TEST, 0)
    assert (ranking.candidates[0].attention_mean is None) == (model == "lstm")
    assert ranker.fitted_.history[-1]["dev_map"] == pytest.approx(ranker.fitted_.history[-1]["dev_map_shuffled_h"])
    assert (
        ranker.fitted_.history[-1]["dev_kl"]
        == pytest.approx(ranker.fitted_.history[-1]["posterior_prior_gap"], abs=1e-6)
        == 0
    )


def test_same_seed_same_bits_whatever_the_order_of_the_file(fitted, short):
    again = AnswerRanker(**SHORT).fit(reversed_corpus(TRAIN), reversed_corpus(DEV))
    assert same_network(short, again) and again.fitted_.vocabulary == short.fitted_.vocabulary
    torch.manual_seed(123)  # the global random state has no say
    backwards = fitted.predict_proba(reversed_corpus(TEST))
    assert np.array_equal(fitted.predict_proba(TEST), backwards[::-1])
    assert fitted.evaluate(TEST) == fitted.evaluate(reversed_corpus(TEST))
    other = AnswerRanker(**SMALL | {"seed": 1, "epochs": 1}).fit(TRAIN, DEV)
    assert not same_network(fitted, other) and not same_network(short, other)


def test_labels_are_not_looked_at(fitted):
    flipped = [
        one._replace(candidates=tuple(pair._replace(label=1 - pair.label) for pair in one.candidates))
        for one in TEST.questions
    ]
    assert np.array_equal(fitted.predict_proba(TEST), fitted.predict_proba(replace(TEST, questions=tuple(flipped))))


def test_a_killed_run_resumes_to_the_same_bits(tmp_path, short):
    class Killed(Exception):
        pass

    class KillAfterSomeRounds:
        rounds = 0

        def step(self, *_): ...

        def note(self, _): ...

        def round(self, _):
            self.rounds += 1
            if self.rounds == KILLED_AFTER:
                raise Killed

    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Killed):
        AnswerRanker(**SHORT).fit(TRAIN, DEV, KillAfterSomeRounds(), path)
    resumed = AnswerRanker(**SHORT).fit(TRAIN, DEV, checkpoint=path, resume=True)
    assert same_network(short, resumed)
    with pytest.raises(InputError, match="other data"):
        AnswerRanker(**SHORT).fit(made_up(120, 4), DEV, checkpoint=path, resume=True)


def test_ctrl_c_keeps_the_best_so_far():
    class Interrupting:
        def step(self, share, *_):
            if share > 0.3:
                signal.raise_signal(signal.SIGINT)

        def note(self, _): ...

        def round(self, _): ...

    ranker = AnswerRanker(counts=True, **SMALL)
    with pytest.raises(KeyboardInterrupt, match="best weights"):
        ranker.fit(TRAIN, DEV, Interrupting())
    assert ranker.fitted_.stopped == "interrupted" and ranker.fitted_.combination is None
    assert ranker.predict_proba(TEST).shape == (TEST.n_pairs,)


def test_without_dev_some_questions_are_held_out():
    ranker = AnswerRanker(**SMALL | {"epochs": 1}).fit(TRAIN)
    assert (ranker.fitted_.n_training_questions, ranker.fitted_.n_dev_questions) == (108, 12)


def test_every_epoch_has_the_questions_in_another_order():
    task = AnswerTask(TRAIN, DEV, Vocabulary(("king", "lake")), TrainingSettings(), AnswerObjective())
    orders = [[batch.questions.tokens.shape for batch in task.batches(epoch)] for epoch in (0, 0, 1)]
    labels = [torch.cat([batch.labels for batch in task.batches(epoch)]).tolist() for epoch in (0, 0, 1)]
    assert orders[0] == orders[1] and labels[0] == labels[1] != labels[2] and sum(labels[0]) == sum(labels[2])


def test_free_bits_are_free():
    words, settings = Vocabulary(("king", "lake")), TrainingSettings()
    model = NASM(2, embedding_dim=4, hidden_dim=4, layers=1, dropout=0.0)
    losses = []
    for free_bits in (0.0, 1000.0):
        task = AnswerTask(TRAIN, DEV, words, settings, AnswerObjective(free_bits))
        torch.manual_seed(0)
        losses.append(task.loss(model, next(task.batches(0)), 1.0))
    assert losses[0].loss.item() == pytest.approx(-losses[0].elbo.item(), rel=1e-5)
    assert losses[1].loss.item() == pytest.approx(losses[0].loss.item() - losses[0].kl.item() + 1000, rel=1e-5)


def test_importance_weighted_losses_differ_only_in_the_gradient_of_the_posterior():
    words = Vocabulary(tuple(FILLERS))
    model = NASM(len(words), embedding_dim=4, hidden_dim=4, layers=1, dropout=0.0)
    task = AnswerTask(TRAIN, DEV, words, TrainingSettings(samples=8), AnswerObjective())
    losses, of_decoder, of_posterior = [], [], []
    for estimator in ("importance_weighted", "dreg"):
        model.estimator = estimator
        model.zero_grad()
        torch.manual_seed(0)
        losses.append(task.loss(model, next(task.batches(0)), 1.0).loss)
        losses[-1].backward()
        of_decoder.append(model.match.weight.grad.clone())
        of_posterior.append(model.posterior_head.mean.weight.grad.clone())
    torch.testing.assert_close(losses[0], losses[1])
    torch.testing.assert_close(of_decoder[0], of_decoder[1])
    assert not torch.allclose(of_posterior[0], of_posterior[1])


def test_the_exchange_test_and_the_leak_show_a_latent_that_matters():
    words = Vocabulary(tuple(FILLERS) + tuple(word for kind in KINDS.values() for word in kind.split()))
    task = AnswerTask(TRAIN, DEV, words, TrainingSettings(), AnswerObjective())
    model = NASM(len(words), embedding_dim=8, hidden_dim=8, layers=1).eval()
    torch.manual_seed(8)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(1.5 * torch.randn_like(parameter))
    metrics = task.score(model).metrics
    assert abs(metrics["dev_map"] - metrics["dev_map_shuffled_h"]) > 1e-3 and abs(metrics["posterior_prior_gap"]) > 1e-3
    assert metrics["active_units"] > 0 and metrics["dev_kl"] > 1
    with torch.no_grad():
        model.match.bias.fill_(float("nan"))
    assert task.score(model).loss == float("inf")


# Ranking


def test_samples_are_those_that_the_network_draws_for_the_question_alone(fitted):
    """So that attention, which the network draws itself, belongs to the same h."""
    corpus = canonical_order(of_one(TEST.questions[2])).question_answers
    batch = PairBatches(corpus, fitted.fitted_.vocabulary).batch([0])
    with torch.random.fork_rng():
        torch.manual_seed(question_seeds(batch, fitted.seed)[0])
        encoding = fitted.fitted_.network.encode(batch)
        h = fitted.fitted_.network.prior_samples(encoding, 20)
        expected = fitted.fitted_.network.logits(h, encoding).sigmoid()
    np.testing.assert_allclose(fitted.fitted_.first_stage.predict(corpus, 20, fitted.seed).sampled, expected, rtol=1e-5)


def test_rank_agrees_with_predict_proba_and_its_parts_add_up(fitted):
    question = TEST.questions[0]
    ranking = fitted.rank(question.text, [one.text for one in question.candidates])
    by_place = {one.place: one for one in ranking.candidates}
    scores = log_odds(fitted.predict_proba(of_one(question)))
    expected = fitted.fitted_.joint.posterior(scores)
    np.testing.assert_allclose([by_place[place].probability for place in range(5)], expected.right, rtol=1e-6)
    np.testing.assert_allclose([by_place[place].probability_best for place in range(5)], expected.best, rtol=1e-6)
    assert [one.place for one in ranking.candidates] == np.argsort(-scores).tolist() and ranking.joint
    falling = [one.probability for one in ranking.candidates]
    np.testing.assert_allclose(falling, sorted(expected.right.tolist(), reverse=True), rtol=1e-6)
    assert [one.rank for one in ranking.candidates] == [1, 2, 3, 4, 5] and ranking.n_samples == 20
    assert sum(one.probability_best for one in ranking.candidates) + ranking.probability_none == pytest.approx(1)
    assert ranking.probability_none == pytest.approx(expected.none[0])
    for one in ranking.candidates:
        assert 0 < one.rank_interval_probability <= 1 and one.probability_best <= one.probability * (1 + 1e-9)
        assert 1 <= one.rank_interval[0] <= one.rank_interval[1] <= 5
        assert len(one.words) == len(one.attention_mean) == len(one.attention_std)
        assert sum(one.attention_mean) == pytest.approx(1, abs=1e-5) and one.text == " ".join(one.words)
    assert max(max(one.attention_std) for one in ranking.candidates) > 0
    assert fitted.rank(question.text, [one.text for one in question.candidates]) == ranking
    assert json.dumps(ranking.as_dict())


def test_order_of_candidates_and_company_do_not_matter(fitted):
    texts = [one.text for one in TEST.questions[1].candidates]
    forwards, backwards = (fitted.rank("who was", given) for given in (texts, texts[::-1]))
    assert [replace(one, place=4 - one.place) for one in backwards.candidates] == list(forwards.candidates)
    twice = fitted.rank("who was", ["a king", "a king"])
    assert [one.probability_best for one in twice.candidates] == [pytest.approx((1 - twice.probability_none) / 2)] * 2
    assert [(one.rank, one.rank_interval) for one in twice.candidates] == [(1, (1, 2))] * 2


@pytest.mark.parametrize(
    ("question", "candidates", "said"),
    [
        ("  ", ["a king"], "question is empty"),
        ("who", [], "no candidates"),
        ("who", "a king", "list of texts"),
        ("xyzzy plugh", ["a king"], "question has no word that the model knows"),
        ("who", ["xyzzy", "plugh"], "no candidate has a word"),
    ],
)
def test_what_cannot_be_ranked_is_said_in_one_line(fitted, question, candidates, said):
    with pytest.raises(InputError, match=said) as caught:
        fitted.rank(question, candidates)
    assert "\n" not in str(caught.value)


def test_very_long_questions_are_cut_and_said(fitted):
    with pytest.warns(UserWarning, match="1 question is longer than 250 words .the longest: 10,000"):
        ranking = fitted.rank("who " * 10_000, ["a king", "the lake"])
    assert ranking == replace(
        fitted.rank("who " * MAX_QUESTION_LENGTH, ["a king", "the lake"]), question=ranking.question
    )


def test_unknown_words_in_a_corpus_are_ranked_as_unknown(fitted):
    question = Question("q", ("xyzzy",), "xyzzy", (Candidate("a", ("plugh",), "plugh", 1), Candidate("b", (), "", 0)))
    assert np.isfinite(fitted.predict_proba(of_one(question))).all()


# Counts and position


def memorable(questions: int, seed: int) -> QuestionAnswers:
    """Labels by chance, and a word of its own in every candidate: all that can be learned is to remember."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(questions):
        answers = []
        for place in range(4):
            own = "own" + chr(0x4E00 + 4 * number + place)  # no digits: all numbers are one word to a model
            words, label = (own, own, "the"), int(generator.random() < 0.4)
            answers.append(Candidate(f"{number}-{place}", words, " ".join(words), label))
        made.append(Question(str(number), ("who", "topic" + chr(0x4E00 + number)), "who", tuple(answers)))
    return QuestionAnswers("by chance", "train", (), tuple(made))


def test_stage_two_does_not_see_what_the_network_remembers():
    chance = memorable(40, 5)
    random = {"initialization": "pytorch"}  # remembers more than one that starts as a sum of words
    recipe = replace(RECIPE, dropout=0.0, kl_warm_up=0.0, averaging=0.0, smoothing=1, **random)
    settings = SMALL | {"epochs": 15, "recipe": recipe}
    # chosen by the training questions themselves: the worst case, a network that knows them by heart
    ranker = AnswerRanker(counts=True, **settings | {"model": "lstm"}).fit(chance, chance)
    arranged = canonical_order(chance).question_answers
    remembered = ranker.fitted_.first_stage.predict(arranged, 1, ranker.seed).probability
    features = ranker.fitted_.overlap.features(arranged).only(ranker.fitted_.combination.columns[1:])
    leaking = Combination.fit(remembered, features, arranged.labels)
    assert leaking.within[0] > 1.5
    assert abs(ranker.fitted_.combination.within[0]) < 0.6
    share = arranged.labels.mean()
    assert abs(ranker.predict_proba(memorable(40, 6)) - share).max() < 0.3


def test_killed_between_folds_resumes_to_the_same_bits(tmp_path):
    class Killed(Exception):
        pass

    class KillAtSecondFold:
        def step(self, *_): ...

        def note(self, message):
            if message.startswith("fold 2"):
                raise Killed

        def round(self, _): ...

    settings, path = SMALL | {"epochs": 2, "recipe": TWO_FOLDS, "counts": True}, tmp_path / "checkpoint.safetensors"
    whole = AnswerRanker(**settings).fit(TRAIN, DEV)
    with pytest.raises(Killed):
        AnswerRanker(**settings).fit(TRAIN, DEV, KillAtSecondFold(), path)
    resumed = AnswerRanker(**settings).fit(TRAIN, DEV, checkpoint=path, resume=True)
    assert same_network(whole, resumed) and whole.fitted_.combination == resumed.fitted_.combination


def test_folds_keep_equal_questions_together_and_spread_right_answers():
    doubled = replace(
        TRAIN, questions=TRAIN.questions + tuple(one._replace(id="x" + one.id) for one in TRAIN.questions)
    )
    folds = question_folds(doubled, 3, seed=0)
    assert np.array_equal(folds[:120], folds[120:]) and np.bincount(folds).tolist() == [80, 80, 80]


def by_overlap(questions: int, seed: int) -> QuestionAnswers:
    """The right answer repeats the question's rare word, which no other question has; and it stands early."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(questions):
        answers, right = [], int(generator.integers(2))
        for place in range(4):
            words = (*map(str, generator.choice(FILLERS, 3)), f"rare{seed}x{number}" if place == right else "lake")
            answers.append(Candidate(f"{number}-{place}", words, " ".join(words), int(place == right), place))
        made.append(Question(str(number), ("where", f"rare{seed}x{number}"), "where", tuple(answers)))
    return QuestionAnswers("overlap", "train", (), tuple(made))


def test_counts_find_what_the_vocabulary_does_not_have(tmp_path):
    settings = SMALL | {"epochs": 2, "recipe": TWO_FOLDS}
    train, test = by_overlap(40, 7), by_overlap(20, 8)
    ranker = AnswerRanker(counts=True, position=True, **settings).fit(train, by_overlap(10, 9))
    assert ranker.evaluate(test).ranking.map > 0.99
    assert ranker.fitted_.combination.columns == ("log_odds", *COLUMNS)
    ranking = ranker.rank("where rare", ["the lake", "a rare lake"], positions=[3, 0])
    assert ranking.candidates[0].text == "a rare lake"
    assert sum(one.probability_best for one in ranking.candidates) + ranking.probability_none == pytest.approx(1)
    ranker.save(tmp_path / "model")
    assert np.array_equal(AnswerRanker.load(tmp_path / "model").predict_proba(test), ranker.predict_proba(test))


def test_a_column_that_never_varies_is_not_blown_up_by_rounding():
    """The spread of 120 equal logarithms is about 1e-16, not 0."""
    generator = np.random.default_rng(0)
    features = PairFeatures(("log_length",), np.full((120, 1), np.log(9)), np.arange(120) // 4)
    combination = Combination.fit(generator.uniform(0.2, 0.8, 120), features, generator.integers(0, 2, 120))
    shorter = PairFeatures(("log_length",), np.array([[np.log(4)]]), np.zeros(1, int))
    same = combination.probability(
        np.array([0.5]), PairFeatures(("log_length",), np.array([[np.log(9)]]), np.zeros(1, int))
    )
    np.testing.assert_allclose(combination.probability(np.array([0.5]), shorter), same, atol=1e-6)


# Keeping it, and bad input


@pytest.mark.parametrize("tuned", [False, True])
def test_save_and_load_give_the_same_numbers(tmp_path, tuned):
    ranker = AnswerRanker(**SMALL | {"epochs": 1}, tune_word_vectors=tuned).fit(TRAIN, DEV)
    ranker.save(tmp_path / "model")
    loaded = AnswerRanker.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(TEST), ranker.predict_proba(TEST))
    assert loaded.rank("who was", ["a king", "a lake"]) == ranker.rank("who was", ["a king", "a lake"])
    assert loaded.get_params() == ranker.get_params() and loaded.fitted_.history == ranker.fitted_.history
    with pytest.raises(InputError, match="exists already"):
        ranker.save(tmp_path / "model")
    config = Path(tmp_path / "model" / "config.json")
    config.write_text(config.read_text().replace('"architecture"', '"something else"').replace("config_sha256", "-"))
    with pytest.raises(InputError, match="does not describe a model of kind 'answer-ranker'"):
        AnswerRanker.load(tmp_path / "model")


def test_a_full_size_folder_without_word_vectors_is_small():
    weights = NASM(1).state_dict()
    assert sum(tensor.numel() * 4 for tensor in weights.values()) < 1_000_000


def test_word_vectors_are_reduced_and_narrow_ones_refused():
    words = tuple(word for kind in KINDS.values() for word in kind.split())
    vectors = WordVectors(words, np.random.default_rng(0).normal(size=(12, 8)).astype(np.float32))
    reduced = reduce_vectors(vectors, 3)
    centred = vectors.vectors - vectors.vectors.mean(0)
    kept = np.linalg.svd(centred, compute_uv=False)[:3]
    np.testing.assert_allclose(np.linalg.norm(reduced.vectors, axis=0), kept, rtol=1e-4)
    ranker = AnswerRanker(**SMALL | {"epochs": 1, "embedding_dim": 3, "vectors": vectors}).fit(TRAIN, DEV)
    assert ranker.fitted_.vectors["n_known"] == 12 and ranker.fitted_.network.word_vectors.weight.shape[1] == 3
    with pytest.raises(InputError, match="have 8 dimensions: embedding_dim must not be above, but is 16"):
        AnswerRanker(**SMALL | {"vectors": vectors}).fit(TRAIN, DEV)


def only_label(corpus: QuestionAnswers, label: int) -> QuestionAnswers:
    questions = [
        one._replace(candidates=tuple(pair._replace(label=label) for pair in one.candidates))
        for one in corpus.questions
    ]
    return replace(corpus, questions=tuple(questions))


def test_bad_training_input_is_refused_in_one_line():
    ranker = AnswerRanker(**SMALL)
    with pytest.raises(InputError, match="all 600 pairs have label 0"):
        ranker.fit(only_label(TRAIN, 0), DEV)
    with pytest.raises(InputError, match="none of 30 questions counts"):
        ranker.fit(TRAIN, only_label(DEV, 0))
    with pytest.raises(InputError, match="no model of answers is called 'nvdm'"):
        AnswerRanker("nvdm").fit(TRAIN, DEV)
    with pytest.raises(InputError, match="has no positions of candidates"):
        AnswerRanker(position=True, **SMALL).fit(memorable(4, 0), DEV)
    with pytest.raises(InputError, match="needs at least 2, or dev questions"):
        ranker.fit(of_one(TRAIN.questions[0]))


class Watch:
    def __init__(self):
        self.shares, self.notes = [], []

    def step(self, share_done, elbo, kl):
        self.shares.append(share_done)

    def round(self, record):
        pass

    def note(self, message):
        self.notes.append(message)


def test_progress_of_a_fit_with_folds_runs_once_from_start_to_end():
    watch = Watch()
    AnswerRanker(counts=True, **SMALL | {"epochs": 2, "recipe": TWO_FOLDS}).fit(TRAIN, DEV, progress=watch)
    assert watch.shares == sorted(watch.shares) and watch.shares[-1] == pytest.approx(1)
    assert any(0.45 < share <= 0.5 for share in watch.shares)  # the network on all questions is half of the work
    assert [note[:11] for note in watch.notes] == ["fold 1 of 2", "fold 2 of 2"]


def test_another_second_stage_from_the_same_fit(tmp_path):
    ranker = AnswerRanker(counts=True, position=False, **SMALL | {"epochs": 1, "recipe": TWO_FOLDS}).fit(TRAIN, DEV)
    alone = AnswerRanker(**SMALL | {"epochs": 1}).fit(TRAIN, DEV)
    assert np.array_equal(ranker.combined(False, False).predict_proba(DEV), alone.predict_proba(DEV))
    assert np.array_equal(ranker.combined(True, False).predict_proba(DEV), ranker.predict_proba(DEV))
    for one in (ranker.combined(False, False), ranker.combined(True, True).combined(False, False)):
        assert one.fitted_.joint == alone.fitted_.joint != ranker.fitted_.joint  # P(best), P(none), thresholds
        assert one.fitted_.familiarity == alone.fitted_.familiarity
    assert ranker.combined(False, False).combined(True, False).fitted_.joint == ranker.fitted_.joint
    assert not np.array_equal(ranker.predict_proba(DEV), alone.predict_proba(DEV))
    with pytest.raises(InputError, match="just fitted"):
        alone.combined(True, False)
    ranker.save(tmp_path / "model")
    loaded = AnswerRanker.load(tmp_path / "model")
    assert loaded.combined(True, False).fitted_.joint == ranker.fitted_.joint
    other = loaded.combined(False, False).fitted_  # not the joint model of another second stage
    assert other.joint.n_questions == 0 and other.held_out is None


def test_sampled_probabilities_are_those_that_are_averaged():
    ranker = AnswerRanker(**SMALL | {"epochs": 1}).fit(TRAIN, DEV)
    sampled = ranker.sample_proba(DEV, 7)
    assert sampled.shape == (7, DEV.n_pairs)
    np.testing.assert_allclose(sampled.mean(0), ranker.predict_proba(DEV, 7), rtol=TOLERANCE)  # ties are made equal


def test_passes_are_as_many_as_the_pairs_call_for():
    """700 updates of 10 pairs are 7,000 pairs; of a question's 4 wrong answers only 2 are in a pass."""
    corpus = made_up(100, seed=0)  # 500 pairs
    assert epochs_for(AnswerSettings(batch_size=10), corpus) == 14
    assert epochs_for(AnswerSettings(batch_size=10, recipe=AnswerRecipe(most_wrong=2)), corpus) == 23
    assert epochs_for(AnswerSettings(batch_size=100), corpus) == 30
    assert epochs_for(AnswerSettings(batch_size=1), corpus) == 8
    assert epochs_for(AnswerSettings(batch_size=1, epochs=3), corpus) == 3


def test_long_answers_are_left_out_of_training_alone():
    corpus = made_up(30, seed=0)
    long = tuple(
        question._replace(
            candidates=tuple(
                one._replace(words=one.words * 30) if place == 0 else one
                for place, one in enumerate(question.candidates)
            )
        )
        for question in corpus.questions
    )
    corpus = replace(corpus, questions=long)
    ranker = AnswerRanker(**(SMALL | {"epochs": 1}), questions="all", longest_answer=29).fit(
        corpus, made_up(10, seed=1)
    )
    assert ranker.fitted_.n_training_pairs == corpus.n_pairs - 30
    assert len(ranker.predict_proba(corpus)) == corpus.n_pairs
    with pytest.raises(InputError, match="no training candidate has at most 1 words"):
        AnswerRanker(longest_answer=1, vectors="random").fit(corpus, corpus)


def test_words_that_training_does_not_have_are_read_by_their_vectors():
    words = ("king", "Nabokov", "nabokov", "1969", "lolita", "pale fire", "ada")
    vectors = WordVectors(words, np.arange(len(words) * 2, dtype=np.float32).reshape(-1, 2))
    corpus = made_up(30, seed=0)
    settings = SMALL | {"epochs": 1, "embedding_dim": None, "vectors": vectors}
    ranker = AnswerRanker(**settings, unseen_words=4).fit(corpus, corpus)
    # as words are read: in lower case, the first spelling counts, numbers by their shape; and no more than asked for
    assert ranker.fitted_.vocabulary.words[-4:] == ("nabokov", "0000", "lolita", "pale fire")
    known = ranker.fitted_.network.word_vectors.fixed[-4:]
    assert torch.equal(known, torch.tensor([[2.0, 3], [6, 7], [8, 9], [10, 11]]))
    assert ranker.fitted_.vectors["n_known"] == len(ranker.fitted_.network.word_vectors.fixed) - 1
    first, second = (ranker.rank(f"who was {name}", ["a king", "old lolita"]) for name in ("nabokov", "zzzz"))
    assert first.candidates[0].probability != second.candidates[0].probability
    for change in ({"unseen_words": 0}, {"tune_word_vectors": True}):
        fitted = AnswerRanker(**(settings | change)).fit(corpus, corpus)
        assert "nabokov" not in fitted.fitted_.vocabulary.index
    with pytest.raises(InputError, match="unseen_words must be 0 or more, not -1"):
        AnswerRanker(unseen_words=-1).fit(corpus, corpus)


def test_an_own_optimizer_and_schedule_train_the_network_and_a_scorer_refuses_them():
    rates = []

    def schedule(share):
        rates.append(share)
        return 0.5

    ranker = AnswerRanker(**SMALL | {"epochs": 2}).fit(
        made_up(30, 0), optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.2), schedule=schedule
    )
    assert {record["learning_rate"] for record in ranker.fitted_.history} == {0.1} and max(rates) == 1
    with pytest.raises(InputError, match="overlap learns without gradients"):
        AnswerRanker("overlap", threads=1).fit(made_up(30, 0), schedule=schedule)
