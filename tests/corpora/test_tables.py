"""The user's own table: columns, separators, encodings, spreadsheets, standard input."""

import gzip
import io
import json
import sys
from datetime import datetime, timedelta

import openpyxl
import pytest
from refusal import refused

from varitext import InputError, corpora
from varitext.corpora.dates import all_bins, bins_of, suitable_bins
from varitext.corpora.documents import Columns
from varitext.corpora.own_files import stream_files

TEXTS = ("a rocket; to the moon", "the goal, of the season", "bread | from the oven")
ROWS = [
    {"id": "a1", "body": TEXTS[0], "when": "2026-01-31", "kind": "space", "stars": "5"},
    {"id": "b2", "body": TEXTS[1], "when": "2026-02-28T10:00:00+02:00", "kind": "sport", "stars": "3"},
    {"id": "c3", "body": TEXTS[2], "when": "2026-03-01", "kind": "food", "stars": "4"},
]
NAMED = {"text_column": "body", "id_column": "id", "label_column": "kind", "date_column": "when"}


def table(separator: str, rows=ROWS) -> str:
    lines = [separator.join(rows[0])]
    lines += [separator.join(f'"{value}"' for value in row.values()) for row in rows]
    return "\n".join(lines) + "\n"


def check(loaded: corpora.Documents) -> None:
    assert tuple(loaded.texts) == TEXTS
    assert tuple(loaded.ids) == ("a1", "b2", "c3") and tuple(loaded.labels) == ("space", "sport", "food")
    assert tuple(loaded.dates) == (datetime(2026, 1, 31), datetime(2026, 2, 28, 8), datetime(2026, 3, 1))
    assert [str(value) for value in loaded.columns["stars"]] == ["5", "3", "4"] and "body" not in loaded.columns
    recorded = loaded.recorded()
    assert {name: recorded[name] for name in NAMED} == NAMED and recorded["path"].startswith("/")


@pytest.mark.parametrize(
    ("name", "separator"), [("t.csv", ","), ("t.csv", ";"), ("t.csv", "\t"), ("t.csv", "|"), ("t.tsv", "\t")]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_table_with_any_separator(tmp_path, name, separator, encoding):
    (tmp_path / name).write_bytes(table(separator).encode(encoding))
    check(corpora.load_documents(tmp_path / name, **NAMED))
    streamed = stream_files(tmp_path / name, Columns("body"), texts_only=True)
    assert tuple(row.text for row in streamed.texts) == TEXTS
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    check(corpora.load_documents(tmp_path / f"{name}.gz", **NAMED))


def test_json_lines_and_parquet_keep_their_columns(tmp_path):
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    check(corpora.load_documents(tmp_path / "t.jsonl", **NAMED))
    import pyarrow.parquet

    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]} | {"vector": [[1.0], [2.0], [3.0]]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    loaded = corpora.load_documents(tmp_path / "t.parquet", **NAMED)
    check(loaded)
    assert "vector" not in loaded.columns  # one value a row is kept, lists are not


def test_a_spreadsheet(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(list(ROWS[0]))
    for row in ROWS:
        book.active.append(list(row.values()))
    book.active.append(["d4", None, datetime(2026, 4, 1), "food", 1])
    book.save(tmp_path / "t.xlsx")
    loaded = corpora.load_documents(tmp_path / "t.xlsx", **NAMED)
    assert tuple(loaded.texts) == (*TEXTS, "") and loaded.ids[3] == "d4"
    assert loaded.dates[1] == datetime(2026, 2, 28, 8) and loaded.dates[3] == datetime(2026, 4, 1)
    (tmp_path / "t.xlsx").write_bytes(b"PK no")
    refused(lambda: corpora.load_documents(tmp_path / "t.xlsx"), "t.xlsx is not a readable .xlsx file")


@pytest.mark.parametrize(
    ("content", "options", "texts"),
    [
        ('{"text": "one"}\n{"text": "two"}\n', {}, ("one", "two")),
        ("id;text\n1;one\n2;two\n", {}, ("one", "two")),
        ("id;body\n1;one\n2;two\n", {"text_column": "body"}, ("one", "two")),
        ("one, and more\n\ntwo\r\n", {}, ("one, and more", "two")),
    ],
)
def test_standard_input(monkeypatch, content, options, texts):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    loaded = corpora.load_documents("-", **options)
    assert (loaded.texts, loaded.name, loaded.part) == (texts, "standard input", "all")
    assert "path" not in loaded.recorded()


def test_encodings_are_named_and_asked_for(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("text\nGrüße\n".encode("cp1252"))
    refused(lambda: corpora.load_documents(path), "line 2: byte 7 is not UTF-8 text. ", "--encoding", "cp1252")
    loaded = corpora.load_documents(path, encoding="cp1252")
    assert loaded.texts == ("Grüße",) and loaded.recorded()["encoding"] == "cp1252"
    refused(lambda: corpora.load_documents(path, encoding="klingon"), "unknown encoding 'klingon'")
    refused(lambda: corpora.load_documents(path, encoding="hex"), "not a text encoding")
    with pytest.raises(InputError, match="is not shift_jis text"):
        path.write_bytes(b"text\n\xff\xff\n")
        corpora.load_documents(path, encoding="shift_jis")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "same"}, "one id occurs in column 'id' more than once, for example 'same'"),
        ({"kind": "same"}, "all documents have the same value in column 'kind': 'same'"),
    ],
)
def test_odd_columns_are_noted(tmp_path, change, said):
    (tmp_path / "t.csv").write_text(table(",", [row | change for row in ROWS]))
    with pytest.warns(UserWarning, match=said):
        corpora.load_documents(tmp_path / "t.csv", **NAMED)


