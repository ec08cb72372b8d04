"""Questions and answers: the record, its protocols, the two corpora in their formats, and the user's own files."""

import gzip
import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused

from varitext import corpora
from varitext.corpora import QuestionColumns, own_questions, qasent, wikiqa
from varitext.corpora.question_answers import (
    PROTOCOLS,
    Candidate,
    Pair,
    Question,
    QuestionAnswers,
    check_both_labels,
    group_pairs,
    sentence_words,
    subset,
)
from varitext.corpora.sources import SourceFile


def record(*labels_of_questions: list[int]) -> QuestionAnswers:
    questions = tuple(
        Question(str(q), ("who",), "who", tuple(Candidate(f"{q}-{c}", ("he",), "he", y) for c, y in enumerate(labels)))
        for q, labels in enumerate(labels_of_questions)
    )
    return QuestionAnswers("mine", "train", (SourceFile("a", "0"),), questions)


# --- the record and its protocols ---


def test_counts_labels_and_groups():
    data = record([1, 0, 0], [0], [1, 1])
    assert (data.n_questions, data.n_pairs, data.n_positive) == (3, 6, 3)
    assert data.labels.tolist() == [1, 0, 0, 0, 1, 1]
    assert data.groups.tolist() == [0, 0, 0, 1, 2, 2]
    assert len(data.sha256) == 64


def test_protocols_choose_questions_by_what_they_have():
    data = record([1, 0], [0, 0], [1])
    chosen = {name: [question.id for question in subset(data, name).questions] for name in PROTOCOLS}
    assert chosen["all"] == chosen["raw"] == ["0", "1", "2"]
    assert chosen["answerable"] == ["0", "2"]
    assert chosen["both"] == chosen["clean"] == ["0"]
    assert subset(data, "both").sha256 == data.sha256


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=4), min_size=1, max_size=6))
def test_a_subset_has_just_the_questions_of_its_protocol(labels):
    data = record(*labels)
    wanted = sum(len(set(question)) == 2 for question in labels)
    if not wanted:
        return refused(lambda: subset(data, "both"), "questions with a right and a wrong answer")
    chosen = subset(data, "both")
    assert chosen.n_questions == wanted
    assert chosen.n_pairs == len(chosen.labels) == len(chosen.groups)
    assert all(question.has_right and question.has_wrong for question in chosen.questions)


def test_what_a_record_and_a_protocol_refuse():
    refused(lambda: subset(record([1]), "243"), "'243'", "answerable")
    refused(lambda: subset(record([0]), "answerable"), "mine (train)", "a right answer")
    refused(lambda: record([1, 0], []), "question 1 has no candidates")
    refused(lambda: check_both_labels(record([0], [0])), "all 2 pairs have label 0")
    refused(lambda: check_both_labels(record([1])), "label 1")
    check_both_labels(record([1], [0]))


def test_rows_of_a_question_are_grouped_wherever_they_stand():
    pairs = [Pair(q, f"{q}?", (q,), Candidate(str(n), (), "", 0), "") for n, q in enumerate("abacb")]
    grouped = group_pairs(pairs)
    assert [(question.id, [c.id for c in question.candidates]) for question in grouped] == [
        ("a", ["0", "2"]),
        ("b", ["1", "4"]),
        ("c", ["3"]),
    ]


# --- words of plain text ---


def test_words_of_a_sentence():
    text = "Don't say \"U.S. GDP (3.3%) was $1,000 -- well-known\"... the dogs' tails, it's at 10:30."
    expected = "Do n't say `` U.S. GDP ( 3.3 % ) was $ 1,000 -- well-known '' ... the dogs ' tails , it 's at 10:30 ."
    assert sentence_words(text) == tuple(expected.split())
    assert sentence_words(expected) == tuple(expected.split())


@given(st.text(min_size=1))
def test_no_text_loses_all_its_words(text):
    words = sentence_words(text)
    assert bool(words) == bool(text.strip())
    assert not any(character.isspace() for word in words for character in word)


# --- the corpora, on the real data ---

TABLE_3 = {  # questions with candidates, pairs, right pairs, questions: answerable, both
    ("wikiqa", "train"): (2118, 20360, 1040, 873, 857),
    ("wikiqa", "dev"): (296, 2733, 140, 126, 122),
    ("wikiqa", "test"): (633, 6165, 293, 243, 237),
    ("qasent", "train-all"): (1229, 53417, 6403, 1229, 1162),
    ("qasent", "train"): (93, 4718, 348, 83, 78),
    ("qasent", "dev"): (81, 1148, 222, 78, 65),
    ("qasent", "test"): (95, 1517, 284, 89, 68),
}


