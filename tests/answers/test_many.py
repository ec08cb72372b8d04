"""Many questions at once, tables in, and questions asked of a corpus: the same answers as one by one."""

import numpy as np
import pandas
import pytest
from made_up_questions import made_up
from test_answer_ranker import DEV, TEST, TRAIN
from test_ensemble import SMALL

from varitext.answers.index import CandidateIndex
from varitext.answers.ranker import AnswerRanker
from varitext.corpora import QuestionColumns
from varitext.errors import InputError
from varitext.evaluation.attention import strength, times_equal
from varitext.models.answers.features.overlap import Overlap, WordTable, bm25
from varitext.text import Vocabulary

PAIRS = [(one.text, [other.text for other in one.candidates]) for one in TEST.questions[:9]]


@pytest.fixture(scope="module")
def ranker() -> AnswerRanker:
    return AnswerRanker(**SMALL | {"epochs": 3}).fit(TRAIN, DEV)


def frame(corpus, question="question", answer="answer", label="label") -> pandas.DataFrame:
    rows = [
        {question: one.text, answer: other.text, label: other.label, "position": other.position}
        for one in corpus.questions
        for other in one.candidates
    ]
    return pandas.DataFrame(rows)


def same(one, other) -> None:
    assert (one.question, len(one.candidates)) == (other.question, len(other.candidates))
    assert [c.place for c in one.candidates] == [c.place for c in other.candidates]
    np.testing.assert_allclose(one.probability_none, other.probability_none, rtol=1e-4)
    for name in ("probability", "probability_best"):
        found, expected = ([getattr(c, name) for c in ranking.candidates] for ranking in (one, other))
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_many_are_ranked_as_each_alone(ranker):
    for found, (question, candidates) in zip(ranker.rank_many(PAIRS), PAIRS, strict=True):
        same(found, ranker.rank(question, candidates))


def test_the_order_of_the_questions_is_kept_and_attention_comes_if_asked_for(ranker):
    backwards = ranker.rank_many(PAIRS[::-1], attention=True)
    assert [one.question for one in backwards] == [question for question, _ in PAIRS[::-1]]
    assert all(one.attention_mean is not None for one in backwards[0].candidates)
    assert ranker.rank_many(PAIRS[:1])[0].candidates[0].attention_mean is None


def test_a_table_with_columns_of_its_own(ranker):
    columns = QuestionColumns(question_column="asked", answer_column="said", label_column="grade", min_relevance=2)
    table = frame(TEST, "asked", "said", "grade")
    table["grade"] *= 3
    assert ranker.evaluate(table, columns=columns).ranking.map == ranker.evaluate(TEST).ranking.map
    texts = list(dict.fromkeys(table["asked"]))
    assert [one.question for one in ranker.rank_many(table.drop(columns="grade"), columns=columns)] == texts
    with pytest.raises(InputError, match="row 1: no field 'grade'"):
        ranker.evaluate(table.drop(columns="grade"), columns=columns)


def test_fitted_on_a_table_it_is_the_same_ranker():
    settings = SMALL | {"epochs": 1}
    corpus, dev = made_up(30, 1), made_up(9, 2)
    # questions of the same words are one in a table that has no ids
    unique = {one.text: one for one in corpus.questions}
    table = frame(type(corpus)("made up", "train", (), tuple(unique.values())))
    ranker = AnswerRanker(**settings).fit(table, frame(dev))
    assert ranker.fitted_.n_training_questions == len(unique) and ranker.fitted_.corpus["name"] == "table"


def test_what_is_no_list_of_questions_is_refused(ranker):
    for given in ("who was it", 5):
        with pytest.raises(InputError, match="questions must be a corpus"):
            ranker.rank_many(given)
    with pytest.raises(InputError, match="a pair: its text and a list of candidates"):
        ranker.rank_many([("who",)])
    with pytest.raises(InputError, match="the question is empty"):
        ranker.rank_many([("", ["a king"])])
    with pytest.raises(InputError, match="questions must be a corpus"):
        AnswerRanker(**SMALL).fit(PAIRS)
    with pytest.warns(UserWarning, match="no column 'label'"), pytest.raises(InputError, match="needs wrong ones"):
        ranker.evaluate(frame(TEST).drop(columns="label"))
    assert ranker.rank_many([]) == []


def test_many_questions_may_hold_one_without_a_known_candidate(ranker):
    first, second = ranker.rank_many([("who was", ["xyzzy", "plugh"]), ("who was", ["a king", "the lake"])])
    assert first.probability_none == 1 and [one.probability for one in first.candidates] == [0, 0]
    assert second.probability_none < 1


# A corpus

SENTENCES = ["the king was old", "a lake near the city", "the queen and the king", "rain", "The King, the KING!"]


def test_the_index_scores_by_the_formula_of_bm25():
    index = CandidateIndex(SENTENCES)
    question = "who was the king?"
    from varitext.answers.input import as_corpus

    corpus = as_corpus(question, SENTENCES, None)
    vocabulary = Vocabulary(tuple(sorted({word.lower() for one in SENTENCES for word in one.strip("!").split()})))
    lengths = [4, 5, 5, 1, 4]
    expected = bm25(WordTable.of(corpus), Overlap.learn(corpus, vocabulary), float(np.mean(lengths)))
    found = index.search(question, 10)
    assert found.tolist() == np.argsort(-expected, kind="stable")[: len(found)].tolist()
    assert set(found.tolist()) == set(np.flatnonzero(expected).tolist()) and 3 not in found
    assert index.search(question, 2).tolist() == found[:2].tolist()
    assert len(index.search("xyzzy", 3)) == 0


def test_a_question_is_asked_of_a_corpus(ranker):
    index = CandidateIndex(SENTENCES)
    ranking = ranker.search("who was the king?", index, looked_at=3)
    places = index.search("who was the king?", 3).tolist()
    assert sorted(one.place for one in ranking.candidates) == sorted(places)
    assert all(one.text == SENTENCES[one.place] for one in ranking.candidates)
    with pytest.raises(InputError, match="no document of the index has a word of the question"):
        ranker.search("xyzzy", index)
    with pytest.raises(InputError, match="there are no documents to index"):
        CandidateIndex([])


# Attention against equal weights


def test_even_attention_looks_like_none():
    assert times_equal([0.25] * 4) == [1.0] * 4 and strength([0.25] * 4) == [0.0] * 4
    found = strength([0.8, 0.1, 0.05, 0.05])
    assert found[1:] == [0, 0, 0] and found[0] == pytest.approx(np.log(3.2) / np.log(8))
    assert strength([1.0] + [0.0] * 19)[0] == 1


# Questions without a right answer


def test_questions_that_training_leaves_out_teach_what_none_means():
    corpus = made_up(30, 3)
    without = [
        one._replace(candidates=tuple(other for other in one.candidates if not other.label)) if place % 3 == 0 else one
        for place, one in enumerate(corpus.questions)
    ]
    given = type(corpus)("made up", "train", (), tuple(without))
    ranker = AnswerRanker(**SMALL | {"epochs": 1}).fit(given)
    assert ranker.fitted_.n_training_questions + ranker.fitted_.n_dev_questions == 20
    assert ranker.fitted_.joint.n_without_answer == 10 and ranker.fitted_.joint.share_without_answer == pytest.approx(
        1 / 3
    )
    record = ranker.evaluate(given).no_answer
    assert record.share_without_answer == pytest.approx(1 / 3) and 0 < record.mean_probability_none < 1
