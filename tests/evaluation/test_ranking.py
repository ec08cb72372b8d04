"""MAP, MRR and precision at 1 against trec_eval, by hand and over every order of ties; comparisons."""

import gzip
import itertools
import json
import re

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import scored_pairs

from varitext.corpora.question_answers import PROTOCOLS
from varitext.errors import InputError
from varitext.evaluation.ranking import (
    compare_rankings,
    counted_rows,
    ndcg_values,
    question_values,
    question_word,
    question_words,
    ranking_by_question_word,
    ranking_record,
)
from varitext.evaluation.significance import bootstrap_interval, paired_randomisation_test

ONE_QUESTION = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=6)  # (score, label)


QUESTIONS = st.lists(ONE_QUESTION, min_size=1, max_size=5)


def columns(questions):
    rows = [(score, label, q) for q, rows in enumerate(questions) for score, label in rows]
    return [np.array(column) for column in zip(*rows, strict=True)]


def one(scores, labels):
    values = question_values(scores, labels, ["q"] * len(scores))
    return values.average_precision[0], values.reciprocal_rank[0]


def plain_measures(labels):
    """Average precision and reciprocal rank of labels in ranked order, from the definition."""
    places = [place for place, label in enumerate(labels, start=1) if label]
    precision = [found / place for found, place in enumerate(places, start=1)]
    return (sum(precision) / len(places), 1 / places[0]) if places else (0.0, 0.0)


def over_all_orders(rows):
    """The mean over every order that the scores allow, one by one."""
    values = []
    for order in itertools.permutations(rows):
        if all(above[0] >= below[0] for above, below in itertools.pairwise(order)):
            values.append(plain_measures([label for _, label in order]))
    return np.mean(values, axis=0)


def test_a_ranking_worked_by_hand():
    assert one([4, 3, 2, 1], [0, 1, 0, 1]) == pytest.approx(((1 / 2 + 2 / 4) / 2, 1 / 2))


def test_ties_worked_by_hand():
    assert one([1, 1], [1, 0]) == pytest.approx((3 / 4, 3 / 4))  # first or second, each as likely
    assert one([2, 1, 1], [0, 1, 0]) == pytest.approx(((1 / 2 + 1 / 3) / 2,) * 2)
    orders = [(1 + 1) / 2, (1 + 2 / 3) / 2, (1 / 2 + 2 / 3) / 2]  # 110, 101, 011
    assert one([5, 5, 5], [1, 1, 0]) == pytest.approx((np.mean(orders), (1 + 1 + 1 / 2) / 3))


@pytest.mark.parametrize(("labels", "value"), [([1], 1), ([0], 0), ([1, 1, 1, 1], 1), ([0, 0, 0], 0)])
def test_where_the_order_cannot_matter_the_value_is_exact(labels, value):
    assert one([7.0] * len(labels), labels) == (value, value)
    assert one(list(range(len(labels))), labels) == (value, value)


@given(QUESTIONS)
def test_precision_at_1_is_the_mean_over_every_order_of_ties(questions):
    found = question_values(*columns(questions)).first_right
    for value, pairs in zip(found, questions, strict=True):
        first = [label for score, label in pairs if score == max(score for score, _ in pairs)]
        assert value == pytest.approx(np.mean(first))


def test_infinite_scores_and_both_zeros_have_their_place():
    assert one([-np.inf, 0, np.inf], [0, 0, 1]) == (1, 1)
    assert one([0.0, -0.0], [1, 0]) == pytest.approx((0.75, 0.75))


def test_many_ties_stay_exact():
    """One right answer among n tied ones: both are the n-th harmonic number over n."""
    n = 20_000
    expected = (1 / np.arange(1, n + 1)).sum() / n
    assert one(np.zeros(n), np.arange(n) == 5) == pytest.approx((expected, expected), rel=1e-9)


@given(ONE_QUESTION)
def test_ties_equal_the_mean_over_every_order(rows):
    scores, labels = zip(*rows, strict=True)
    assert one(scores, labels) == pytest.approx(over_all_orders(rows), abs=1e-12)


