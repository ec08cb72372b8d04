"""Coherence against gensim and against enumeration, whatever the reference."""

import itertools
import json
import math
import random

import numpy as np
import pytest
import scipy.sparse
from gensim.corpora import Dictionary
from gensim.models import CoherenceModel
from hypothesis import given
from hypothesis import strategies as st

from varitext import InputError
from varitext.evaluation import (
    coherence_record,
    cooccurrence,
)
from varitext.evaluation.coherence import MEASURES
from varitext.evaluation.cooccurrence import Reference, count_together
from varitext.text import TokenRules

GENSIM = {"npmi": "c_npmi", "c_v": "c_v", "u_mass": "u_mass"}


def random_corpus(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Token lists, some empty or of one word, with many repeats; and topics, with repeats too."""
    generator = random.Random(seed)
    letters = "abcdefghijkl"[: generator.randint(4, 12)]
    lengths = [generator.choice([0, 1, 3, 8, 30]) for _ in range(generator.randint(3, 12))]
    tokens = [generator.choices(letters, k=length) for length in [*lengths, 20]]
    return tokens, [generator.choices(letters, k=5) for _ in range(3)]


def gensim_values(topics, tokens, measure, window):
    arguments = {"topics": topics, "texts": tokens, "dictionary": Dictionary(tokens), "window_size": window}
    return CoherenceModel(**arguments, coherence=GENSIM[measure], processes=1).get_coherence_per_topic()


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(12))
def test_equals_gensim(measure, seed):
    tokens, topics = random_corpus(seed)
    topics = [list("ab"), *topics]  # gensim has no number for a topic of one known word
    window = 1 + seed
    record = coherence_record(topics, tokens, measure, window="document" if measure == "u_mass" else window)
    known = [place for place, value in enumerate(record.by_topic) if value is not None]
    expected = np.array(gensim_values([topics[place] for place in known], tokens, measure, window))
    assert np.allclose([record.by_topic[place] for place in known], expected, rtol=0, atol=1e-9)
    assert record.coherence == pytest.approx(expected.mean(), abs=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_default_windows_are_gensims(measure):
    generator = random.Random(0)
    tokens = [generator.choices("abcdefgh", k=generator.randint(1, 300)) for _ in range(20)]
    expected = gensim_values([list("abcd")], tokens, measure, None)
    assert coherence_record([list("abcd")], tokens, measure).by_topic == pytest.approx(expected, abs=1e-9)


def test_whole_documents_equal_gensims_windows_that_hold_every_document():
    tokens, topics = random_corpus(3)
    record = coherence_record(topics, tokens, "npmi", window="document")
    assert record.by_topic == pytest.approx(gensim_values(topics, tokens, "npmi", 1000), abs=1e-9)
    assert record.window is None and record.n_windows == len(tokens)


def test_npmi_by_hand():
    tokens = [["sun", "moon"], ["sun", "moon"], ["sun"], ["tree"]]  # P(sun) 3/4, P(moon) 1/2, together 1/2
    record = coherence_record([["sun", "moon"]], tokens, window="document")
    assert record.coherence == pytest.approx(math.log(0.5 / 0.375) / -math.log(0.5), abs=1e-9)
    never = coherence_record([["sun", "tree"]], tokens, window="document")
    assert never.coherence == pytest.approx(math.log(1e-12 / (0.75 * 0.25)) / -math.log(1e-12))


def enumerated(tokens: list[list[str]], window: int) -> list[set[str]]:
    starts = ((document, range(max(1, len(document) - window + 1))) for document in tokens)
    return [set(document[start : start + window]) for document, places in starts for start in places]


@pytest.mark.parametrize("seed", range(10))
def test_exact_windows_are_those_that_enumeration_finds(seed):
    tokens, topics = random_corpus(seed)
    window = 1 + 2 * seed
    every_window = enumerated(tokens, window)
    counted = count_together(topics, Reference(tokens, window, "exact"))
    assert counted.n_windows == len(every_window)
    for topic in topics:
        for a, b in itertools.product(topic, repeat=2):
            found = counted.of(np.array(counted.index[a]), np.array(counted.index[b]))
            assert found == sum({a, b} <= seen for seen in every_window)


def test_gensim_forgets_a_repeated_word_and_the_exact_rule_does_not():
    tokens = [["a", "x", "a", "y", "z", "b", "q"]]  # windows of three: axa xay ayz yzb zbq
    by_rule = {rule: count_together([("a", "b")], Reference(tokens, 3, rule)) for rule in ("gensim", "exact")}
    assert by_rule["exact"].occurrences.tolist() == [3, 2]
    assert by_rule["gensim"].occurrences.tolist() == [1, 2]


def test_blocks_and_chunks_change_nothing(monkeypatch):
    tokens, topics = random_corpus(5)
    expected = coherence_record(topics, tokens, window=7)
    monkeypatch.setattr(cooccurrence, "MAX_BLOCK", 3)
    monkeypatch.setattr(cooccurrence, "CHUNK_SIZE", 100)
    assert coherence_record(topics, tokens, window=7) == expected


def test_texts_tokens_and_counts_agree():
    tokens = [["Äpfel", "birne"], ["äpfel", "birne", "kirsche"], ["kirsche"], ["birne"]]
    lower = [[word.lower() for word in document] for document in tokens]
    texts = [" , ".join(document) + "!" for document in tokens]
    words = ["birne", "kirsche", "äpfel"]
    counts = scipy.sparse.csr_matrix([[document.count(word) for word in words] for document in lower])
    topics = [["äpfel", "birne", "kirsche"]]
    by_token = coherence_record(topics, lower, window="document")
    assert coherence_record(topics, texts, window="document") == by_token
    assert coherence_record(topics, counts, window="document", vocabulary=words) == by_token
    assert coherence_record(topics, texts, "c_v", window=2) == coherence_record(topics, lower, "c_v", window=2)


TOKENS = [["sun", "moon", "star"], ["sun", "moon"], [], ["tree", "leaf"], ["sun"]]


@pytest.mark.parametrize("measure", MEASURES)
def test_unknown_words_are_left_out_and_listed(measure):
    record = coherence_record([["sun", "unheard", "moon"], ["tree", "leaf"]], TOKENS, measure)
    assert record.by_topic == coherence_record([["sun", "moon"], ["tree", "leaf"]], TOKENS, measure).by_topic
    assert record.unknown_words == ("unheard",) and record.n_unknown_words == 1 and record.n_words == 5


@pytest.mark.parametrize("measure", MEASURES)
def test_a_topic_of_fewer_than_two_known_words_has_no_coherence(measure):
    record = coherence_record([["sun", "moon"], ["sun"], [], ["unheard", "tree"]], TOKENS, measure)
    assert record.by_topic[1:] == (None, None, None) and record.n_topics_left_out == 3 and record.n_topics == 4
    assert record.coherence == record.by_topic[0]
    json.dumps(record.as_dict(), allow_nan=False)


def test_repeated_words_are_counted():
    assert coherence_record([["sun", "sun", "moon"]], TOKENS).n_repeated_words == 1


@pytest.mark.parametrize(
    ("topics", "reference", "options", "message"),
    [
        ([["unheard", "unseen"]], TOKENS, {}, "none of the 1 topics"),
        ([["sun", "moon"]], [], {}, "documents"),
        ([], TOKENS, {}, "no topics"),
        ("sun", TOKENS, {}, "not one string"),
        (["sun"], TOKENS, {}, "topic 1 is not a list"),
        ([["sun", 3]], TOKENS, {}, "not a word"),
        ([["sun", "moon"]], TOKENS, {"measure": "c_w2v"}, "measure must be one of"),
        ([["sun", "moon"]], TOKENS, {"window": 0}, "at least one word"),
        ([["sun", "moon"]], TOKENS, {"window": "sentence"}, "number of words"),
        ([["sun", "moon"]], TOKENS, {"window_rule": "other"}, "gensim or exact"),
        ([["sun", "moon"]], TOKENS, {"words": 0}, "at least one word"),
        ([["sun", "moon"]], [["sun"], "moon"], {}, "document 2 of the reference is str"),
        ([["sun", "moon"]], ["sun", None], {}, "document 2 of the reference is NoneType"),
        ([["sun", "moon"]], [["sun"], [["moon"]]], {}, "not a list of words"),
        ([["sun", "moon"]], np.eye(2), {}, "order"),
        ([["sun", "moon"]], np.eye(2), {"window": "document"}, "the word of each of its 2 columns"),
    ],
)
def test_bad_input_is_one_clear_line(topics, reference, options, message):
    with pytest.raises(InputError, match=message):
        coherence_record(topics, reference, **options)


words = st.text(max_size=3)


@given(
    st.lists(st.lists(words, max_size=5), max_size=4),
    st.lists(st.lists(words, max_size=12), max_size=6),
    st.sampled_from(list(MEASURES)),
    st.sampled_from(["gensim", "exact"]),
    st.one_of(st.just("document"), st.integers(1, 15)),
)
def test_never_nan(topics, tokens, measure, rule, window):
    try:
        record = coherence_record(topics, tokens, measure, window=window, window_rule=rule)
    except InputError:
        return
    assert all(value is None or math.isfinite(value) for value in (*record.by_topic, record.coherence))
    if measure == "npmi":
        assert all(value is None or -1 - 1e-6 <= value <= 1 + 1e-6 for value in record.by_topic)


@pytest.mark.parametrize("rule", ["gensim", "exact"])
@pytest.mark.parametrize("window", [3, None])
def test_documents_without_a_word_are_windows_wherever_they_stand(rule, window):
    tokens = [[], ["a", "b", "x", "y", "a"], [], ["b"], [], []]
    counted = count_together([("a", "b")], Reference(tokens, window, rule))
    assert counted.n_windows == (8 if window else 6)  # abx bxy xya, and one of each other document
    assert counted.occurrences.tolist() == ([2, 3] if window else [1, 2])
    assert counted.together.tolist() == [1]


def test_pairs_are_numbered_by_their_words():
    topics = [("a", "b", "c"), ("d", "b")]
    counted = count_together(topics, Reference([["a", "b", "c", "d"], ["d", "b"]], None))
    assert [divmod(key, 4) for key in counted.pairs.tolist()] == [(0, 1), (0, 2), (1, 2), (1, 3)]
    assert counted.together.tolist() == [1, 1, 1, 2]


def test_without_any_pair_a_word_is_with_itself():
    counted = count_together([("a",)], Reference([["a"], ["b"], ["a", "a"]], None))
    zero = np.array([0, 0])
    assert len(counted.pairs) == 0 and counted.of(zero, zero).tolist() == [2, 2]


def test_long_documents_with_words_in_every_place():
    """Longer than a sort that is not stable leaves in order; also a text that is not ASCII, which is read last."""
    generator = np.random.default_rng(0)
    tokens = [[*generator.choice(list("abcde"), 200)] for _ in range(3)]
    tokens[0][5] = "ä"
    counted = count_together([("a", "b", "ä")], Reference([" ".join(words) for words in tokens], 4, "exact",
                             token_rules=TokenRules(minimum_length=1)))  # fmt: skip
    windows = [set(words[start : start + 4]) for words in tokens for start in range(197)]
    assert counted.n_windows == len(windows)
    for first in "abä":
        for second in "abä":
            found = counted.of(np.array(counted.index[first]), np.array(counted.index[second]))
            assert found == sum({first, second} <= one for one in windows)


COUNTS = scipy.sparse.csr_matrix(np.array([[0.5, 2.0, 0.0], [0.0, 1.0, 0.25], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))


WORDS = ["sun", "moon", "tree"]


def test_fractional_counts_say_which_words_are_there():
    record = coherence_record([["sun", "moon"]], COUNTS, window="document", vocabulary=WORDS)
    assert record.coherence == pytest.approx(math.log((1 / 4) / (1 / 2 * 1 / 2) + 4e-12) / math.log(4), abs=1e-9)
    assert record.n_windows == 4 and record.n_unknown_words == 0


def test_counts_need_as_many_words_as_columns():
    for words, message in ((WORDS[:2], "each of its 3 columns; got 2 words"), (None, "3 columns; got none$")):
        with pytest.raises(InputError, match=message):
            coherence_record([["sun", "moon"]], COUNTS, window="document", vocabulary=words)
    with pytest.raises(InputError, match="the reference: document 1"):
        coherence_record([["sun", "moon"]], -COUNTS, window="document", vocabulary=WORDS)


def test_texts_are_read_by_the_rules_that_are_given():
    texts = ["Sun MOON", "Sun", "MOON tree"]
    record = coherence_record([["Sun", "MOON"]], texts, window="document", token_rules=TokenRules(lowercase=False))
    assert record.n_unknown_words == 0
    with pytest.raises(InputError, match="none of the 1 topics"):
        coherence_record([["Sun", "MOON"]], texts, window="document")


@pytest.mark.parametrize("window", [True, 2.5, "3"])
def test_what_is_no_number_of_words_is_no_window(window):
    with pytest.raises(InputError, match="number of words"):
        coherence_record([["a", "b"]], [["a", "b"]], window=window)


def test_topics_are_cut_to_their_first_words():
    tokens = [["a", "b"], ["c"], ["a"]]
    assert coherence_record([["a", "b", "c"]], tokens, words=2) == coherence_record([["a", "b"]], tokens)
    assert coherence_record([["a", "b", "c"]], tokens, words=2).n_words == 2