@pytest.mark.parametrize(("name", "part"), TABLE_3)
def test_counts_are_those_of_table_3(name, part, data_dir):
    data = corpora.load_questions(name, part, data_dir)
    chosen = [subset(data, protocol).n_questions for protocol in ("answerable", "both")]
    assert (data.n_questions, data.n_pairs, data.n_positive, *chosen) == TABLE_3[name, part]
    assert (data.name, data.part, len(data.files)) == (name, part, 1)
    assert subset(data, "all").n_questions == subset(data, "raw").n_questions == data.n_questions
    assert subset(data, "clean").n_questions == subset(data, "both").n_questions
    assert all(question.words and all(c.words for c in question.candidates) for question in data.questions)
    assert set(data.labels.tolist()) == {0, 1}
    if name == "qasent":
        assert qasent.PUBLISHED[part] == (data.n_questions, data.n_pairs)


def test_positions_are_places_in_the_article_or_unknown(data_dir):
    for question in corpora.load_questions("wikiqa", "dev", data_dir).questions:
        assert [candidate.position for candidate in question.candidates] == list(range(len(question.candidates)))
    # in QASent's files right answers stand first: their order must not look like a position
    every = [c for question in corpora.load_questions("qasent", "dev", data_dir).questions for c in question.candidates]
    assert {candidate.position for candidate in every} == {None}


def test_corpora_are_listed_where_they_are(data_dir):
    listed = {status.name: status for status in corpora.describe(data_dir)}
    for name, files in (("wikiqa", 3), ("qasent", 4)):
        assert listed[name].where == str(data_dir / name)
        assert len(listed[name].files) == files
    assert {status.where for status in corpora.describe()} == {"not here"}


# --- WikiQA's official files ---


@pytest.fixture(scope="module")
def official(data_dir) -> dict[str, bytes]:
    """The official tsv files, written again from the data folder's: their SHA-256 shows that they are the same."""
    columns = ("qid", "question", "document_id", "document_title", "candidate_id", "answer", "label")
    files = {}
    for part in wikiqa.PARTS:
        lines = ["QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"]
        with gzip.open(data_dir / "wikiqa" / f"{part}.jsonl.gz", "rt", encoding="utf-8") as rows:
            lines += ["\t".join(str(row[column]) for column in columns) for row in map(json.loads, rows)]
        files[f"WikiQA-{part}.tsv"] = "".join(f"{line}\r\n" for line in lines).encode()
    return files