@given(QUESTIONS, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(questions, random):
    scores, labels, ids = columns(questions)
    order = list(range(len(ids)))
    random.shuffle(order)
    before, after = question_values(scores, labels, ids), question_values(scores[order], labels[order], ids[order])
    for column, other in zip(before, after, strict=True):
        np.testing.assert_allclose(column, other, atol=1e-15)


@given(QUESTIONS)
def test_only_the_order_of_scores_counts(questions):
    scores, labels, ids = columns(questions)
    first, second = question_values(scores, labels, ids), question_values(np.exp(3 * scores) - 7, labels, ids)
    np.testing.assert_array_equal(first.average_precision, second.average_precision)
    np.testing.assert_array_equal(first.reciprocal_rank, second.reciprocal_rank)


@given(QUESTIONS)
def test_questions_do_not_touch_each_other(questions):
    values = question_values(*columns(questions))
    alone = [one(*zip(*rows, strict=True)) for rows in questions]
    np.testing.assert_allclose(np.c_[values.average_precision, values.reciprocal_rank], alone, atol=1e-15)


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=30), min_size=1, max_size=8), st.integers(0, 999))
def test_distinct_scores_equal_trec_eval(labels, seed):
    generator = np.random.default_rng(seed)
    rankings = [(generator.permutation(len(one)).astype(float), np.array(one)) for one in labels]
    rows = [(score, label, f"q{q}") for q, pair in enumerate(rankings) for score, label in zip(*pair, strict=True)]
    scores, labels, ids = zip(*rows, strict=True)
    ours = ranking_record(scores, labels, ids, protocol="all")
    assert (ours.map, ours.mrr) == pytest.approx(by_trec_eval(scores, map(int, labels), ids), abs=1e-6)


def three_kinds():
    """Questions with both kinds of answer (AP 1/2), only right ones (1), only wrong ones (0); rows interleaved."""
    ids = ["both", "right", "wrong", "both", "right", "wrong"]
    return [2, 2, 2, 1, 1, 1], [0, 1, 0, 1, 1, 0], ids


@pytest.mark.parametrize(
    ("protocol", "value", "n_questions"),
    [("answerable", 3 / 4, 2), ("both", 1 / 2, 1), ("all", 1 / 2, 3), ("paper-qasent", 1 / 2 * 68 / 72, 1)],
)
def test_protocols_say_which_questions_count(protocol, value, n_questions):
    record = ranking_record(*three_kinds(), protocol=protocol)
    assert (record.map, record.mrr) == pytest.approx((value, value))
    assert (record.n_questions, record.n_pairs, record.n_questions_left_out) == (
        n_questions,
        2 * n_questions,
        3 - n_questions,
    )
    assert record.protocol == protocol and record.average_precision.mean() == record.map
    _, labels, ids = three_kinds()
    assert set(np.array(ids)[counted_rows(labels, ids, protocol)]) == set(record.question_ids)


def test_the_record_is_json_without_the_values_per_question():
    record = ranking_record(*three_kinds())
    assert json.loads(json.dumps(record.as_dict()))["n_questions"] == 2
    assert "average_precision" not in record.as_dict()
    assert record == ranking_record(*three_kinds())
    assert record.map_interval_95[0] <= record.map <= record.map_interval_95[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [1, np.nan]}, "1 of 2 scores are NaN, the first in row 1"),
        ({"scores": [1]}, "1 scores, 2 labels, 2 question_ids"),
        ({"scores": ["high", "low"]}, "scores are not numbers"),
        ({"scores": [[1, 2]]}, r"shape \[1, 2\]"),
        ({"labels": [0, 2]}, "row 1 has 2"),
        ({"labels": [0, 0]}, "none of 1 questions counts under the protocol 'answerable'"),
        ({"protocol": "243"}, "unknown protocol '243'. Protocols: answerable"),
        ({"question_ids": np.array([1, "a"], dtype=object)}, "several types"),
        ({"scores": [], "labels": [], "question_ids": []}, "at least one number"),
    ],
)
def test_bad_input_is_said_in_one_line(change, message):
    arguments = {"scores": [1, 2], "labels": [0, 1], "question_ids": ["q", "q"]} | change
    with pytest.raises(InputError, match=message) as caught:
        ranking_record(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("question", "word", "leading"),
    [
        ("How many moons has Mars ?", "how", "how"),
        ("In what year did Elvis die", "what", "other"),
        ("whats the capital", "what", "what"),
        ("Who's on first, and what is on second?", "who", "who"),
        ("To whom was it sold", "who", "other"),
        ("Name a film by Hitchcock", "other", "other"),
        ("somewhat whatever", "other", "other"),
        ("", "other", "other"),
    ],
)
def test_the_first_question_word_decides(question, word, leading):
    assert (question_word(question), question_word(question, leading=True)) == (word, leading)


