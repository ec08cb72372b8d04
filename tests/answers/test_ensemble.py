"""The default ranker: ensembles in one folder, calibration on dev, the comparison with what needs no training."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit
from test_answer_ranker import DEV, TEST, TRAIN

from varitext.answers.fitted import DevComparison
from varitext.answers.prediction import Calibration
from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe
from varitext.corpora import holds_questions
from varitext.errors import InputError

SMALL = {
    "embedding_dim": 16,
    "vectors": "random",
    "epochs": 12,
    "batch_size": 40,
    "learning_rate": 2e-2,
    "threads": 1,
    "recipe": AnswerRecipe(hidden_dim=12, patience=50),
}


class Stop(Exception):
    pass


class StopInSecondNetwork:
    notes = 0

    def step(self, *_):
        if self.notes == 2:
            raise Stop

    def round(self, record): ...

    def note(self, message):
        self.notes += 1


@pytest.fixture(scope="module")
def ensemble() -> AnswerRanker:
    return AnswerRanker(ensemble=2, **SMALL).fit(TRAIN, DEV)


SHORT = SMALL | {"epochs": 6}  # where equal fits are asked for, not good ones


@pytest.fixture(scope="module")
def short() -> AnswerRanker:
    return AnswerRanker(ensemble=2, **SHORT).fit(TRAIN, DEV)


def test_the_default_ranker_learns(ensemble):
    assert ensemble.model == "compare"
    assert ensemble.evaluate(TEST).ranking.map > 0.8  # by chance .46
    assert ensemble.fitted_.comparison.is_better and ensemble.fitted_.comparison.ranker == ensemble.fitted_.dev_map


def test_an_ensemble_is_the_mean_log_odds_of_networks_of_their_own_seeds(short):
    singles = [AnswerRanker(seed=seed, **SHORT).fit(TRAIN, DEV) for seed in (0, 1)]
    log_odds = []
    for single in singles:
        raw = (logit(single.predict_proba(TEST)) - single.fitted_.calibration.shift) / single.fitted_.calibration.scale
        log_odds.append(raw)
    calibration = short.fitted_.calibration
    expected = expit(calibration.scale * np.mean(log_odds, 0) + calibration.shift)
    np.testing.assert_allclose(short.predict_proba(TEST), expected, rtol=1e-6)
    assert short.sample_proba(TEST).shape == (2, TEST.n_pairs)


def test_an_ensemble_is_one_folder(ensemble, tmp_path):
    ensemble.save(tmp_path / "model")
    loaded = AnswerRanker.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(TEST), ensemble.predict_proba(TEST))
    assert (
        loaded.fitted_.comparison == ensemble.fitted_.comparison
        and loaded.fitted_.calibration == ensemble.fitted_.calibration
    )
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["architecture"]["members"] == 2 and config["calibration"]["scale"] > 0


def test_an_interrupted_ensemble_goes_on_to_the_same_bits(short, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Stop):
        AnswerRanker(ensemble=2, **SHORT).fit(TRAIN, DEV, StopInSecondNetwork(), path)
    assert path.exists()
    resumed = AnswerRanker(ensemble=2, **SHORT).fit(TRAIN, DEV, checkpoint=path, resume=True)
    assert np.array_equal(resumed.predict_proba(TEST), short.predict_proba(TEST))


def test_a_ranking_of_an_ensemble_has_attention_and_rows_of_every_network(ensemble):
    question = TEST.questions[0]
    ranking = ensemble.rank(question.text, [one.text for one in question.candidates])
    assert ranking.n_samples == 2 and sum(ranking.candidates[0].attention_mean) == pytest.approx(1, abs=1e-5)


def test_what_has_no_seed_is_no_ensemble():
    with pytest.raises(InputError, match="leave out ensemble"):
        AnswerRanker("overlap", ensemble=2).fit(TRAIN, DEV)
    with pytest.raises(InputError, match="ensemble must be at least 1"):
        AnswerRanker(ensemble=0).fit(TRAIN, DEV)


def test_calibration_finds_scale_and_shift():
    generator = np.random.default_rng(0)
    true = generator.normal(-1, 2, 50_000)
    labels = (generator.random(50_000) < expit(true)).astype(int)
    found = Calibration.fit(expit((true + 3) / 2), labels)
    assert found.scale == pytest.approx(2, rel=0.05) and found.shift == pytest.approx(-3, rel=0.05)
    np.testing.assert_allclose(found.probability(expit((true + 3) / 2)).mean(), labels.mean(), atol=1e-3)
    assert Calibration.fit(np.array([0.2, 0.4]), np.array([0, 0])) is None
    assert Calibration.fit(expit(-true), labels).scale > 0  # never turned round


def test_no_better_than_counting_is_said_plainly():
    assert "NO BETTER" in str(DevComparison(0.6, 0.6, 0.5)) and "NO BETTER" not in str(DevComparison(0.7, 0.6, 0.5))
    ranked_by_bm25 = AnswerRanker("overlap", features="bm25", vectors="random").fit(TRAIN, DEV).fitted_.comparison
    assert ranked_by_bm25.itself == "BM25" and list(ranked_by_bm25.others) == ["word counting"]
    assert str(DevComparison(0.6, 0.5, 0.6, "BM25")) == "dev MAP 0.6000 (word counting 0.5000)"


def test_questions_are_told_from_documents(tmp_path):
    (tmp_path / "pairs.csv").write_text("question,answer,label\nwho?,me,1\n")
    (tmp_path / "texts.csv").write_text("text\nwho\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "train.jsonl").write_text('{"question": "who?", "answer": "me", "label": 1}\n')
    (tmp_path / "plain.txt").write_text("who\n")
    assert (
        holds_questions(tmp_path / "pairs.csv") and holds_questions(tmp_path / "folder") and holds_questions("wikiqa")
    )
    assert not holds_questions(tmp_path / "texts.csv") and not holds_questions(tmp_path / "plain.txt")
    assert not holds_questions("20newsgroups")


def test_a_ranking_says_whether_any_is_right_and_may_abstain(ensemble, tmp_path):
    question = TEST.questions[0]
    texts = [one.text for one in question.candidates]
    ranking = ensemble.rank(question.text, texts)
    assert ranking.answered and 0 < ranking.probability_none < 1 and 0 < ranking.probability_top < 1
    assert not ensemble.rank(question.text, texts, abstain=1.0).answered
    threshold = ensemble.abstention_threshold(0.5)
    assert 0 < threshold <= 1
    ensemble.save(tmp_path / "model")
    loaded = AnswerRanker.load(tmp_path / "model")
    assert loaded.fitted_.joint == ensemble.fitted_.joint and loaded.rank(question.text, texts) == ranking
    with pytest.raises(InputError, match="no threshold for"):
        ensemble.abstention_threshold(0.123)
    with pytest.raises(InputError, match="abstain is a probability"):
        ensemble.rank(question.text, texts, abstain=2)
