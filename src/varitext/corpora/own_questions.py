"""The user's own questions: .jsonl or .csv with question, answer and label a row, or a folder of train, dev and test.

Rows of the same question belong together, wherever they stand: by `question_id` if there is one, else by the question's
text. `candidate_id` and `position`, the sentence's place in its document from 0, may be given too.
"""

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from varitext.corpora.encodings import decode
from varitext.corpora.question_answers import Candidate, Pair, QuestionAnswers, group_pairs, sentence_words
from varitext.corpora.sources import read_bytes, source_file
from varitext.corpora.text_files import suffix_of
from varitext.errors import InputError

NEEDED = ("question", "answer", "label")
PARTS = ("train", "dev", "test")
WHOLE = "all"  # the part of a file that is not divided
_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}  # as JSON, csv and pandas write them


class Row(NamedTuple):
    values: Mapping[str, Any]
    where: str


def parts(path: Path) -> tuple[str, ...]:
    if not path.is_dir():
        return (WHOLE,)
    return tuple(part for part in PARTS if _part_of_folder(path, part))


def load(path: Path, part: str = "train") -> QuestionAnswers:
    """The part of `path`; a file is loaded whole when asked for its training part."""
    path = Path(path)
    if path.is_dir():
        file = _part_of_folder(path, part)
        if file is None:
            raise InputError(f"{path} has no part {part!r}: a file {part}.jsonl or {part}.csv is expected there")
        return _load_file(file, part)
    if part not in ("train", WHOLE):
        raise InputError(f"{path} is not divided into parts, so it has no {part!r} part")
    return _load_file(path, WHOLE)


def holds_questions(path: Path) -> bool:
    """Whether the first row has what a question needs; documents do not. Nothing else is checked here."""
    file = next((found for part in PARTS if (found := _part_of_folder(path, part))), None) if path.is_dir() else path
    if file is None or suffix_of(file) not in READERS:
        return False
    rows = READERS[suffix_of(file)](decode(read_bytes(file), str(file)), str(file))
    first = next(rows, None)
    return first is not None and first.values.keys() >= set(NEEDED)


def _part_of_folder(folder: Path, part: str) -> Path | None:
    files = [file for file in sorted(folder.glob(f"{part}.*")) if file.is_file() and suffix_of(file) in READERS]
    if len(files) > 1:
        raise InputError(f"{folder} has more than one file for {part}: {', '.join(file.name for file in files)}")
    return files[0] if files else None


def _load_file(path: Path, part: str) -> QuestionAnswers:
    if suffix_of(path) not in READERS:
        raise InputError(f"{path} is not of a known kind; questions are read from {', '.join(READERS)}")
    content = read_bytes(path)
    rows = READERS[suffix_of(path)](decode(content, str(path)), str(path))
    questions = group_pairs(_pair(row, number) for number, row in enumerate(rows))
    if not questions:
        raise InputError(f"{path} has no questions")
    return QuestionAnswers(str(path), part, (source_file(path.name, content),), questions)


def _read_jsonl(text: str, path: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                values = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}: not valid JSON ({error})") from None
            if not isinstance(values, dict):
                raise InputError(f"{where}: a JSON object is expected, not {type(values).__name__}")
            yield Row(values, where)


def _read_csv(text: str, path: str) -> Iterator[Row]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a sentence may be longer than the 131,072 of the default
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    try:
        for values in filter(None, lines):
            where = f"{path}, line {lines.line_num}"
            if header and len(values) != len(header):
                raise InputError(f"{where}: {len(values)} columns, not {len(header)} as above")
            if header:
                yield Row(dict(zip(header, values, strict=True)), where)
            header = header or values
    except csv.Error as error:
        raise InputError(f"{path}, line {lines.line_num}: {error}") from None


READERS = {".jsonl": _read_jsonl, ".csv": _read_csv}


def _pair(row: Row, number: int) -> Pair:
    for name in NEEDED:
        if name not in row.values:
            listed = ", ".join(map(repr, list(row.values)[:20]))
            raise InputError(f"{row.where}: has no {name!r}; its fields are {listed[:400]}")
    question, answer = (_text(row, name) for name in ("question", "answer"))
    candidate_id = row.values.get("candidate_id")
    candidate = Candidate(
        id=str(number) if candidate_id in (None, "") else str(candidate_id),
        words=sentence_words(answer),
        text=answer,
        label=_label(row),
        position=_position(row),
    )
    question_id = row.values.get("question_id")
    question_id = question if question_id in (None, "") else str(question_id)
    return Pair(question_id, question, sentence_words(question), candidate, row.where)


def _text(row: Row, name: str) -> str:
    text = row.values[name]
    if not isinstance(text, str):
        raise InputError(f"{row.where}: the {name} is not text but {type(text).__name__}")
    if not text.strip():
        raise InputError(f"{row.where}: the {name} is empty")
    return text.strip()


def _label(row: Row) -> int:
    label = row.values["label"]
    if str(label).strip().lower() not in _LABELS:
        raise InputError(f"{row.where}: the label is {str(label)[:40]!r}; it must be 1 (right) or 0 (wrong)")
    return _LABELS[str(label).strip().lower()]


def _position(row: Row) -> int | None:
    position = row.values.get("position")
    if position in (None, ""):
        return None
    if not str(position).isascii() or not str(position).isdigit():
        raise InputError(f"{row.where}: the position is {str(position)[:40]!r}; it must be a whole number from 0")
    return int(position)