def zipped(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        for name, content in files.items():
            members.writestr(f"WikiQACorpus/{name}", content)
    return archive.getvalue()


@pytest.mark.parametrize("folder", wikiqa.OFFICIAL_FOLDERS)
def test_wikiqa_from_official_tsv_files(folder, official, tmp_path, data_dir):
    (tmp_path / "data" / folder).mkdir(parents=True)
    for name, content in official.items():
        (tmp_path / "data" / folder / name).write_bytes(content)
    ours, theirs = (corpora.load_questions("wikiqa", "dev", where) for where in (tmp_path / "data", data_dir))
    assert ours.files == (SourceFile("wikiqa/WikiQA-dev.tsv", wikiqa.OFFICIAL["dev"].sha256),)
    assert np.array_equal(ours.labels, theirs.labels) and np.array_equal(ours.groups, theirs.groups)
    pairs = [
        (mine, given)
        for a, b in zip(ours.questions, theirs.questions, strict=True)
        for mine, given in zip(a.candidates, b.candidates, strict=True)
    ]
    assert all(mine._replace(words=()) == given._replace(words=()) for mine, given in pairs)
    assert np.mean([mine.words == given.words for mine, given in pairs]) > 0.96


def test_wikiqa_from_the_official_zip(official, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "WikiQACorpus.zip").write_bytes(zipped(official))
    assert corpora.load_questions("wikiqa", "test", tmp_path / "data").n_pairs == 6165
    assert corpora.load_questions("wikiqa", "dev").n_pairs == 2733  # from the cache


def test_wikiqa_from_its_address(official, server, monkeypatch):
    server.pages["/WikiQACorpus.zip"] = zipped(official)
    monkeypatch.setattr(wikiqa, "ADDRESS", f"{server.address}/WikiQACorpus.zip")
    assert len(corpora.fetch("wikiqa").files) == 3


def test_wikiqa_refuses_files_that_are_not_the_known_ones(tmp_path):
    refused(lambda: corpora.load_questions("wikiqa", "dev"), "wikiqa is not here", "did not answer", "WikiQACorpus.zip")
    (tmp_path / "wikiqa").mkdir()
    archive = tmp_path / "wikiqa" / "WikiQACorpus.zip"
    for content, said in (
        (b"no zip", "expected files"),
        (zipped({}), "expected files"),
        (zipped({file.name: b"x" for file in wikiqa.OFFICIAL.values()}), "WikiQA-train.tsv"),
    ):
        archive.write_bytes(content)
        refused(lambda: corpora.load_questions("wikiqa", "dev", tmp_path), said)
    for part in wikiqa.PARTS:
        (tmp_path / "wikiqa" / f"{part}.jsonl").write_text("{}")
    refused(lambda: corpora.load_questions("wikiqa", "dev", tmp_path), "dev.jsonl is not the expected file")
    refused(lambda: corpora.load_questions("wikiqa", "validation", tmp_path), "train, dev, test")


# --- QASent's official files ---

XML = """<QApairs id='1.4'>
<question>
What\tis\tR\t&\tD\t?
WP\tVBZ\tNN\tCC\tNN\t.
</question>
<positive>
Research\t<\tdevelopment\t.
NNP\t-\tNN\t.
research\t
1\t
</positive>
<negative>
</negative>
<negative>
Wrong\t,\tthat\t.
JJ\t,\tDT\t.
</negative>
</QApairs>
<QApairs id='1.5'>
<question>
Nobody\tknows\t?
</question>
</QApairs>
"""


@pytest.mark.parametrize("folder", qasent.OFFICIAL_FOLDERS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_qasent_from_official_xml(folder, line_end, tmp_path):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "test.xml").write_bytes(XML.replace("\n", line_end).encode())
    with pytest.warns(UserWarning, match="1 questions with 2 candidates that have text, not 95 with 1,517"):
        data = corpora.load_questions("qasent", "test", tmp_path)
    assert data.questions == (
        Question(
            "1.4",
            ("What", "is", "R", "&", "D", "?"),
            "What is R & D ?",
            (
                Candidate("1.4-0", ("Research", "<", "development", "."), "Research < development .", 1),
                Candidate("1.4-2", ("Wrong", ",", "that", "."), "Wrong , that .", 0),  # 1.4-1 has lost its text
            ),
        ),
    )
    assert [status.where for status in corpora.describe(tmp_path) if status.name == "qasent"] == [
        str(tmp_path / folder)
    ]
    refused(lambda: corpora.load_questions("qasent", "train-all", tmp_path), "'train-all' is not here", "jacana")


def test_qasent_xml_is_the_same_as_the_data_folder(data_dir, tmp_path):
    data = corpora.load_questions("qasent", "dev", data_dir)
    lines = []
    for question in data.questions:
        lines += [f"<QApairs id='{question.id}'>", "<question>", "\t".join(question.words), "</question>"]
        for candidate in question.candidates:
            tag = "positive" if candidate.label else "negative"
            lines += [f"<{tag}>", "\t".join(candidate.words), f"</{tag}>"]
        lines.append("</QApairs>")
    (tmp_path / "qasent").mkdir()
    (tmp_path / "qasent" / "dev.xml").write_text("\n".join(lines), encoding="utf-8")
    # and no warning: the counts are right
    assert corpora.load_questions("qasent", "dev", tmp_path).questions == data.questions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no <QApairs"),
        ("<positive>\nyes\n", "line 1: <positive> outside"),
        ("<QApairs id='1'>\n<negative>\nyes\n", "line 2: <negative> outside"),
        ("<QApairs id='1'>\n<question>\n</question>\n", "line 3: question 1 has no words"),
        ("<QApairs id='1'>\n<question>\n\n</question>\n", "line 3: question 1 has no words"),
    ],
)
def test_xml_that_is_refused(text, said):
    refused(lambda: list(qasent.parse_xml(text, "test.xml")), "test.xml", said)


