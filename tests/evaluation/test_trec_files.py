"""TREC runs and qrels: written and read bit for bit, and as trec_eval reads them."""

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from varitext.errors import InputError
from varitext.evaluation.ranking import ranking_record
from varitext.evaluation.trec_files import (
    TrecQrels,
    TrecRun,
    judged_run,
    one_word_ids,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)

IDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6)


SCORES = st.floats(allow_nan=False)


@given(st.dictionaries(st.tuples(IDS, IDS), st.tuples(SCORES, st.integers(-1, 3)), min_size=1, max_size=12))
def test_what_is_written_is_read_bit_for_bit(tmp_path_factory, rows):
    folder = tmp_path_factory.getbasetemp()
    questions, documents = zip(*rows, strict=True)
    scores, relevance = zip(*rows.values(), strict=True)
    write_run(folder / "run", questions, documents, scores, tag="one")
    write_qrels(folder / "qrels", questions, documents, relevance)
    run, qrels = read_run(folder / "run"), read_qrels(folder / "qrels")
    found = dict(zip(zip(run.question_ids, run.document_ids, strict=True), run.scores, strict=True))
    assert found == dict(zip(rows, scores, strict=True)) and run.tag == "one"
    assert [tuple(column) for column in qrels] == [questions, documents, relevance]
    before = (folder / "run").read_bytes()
    write_run(folder / "run", *run)
    assert (folder / "run").read_bytes() == before


def test_lines_are_in_the_order_that_trec_eval_ranks_them(tmp_path):
    write_run(tmp_path / "run", [2, 1, 2, 2], ["a", "x", "c", "b"], [0.5, 1 / 3, 0.5, np.float32(0.7)])
    assert (tmp_path / "run").read_text().splitlines() == [
        "2 Q0 b 1 0.699999988079071 varitext",
        "2 Q0 c 2 0.5 varitext",
        "2 Q0 a 3 0.5 varitext",
        "1 Q0 x 1 0.3333333333333333 varitext",
    ]
    write_qrels(tmp_path / "qrels", [2, 1], ["a", "x"], [True, False])
    assert (tmp_path / "qrels").read_text() == "2 0 a 1\n1 0 x 0\n"


def test_files_give_trec_eval_the_values_that_we_have(tmp_path):
    generator = np.random.default_rng(0)
    questions, documents = np.repeat(np.arange(30), 8), np.tile(np.arange(8), 30)
    scores, labels = generator.permutation(240) / 240, generator.integers(0, 2, 240)
    write_run(tmp_path / "run", questions, documents, scores)
    write_qrels(tmp_path / "qrels", questions, documents, labels)
    with (tmp_path / "run").open() as run, (tmp_path / "qrels").open() as qrels:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels), {"map", "recip_rank"})
        theirs = evaluator.evaluate(pytrec_eval.parse_run(run)).values()
    ours = ranking_record(*judged_run(read_run(tmp_path / "run"), read_qrels(tmp_path / "qrels")), protocol="all")
    assert ours.map == pytest.approx(ranking_record(scores, labels, questions, "all").map)
    assert ours.map == pytest.approx(np.mean([one["map"] for one in theirs]), abs=1e-6)
    assert ours.mrr == pytest.approx(np.mean([one["recip_rank"] for one in theirs]), abs=1e-6)


def test_trec_eval_breaks_ties_by_descending_document_id():
    """The reason for our expectation: names decide there. The last name wins."""
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {"a": 1, "b": 0}}, {"recip_rank"})
    assert evaluator.evaluate({"q": {"a": 1.0, "b": 1.0}})["q"]["recip_rank"] == 0.5


def test_an_unjudged_candidate_is_wrong_and_a_right_one_that_is_not_ranked_is_refused(tmp_path):
    write_run(tmp_path / "run", ["q", "q"], ["a", "b"], [2, 1])
    write_qrels(tmp_path / "qrels", ["q", "q"], ["b", "z"], [2, 0])
    judged = judged_run(read_run(tmp_path / "run"), read_qrels(tmp_path / "qrels"))
    assert judged.labels.tolist() == [0, 1] and judged.scores.tolist() == [2, 1]
    write_qrels(tmp_path / "qrels", ["q"], ["z"], [1])
    with pytest.raises(InputError, match="1 right answers are not in the run, the first is z of question q"):
        judged_run(read_run(tmp_path / "run"), read_qrels(tmp_path / "qrels"))


def test_other_tools_files_are_read(tmp_path):
    (tmp_path / "run").write_bytes(b"\xef\xbb\xbfq1\tQ0\td1\t1\t-1e-3\tbm25\r\n\r\nq1  Q0 d2 2 -inf bm25")
    run = read_run(tmp_path / "run")
    assert run.question_ids.tolist() == ["q1", "q1"] and run.scores.tolist() == [-0.001, -np.inf] and run.tag == "bm25"


GOOD_RUN, GOOD_QRELS = "q Q0 a 1 0.5 tag\n", "q 0 a 1\n"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (
            read_run,
            GOOD_RUN + "q Q0 b 2 0.5\n",
            r"file:2: a run line is `question Q0 .*`, but this one has 5 columns",
        ),
        (read_run, GOOD_RUN + "\nq Q0 b 2 high tag\n", "file:3: the score 'high' is not a number"),
        (read_run, "q Q0 b 2 nan tag\n", "file:1: the score is NaN"),
        (read_run, GOOD_RUN * 2, "file:2: document a of question q was there before"),
        (read_run, GOOD_RUN + "q Q0 b 2 0.5 other\n", r"file holds 2 runs \(other, tag\)"),
        (read_run, "\n\n", "file has no run line"),
        (read_qrels, GOOD_QRELS + "q 0 b 1 1\n", "file:2: a qrels line is .* 5 columns"),
        (read_qrels, GOOD_QRELS + "q 0 b 0.5\n", "file:2: the relevance '0.5' is not a whole number"),
        (read_qrels, GOOD_QRELS * 2, "file:2: document a"),
        (read_qrels, "", "file has no qrels line"),
    ],
)
def test_a_bad_line_is_named(tmp_path, read, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "file")


def test_a_file_that_is_not_text_or_not_there_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"q Q0 \xff 1 1 t\n")
    for name, message in {"file": "not UTF-8", "nowhere": "cannot read"}.items():
        with pytest.raises(InputError, match=message):
            read_run(tmp_path / name)


@pytest.mark.parametrize(
    ("questions", "documents", "scores", "tag", "message"),
    [
        (["a question"], ["d"], [1], "tag", "a question id in a TREC file is one word"),
        (["q"], [""], [1], "tag", "a document id in a TREC file"),
        (["q"], ["d"], [1], "my run", "a tag in a TREC file"),
        (["q"], ["d"], [np.nan], "tag", "NaN"),
        (["q", "q"], ["d", "d"], [1, 2], "tag", "row 1: document d of question q was there before"),
        (["q"], ["d", "e"], [1, 2], "tag", "1 question_ids, 2 document_ids"),
    ],
)
def test_what_cannot_be_written_leaves_the_old_file(tmp_path, questions, documents, scores, tag, message):
    (tmp_path / "run").write_text("old")
    with pytest.raises(InputError, match=message):
        write_run(tmp_path / "run", questions, documents, scores, tag)
    assert [path.name for path in tmp_path.iterdir()] == ["run"] and (tmp_path / "run").read_text() == "old"


def test_graded_relevance_is_whole(tmp_path):
    with pytest.raises(InputError, match="whole numbers"):
        write_qrels(tmp_path / "qrels", ["q"], ["d"], [0.5])


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
