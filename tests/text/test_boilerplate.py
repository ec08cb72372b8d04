"""Boilerplate, copies and languages: what is removed, what must stay, and the same again on what is left."""

import binascii
import random
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from varitext.text import boilerplate as forms
from varitext.text.boilerplate import Boilerplate, boilerplate_note, learn_boilerplate
from varitext.text.duplicates import first_copies, shared_runs
from varitext.text.language import detect_languages
from varitext.text.spans import JoinedTexts

WORDS = re.findall(r"\w+", "orbit moon rocket crew launch goal team ball league bread oven flour yeast crust")
DRAW = random.Random(0)


def prose(words: int = 30) -> str:
    """Random words, a line for every ten."""
    drawn = [DRAW.choice(WORDS) + DRAW.choice(("", "s", "ing", "ed")) for _ in range(words)]
    return "\n".join(" ".join(drawn[start : start + 10]) for start in range(0, words, 10))


PROSE = [prose() for _ in range(300)]
MAILS = [
    f"From: a{n}@b.org\nSubject: Re: {text[:20]}\nOrganization: Acme\n\nIn article <{n}@x.edu> Jo writes:\n> old news\n"
    f"{text}\n\n--\nJo Smith, Acme Works\nAll opinions are my own"
    for n, text in enumerate(PROSE)
]
COMMITS = [
    f"{text}\n\nFixes 3bffc2cafb{n:04d}.\ngit-svn-id: https://svn.org/trunk@{n} 91177308-0d34-0410-b5e6-96231b3b80d8\n"
    f"Signed-off-by: Jo <jo@x.org>"
    for n, text in enumerate(PROSE)
]
PAGES = [
    f"<html><head><title>{text[:15]}</title></head><body><nav><a href='/'>Home</a></nav><p>Skip to content</p>"
    f"<div class='py aria'>{text}</div><p>Copyright {n} Acme, all rights reserved worldwide</p></body></html>"
    for n, text in enumerate(PROSE)
]
UNWANTED = {"mails": "edu com article writes smith acme opinions old", "commits": "svn git bffc cafb jo signed trunk",
            "pages": "div aria py nav home skip content copyright acme worldwide"}  # fmt: skip