def test_qasent_that_is_not_there():
    refused(lambda: corpora.fetch("qasent"), "qasent is not here", "train-all.xml")


# --- the user's own questions ---


def write(path, text: str | bytes):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def jsonl(*rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def row(question="Who?", answer="Ada did.", label=1, **others) -> dict:
    return {"question": question, "answer": answer, "label": label, **others}


def test_own_questions_of_both_kinds(tmp_path):
    rows = [row(label=1), row("When?", "In 1843.", 0), row(answer="Nobody, they say.", label=0)]
    table = 'label,question,answer\n1,Who?,Ada did.\n0,When?,In 1843.\n\n0,Who?,"Nobody, they say."\n'
    first = corpora.load_questions(write(tmp_path / "a.jsonl", jsonl(*rows)))
    second = corpora.load_questions(write(tmp_path / "a.csv", table))
    third = corpora.load_questions(write(tmp_path / "a.jsonl.gz", gzip.compress(jsonl(*rows).encode(), mtime=0)))
    assert first.questions == second.questions == third.questions
    assert first.part == "all" and first.files[0].name == "a.jsonl"
    assert [(question.text, len(question.candidates)) for question in first.questions] == [("Who?", 2), ("When?", 1)]
    assert first.questions[0].candidates[1] == Candidate(
        "2", ("Nobody", ",", "they", "say", "."), "Nobody, they say.", 0
    )


def test_ids_positions_and_labels_as_they_are_written(tmp_path):
    rows = [
        row(question_id=7, candidate_id="a", position=3, label=True),
        row(question_id="8", position="0", label="0"),
        row(question_id=8, label=1.0, answer="Other."),
    ]
    questions = corpora.load_questions(write(tmp_path / "a.jsonl", jsonl(*rows))).questions
    assert [question.id for question in questions] == ["7", "8"]  # one text, two questions
    assert [[c.label for c in question.candidates] for question in questions] == [[1], [0, 1]]
    assert questions[0].candidates[0].id == "a"
    assert [c.position for question in questions for c in question.candidates] == [3, 0, None]


def test_a_pair_with_both_labels_is_said_and_kept(tmp_path):
    path = write(tmp_path / "a.jsonl", jsonl(row(), row(answer="No."), row(label=0), row(answer="No.", label=0)))
    with pytest.warns(UserWarning, match=r"a\.jsonl, line 3: this pair .* other label, and 1 more such; both are kept"):
        data = corpora.load_questions(path)
    assert data.n_pairs == 4
    assert corpora.load_questions(write(path, jsonl(row(), row(), row(label=1)))).n_pairs == 3  # agreement is no news


def test_a_candidate_of_ten_thousand_words_is_whole(tmp_path):
    data = corpora.load_questions(write(tmp_path / "a.csv", "question,answer,label\nWho?," + "word " * 50_000 + ",1\n"))
    assert len(data.questions[0].candidates[0].words) == 50_000


def test_a_folder_of_parts(tmp_path):
    write(tmp_path / "train.jsonl", jsonl(row()))
    write(tmp_path / "test.csv", "question,answer,label\nWho?,Ada.,1\n")
    assert own_questions.parts(tmp_path) == ("train", "test")
    assert corpora.load_questions(tmp_path, "test").questions[0].candidates[0].text == "Ada."
    refused(lambda: corpora.load_questions(tmp_path, "dev"), "no part 'dev'")
    write(tmp_path / "train.csv", "")
    refused(lambda: corpora.load_questions(tmp_path, "train"), "more than one file for train")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", jsonl(row(), row(question="  ")), "line 2: the question is empty"),
        ("a.jsonl", jsonl(row(answer=5)), "line 1: the answer must be text, not int"),
        ("a.jsonl", jsonl(row(question=None)), "line 1: the question must be text, not NoneType"),
        ("a.jsonl", jsonl(row(label=2)), "line 1: the label is '2'; it must be 1 (right) or 0 (wrong)"),
        ("a.jsonl", jsonl(row(label=0.5)), "the label is '0.5'"),
        ("a.jsonl", jsonl(row(label=None)), "the label is 'None'"),
        ("a.jsonl", jsonl(row(position=-1)), "the position is '-1'"),
        (
            "a.jsonl",
            jsonl(row(question_id=1), row("Why?", question_id=1)),
            "line 2: question id '1' belongs to a different",
        ),
        ("a.jsonl", jsonl({"question": "Who?", "label": 1}), "line 1: no field 'answer'. Fields: question, label."),
        ("a.jsonl", "[1]", "line 1: expected a JSON object"),
        ("a.jsonl", "{", "line 1: not valid JSON"),
        ("a.jsonl", "\n", "has no questions"),
        ("a.jsonl", b'{"question": "\xff"}', "line 1: byte 14 is not UTF-8"),
        ("a.csv", "question,answer,label\n", "has no questions"),
        ("a.csv", "question,answer,label\nWho?,Ada.,yes\n", "line 2: the label is 'yes'"),
        ("a.csv", "question,answer,label\nWho?,Ada.\n", "line 2: 2 columns, but the header has 3"),
        ("a.csv", 'question,answer,label\nWho?,"Ada.,1\n', "line 2"),
        ("a.txt", "Who?", "Questions are read from .jsonl, .csv"),
        ("a.csv", "question,answer,relevance\nWho?,Ada.,1\n", "Use --label-column relevance (label_column), or remove"),
        ("a.csv", "question,answer,Clicks\nWho?,Ada.,1\n", "Use --count-column Clicks (count_column), or remove"),
    ],
)
def test_own_questions_that_are_refused(name, text, said, tmp_path):
    refused(lambda: corpora.load_questions(write(tmp_path / name, text)), name, said)


