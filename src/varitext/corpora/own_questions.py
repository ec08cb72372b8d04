"""Questions from users' files: a table with one question, answer and label per row, or a folder of train, dev and test.

Tables are .jsonl, .csv, .tsv and .parquet files, and pandas DataFrames. Rows of one question need not be adjacent: they
share a `question_id` if there is one, and the question's text otherwise. `candidate_id` and `position`, the sentence's
index in its document (from 0), are optional. `QuestionColumns` gives columns other names.

Labels are 1 or 0, grades, or counts of clicks. In a table without labels every answer is right.
"""

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from varitext.corpora.documents import is_missing
from varitext.corpora.own_files import WHOLE
from varitext.corpora.question_answers import Candidate, Pair, Question, QuestionAnswers, group_pairs, sentence_words
from varitext.corpora.sources import SourceFile
from varitext.corpora.tables import READERS, Row, file_of_part, listed, suffix_of, table_rows
from varitext.errors import InputError

PARTS = ("train", "dev", "test")
_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}  # as JSON, csv and pandas write them
# names of columns that hold labels in many files: to tell a file with other names from one with right answers only
_OTHER_LABELS = ("labels", "relevance", "relevant", "rel", "grade", "score", "rating", "correct", "is_correct")
_OTHER_COUNTS = ("count", "counts", "click", "clicks")


class Judgement(NamedTuple):
    """What a row says about its answer."""

    label: int  # 1 right, 0 wrong
    gain: float | None = None  # of a grade or count


