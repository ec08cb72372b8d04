"""`varitext calibrate`, and `varitext rank` with what it wrote."""

import csv
import json

import pytest
from command_line import refused, varitext
from made_up_questions import KINDS, made_up

from varitext import load_questions


def write_questions(path, questions, without=4):
    """A table in which every fourth question has no right answer, with a judge's points."""
    names = ("question_id", "question", "answer", "label", "score", "candidate_id")
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        for number, one in enumerate(questions.questions):
            for two in one.candidates:
                points = len(set(KINDS[one.words[0]].split()).intersection(two.words)) - len(two.words) / 10
                if number % without or not two.label:
                    writer.writerow((one.id, one.text, two.text, two.label, points, two.id))
    return path


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    return write_questions(tmp_path_factory.mktemp("questions") / "questions.csv", made_up(40, 0))


def test_a_ranker_without_a_fit_becomes_a_folder_that_is_calibrated_again_in_place(questions, tmp_path):
    outcome = varitext("calibrate", "bm25", questions, "--out", tmp_path / "model")
    assert outcome.code == 0 and "40 questions, 10 without a right answer" in outcome.out, outcome
    assert "before" in outcome.out and "precision 50%" in outcome.out
    record = json.loads(varitext("calibrate", tmp_path / "model", questions, "--json").out)
    assert record["n_questions"] == 40 and record["sha256"] == load_questions(questions, "all").sha256
    assert record["after"]["mean_probability_none"] == pytest.approx(0.25, abs=0.05)
    stored = json.loads((tmp_path / "model" / "config.json").read_text())
    assert stored["calibrated"]["corpus"] == str(questions)
    evaluated = json.loads(varitext("evaluate", tmp_path / "model", questions, "--json").out)
    assert evaluated["mean_probability_none"] == pytest.approx(0.25, abs=0.05)


def test_scores_of_a_table_and_of_trec_files_give_the_same_probabilities(questions, tmp_path):
    with questions.open() as stream:
        rows = list(csv.DictReader(stream))
    run = [f"{one['question_id']} Q0 {one['candidate_id']} 1 {one['score']} judge\n" for one in rows]
    (tmp_path / "run").write_text("".join(run))
    (tmp_path / "qrels").write_text(
        "".join(f"{one['question_id']} 0 {one['candidate_id']} {one['label']}\n" for one in rows)
    )
    trec = ("--run", tmp_path / "run", "--qrels", tmp_path / "qrels")
    of_table = json.loads(varitext("calibrate", "--scores", questions, "--out", tmp_path / "a", "--json").out)
    of_trec = json.loads(varitext("calibrate", *trec, "--out", tmp_path / "b", "--json").out)
    assert of_table["after"] == of_trec["after"] and of_table["n_without_answer"] == 10
    for folder, new, out in (("a", ("--scores", questions), "a.csv"), ("b", ("--run", tmp_path / "run"), "b.csv")):
        assert varitext("rank", tmp_path / folder, *new, "--out", tmp_path / out, "--abstain-below", 0.5).code == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    with (tmp_path / "a.csv").open() as stream:
        found = list(csv.DictReader(stream))
    assert [one["candidate_id"] for one in found] == [one["candidate_id"] for one in rows]
    first = [one for one in found if one["question_id"] == "0"]
    total = sum(float(one["probability_best"]) for one in first) + float(first[0]["probability_none"])
    assert total == pytest.approx(1) and any(one["in_set"] == "True" for one in first)


def test_named_columns_are_looked_for_in_new_scores(questions, tmp_path):
    renamed = tmp_path / "judged.csv"
    renamed.write_text(questions.read_text().replace("question_id", "number").replace("score", "points"))
    named = ("--score-column", "points", "--id-column", "number")
    assert varitext("calibrate", "--scores", renamed, *named, "--out", tmp_path / "judge").code == 0
    assert varitext("rank", tmp_path / "judge", "--scores", renamed, "--out", tmp_path / "found.csv").code == 0


def test_a_note_where_every_question_has_an_answer(tmp_path):
    questions = write_questions(tmp_path / "questions.csv", made_up(20, 1), without=100)
    lines = questions.read_text().splitlines()
    questions.write_text("\n".join(line for line in lines if not line.startswith("0,")))
    outcome = varitext("calibrate", "--scores", questions, "--out", tmp_path / "judge")
    assert "every question has a right answer" in outcome.err


def test_what_does_not_go_together_is_refused(questions, tmp_path):
    out = ("--out", tmp_path / "new")
    few = tmp_path / "few.csv"
    few.write_text("".join(questions.read_text().splitlines(keepends=True)[:12]))
    cases = {
        "3 labelled questions are too few": ("bm25", few, *out),
        "Missing --out": ("bm25", questions),
        "and labelled questions": (questions,),
        "must be fitted before it can rank": ("overlap", questions, *out),
        "--run FILE and --qrels FILE": ("--run", questions, *out),
        "--qrels does not apply": ("bm25", questions, "--qrels", questions, *out),
        "choose one that was not used to fit": ("bm25", "wikiqa", *out),
    }
    for message, typed in cases.items():
        assert message in refused(tmp_path, "calibrate", *typed), message