def test_groups_by_question_word_add_up_to_the_whole():
    record = ranking_record([2, 1, 2, 1, 1, 1], [1, 0, 0, 1, 1, 0], [7, 7, 3, 3, 5, 5])
    groups = ranking_by_question_word(record, {7: "who ran", 3: "how far", 5: "who won", 9: "why"})
    assert [(one.question_word, one.n_questions) for one in groups] == [("how", 1), ("who", 2)]
    assert [one.map for one in groups] == pytest.approx([1 / 2, (1 + 3 / 4) / 2])
    assert sum(one.map * one.n_questions for one in groups) / 3 == pytest.approx(record.map)
    with pytest.raises(InputError, match="2 ranked questions have no text, the first is 5"):
        ranking_by_question_word(record, {3: "how far"})


def read_pairs(folder):
    with gzip.open(folder / "test.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


COMMON = re.compile(
    "a|an|the|of|in|on|at|to|for|and|or|is|are|was|were|be|been|do|does|did|has|have|had|by|with|from|as|that|this|it|its"
    "|how|what|who|when|where|which|why|whom|whose"
)


def shared_words(pair):
    """How many of the question's word types the answer has, without the commonest and without endings."""
    return len(stems(pair["question"]) & stems(pair["answer"]))


def stems(text):
    words = (word for word in re.findall(r"[^\W_]+", text.lower()) if not COMMON.fullmatch(word))
    return {re.sub(r"(es|s|ed|ing|d)$", "", word) if len(word) > 3 else word for word in words}


def by_trec_eval(scores, labels, ids):
    qrels, run = {}, {}
    for row, (score, label, question) in enumerate(zip(scores, labels, ids, strict=True)):
        qrels.setdefault(question, {})[f"d{row}"] = label
        run.setdefault(question, {})[f"d{row}"] = float(score)
    values = pytrec_eval.RelevanceEvaluator(qrels, {"map", "recip_rank"}).evaluate(run).values()
    return np.mean([(value["map"], value["recip_rank"]) for value in values], axis=0)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=5))
def test_ndcg_is_that_of_trec_eval_over_every_order_of_ties(rows):
    found = []
    for order in itertools.permutations(range(len(rows))):
        qrels = {"q": {str(row): gain for row, (_, gain) in enumerate(rows)}}
        run = {"q": {str(row): score + order[row] / 100 for row, (score, _) in enumerate(rows)}}
        found.append(pytrec_eval.RelevanceEvaluator(qrels, {"ndcg"}).evaluate(run)["q"]["ndcg"])
    scores, gains = np.array(rows).T
    two = ndcg_values([*scores, 1.0], [*gains, 1.0], ["q"] * len(rows) + ["z"])  # a second question changes nothing
    np.testing.assert_allclose(two, [np.mean(found), 1], rtol=1e-12)


REAL = [("wikiqa", "answerable", 243, (0.3992, 0.4071), 0.587), ("qasent", "both", 68, (0.3990, 0.4661), 0.711)]


@pytest.mark.parametrize(("corpus", "protocol", "n_questions", "random", "overlap"), REAL)
def test_baselines_on_real_data(data_dir, corpus, protocol, n_questions, random, overlap):
    pairs = read_pairs(data_dir / corpus)
    labels, ids = [pair["label"] for pair in pairs], [pair["qid"] for pair in pairs]
    constant = ranking_record(np.ones(len(pairs)), labels, ids, protocol)
    assert constant.n_questions == n_questions
    assert (constant.map, constant.mrr) == pytest.approx(random, abs=0.0001)
    counted = ranking_record([shared_words(pair) for pair in pairs], labels, ids, protocol)
    assert counted.map == pytest.approx(overlap, abs=0.02)  # the tokeniser moves it that much
    assert (question_words(pair["question"] for pair in pairs) != "other").mean() > 0.9


