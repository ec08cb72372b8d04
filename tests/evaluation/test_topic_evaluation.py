"""Coherence against gensim and against enumeration, diversity and stability by hand, and input that breaks others."""

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
    diversity_record,
    neighbourhood_stability_record,
    topic_stability_record,
)
from varitext.evaluation.coherence import MEASURES
from varitext.evaluation.cooccurrence import Reference, count_together
from varitext.evaluation.latent_dimensions import LatentDimension
from varitext.evaluation.topic_quality import jaccard, matched_likeness, rank_biased_overlap, topic_words

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


# Coherence: equal to gensim


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


# Counting windows


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


# What breaks others

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


def test_topics_of_any_tool():
    topic = LatentDimension(0, ("sun", "moon"), (2.0, 1.0), ("tree",), 0.5)
    pairs = [("sun", 0.4), ("moon", 0.2)]
    assert topic_words([topic, pairs, np.array(["sun", "moon"]), ("sun", "moon", "star")], 2) == [("sun", "moon")] * 4


# Diversity


def test_rank_biased_overlap_by_hand():
    # shared at depths 1, 2, 3: 1, 1, 3;   1/2 + 1/2 1/4 + 1/8, and the last agreement goes on: 1/8
    assert rank_biased_overlap([("a", "b", "c")], [("a", "c", "b")], 0.5).item() == pytest.approx(0.875)
    # lengths 1 and 2: the short list's agreement goes on to depth 2 and beyond: complete
    assert rank_biased_overlap([("a",)], [("a", "b")], 0.5).item() == pytest.approx(1)
    # shared 0, 1: 1/2 1/4, and beyond: ((1 - 0)/2 + 0) 1/4
    assert rank_biased_overlap([("a",)], [("b", "a")], 0.5).item() == pytest.approx(0.25)


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=4), st.floats(0.05, 0.99))
def test_overlaps_are_symmetric_and_between_0_and_1(topics, persistence):
    topics = topic_words(topics)
    for likeness in (jaccard(topics, topics), rank_biased_overlap(topics, topics, persistence)):
        assert np.allclose(likeness, likeness.T) and (likeness >= 0).all() and (likeness <= 1 + 1e-9).all()
        assert np.allclose(np.diag(likeness), [len(topic) > 0 for topic in topics])


def test_diversity_by_hand():
    record = diversity_record([["a", "b"], ["a", "c"], []], persistence=0.5)
    # shared 1, 1: 1/2 + 1/2 1/4, and 1/2 1/4 beyond
    assert record.unique_words == 3 / 4 and record.inverted_rbo == pytest.approx(1 - 0.75)
    assert record.n_topics == 3 and record.n_topics_left_out == 1
    assert diversity_record([["a", "b"], ["c", "d"]]).inverted_rbo == pytest.approx(1)
    assert diversity_record([["a", "b"]] * 2).inverted_rbo == pytest.approx(0)
    assert diversity_record([["a", "b"]]).inverted_rbo is None
    with pytest.raises(InputError, match="has a word"):
        diversity_record([[], []])


# Stability

TOPICS = [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]]


def test_the_order_of_topics_does_not_count():
    record = topic_stability_record([TOPICS, TOPICS[::-1], TOPICS[1:] + TOPICS[:1]])
    assert record.jaccard == pytest.approx(1) and record.rbo == pytest.approx(1) and record.n_fits == 3
    assert len(record.jaccard_by_pair) == 3


def test_a_topic_without_a_partner_counts_nothing():
    record = topic_stability_record([TOPICS, TOPICS[:1]])
    assert record.jaccard == pytest.approx(1 / 3) and record.n_topics == (3, 1)
    assert topic_stability_record([TOPICS, [["x"], ["y"], ["z"]]]).rbo == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_matching_is_the_best_of_all(seed):
    likeness = np.random.default_rng(seed).random((4, 5))
    best = max(likeness[range(4), columns].sum() for columns in itertools.permutations(range(5), 4))
    assert matched_likeness(likeness) == pytest.approx(best / 5)


def test_neighbourhoods_do_not_depend_on_rotation_and_scale():
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((400, 6))
    rotation = np.linalg.qr(generator.standard_normal((6, 6)))[0]
    same = neighbourhood_stability_record([vectors, 3 * vectors @ rotation], neighbours=10)
    assert same.overlap == 1 and same.n_centres == 400
    other = neighbourhood_stability_record([vectors, generator.standard_normal((400, 6))], neighbours=10)
    assert other.overlap == pytest.approx(other.by_chance, abs=0.02)


def test_neighbourhoods_by_hand():
    first = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]])  # 0-1 and 2-3
    second = np.array([[1, 0], [1, 0.1], [0, 1], [1, -0.1]])  # 0-1, 1-0, 2-1, 3-0
    assert neighbourhood_stability_record([first, second], neighbours=1).overlap == 2 / 4


def test_stability_refuses_what_cannot_be_compared():
    with pytest.raises(InputError, match="two fits"):
        topic_stability_record([TOPICS])
    with pytest.raises(InputError, match="same documents"):
        neighbourhood_stability_record([np.ones((20, 2)), np.ones((19, 2))])
    with pytest.raises(InputError, match="not finite"):
        neighbourhood_stability_record([np.full((20, 2), np.nan)] * 2)
