"""Rounding decides no ranking that a ranker makes, and a candidate that says nothing never wins."""

import contextlib
import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from command_line import varitext
from jitter import Jitter
from made_up_questions import made_up
from trec import read_columns

from varitext import AnswerRanker
from varitext.answers.settings import AnswerRecipe
from varitext.corpora.question_answers import QuestionAnswers
from varitext.evaluation.ranking import compare_rankings
from varitext.integrations.rerankers import Reranker
from varitext.models.answers import model_class

TRAIN, DEV, TEST = made_up(30, 0), made_up(8, 1), made_up(12, 2)
QUICK = {
    "latent_dim": 4,
    "recipe": AnswerRecipe(hidden_dim=6, layers=1, folds=2),
    "embedding_dim": 8,
    "vectors": "random",
    "epochs": 4,
    "learning_rate": 2e-2,
    "prediction_samples": 5,
    "threads": 1,
}
NETWORKS = ("nasm", "lstm_attention", "bigram_cnn")


@pytest.fixture(scope="module", params=[(name, counts) for name in NETWORKS for counts in (False, True)])
def ranker(request):
    model, counts = request.param
    return AnswerRanker(model, counts=counts, **QUICK).fit(TRAIN, DEV)


def with_copies(corpus: QuestionAnswers) -> QuestionAnswers:
    """Every candidate twice, once with the other label: only ties, resolved in expectation, give no figure away."""
    twice = [
        one._replace(
            candidates=one.candidates
            + tuple(other._replace(id=f"{other.id}-copy", label=1 - other.label) for other in one.candidates)
        )
        for one in corpus.questions
    ]
    return replace(corpus, questions=tuple(twice))


@contextlib.contextmanager
def noise_in_logits(model: str, seed: int):
    """Of the size of rounding, another for every pair, sample and call."""
    kind, generator = model_class(model), np.random.default_rng(seed)
    plain = kind.logits

    def logits(self, h, encoding):
        found = plain(self, h, encoding)
        return found + 1e-6 * found.new_tensor(generator.uniform(-1, 1, found.shape))

    with mock.patch.object(kind, "logits", logits):
        yield


def check_same_figures(found, expected) -> None:
    """Rankings are the same to the bit; sums of probabilities to what rounding leaves of them."""
    assert found.ranking == expected.ranking and found.by_question_word == expected.by_question_word
    for name in ("log_loss", "brier", "ece", "risk", "risk_of_surer_half", "risk_coverage_area"):
        np.testing.assert_allclose(getattr(found.calibration, name), getattr(expected.calibration, name), rtol=1e-4)
    np.testing.assert_allclose(found.uncertainty[:2], expected.uncertainty[:2], rtol=1e-5)
    # of drawn labels: one draw in thousands may lie so near an edge that rounding puts it on the other side
    np.testing.assert_allclose(found.uncertainty[2:], expected.uncertainty[2:], atol=1e-3)


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_in_logits_moves_no_figure(ranker, seed):
    corpus = with_copies(TEST)
    expected = ranker.evaluate(corpus)
    with noise_in_logits(ranker.model, seed):
        found = ranker.evaluate(corpus)
        probability, sampled = ranker.predict_proba(corpus), ranker.sample_proba(corpus)
    check_same_figures(found, expected)
    assert compare_rankings(found.ranking, expected.ranking).map.difference == 0
    for question in range(corpus.n_questions):
        rows = np.flatnonzero(corpus.groups == question)
        for values in (probability, *sampled):
            assert np.array_equal(values[rows[:5]], values[rows[5:]])  # a candidate and its copy


def test_jittered_products_move_no_figure(ranker):
    expected = ranker.evaluate(with_copies(TEST))
    with Jitter():
        check_same_figures(ranker.evaluate(with_copies(TEST)), expected)


def test_noise_leaves_a_ranking_as_it_is(ranker):
    texts = ["a king", "the lake", "a king", "a king of the lake", "a king"]
    expected = ranker.rank("who was the king", texts)
    with noise_in_logits(ranker.model, 3):
        found = ranker.rank("who was the king", texts)
    for one, other in zip(found.candidates, expected.candidates, strict=True):
        assert (one.place, one.rank, one.rank_interval) == (other.place, other.rank, other.rank_interval)
        # the second stage widens what a network hardly tells apart; three digits are printed
        np.testing.assert_allclose(one.probability, other.probability, atol=1e-4)
        np.testing.assert_allclose(one.probability_best, other.probability_best, atol=1e-4)
    kings = [one for one in found.candidates if one.text == "a king"]
    assert len({(one.rank, one.probability, one.probability_best) for one in kings}) == 1


def test_noise_leaves_run_files_and_comparisons_as_they_are(tmp_path):
    AnswerRanker("nasm", **QUICK).fit(TRAIN, DEV).save(tmp_path / "model")
    pairs = [
        {"question": question.text, "answer": one.text + " ." * one.label, "label": one.label}
        for question in with_copies(TEST).questions
        for one in question.candidates
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    runs = []
    with noise_in_logits("nasm", 0):
        for name in ("first", "second"):
            asked = ("evaluate", tmp_path / "model", tmp_path / "pairs.jsonl", "--run", tmp_path / name)
            assert varitext(*asked).code == 0
            runs.append(read_columns(tmp_path / name))
        found = varitext("compare", tmp_path / "model", tmp_path / "model", tmp_path / "pairs.jsonl", "--json")
    assert runs[0][2] == runs[1][2] and runs[0][4] != runs[1][4]  # the same documents; there was noise in the scores
    comparison = json.loads(found.out)
    assert comparison["map"]["difference"] == comparison["mrr"]["difference"] == 0


# Candidates without a known word


def test_counts_know_the_words_of_the_question(ranker):
    """A name that training never saw is no known word, unless words are compared with those of the question."""
    ranking = ranker.rank("who was Xyzzy ?", ["the lake", "xyzzy", "plugh", "..."])
    known = {one.text: one.known for one in ranking.candidates}
    assert known == {"the lake": True, "xyzzy": ranker.counts, "plugh": False, "...": False}


def test_a_reranker_flags_them_too(ranker):
    results = Reranker(ranker).rank("who was the king", ["", "a queen", "..."])
    assert [(one.doc_id, one.known, one.score > 0) for one in results] == [
        (1, True, True),
        (0, False, False),
        (2, False, False),
    ]


def test_the_command_line_flags_them(tmp_path):
    AnswerRanker("nasm", **QUICK).fit(TRAIN, DEV).save(tmp_path / "model")
    rows = "".join(json.dumps({"text": text}) + "\n" for text in ("", "the old queen", "..."))
    (tmp_path / "candidates.jsonl").write_text(rows)
    asked = (
        "rank",
        tmp_path / "model",
        "--question",
        "who was the king",
        "--candidates",
        tmp_path / "candidates.jsonl",
    )
    printed = varitext(*asked)
    assert printed.code == 0, printed.err
    assert printed.out.count("(no known word)") == 2 and "(no known word) ..." in printed.out
    ranking = json.loads(varitext(*asked, "--json").out)["candidates"]
    assert [(one["place"], one["known"], one["rank"]) for one in ranking] == [
        (1, True, 1),
        (0, False, 2),
        (2, False, 2),
    ]
