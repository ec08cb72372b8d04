"""Counting windows at the edges: empty documents, one pair, repeated words, counts, settings of a reference."""

import math

import numpy as np
import pytest
import scipy.sparse

from varitext.corpora.documents import Documents
from varitext.errors import InputError
from varitext.evaluation import coherence_record, cooccurrence
from varitext.evaluation.cooccurrence import Reference, count_together
from varitext.text import TokenRules, Vocabulary


@pytest.mark.parametrize("rule", ["gensim", "exact"])
@pytest.mark.parametrize("window", [3, None])
def test_documents_without_a_word_are_windows_wherever_they_stand(rule, window):
    tokens = [[], ["a", "b", "x", "y", "a"], [], ["b"], [], []]
    counted = count_together([("a", "b")], Reference(tokens, window, rule))
    assert counted.n_windows == (8 if window else 6)  # abx bxy xya, and one of each other document
    assert counted.occurrences.tolist() == ([2, 3] if window else [1, 2])
    assert counted.together.tolist() == [1]


def test_one_pair_and_its_words():
    tokens = [["a", "b"], ["b"], ["b", "c"], ["a"]]
    counted = count_together([("a", "b"), ("c",)], Reference(tokens, None))
    a, b, c = (np.array(counted.index[word]) for word in "abc")
    assert [counted.of(*pair).item() for pair in ((a, b), (b, a), (a, a), (b, b), (c, c))] == [1, 1, 2, 3, 1]
    assert counted.pairs.tolist() == [0 * 3 + 1]


def test_pairs_are_numbered_by_their_words():
    topics = [("a", "b", "c"), ("d", "b")]
    counted = count_together(topics, Reference([["a", "b", "c", "d"], ["d", "b"]], None))
    assert [divmod(key, 4) for key in counted.pairs.tolist()] == [(0, 1), (0, 2), (1, 2), (1, 3)]
    assert counted.together.tolist() == [1, 1, 1, 2]


def test_without_any_pair_a_word_is_with_itself():
    counted = count_together([("a",)], Reference([["a"], ["b"], ["a", "a"]], None))
    zero = np.array([0, 0])
    assert len(counted.pairs) == 0 and counted.of(zero, zero).tolist() == [2, 2]


def test_a_repeated_word_is_a_perfect_pair():
    tokens = [["sun"], ["moon"], ["sun", "sun"], []]
    record = coherence_record([["sun", "sun"]], tokens, window="document")
    assert record.coherence == pytest.approx(1, abs=1e-9) and record.n_repeated_words == 1
    # u_mass: log of P(sun, sun) / P(sun)
    assert coherence_record([["sun", "sun"]], tokens, "u_mass").coherence == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("block", [1, 2, 5, 100])
def test_how_many_pairs_are_held_at_once_changes_nothing(monkeypatch, block):
    generator = np.random.default_rng(block)
    tokens = [list(generator.choice(list("abcdef"), length)) for length in (0, 1, 7, 40, 3, 0, 15)]
    topics = [("a", "b", "c"), ("d", "a"), ("f",)]
    expected = count_together(topics, Reference(tokens, 4, "exact"))
    monkeypatch.setattr(cooccurrence, "MAX_BLOCK", block)
    found = count_together(topics, Reference(tokens, 4, "exact"))
    np.testing.assert_array_equal(found.together, expected.together)
    np.testing.assert_array_equal(found.occurrences, expected.occurrences)


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


# Counts as a reference

COUNTS = scipy.sparse.csr_matrix(np.array([[0.5, 2.0, 0.0], [0.0, 1.0, 0.25], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
WORDS = ["sun", "moon", "tree"]


def test_fractional_counts_say_which_words_are_there():
    record = coherence_record([["sun", "moon"]], COUNTS, window="document", vocabulary=WORDS)
    assert record.coherence == pytest.approx(math.log((1 / 4) / (1 / 2 * 1 / 2) + 4e-12) / math.log(4), abs=1e-9)
    assert record.n_windows == 4 and record.n_unknown_words == 0


def test_a_corpus_of_counts_has_its_own_vocabulary():
    corpus = Documents("made up", "all", (), counts=COUNTS, vocabulary=Vocabulary(tuple(WORDS)))
    own = coherence_record([["moon", "tree"]], corpus, window="document")
    assert own == coherence_record([["moon", "tree"]], COUNTS, window="document", vocabulary=Vocabulary(tuple(WORDS)))
    assert coherence_record([["moon", "tree"]], corpus, window="document", vocabulary=["x", "y", "z"]) == own


def test_counts_need_as_many_words_as_columns():
    for words, message in ((WORDS[:2], "each of its 3 columns; got 2 words"), (None, "3 columns; got none$")):
        with pytest.raises(InputError, match=message):
            coherence_record([["sun", "moon"]], COUNTS, window="document", vocabulary=words)
    with pytest.raises(InputError, match="the reference: document 1"):
        coherence_record([["sun", "moon"]], -COUNTS, window="document", vocabulary=WORDS)


# What a reference is read with


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


@pytest.mark.parametrize("window", [1, np.int64(2), 3])
def test_a_window_is_any_whole_number_of_words(window):
    record = coherence_record([["a", "b"]], [["a", "b", "c"]], window=window, window_rule="exact")
    assert (record.window, record.window_rule, record.n_windows) == (window, "exact", 4 - window)


def test_topics_are_cut_to_their_first_words():
    tokens = [["a", "b"], ["c"], ["a"]]
    assert coherence_record([["a", "b", "c"]], tokens, words=2) == coherence_record([["a", "b"]], tokens)
    assert coherence_record([["a", "b", "c"]], tokens, words=2).n_words == 2
