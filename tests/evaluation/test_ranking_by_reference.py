"""Records of rankings, retrieval and calibration, every field; comparisons, groups and files."""

import numpy as np
import pytest
from sklearn import metrics

from varitext.errors import InputError
from varitext.evaluation import retrieval_record
from varitext.evaluation import vectors as retrieval
from varitext.evaluation.calibration import (
    calibration_record,
    no_answer_calibration,
    reliability_curve,
    risk_coverage,
    top_answers,
)
from varitext.evaluation.ranking import compare_rankings, ranking_by_question_word, ranking_record
from varitext.evaluation.significance import bootstrap_interval, paired_randomisation_test
from varitext.evaluation.trec_files import TrecQrels, TrecRun, judged_run, one_word_ids


def pairs(questions=40, candidates=5, seed=0):
    """Scores, labels and ids; every question has a right answer."""
    generator = np.random.default_rng(seed)
    labels = generator.random((questions, candidates)) < 0.3
    labels[:, 0] = True
    ids = np.repeat([f"q{number:02}" for number in range(questions)], candidates)
    return generator.random(questions * candidates), labels.ravel().astype(int), ids


# Rankings


@pytest.mark.parametrize("seed", [0, 3])
def test_intervals_of_a_ranking_have_the_seed(seed):
    record = ranking_record(*pairs(), seed=seed)
    for values, found in (
        (record.average_precision, record.map_interval_95),
        (record.reciprocal_rank, record.mrr_interval_95),
    ):
        assert found == bootstrap_interval(values, seed=seed).bounds != bootstrap_interval(values, seed=seed + 1).bounds
    assert record.map_interval_95 != record.mrr_interval_95 and "right answer" in record.questions


@pytest.mark.parametrize("seed", [0, 3])
def test_two_rankings_are_compared_question_by_question_with_the_seed(seed):
    scores, labels, ids = pairs()
    first, second = ranking_record(scores, labels, ids), ranking_record(scores[::-1], labels, ids)
    found = compare_rankings(first, second, seed=seed)
    for test, name in ((found.map, "average_precision"), (found.mrr, "reciprocal_rank")):
        one, other = getattr(first, name), getattr(second, name)
        assert not test.exact and test == paired_randomisation_test(one, other, seed=seed)
        assert test.p_value != paired_randomisation_test(one, other, seed=seed + 1).p_value
    assert found.map.difference == pytest.approx(first.map - second.map)


def test_only_the_same_questions_under_the_same_protocol_are_compared():
    scores, labels, ids = pairs(6)
    record = ranking_record(scores, labels, ids)
    assert compare_rankings(record, record).map.p_value == 1
    renamed = ranking_record(scores, labels, np.char.add(ids, "x"))
    for other in (ranking_record(scores, labels, ids, "all"), renamed, ranking_record(*pairs(5))):
        with pytest.raises(InputError, match="same questions under the same protocol"):
            compare_rankings(record, other)


def test_groups_have_both_means_and_may_go_by_the_first_word():
    record = ranking_record([2, 1, 2, 1, 1, 2], [1, 0, 0, 1, 1, 1], [7, 7, 3, 3, 5, 5])
    texts = {7: "who ran", 3: "In what year", 5: "who won"}
    groups = ranking_by_question_word(record, texts)
    assert [tuple(one) for one in groups] == [("what", 0.5, 0.5, 1), ("who", 1.0, 1.0, 2)]
    leading = ranking_by_question_word(record, texts, leading=True)
    assert [(one.question_word, one.mrr, one.n_questions) for one in leading] == [("who", 1.0, 2), ("other", 0.5, 1)]


# Retrieval


@pytest.mark.parametrize("seed", [0, 3])
def test_every_field_of_retrieval(seed):
    generator = np.random.default_rng(0)
    train, test = generator.normal(size=(200, 4)), generator.normal(size=(30, 4))
    labels, asked = np.arange(200) % 5 % 3, np.arange(30) % 4  # of 3 there is none to find
    found = retrieval_record(train, labels, test, asked, fractions=(0.02, 1.0), recalls=(1.0,), seed=seed)
    counted = [query for query in range(30) if asked[query] < 3]
    cosines = test @ train.T / np.linalg.norm(train, axis=1)
    first_four = [(labels[np.argsort(-cosines[query])[:4]] == asked[query]).mean() for query in counted]
    assert found.precision_at_2_percent == pytest.approx(np.mean(first_four))
    assert found.precision_at_fraction[0] == pytest.approx(np.mean(first_four)) and found.fractions == (0.02, 1.0)
    bounds = bootstrap_interval(first_four, seed=seed).bounds
    assert found.precision_at_2_percent_interval_95 == pytest.approx(bounds)
    assert bootstrap_interval(first_four, seed=3).bounds != bootstrap_interval(first_four, seed=0).bounds
    assert found.by_chance == pytest.approx(np.mean([(labels == asked[query]).mean() for query in counted]))
    assert (found.n_queries, found.n_queries_left_out, found.n_documents, found.n_labels) == (len(counted), 7, 200, 3)
    assert found.recalls == (1.0,) and len(found.precision_at_recall) == 1


@pytest.mark.parametrize("block", [1, 30, 100])
def test_queries_are_taken_one_by_one_if_need_be(monkeypatch, block):
    generator = np.random.default_rng(1)
    documents = generator.normal(size=(40, 3)), np.arange(40) % 3, generator.normal(size=(7, 3)), np.arange(7) % 3
    expected = retrieval_record(*documents)
    monkeypatch.setattr(retrieval, "MAX_BLOCK", block)
    assert retrieval_record(*documents).precision_at_recall == pytest.approx(expected.precision_at_recall)