@dataclass(frozen=True)
class QuestionColumns:
    """Which columns of a table hold questions and answers, and from which grade on an answer is right.

    Parameters
    ----------
    question_column : str, optional
        Column of the question (default: "question").
    answer_column : str, optional
        Column of the candidate answer (default: "answer").
    label_column : str, optional
        Column of the label (default: "label").
    id_column : str, optional
        Column of the question's id, which rows of one question share (default: "question_id", if there is one).
    min_relevance : float, optional
        Labels are grades, and an answer with this grade or a higher one is right (default: labels are 1 or 0).
    count_column : str, optional
        Column of counts, such as clicks, in the place of labels. An answer with a count above 0 is right and weighs
        log(1 + count) among the right answers of its question.

    Examples
    --------
    >>> from varitext import QuestionColumns, load_questions
    >>> columns = QuestionColumns(answer_column="sentence", label_column="grade", min_relevance=2)
    """

    question_column: str | None = None
    answer_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None
    min_relevance: float | None = None
    count_column: str | None = None

    @property
    def question(self) -> str:
        return self.question_column or "question"

    @property
    def answer(self) -> str:
        return self.answer_column or "answer"

    @property
    def label(self) -> str:
        return self.label_column or "label"

    @property
    def question_id(self) -> str:
        return self.id_column or "question_id"

    def as_dict(self) -> dict[str, str | float]:
        """The settings that were given, for the model folder."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def recorded(cls, corpus: Mapping[str, Any]) -> "QuestionColumns":
        """The settings that a model folder has recorded of its `corpus`."""
        return cls(**{name: corpus.get(name) for name in asdict(cls())})

    def judgement(self, value: object) -> Judgement | None:
        """What `value`, a label, grade or count, means; None if it is not one.

        Returns
        -------
        Judgement or None
        """
        if self.count_column is None and self.min_relevance is None:
            label = _LABELS.get(str(value).strip().lower())
            return None if label is None else Judgement(label)
        try:
            number = float(str(value))
        except ValueError:
            return None
        if math.isnan(number) or (self.count_column and not 0 <= number < math.inf):
            return None
        if self.count_column:
            return Judgement(int(number > 0), math.log1p(number))
        assert self.min_relevance is not None
        return Judgement(int(number >= self.min_relevance), max(number, 0.0))

    @property
    def judged(self) -> str:
        """The column of labels, grades or counts."""
        return self.count_column or self.label


USUAL_COLUMNS = QuestionColumns()


def parts(path: Path) -> tuple[str, ...]:
    if not path.is_dir():
        return (WHOLE,)
    return tuple(part for part in PARTS if _part(path, part))


def load(
    path: Path, part: str = "train", columns: QuestionColumns = USUAL_COLUMNS, labelled: bool = True
) -> QuestionAnswers:
    """A part of `path`; a file is loaded whole. Unless it must be `labelled`, labels are ignored and count as wrong.

    If it must be labelled and is not, every answer counts as right, with a warning.
    """
    if path.is_dir():
        file = _part(path, part)
        if file is None:
            raise InputError(f"{path} has no part {part!r}. Expected a file such as {part}.jsonl or {part}.csv")
        return _load_file(file, part, columns, labelled)
    if part not in ("train", WHOLE):
        raise InputError(f"{path} is not divided into parts, so it has no {part!r} part")
    return _load_file(path, WHOLE, columns, labelled)


def from_table(table: Any, columns: QuestionColumns = USUAL_COLUMNS, labelled: bool = True) -> QuestionAnswers:
    named = table.to_dict("list")
    values = (dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True))
    rows = (Row(row, f"row {number}") for number, row in enumerate(values, start=1))
    return QuestionAnswers("table", WHOLE, (), _questions(rows, "the table", columns, labelled))


def holds_questions(path: Path, columns: QuestionColumns = USUAL_COLUMNS) -> bool:
    """Whether the first row has a question and an answer, and a label or no text; nothing else is checked."""
    file = next((found for part in PARTS if (found := _part(path, part))), None) if path.is_dir() else path
    if file is None or suffix_of(file) not in READERS:
        return False
    first = next(table_rows(file, []), None)
    if first is None or not first.values.keys() >= {columns.question, columns.answer}:
        return False
    return columns.judged in first.values or "text" not in first.values


def _part(folder: Path, part: str) -> Path | None:
    return file_of_part(folder, part, tuple(READERS))


def _load_file(path: Path, part: str, columns: QuestionColumns, labelled: bool) -> QuestionAnswers:
    if suffix_of(path) not in READERS:
        raise InputError(f"{path}: unknown kind of file. Questions are read from {', '.join(READERS)}.")
    sources: list[SourceFile] = []
    questions = _questions(table_rows(path, sources), str(path), columns, labelled)
    return QuestionAnswers(str(path), part, tuple(sources), questions)


def _questions(rows: Iterable[Row], where: str, columns: QuestionColumns, labelled: bool) -> tuple[Question, ...]:
    first, rows = _first_of(rows)
    if first is None:
        raise InputError(f"{where} has no questions")
    judge = _judge(first, where, columns) if labelled else None
    pairs = [_pair(row, number, columns, judge) for number, row in enumerate(rows)]
    if labelled and (empty := [pair.where for pair in pairs if not pair.candidate.text]):
        others = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        warnings.warn(f"{empty[0]}{others}: the answer is empty; it is ranked last", stacklevel=2)
    return group_pairs(pairs)


def _first_of(rows: Iterable[Row]) -> tuple[Row | None, Iterable[Row]]:
    """The first row, and an iterable of all rows."""
    rows = iter(rows)
    first = next(rows, None)
    return first, rows if first is None else itertools.chain([first], rows)


def _judge(first: Row, where: str, columns: QuestionColumns) -> Callable[[Row], Judgement]:
    """How to read what the rows say about answers, by the columns of the first one."""
    named = columns.label_column or columns.count_column or columns.min_relevance is not None
    if named or columns.label in first.values or not {columns.question, columns.answer} <= first.values.keys():
        return lambda row: judgement_of(row, columns)
    _refuse_other_labels(first, where)
    warnings.warn(f"{where}: no column {columns.label!r}, so every answer counts as right", stacklevel=2)
    return lambda _: Judgement(1)


def _refuse_other_labels(first: Row, where: str) -> None:
    for names, option in ((_OTHER_LABELS, "label"), (_OTHER_COUNTS, "count")):
        if name := next((name for name in first.values if name.strip().lower() in names), None):
            raise InputError(
                f"{where}: no column 'label'. Columns: {listed(first.values)}. Use --{option}-column {name} "
                f"({option}_column), or remove {name} if every answer is right."
            )


# A row


def _pair(row: Row, number: int, columns: QuestionColumns, judge: Callable[[Row], Judgement] | None) -> Pair:
    for name in (columns.question, columns.answer):
        if name not in row.values:
            raise _missing(row, name)
    question, answer = _question(row, columns.question), _answer(row, columns.answer)
    label, gain = judge(row) if judge else Judgement(0)
    candidate = Candidate(
        id=_named(row, "candidate_id") or str(number),
        words=sentence_words(answer),
        text=answer,
        label=label,
        position=_position(row),
        metadata={} if judge else _other_columns(row, columns),
        gain=gain,
    )
    return Pair(_named(row, columns.question_id) or question, question, sentence_words(question), candidate, row.where)


def _missing(row: Row, name: str) -> InputError:
    return InputError(f"{row.where}: no field {name!r}. Fields: {listed(row.values)}.")


def _named(row: Row, column: str) -> str:
    value = row.values.get(column)
    return "" if is_missing(value) else str(value)


def _other_columns(row: Row, columns: QuestionColumns) -> dict[str, Any]:
    used = (columns.question, columns.answer, columns.question_id, "candidate_id")
    return {name: value for name, value in row.values.items() if name not in used}


def _question(row: Row, column: str) -> str:
    question = _text(row, column, "question")
    if not question:
        raise InputError(f"{row.where}: the question is empty")
    return question


def _answer(row: Row, column: str) -> str:
    """The answer, which may be empty: such a candidate ranks last."""
    return "" if is_missing(row.values[column]) else _text(row, column, "answer")


def _text(row: Row, column: str, what: str) -> str:
    text = row.values[column]
    if not isinstance(text, str):
        raise InputError(f"{row.where}: the {what} must be text, not {type(text).__name__}")
    return text.strip()


def judgement_of(row: Row, columns: QuestionColumns) -> Judgement:
    """What the row's label, grade or count means."""
    if columns.judged not in row.values:
        raise _missing(row, columns.judged)
    value = row.values[columns.judged]
    found = columns.judgement(value)
    if found is None:
        what, kind = "label", "1 (right) or 0 (wrong). For grades, use --min-relevance (min_relevance)"
        if columns.min_relevance is not None:
            kind = "a number"
        if columns.count_column is not None:
            what, kind = "count", "a number, 0 or more"
        raise InputError(f"{row.where}: the {what} is {str(value)[:40]!r}; it must be {kind}")
    return found


def _position(row: Row) -> int | None:
    position = row.values.get("position")
    if is_missing(position) or position == "":
        return None
    plain = str(int(position)) if isinstance(position, float) and position.is_integer() else str(position)
    if not plain.isascii() or not plain.isdigit():
        raise InputError(f"{row.where}: the position is {str(position)[:40]!r}; it must be a whole number, 0 or more")
    return int(plain)