@pytest.mark.parametrize(("kind", "texts"), [("mails", MAILS), ("commits", COMMITS), ("pages", PAGES)])
def test_boilerplate_goes_and_prose_stays(kind, texts):
    boilerplate, tally = learn_boilerplate(texts), Counter()
    cleaned = list(boilerplate.clean(texts, tally))
    for text, own in zip(cleaned, PROSE, strict=True):
        words = set("".join(c.lower() if c.isalpha() else " " for c in text).split())
        assert not words & set(UNWANTED[kind].split())
        assert own.replace("\n", " ") in " ".join(text.split())  # every word, in order
    assert list(boilerplate.clean(cleaned)) == cleaned
    assert boilerplate_note(boilerplate, tally).startswith("removed boilerplate, ")
    new = list(Boilerplate.from_dict(boilerplate.as_dict()).clean([texts[0], "a new text"]))
    assert new == [cleaned[0], "a new text"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_uuencoded_files_go_and_capitals_stay(end):
    shout = "MY NAME IS IN CAPITALS, AND THIS LINE IS MUCH LONGER THAN ANY FULL LINE OF SUCH A FILE IS."
    data = np.random.default_rng(0).bytes(450)
    lines = [binascii.b2a_uu(data[start : start + 45]).decode().rstrip("\n") for start in range(0, 450, 45)]
    text = end.join(["Here is the picture.", shout, "begin 644 me.bmp", *lines, "end", "Have fun"])
    tally = Counter()
    (cleaned,) = Boilerplate().clean([text], tally)
    assert cleaned.split(end) == ["Here is the picture.", shout, "begin 644 me.bmp", "end", "Have fun"]
    assert tally["encoded"] == 10
    assert boilerplate_note(Boilerplate(), tally).startswith("removed boilerplate, ")


FORMS = ("_QUOTED", "_ATTRIBUTION", "_FIELD", "_MAIL", "_WEB", "_HASH")
PIECES = st.sampled_from(
    [
        *("In ", "In article", "writes", " wrote:", "www.", "http://", "X-Y-Z: ", "a@b.org", "x.com", ".co.uk"),
        *("In a previous article, ", "says:"),
        *("3bffc2c", "0xdeadbee1", "11111111-aaaa-2222-bbbb-333333333333", *"\n\n  \t>:.@-</%aZé1f0K"),
    ]
)


@pytest.mark.parametrize("name", FORMS)
@given(st.lists(PIECES, max_size=30).map("".join))
@example("a@b%c@d.e x.com.org www.7\nABC> x\nIn <a> writes: \n")
def test_a_form_is_found_wherever_its_pattern_matches(name, text):
    form = getattr(forms, name)
    assert [found.span() for found in form.matches(text)] == [found.span() for found in form.pattern.finditer(text)]


@pytest.mark.parametrize(
    ("line", "removed"),
    [
        ("In a previous article, jo@x.edu (Jo Doe) says:", True),
        ("  In a previous post, Jo said :  ", True),
        ("Jo Doe writes:", True),
        ("In a previous article, I asked what the Bible says about this", False),
        ("The Bible says:", False),
    ],
)
def test_lines_that_say_who_is_quoted_are_removed(line, removed):
    boilerplate = Boilerplate(kinds=("quoted",))
    (cleaned,) = boilerplate.clean([f"{PROSE[0]}\n{line}\n{PROSE[1]}"])
    assert (line.split("(")[0].split("@")[0].strip() not in cleaned) == removed


def test_prose_copies_and_short_texts_are_left_alone():
    copied = [PROSE[0]] * 30 + PROSE + ["moon orbit crew"] * 50 + ["> not a reply: there are no mails here"]
    boilerplate = learn_boilerplate(copied)
    assert list(boilerplate.clean(copied)) == copied
    assert boilerplate_note(boilerplate, Counter()) is None


def test_versions_of_a_document_keep_what_they_share():
    """Ten versions of one text share nearly all lines, which are not boilerplate."""
    versions = [f"{PROSE[0]}\nversion {word} of it\n" for word in WORDS[:10]]
    texts = versions + PROSE
    assert list(learn_boilerplate(texts).clean(versions)) == versions


def test_a_document_of_boilerplate_alone_keeps_its_text():
    boilerplate = learn_boilerplate(MAILS)
    reply = "In article <1@x.edu> Jo writes:\n> old news\n"
    assert list(boilerplate.clean([reply])) == [reply]


def test_what_many_share_within_a_line_is_removed():
    footer = "this message is confidential and meant for its recipient only please delete it"
    texts = [f"{text} {footer}".replace("\n", " ") for text in PROSE]
    cleaned = list(learn_boilerplate(texts).clean(texts))
    assert not any("confidential" in text for text in cleaned)
    assert [" ".join(text.split()) for text in cleaned] == [text.replace("\n", " ") for text in PROSE]


def test_hashes_of_spans_ignore_all_but_letters():
    joined = JoinedTexts.of(["Moon, 2 crews!\nÜber uns", "moon crews\n", "über UNS", "\ud800 😀"])
    whole, lines = joined.whole(), joined.lines()
    assert lines.hashes[0] == whole.hashes[1] and lines.hashes[1] == whole.hashes[2] and whole.letters[3] == 0
    assert len(set(whole.hashes[:3].tolist())) == 3
    assert joined.runs(2).texts.tolist() == [0, 0, 0, 1, 2]


def test_copies_point_to_the_first():
    text = prose(60)
    one_word_less, other_words = text.rsplit(" ", 1)[0], prose(60)
    texts = [text, other_words, text.upper() + "!!", one_word_less, "", "", "moon crew", "moon crew", "moon crews"]
    assert first_copies(texts).tolist() == [0, 1, 0, 0, 4, 5, 6, 6, 8]
    assert 0.95 < shared_runs(text, one_word_less) <= 1
    assert first_copies([]).tolist() == []


def test_short_texts_have_exact_copies_only():
    """No two of 20,000 short texts of few words are called copies unless their letters are the same."""
    texts = [" ".join(DRAW.choices(WORDS, k=DRAW.randint(1, 19))) for _ in range(20_000)]
    first = first_copies(texts)
    assert all(texts[place] == texts[one] for place, one in enumerate(first))
    assert len(np.unique(first)) == len(set(texts))


GERMAN = "Der {} war nicht auf dem {}, und das ist bei uns nicht so"
ENGLISH = "The {} was not on the {}, and that is not so with us"


def test_languages_are_detected_with_their_stop_words():
    pytest.importorskip("stopwordsiso")
    of = {name: [form.format(*DRAW.sample(WORDS, 2)) for _ in range(60)] for name, form in
          (("german", GERMAN), ("english", ENGLISH))}  # fmt: skip
    assert detect_languages(of["english"]).note is None and detect_languages(of["english"]).stop_words == "english"
    assert detect_languages(of["german"]).stop_words == "german"
    mixed = detect_languages(of["german"] + of["english"][:30])
    assert mixed.stop_words == "german,english" and "67 % German, 33 % English" in mixed.note
    assert detect_languages([" ".join(DRAW.sample(WORDS, 5)) for _ in range(60)]).note is None  # no stop words at all


def test_missing_stop_words_name_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "stopwordsiso", None)
    found = detect_languages([GERMAN.format(*DRAW.sample(WORDS, 2)) for _ in range(60)])
    assert (
        found.stop_words == "english" and "German" in found.note and "pip install 'varitext[languages]'" in found.note
    )
