"""Commands for topics: what they are, what the user makes of them, and which documents are about which."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varitext.cli.column_values import binned_values, values_of
from varitext.cli.inputs import load_documents
from varitext.cli.options import AsJson, DataDir, Device, ModelFolder, Part, TextColumn, Threads
from varitext.cli.printing import log, print_json
from varitext.cli.table_files import check_table_file, write_table
from varitext.cli.topic_changes import Place, TopicChanges, change_topics
from varitext.cli.topic_options import (
    Bins,
    By,
    Drop,
    Merge,
    MergeTo,
    NumberOfTopics,
    OverTime,
    Rename,
    SeedFile,
    Source,
    Split,
    TableFile,
    TopicWords,
    Tree,
)
from varitext.documents.topic_records import first_words, read_topic_table, topic_from_dict
from varitext.errors import InputError
from varitext.loading import load_document_model

if TYPE_CHECKING:
    from varitext.documents.topic_records import TopicInfo


def topics(
    folder: ModelFolder,
    words: TopicWords = 10,
    out: TableFile = None,
    tree: Tree = False,
    number: NumberOfTopics = None,
    seed_topics: SeedFile = None,
    merge: Merge = None,
    merge_to: MergeTo = None,
    split: Split = None,
    rename: Rename = None,
    drop: Drop = None,
    by: By = None,
    over_time: OverTime = None,
    bins: Bins = "month",
    source: Source = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """The topics: regions of the latent space, each with its name, size and words.

    Changes go from left to right through: topics, merge, split, rename, drop. Numbers stay as they are, so that one
    command may name several. A share has a 95 % interval.

    \b
    Examples:
      varitext topics models/news --words 8 --out topics.csv
      varitext topics models/news --merge 4,7 --rename 3=space --drop 9
      varitext topics models/mine --over-time published --bins quarter --out by-quarter.csv
    """
    if out is not None:
        check_table_file(out)
    if by is not None and over_time is not None:
        raise InputError("say either --by or --over-time")
    changes = TopicChanges(number, seed_topics, merge or [], merge_to, split or [], rename or [], drop or [])
    place = Place(source, text_column, data_dir)
    if changes.any() or read_topic_table(folder) is None:
        change_topics(folder, changes, place)
    if by is not None or over_time is not None:
        return _print_shares(folder, place, by or over_time or "", bins if over_time else None, out, as_json)
    table = read_topic_table(folder)
    assert table is not None  # it was there, or has just been made
    if tree:
        return print_json({"tree": table["tree"]}) if as_json else _print_tree(table)
    found = first_words((topic_from_dict(one) for one in table["topics"]), words)
    if out is not None:
        write_table(out, found.as_dicts())
    if as_json:
        return print_json({"topics": found.as_dicts(), "choice": table["choice"], "seed_topics": table["seed_topics"]})
    _print_topics(found)


def assign(
    folder: ModelFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Documents: a file or folder of yours, or a known corpus.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="documents.csv, .json or .parquet")],
    part: Part = None,
    threads: Threads = None,
    device: Device = "cpu",
    text_column: TextColumn = None,
    data_dir: DataDir = None,
) -> None:
    """Write for each document what it is about, beside the columns of its file.

    topic and its probability, the second topic, the spread of the document's vector, surprise (nats per word beyond
    what documents of its length take: sort by it to see outliers first), and how many of its words are known.

    \b
    Example:
      varitext assign models/mine articles.csv --text-column body --out documents.parquet
    """
    check_table_file(out)
    model = load_document_model(folder, threads, device)
    documents = load_documents(file, part, data_dir, text_column)
    found = model.document_info(documents)
    kept = dict(documents.columns)
    if not kept and documents.labels is not None:
        kept = {"label": documents.labels}
    write_table(out, [_beside(kept, info.row, info.as_dict()) for info in found])
    if unknown := sum(info.topic is None for info in found):
        log(f"note: {unknown} {'document has' if unknown == 1 else 'documents have'} no known word, and no topic")
    log(f"{len(found)} documents in {out}")


def _beside(kept: dict[str, Sequence[Any]], row: int, info: dict[str, Any]) -> dict[str, Any]:
    """The columns of the file, then ours; one of the file that has our name gets another."""
    own = {f"{name}_of_file" if name in info else name: values[row] for name, values in kept.items()}
    return {**own, **info}


# Printing


def _print_topics(found: "list[TopicInfo]") -> None:
    for topic in found:
        print(f"{topic.number:4} {topic.documents:8} documents  {topic.name}: {' '.join(topic.words)}")


def _print_tree(table: dict[str, Any]) -> None:
    names = {topic["number"]: topic["name"] for topic in table["topics"]}
    for merge in table["tree"]:
        sides = (" + ".join(f"{number} ({names[number]})" for number in merge[side]) for side in ("left", "right"))
        print(f"{merge['distance']:.3f}  {'  |  '.join(sides)}")


def _print_shares(folder: Path, place: Place, column: str, bins: str | None, out: Path | None, as_json: bool) -> None:
    from varitext.evaluation.shares import NO_VALUE

    model = load_document_model(folder)
    documents = place.documents(model)
    values = values_of(documents, column) if bins is None else binned_values(documents, column, bins)
    values = [NO_VALUE if value in (None, "") else value for value in values]
    found = model.topic_shares(documents, values)
    words = model.distinct_words(documents, values)
    if out is not None:
        write_table(out, found.as_dicts())
    if as_json:
        return print_json({"shares": found.as_dicts(), "distinct_words": [one._asdict() for one in words]})
    for one in sorted(found, key=lambda one: (one.value, -one.share)):
        if one.documents:
            print(
                f"{one.value:20} {one.share:6.1%} [{one.low:5.1%}, {one.high:5.1%}]  "
                f"{one.documents:6} of {one.of:6}  {one.topic} ({one.name})"
            )
    if len(words) > 1:
        print("\nWords that differ:")
        for row in words:
            print(f"{row.value:20} {' '.join(row.words) or 'like all others'}")