@pytest.mark.parametrize("shares", [(0.5, 1.5), (1.0001,), (0.5, 0.0), (0.5, -0.5)])
@pytest.mark.parametrize("name", ["fractions", "recalls"])
def test_every_share_lies_above_0_and_at_most_at_1(name, shares):
    with pytest.raises(InputError, match=f"{name} lie above 0"):
        retrieval_record(np.eye(2), ["a", "b"], np.eye(2), ["a", "b"], **{name: shares})


def test_documents_that_cannot_be_retrieved_are_named():
    good = (np.eye(2), ["a", "b"])
    for train, test, message in (
        ((np.full((2, 2), np.nan), ["a", "b"]), good, "2 of 2 training vectors are not finite"),
        (good, (np.full((2, 2), np.nan), ["a", "b"]), "2 of 2 test vectors are not finite"),
        (good, (np.eye(2), None), "the test documents have no labels"),
        (good, (np.eye(2), ["a"]), "2 test documents have 1 labels"),
        ((np.eye(2), None), good, "the training documents have no labels"),
    ):
        with pytest.raises(InputError, match=message):
            retrieval_record(*train, *test)


# Calibration


@pytest.mark.parametrize("binning", ["equal-mass", "equal-width"])
def test_every_field_of_calibration(binning):
    scores, labels, ids = pairs(20)
    scores[3], scores[4], scores[8] = 1.0, 0.0, 0.0
    labels[3], labels[4], labels[8] = 0, 0, 1  # certain and wrong, right, wrong
    found = calibration_record(scores, labels, ids, 6, binning)
    curve = reliability_curve(scores, labels, 6, binning)
    assert found.log_loss == pytest.approx(metrics.log_loss(labels, scores))
    assert found.brier == pytest.approx(metrics.brier_score_loss(labels, scores))
    assert found.share_right == pytest.approx(labels.mean()) and found.mean_probability == pytest.approx(scores.mean())
    assert found.ece == pytest.approx(curve.expected_error) and found.ece_binning == binning
    assert found.ece_bin_edges == pytest.approx((0.0, *curve.upper)) and found.n_certain_and_wrong == 2
    # the answer of every question, the surest first
    best = sorted(((scores[ids == one].max(), labels[ids == one][scores[ids == one].argmax()]) for one in set(ids)),
                  reverse=True)  # fmt: skip
    wrong = [1 - label for _, label in best]
    risks = [np.mean(wrong[: n + 1]) for n in range(20)]
    assert (found.risk, found.risk_of_surer_half) == pytest.approx((risks[-1], risks[9]))
    assert found.risk_coverage_area == pytest.approx(np.mean(risks)) and risks[-1] != risks[9]
    top = top_answers(scores, labels, ids)
    assert dict(zip(top.question_ids, top.confidence, strict=True)) == {
        one: scores[ids == one].max() for one in set(ids)
    }


def test_next_to_certain_is_not_certain():
    assert calibration_record([0.0, 1e-16, 1.0, 0.5], [1, 1, 1, 1], list("abcd")).n_certain_and_wrong == 1


def test_the_risk_at_a_coverage_is_that_of_the_fewest_answers_that_reach_it():
    curve = risk_coverage([0.9, 0.8, 0.7, 0.6, 0.5], [1, 0, 1, 0, 0])
    risks = [0, 1 / 2, 1 / 3, 2 / 4, 3 / 5]
    for coverage, expected in ((0.1, 0), (0.2, 0), (0.21, 1), (0.4, 1), (0.6, 2), (0.61, 3), (0.8, 3), (1.0, 4)):
        assert curve.at(coverage) == pytest.approx(risks[expected])
    thirds = risk_coverage([0.9, 0.8, 0.7], [1, 1, 0])
    assert thirds.at(1 / 3 + 1 / 3) == 0  # that it is 0.6666 does not take in the third


def test_the_last_bins_may_be_empty():
    curve = reliability_curve([0.05, 0.3, 0.35], [0, 1, 0], bins=5, binning="equal-width")
    assert curve.upper == pytest.approx([0.2, 0.4]) and curve.lower == pytest.approx([0, 0.2])
    assert curve.count.tolist() == [1, 2] and curve.share_right == pytest.approx([0, 0.5])


def error_by_hand(probability, right, bins=10):
    """Bins of as many rows each, for probabilities without ties whose number the bins divide."""
    rows = np.argsort(probability).reshape(bins, -1)
    return np.mean([abs(probability[some].mean() - right[some].mean()) for some in rows])


def test_what_chance_alone_would_give_is_the_mean_over_drawn_answers():
    probability = np.random.default_rng(0).random(50)  # as the first draws: just there, nothing happens yet
    found = no_answer_calibration(probability, probability > 0.4)
    drawn = np.random.default_rng(0).random((200, 50)) < probability
    assert found.none_ece_by_chance == pytest.approx(np.mean([error_by_hand(probability, one) for one in drawn]))
    assert found.none_ece == pytest.approx(error_by_hand(probability, probability > 0.4))


# Files of runs


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "b"], ["1", "2", "3"]),
        (["a", "b c"], ["1", "2"]),
        (["a", ""], ["1", "2"]),
        (["only one"], ["1"]),
        ([], []),
    ],
)
def test_ids_that_are_no_single_words_become_places(given, written):
    assert one_word_ids(given) == written


@pytest.mark.parametrize(("grade", "label"), [(-1, 0), (0, 0), (1, 1), (2, 1)])
def test_grades_above_0_are_right(grade, label):
    run = TrecRun(np.array(["q", "q"]), np.array(["a", "b"]), np.array([2.0, 1.0]))
    qrels = TrecQrels(np.array(["q", "other"]), np.array(["b", "a"]), np.array([grade, 0]))
    assert judged_run(run, qrels).labels.tolist() == [0, label]
