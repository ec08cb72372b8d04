"""Long candidates in windows: every word is read, the best window speaks, and all ways to rank agree."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varitext.answers.index import CandidateIndex
from varitext.answers.input import as_corpus
from varitext.answers.ranker import AnswerRanker
from varitext.answers.windows import LONGEST_WHOLE, MAX_WINDOWS, WINDOW, best_windows, in_windows, window_spans
from varitext.corpora.question_answers import sentence_words

QUESTION, RIGHT = "who wrote Ulysses", "James Joyce wrote Ulysses in Paris ."
FILLER = "Many people live near the old harbour and some of them like to walk along it in the evening . "
PASSAGE = FILLER * 5 + RIGHT + " " + FILLER * 5
SHORT = ["Ulysses is long .", "Dublin is a city ."]


@given(st.lists(st.integers(1, 150), min_size=1, max_size=12))
def test_windows_overlap_and_hold_every_word(lengths):
    text = " ".join(" ".join([f"W{number}", *["w"] * (length - 1)]) + "." for number, length in enumerate(lengths))
    spans = window_spans(text)
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert all(len(text[begin:end].split()) <= WINDOW for begin, end in spans)
    for (begin, end), (next_begin, next_end) in pairwise(spans):
        assert begin < next_begin and end < next_end and not text[end:next_begin].strip()


def test_short_candidates_are_read_whole():
    corpus = as_corpus(QUESTION, [RIGHT, "w " * LONGEST_WHOLE], None)
    windows = in_windows(corpus)
    assert windows.question_answers.questions == corpus.questions and windows.read == [None, None]
    assert best_windows(corpus).questions == corpus.questions


def test_of_very_many_windows_those_that_share_words_are_read():
    text = FILLER * 200 + RIGHT + FILLER * 200
    windows = in_windows(as_corpus(QUESTION, [text], None))
    assert len(windows.read) == MAX_WINDOWS and any("Joyce" in one.words for one in windows.read)
    (candidate,) = best_windows(as_corpus(QUESTION, [text], None)).questions[0].candidates
    assert "Joyce" in candidate.words and len(candidate.words) <= WINDOW and candidate.text == text


@pytest.fixture(scope="module")
def ranker() -> AnswerRanker:
    return AnswerRanker("bm25")


def test_a_right_sentence_keeps_its_place_among_many_words(ranker):
    ranking = ranker.rank(QUESTION, [*SHORT, PASSAGE])
    best = ranking.candidates[0]
    begin, end = best.window
    assert best.place == 2 and RIGHT in PASSAGE[begin:end] and best.words == sentence_words(PASSAGE[begin:end])
    assert all(one.window is None for one in ranking.candidates[1:])
    assert dict(best.matches).keys() == {"wrote", "ulysses"} and sum(dict(best.matches).values()) == pytest.approx(1)


def test_every_way_to_rank_reads_the_same_windows(ranker):
    texts = [*SHORT, PASSAGE, FILLER * 12]
    ranking = ranker.rank(QUESTION, texts)
    assert ranker.rank_many([(QUESTION, texts)]) == [ranking]
    corpus = as_corpus(QUESTION, texts, None)
    order = np.argsort(-ranker.predict_proba(corpus), kind="stable")
    assert order[0] == ranking.candidates[0].place == 2
    searched = ranker.search(QUESTION, CandidateIndex(texts)).candidates[0]
    assert searched.place == 2 and searched.window == ranking.candidates[0].window
    candidates = corpus.questions[0].candidates
    labelled = tuple(one._replace(label=int(place == 2)) for place, one in enumerate(candidates))
    question = corpus.questions[0]._replace(candidates=labelled)
    assert ranker.evaluate(replace(corpus, questions=(question,))).ranking.map == 1
