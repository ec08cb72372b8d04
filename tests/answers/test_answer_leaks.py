"""What labels may change: those of test questions only measures, those of dev questions what is fitted on them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from made_up_questions import made_up
from small_corpora import use_small_questions

from varitext import AnswerRanker
from varitext.answers.joint import JointModel
from varitext.answers.prediction import log_odds
from varitext.answers.settings import AnswerRecipe
from varitext.corpora.question_answers import QuestionAnswers, canonical_order
from varitext.reproduce import answer_fits, table4
from varitext.reproduce.engine import Plan

SMALL = {"vectors": "random", "embedding_dim": 8, "learning_rate": 2e-2, "batch_size": 40, "epochs": 4, "threads": 1}
RECIPE = AnswerRecipe(hidden_dim=8, layers=1, folds=2)
TRAIN, DEV, TEST = made_up(60, 0), made_up(30, 1, candidates=2), made_up(12, 2)
QUICK = Plan(quick=True, threads=1)


def poisoned(corpus: QuestionAnswers) -> QuestionAnswers:
    """Every label the other way round."""
    return replace(
        corpus,
        questions=tuple(
            one._replace(candidates=tuple(pair._replace(label=1 - pair.label) for pair in one.candidates))
            for one in corpus.questions
        ),
    )


def fit(model: str, dev: QuestionAnswers, **settings) -> AnswerRanker:
    return AnswerRanker(model, **SMALL, recipe=RECIPE, **settings).fit(TRAIN, dev)


@pytest.fixture(scope="module")
def ranker() -> AnswerRanker:
    return fit("compare", DEV)


# Test labels


def test_test_labels_change_test_measures_only(monkeypatch):
    """From fit to row of the table, as `varitext reproduce` does it."""
    use_small_questions(monkeypatch)
    monkeypatch.setattr(table4, "fit_ranker", partial(answer_fits.fit_ranker, vectors="random"))
    load, found = answer_fits.load_questions, []
    for change in (lambda corpus: corpus, poisoned):
        parts = {part: load("", part) for part in ("train", "dev")} | {"test": change(load("", "test"))}
        monkeypatch.setattr(answer_fits, "load_questions", lambda corpus, part, data_dir=None, parts=parts: parts[part])
        found.append(table4.measure("wikiqa", "bigram_cnn", 0, QUICK))
    for clean, other in zip(found[0]["rows"].values(), found[1]["rows"].values(), strict=True):
        assert clean["dev_map"] == other["dev_map"] and clean["map"] != other["map"]


def test_rankings_do_not_read_labels(ranker):
    """Nor do probabilities of being best, of no answer, intervals of ranks, and answer sets."""
    clean, other = (ranker.rank_many(corpus) for corpus in (TEST, poisoned(TEST)))
    assert clean == other
    assert [ranker.answer_set(one) for one in clean] == [ranker.answer_set(one) for one in other]


# Dev labels


def test_calibration_is_that_of_dev_questions(ranker):
    """Half of the dev candidates are right, a fifth of those in training: a fit has the mean of its labels."""
    fitted = ranker.fitted_
    found = fitted.first_stage.predict(canonical_order(DEV).question_answers, 1, 0).probability
    assert fitted.calibration.probability(found).mean() == pytest.approx(0.5, abs=1e-3)


def test_the_joint_model_is_that_of_dev_questions(ranker):
    fitted, found = ranker.fitted_, []
    for corpus in (DEV, TRAIN):
        ordered = canonical_order(corpus).question_answers
        scores = log_odds(fitted.predict(ordered, ranker).probability)
        found.append(JointModel.fit(scores, ordered.labels, ordered.groups, 0.0).parameters)
    assert fitted.joint.parameters == pytest.approx(found[0], abs=1e-6)
    assert np.abs(np.subtract(*found)).max() > 0.1 and fitted.joint.n_questions == DEV.n_questions
    assert len(fitted.held_out.top) == DEV.n_questions


def test_dev_labels_change_neither_model_nor_second_stage():
    """Of a model without epochs to choose from: it and its second stage learn from training questions."""
    clean, other = (fit("word_alignment", dev, counts=True).fitted_ for dev in (DEV, poisoned(DEV)))
    one, two = (fitted.network.state_dict() for fitted in (clean, other))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert clean.combination == other.combination and clean.dev_map != other.dev_map and clean.joint != other.joint


def test_dev_labels_choose_the_epoch_and_do_not_train(ranker):
    """Of two candidates one is right: with labels the other way round, dev MAP is 1.5 minus what it was, each epoch."""
    histories = [one.history for one in (ranker.fitted_, fit("compare", poisoned(DEV)).fitted_)]
    both = [[record["dev_map"] for record in history] for history in histories]
    assert len(set(both[0])) > 1 and np.add(*both) == pytest.approx(1.5)
