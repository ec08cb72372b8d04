"""Where sentences end: full stops of abbreviations, initials and numbers do not end one; line breaks do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from varitext.corpora.question_answers import sentence_words
from varitext.text.sentences import sentence_spans


@pytest.mark.parametrize(
    "sentences",
    [
        ["Penicillin was found in 1928.", "It was Dr. A. Fleming of St. Mary's who did.", "He earned 2.5 million!"],
        ["In the U.S. Army it was used.", '"Really?"', "Yes..."],
        ["Tokenised text .", "It has spaces ."],
    ],
)
@pytest.mark.parametrize("between", [" ", "\n", " \n\n  "])
def test_sentences_are_found_again(sentences, between):
    text = f" {between.join(sentences)}\n"
    assert [text[begin:end] for begin, end in sentence_spans(text)] == sentences


@given(st.text("aA1.!? \n\"'", max_size=60))
def test_all_but_spaces_is_in_one_sentence(text):
    spans = sentence_spans(text)
    assert all(begin < end for begin, end in spans) and spans == sorted(spans)
    assert "".join("".join(text[begin:end].split()) for begin, end in spans) == "".join(text.split())


def test_a_line_break_ends_a_sentence():
    assert sentence_spans("a title\nand a line") == [(0, 7), (8, 18)] and sentence_spans(" \n ") == []


def test_the_last_word_of_every_sentence_is_without_its_full_stop():
    assert " ".join(sentence_words("It is in Paris. He was J. Smith.")) == "It is in Paris . He was J. Smith ."