@pytest.mark.parametrize(("corpus", "protocol"), [one[:2] for one in REAL])
def test_a_constant_score_is_worth_what_trec_eval_gives_random_rankings_on_average(data_dir, corpus, protocol):
    pairs = read_pairs(data_dir / corpus)
    labels, ids = np.array([pair["label"] for pair in pairs]), np.array([pair["qid"] for pair in pairs])
    rows = counted_rows(labels, ids, protocol)
    labels, ids = labels[rows].tolist(), ids[rows].tolist()
    generator = np.random.default_rng(0)
    values = np.array([by_trec_eval(generator.permutation(len(ids)), labels, ids) for _ in range(60)])
    constant = ranking_record(np.ones(len(ids)), labels, ids, protocol)
    standard_error = values.std(0) / np.sqrt(len(values))
    assert (np.abs(values.mean(0) - [constant.map, constant.mrr]) < 4 * standard_error).all()


def test_the_numbers_of_questions_that_protocols_state(data_dir):
    for corpus, expected in {"wikiqa": (243, 237, 633, 237, 237, 633), "qasent": (89, 68, 95, 68, 68, 95)}.items():
        pairs = read_pairs(data_dir / corpus)
        labels, ids = [pair["label"] for pair in pairs], [pair["qid"] for pair in pairs]
        zeros = np.zeros(len(pairs))
        assert tuple(ranking_record(zeros, labels, ids, protocol).n_questions for protocol in PROTOCOLS) == expected


@pytest.mark.parametrize("seed", [0, 3])
def test_intervals_of_a_ranking_have_the_seed(seed):
    record = ranking_record(*scored_pairs(), seed=seed)
    for values, found in (
        (record.average_precision, record.map_interval_95),
        (record.reciprocal_rank, record.mrr_interval_95),
    ):
        assert found == bootstrap_interval(values, seed=seed).bounds != bootstrap_interval(values, seed=seed + 1).bounds
    assert record.map_interval_95 != record.mrr_interval_95 and "right answer" in record.questions


@pytest.mark.parametrize("seed", [0, 3])
def test_two_rankings_are_compared_question_by_question_with_the_seed(seed):
    scores, labels, ids = scored_pairs()
    first, second = ranking_record(scores, labels, ids), ranking_record(scores[::-1], labels, ids)
    found = compare_rankings(first, second, seed=seed)
    for test, name in ((found.map, "average_precision"), (found.mrr, "reciprocal_rank")):
        one, other = getattr(first, name), getattr(second, name)
        assert not test.exact and test == paired_randomisation_test(one, other, seed=seed)
        assert test.p_value != paired_randomisation_test(one, other, seed=seed + 1).p_value
    assert found.map.difference == pytest.approx(first.map - second.map)


def test_only_the_same_questions_under_the_same_protocol_are_compared():
    scores, labels, ids = scored_pairs(6)
    record = ranking_record(scores, labels, ids)
    assert compare_rankings(record, record).map.p_value == 1
    renamed = ranking_record(scores, labels, np.char.add(ids, "x"))
    for other in (ranking_record(scores, labels, ids, "all"), renamed, ranking_record(*scored_pairs(5))):
        with pytest.raises(InputError, match="same questions under the same protocol"):
            compare_rankings(record, other)


def test_groups_have_both_means_and_may_go_by_the_first_word():
    record = ranking_record([2, 1, 2, 1, 1, 2], [1, 0, 0, 1, 1, 1], [7, 7, 3, 3, 5, 5])
    texts = {7: "who ran", 3: "In what year", 5: "who won"}
    groups = ranking_by_question_word(record, texts)
    assert [tuple(one) for one in groups] == [("what", 0.5, 0.5, 1), ("who", 1.0, 1.0, 2)]
    leading = ranking_by_question_word(record, texts, leading=True)
    assert [(one.question_word, one.mrr, one.n_questions) for one in leading] == [("who", 1.0, 2), ("other", 0.5, 1)]
