"""TREC runs and qrels: written without rounding, and as trec_eval reads them."""

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from trec import read_columns

from varitext.errors import InputError
from varitext.evaluation.ranking import ranking_record
from varitext.evaluation.trec_files import judged, one_word_ids, read_qrels, read_run, write_qrels, write_run

IDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6)


SCORES = st.floats(allow_nan=False)
FINITE = st.floats(-1e6, 1e6)


@given(st.dictionaries(st.tuples(IDS, IDS), st.tuples(SCORES, st.integers(-1, 3)), min_size=1, max_size=12))
def test_what_is_written_is_read_bit_for_bit(tmp_path_factory, rows):
    folder = tmp_path_factory.getbasetemp()
    questions, documents = zip(*rows, strict=True)
    scores, relevance = zip(*rows.values(), strict=True)
    write_run(folder / "run", questions, documents, scores, tag="one")
    write_qrels(folder / "qrels", questions, documents, relevance)
    run, qrels = read_columns(folder / "run"), read_columns(folder / "qrels")
    found = dict(zip(zip(run[0], run[2], strict=True), map(float, run[4]), strict=True))
    assert found == dict(zip(rows, scores, strict=True)) and set(run[5]) == {"one"}
    assert (qrels[0], qrels[2], tuple(map(int, qrels[3]))) == (questions, documents, relevance)


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
    ours = ranking_record(scores, labels, questions, "all")
    assert ours.map == pytest.approx(np.mean([one["map"] for one in theirs]), abs=1e-6)
    assert ours.mrr == pytest.approx(np.mean([one["recip_rank"] for one in theirs]), abs=1e-6)


def test_trec_eval_breaks_ties_by_descending_document_id():
    """The reason for our expectation: names decide there. The last name wins."""
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {"a": 1, "b": 0}}, {"recip_rank"})
    assert evaluator.evaluate({"q": {"a": 1.0, "b": 1.0}})["q"]["recip_rank"] == 0.5


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


@given(st.dictionaries(st.tuples(IDS, IDS), st.tuples(FINITE, st.integers(-1, 3)), min_size=1, max_size=12))
def test_what_is_written_is_read_with_its_labels(tmp_path_factory, rows):
    folder = tmp_path_factory.getbasetemp()
    questions, documents = zip(*rows, strict=True)
    scores, relevance = zip(*rows.values(), strict=True)
    write_run(folder / "read.run", questions, documents, scores)
    write_qrels(folder / "read.qrels", questions, documents, relevance)
    run, labels = judged(read_run(folder / "read.run"), read_qrels(folder / "read.qrels"), min_relevance=2)
    found = dict(zip(zip(run.question_ids, run.document_ids, strict=True), labels, strict=True))
    assert found == {pair: int(grade >= 2) for pair, (_, grade) in rows.items()}
    assert sorted(run.scores) == pytest.approx(sorted(scores), rel=1e-4)


def test_documents_without_a_judgement_are_wrong_and_questions_without_one_are_left_out(tmp_path):
    (tmp_path / "run").write_text("q Q0 a 1 2 x\nq Q0 b 2 1 x\nother Q0 a 1 3 x\n")
    (tmp_path / "qrels").write_text("q 0 b 1\nq 0 unlisted 1\n\n")
    run, labels = judged(read_run(tmp_path / "run"), read_qrels(tmp_path / "qrels"))
    assert run.question_ids.tolist() == ["q", "q"] and labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("run", "q Q0 a 1 2", "has 5 columns"),
        ("run", "q Q0 a 1 high x", "'high' is not a number"),
        ("run", "q Q0 a 1 nan x", "must be finite"),
        ("run", "q Q0 a 1 2 x\nq Q0 a 2 1 x", ":2: document a of question q was there before"),
        ("run", "\n", "has no run line"),
        ("qrels", "q 0 a yes", "'yes' is not a whole number"),
    ],
)
def test_lines_that_cannot_be_read_are_named(tmp_path, kind, content, message):
    (tmp_path / "file").write_text(content)
    with pytest.raises(InputError, match=message):
        (read_run if kind == "run" else read_qrels)(tmp_path / "file")
