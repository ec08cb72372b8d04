"""`varitext effects`: how topics depend on columns of the documents' file."""

from pathlib import Path
from typing import Annotated

from varitext.cli.input import column_values, fitted_columns, load_documents
from varitext.cli.options import AsJson, DataDir, DocumentFile, ModelFolder, Part, TextColumn, Threads, Trust, option
from varitext.cli.printing import check_table_file, log, print_json, write_table
from varitext.errors import InputError
from varitext.loading import load_document_model

Contrast = Annotated[
    list[str] | None, option("Print the difference between two values of a column instead.", "party=a,b")
]


def effects(
    folder: ModelFolder,
    file: DocumentFile,
    formula: Annotated[str, option('Columns of the file: "topic ~ party + s(date)". s(...) is a spline.', "FORMULA")],
    contrast: Contrast = None,
    out: Annotated[Path | None, option("Also write the table to a .csv, .json or .parquet file.", "FILE")] = None,
    part: Part = None,
    threads: Threads = None,
    trust: Trust = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Estimate how the share of documents in each topic depends on columns of their file.

    Estimates are differences in shares with 95 % intervals that include the uncertainty about each document's topic.
    Formulas are formulaic's: party + year, party * s(date). Needs: pip install 'varitext[effects]'.

    \b
    Examples:
      varitext effects models/news speeches.csv --formula "topic ~ party + s(date)" --out effects.csv
      varitext effects models/news speeches.csv --formula "topic ~ party * s(date)" --contrast party=left,right
    """
    if out is not None:
        check_table_file(out)
    wanted = [_parts(one) for one in contrast or []]
    model = load_document_model(folder, threads, "cpu", trust).use_cache(folder)
    documents = load_documents(file, part, data_dir, fitted_columns(model, file, part, text_column))
    names = [*documents.columns, *(["label"] if documents.labels is not None else [])]
    table = {name: column_values(documents, name) for name in names}
    found = model.effects(formula, table, documents)
    model.save_cache(folder)
    rows = [row for one in wanted for row in found.contrast(*one)] if wanted else found.rows
    if out is not None:
        write_table(out, [row.as_dict() for row in rows])
    if as_json:
        return print_json({"documents": found.documents, "effects": [row.as_dict() for row in rows]})
    for row in rows:
        print(
            f"{row.estimate:+7.1%} [{row.low:+6.1%}, {row.high:+6.1%}]  p {row.p:5.3f}  "
            f"{row.term:24} {row.topic} ({row.name})"
        )
    log(f"{found.documents} documents")


def _parts(typed: str) -> tuple[str, str, str]:
    column, _, values = typed.partition("=")
    first, comma, second = values.partition(",")
    if not (column and comma and first.strip() and second.strip()):
        raise InputError(f"--contrast {typed!r} is not a column with two values, such as party=a,b")
    return column.strip(), first.strip(), second.strip()
