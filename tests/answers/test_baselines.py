"""Baselines beside an evaluated ranker: their scores by hand, and the paired test against the ranker."""

import numpy as np
import pytest
from made_up_questions import corpus, labelled

from varitext.answers import baselines
from varitext.answers.baselines import best_baseline, corpus_bm25, measured_baselines, word_counts
from varitext.answers.ranker import AnswerRanker
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.pretrained import is_installed

QUESTIONS = corpus(
    labelled("1", "who wrote Emma ?", ("Austen wrote Emma", 1), ("he wrote songs", 0), ("it rains", 0)),
    labelled("2", "where is Oslo ?", ("she wrote letters", 0), ("Oslo is in Norway", 1)),
)


def test_word_counts_and_bm25_by_hand():
    assert word_counts(QUESTIONS).tolist() == [2, 1, 0, 0, 1]
    found, (n, length) = corpus_bm25(QUESTIONS), (5, 15 / 5)

    def idf(frequency):
        return np.log1p((n - frequency + 0.5) / (frequency + 0.5))

    def term(words):
        return 2.2 / (1 + 1.2 * (0.25 + 0.75 * words / length))

    wrote = idf(3)  # of all five candidates, whichever question they belong to
    by_hand = [(wrote + idf(1)) * term(3), wrote * term(3), 0.0, 0.0, 2 * idf(1) * term(4)]
    np.testing.assert_allclose(found, by_hand)


def test_an_evaluation_has_the_baselines(monkeypatch):
    monkeypatch.setattr(baselines, "MAX_NEW_SENTENCES", 0)
    ranker = AnswerRanker("overlap", vectors="random").fit(QUESTIONS, dev=QUESTIONS)
    count, weighed, minilm = ranker.evaluate(QUESTIONS).baselines
    assert (count.ranking.map, count.ranking.precision_at_1, count.test.difference) == (1, 1, 0)
    assert (weighed.name, weighed.test.p_value, weighed.left_out) == ("bm25", 1, "")
    assert minilm.ranking is None and minilm.left_out
    assert minilm.as_dict()["map"] is None and count.as_dict()["map"] == 1
    assert ranker.evaluate(QUESTIONS, baselines=False).baselines == ()


def test_a_worse_ranker_loses_the_paired_test(monkeypatch):
    monkeypatch.setattr(baselines, "MAX_NEW_SENTENCES", 0)
    many = corpus(*(one._replace(id=f"{one.id}-{copy}") for copy in range(8) for one in QUESTIONS.questions))
    ids = np.array([one.id for one in many.questions])[many.groups]
    reversed_ranking = ranking_record(-word_counts(many), many.labels, ids)
    found = measured_baselines(many, ids, reversed_ranking, None, seed=0)
    best = best_baseline(found)
    assert best is found[0] and best.test.difference < -0.4
    assert best.test.p_value == 2 / 2**16  # the two assignments that give every question the same sign


@pytest.mark.skipif(not is_installed(), reason="the extra minilm is not installed")
def test_a_ranker_is_no_baseline_of_itself():
    found = AnswerRanker("minilm").evaluate(QUESTIONS)
    assert [one.name for one in found.baselines] == ["word_count", "bm25"]
    fitted = AnswerRanker("overlap", vectors="random").fit(QUESTIONS, dev=QUESTIONS)
    assert fitted.evaluate(QUESTIONS).baselines[2].ranking.map == found.ranking.map