def test_dates_that_cannot_be_read(tmp_path):
    (tmp_path / "t.csv").write_text(table(",", [ROWS[0], ROWS[1] | {"when": "soon"}, ROWS[2]]))
    with pytest.warns(UserWarning, match=r"1 date in 'when' cannot be read \(row 2 has 'soon'\)"):
        assert corpora.load_documents(tmp_path / "t.csv", **NAMED).dates[1] is None
    with pytest.raises(InputError, match=r"'id' has no readable date, such as 2026-01-31; row 1 has 'a1'"):
        corpora.load_documents(tmp_path / "t.csv", text_column="body", date_column="id")
    (tmp_path / "t.csv").write_text("text,day\none,31.12.2025\ntwo,01.02.2026\n")
    assert corpora.load_documents(tmp_path / "t.csv", date_column="day").dates[1] == datetime(2026, 2, 1)
    (tmp_path / "t.csv").write_text("text,day\none,1/2/2026\ntwo,3/4/2026\n")
    with pytest.warns(UserWarning, match="read as month/day/year"):
        assert corpora.load_documents(tmp_path / "t.csv", date_column="day").dates[0] == datetime(2026, 1, 2)
    (tmp_path / "t.csv").write_text("text,year\none,1999\ntwo,2001\n")
    assert corpora.load_documents(tmp_path / "t.csv", date_column="year").dates[1] == datetime(2001, 1, 1)


def test_a_column_that_is_not_there(tmp_path):
    (tmp_path / "t.csv").write_text(table(","))
    for name in ("id_column", "label_column", "date_column"):
        with pytest.raises(InputError, match=r"no column 'nothing'. Columns: id,"):
            corpora.load_documents(tmp_path / "t.csv", text_column="body", **{name: "nothing"})
    (tmp_path / "t.csv").write_text("text,text\none,two\n")
    refused(lambda: corpora.load_documents(tmp_path / "t.csv"), "two columns are named 'text'")


def test_bins_suit_how_long_the_dates_reach():
    start = datetime(2026, 1, 1)
    for days, bins, first in ((3, "day", "2026-01-01"), (90, "week", "2026-W01"), (700, "month", "2026-01")):
        dates = [start, None, start + timedelta(days=days)]
        assert suitable_bins([start, dates[2]]) == bins
        assert bins_of(dates, None)[:2] == [first, None]
    assert suitable_bins([start, start + timedelta(days=3000)]) == "quarter" and suitable_bins([]) == "day"
    assert suitable_bins([start, start + timedelta(days=30000)]) == "year"


@pytest.mark.parametrize(
    ("names", "between"),
    [
        (("2001", "2004"), ["2001", "2002", "2003", "2004"]),
        (("2025-11", "2026-02"), ["2025-11", "2025-12", "2026-01", "2026-02"]),
        (("2025-Q4", "2026-Q2"), ["2025-Q4", "2026-Q1", "2026-Q2"]),
        (("2026-W52", "2027-W01"), ["2026-W52", "2026-W53", "2027-W01"]),
        (("2026-02-27", "2026-03-01"), ["2026-02-27", "2026-02-28", "2026-03-01"]),
        (("spring", "summer"), ["spring", "summer"]),
        (("2001", "later"), ["2001", "later"]),
        ((), []),
    ],
)
def test_bins_without_a_date_are_listed_too(names, between):
    assert all_bins(names) == between


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".parquet"])
def test_the_share_that_is_read_is_told(ending, tmp_path):
    texts = [f"text {number} " + "".join(map(chr, range(97, 123))) for number in range(3000)]
    path = tmp_path / f"a{ending}"
    if ending == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pytest.importorskip("pyarrow").table({"text": texts}), path)
    else:
        content = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
        path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    stream, shares = stream_files(path), []
    for _ in stream.texts:
        shares.append(stream.reading.share)
    assert shares == sorted(shares) and 0 < shares[0] <= 1 and shares[-1] == 1
    if ending != ".jsonl.gz":  # which is decompressed in one go
        assert shares[0] < 0.6