def test_without_labels_every_answer_is_right(tmp_path):
    path = write(tmp_path / "a.csv", "question,answer,topic\nWho?,Ada.,1\nWhen?,In 1843.,2\n")
    with pytest.warns(UserWarning, match=r"a\.csv: no column 'label', so every answer counts as right"):
        assert corpora.load_questions(path).labels.tolist() == [1, 1]
    assert corpora.load_questions(path, labelled=False).labels.tolist() == [0, 0]
    assert corpora.holds_questions(path)
    assert not corpora.holds_questions(write(tmp_path / "b.csv", "question,answer,text\nWho?,Ada.,Ada did.\n"))
    refused(lambda: corpora.load_questions(path, columns=QuestionColumns(label_column="label")), "no field 'label'")


def test_an_empty_answer_is_a_candidate_without_words(tmp_path):
    path = write(tmp_path / "a.jsonl", jsonl(row(), row(answer=" ", label=0), row(answer=None, label=0)))
    with pytest.warns(UserWarning, match=r"line 2 and 1 more: the answer is empty; it is ranked last"):
        (question,) = corpora.load_questions(path).questions
    assert [candidate.words for candidate in question.candidates] == [("Ada", "did", "."), (), ()]


def test_grades_and_clicks_become_labels_and_gains(tmp_path):
    path = write(tmp_path / "a.csv", "question,answer,seen\nWho?,Ada.,3\nWho?,Bob.,0\nWho?,Cy.,1\n")
    graded = corpora.load_questions(path, columns=QuestionColumns(label_column="seen", min_relevance=2))
    assert graded.labels.tolist() == [1, 0, 0] and graded.gains.tolist() == [3, 0, 1]
    clicked = corpora.load_questions(path, columns=QuestionColumns(count_column="seen"))
    assert clicked.labels.tolist() == [1, 0, 1]
    np.testing.assert_allclose(clicked.gains, np.log([4, 1, 2]))
    wrong = write(tmp_path / "b.csv", "question,answer,seen\nWho?,Ada.,-1\n")
    refused(lambda: corpora.load_questions(wrong, columns=QuestionColumns(count_column="seen")), "the count is '-1'")
    assert corpora.load_questions(write(tmp_path / "c.jsonl", jsonl(row()))).gains is None


def test_documents_and_questions_are_not_mistaken_for_each_other(data_dir, tmp_path):
    from varitext import DocumentModel
    from varitext.cli.input import load_documents

    refused(lambda: DocumentModel().fit(record([1, 0])), "mine is a corpus of questions and answers, not of documents")
    refused(lambda: load_documents("wikiqa", None, data_dir, None), "wikiqa is a corpus of questions and answers")
    refused(lambda: corpora.load_questions("20newsgroups", "test", data_dir), "20newsgroups is a corpus of documents")
    refused(lambda: corpora.load_questions("wikiqua"), "did you mean wikiqa?")
    refused(lambda: corpora.load_questions(write(tmp_path / "a.csv", ""), "test"), "no 'test' part")
