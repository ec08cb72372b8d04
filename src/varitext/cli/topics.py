"""`varitext topics`: print the topics, change them, and break them down by a column or over time."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from varitext.cli.fit_run import topics_found
from varitext.cli.input import binned_values, column_values, documents_for
from varitext.cli.options import (
    GROUPED,
    AsJson,
    By,
    DataDir,
    ModelFolder,
    OverTime,
    RawCsv,
    TextColumn,
    Trust,
    ngram_lengths,
    option,
    typed_words,
)
from varitext.cli.printing import MANY_DOCUMENTS, check_table_file, log, print_json, write_table
from varitext.documents.topic_records import TopicTable, first_words, read_topic_table
from varitext.errors import InputError
from varitext.loading import load_document_model

if TYPE_CHECKING:
    from varitext.corpora import Documents
    from varitext.documents.model import DocumentModel
    from varitext.documents.topic_records import TopicInfo

    FindDocuments = Callable[[DocumentModel], Documents]

CHANGES = "Changes, saved in the model folder"


def _change(metavar: str, help_text: str, *names: str, minimum: int | None = None) -> Any:
    return option(help_text, metavar, *names, group=CHANGES, min=minimum)


TableFile = Annotated[Path | None, option("Also write the table to a .csv, .json or .parquet file.", "FILE")]
Tree = Annotated[bool, option("Print the hierarchy of the topics, most similar first, instead.", None, "--tree")]
Bins = Annotated[str, option("day, week, month, quarter or year.", "NAME", group=GROUPED)]
Source = Annotated[str | None, option("Documents to use (default: those the model was fitted on).", "CORPUS", "--from")]


def topics(
    folder: ModelFolder,
    words: Annotated[int, option("Words per topic.", "N", min=1, max=30)] = 10,
    out: TableFile = None,
    tree: Tree = False,
    number: Annotated[
        int | None, _change("N", "Find N topics again, without refitting the model.", "--topics", minimum=1)
    ] = None,
    seed_topics: Annotated[
        Path | None,
        _change("FILE", 'Find topics again, some from seed words: a JSON file {"space": ["orbit", "nasa"]}.'),
    ] = None,
    min_topic_size: Annotated[
        int | None, _change("N", "With --topics or --seed-topics: smallest number of documents of a topic.", minimum=1)
    ] = None,
    merge: Annotated[list[str] | None, _change("4,7", "Merge topics into one.")] = None,
    merge_to: Annotated[int | None, _change("N", "Merge the most similar topics until N are left.", minimum=1)] = None,
    split: Annotated[
        list[str] | None, _change("5[=N]", "Undo a merge, or split a topic into N parts (default: 2).")
    ] = None,
    rename: Annotated[list[str] | None, _change("3=NAME", "Rename a topic.")] = None,
    drop: Annotated[list[int] | None, _change("9", "Drop a topic.")] = None,
    stop_words: Annotated[
        str | None, _change("LIST", "Words that no topic shows: words, languages or files, separated by commas.")
    ] = None,
    ngrams: Annotated[str | None, _change("N-M", "Lengths of words: 1-2 to show phrases of two words, too.")] = None,
    relevance: Annotated[
        float | None,
        _change("SHARE", "Rank words by how exclusive (0) or how frequent (1) they are in a topic (default: 0.6)."),
    ] = None,
    stability: Annotated[
        int | None,
        _change(
            "N", "Measure how well each topic is found again in N other draws of the documents, such as 20.", minimum=1
        ),
    ] = None,
    undo: Annotated[bool, option("Undo the last change; the last five can be undone.", None, group=CHANGES)] = False,
    by: By = None,
    over_time: OverTime = None,
    bins: Bins = "month",
    source: Source = None,
    trust: Trust = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    raw_csv: RawCsv = False,
    as_json: AsJson = False,
) -> None:
    """Print the topics with names, sizes and words; change them.

    A topic is a region of the latent space. Changes are applied in this order: --undo, --topics, --merge, --merge-to,
    --split, --rename, --drop, and then the choice of words (--stop-words, --ngrams, --relevance; those not given are
    reset) and --stability: above .75 a topic is stable, below .5 it may be an accident. Topics keep their numbers, so
    one command can change several. Shares have 95 % intervals.

    \b
    Examples:
      varitext topics models/news --words 8 --out topics.csv
      varitext topics models/news --merge 4,7 --rename 3=space --drop 9
      varitext topics models/news --split 5=3 --stability 20
      varitext topics models/news --stop-words com,edu --ngrams 1-2
      varitext topics models/mine --over-time published --bins quarter --out by-quarter.csv
    """
    if out is not None:
        check_table_file(out)
    if by is not None and over_time is not None:
        raise InputError("Name either --by or --over-time")

    def find(model: "DocumentModel") -> "Documents":
        part = "train" if source is None else None
        return documents_for(model, source, part, data_dir, text_column, "--from CORPUS")

    def load() -> "DocumentModel":
        return load_document_model(folder, trust=trust).use_cache(folder)

    words_chosen = (stop_words, ngrams, relevance) if (stop_words, ngrams, relevance) != (None, None, None) else None
    changes = TopicChanges(
        *(number, seed_topics, min_topic_size, merge or [], merge_to, split or [], rename or [], drop or []),
        *(words_chosen, stability, undo),
    )
    if min_topic_size is not None and number is None and seed_topics is None:
        raise InputError("--min-topic-size needs --topics N or --seed-topics: topics are found again")
    if any(changes) or read_topic_table(folder) is None:
        _change_topics(load(), folder, changes, find)
    if by is not None or over_time is not None:
        model = load()
        write = None if out is None else partial(write_table, out, raw_csv=raw_csv)
        _print_shares(model, find(model), by or over_time or "", bins if over_time else None, write, as_json)
        return model.save_cache(folder)
    table = read_topic_table(folder)
    assert table is not None  # it was there, or has just been written
    if tree:
        return print_json({"tree": table.tree}) if as_json else _print_tree(table)
    found = first_words(table.topics, words)
    if out is not None:
        write_table(out, found.as_dicts(), raw_csv)
    if as_json:
        return print_json({"topics": found.as_dicts(), "choice": table.choice, "seed_topics": table.seed_topics})
    _print_topics(found)


# Changes


class TopicChanges(NamedTuple):
    number: int | None
    seed_topics: Path | None
    min_topic_size: int | None
    merge: list[str]
    merge_to: int | None
    split: list[str]
    rename: list[str]
    drop: list[int]
    words: tuple[str | None, str | None, float | None] | None  # stop words, n-grams, relevance
    stability: int | None
    undo: bool


def _change_topics(model: "DocumentModel", folder: Path, changes: TopicChanges, find: "FindDocuments") -> None:
    """Change the topics and write the folder again, whole or not at all."""
    from varitext.documents.topics import read_seed_topics

    seeds = read_seed_topics(changes.seed_topics) if changes.seed_topics else None
    if changes.undo:
        model.undo_topics()
    if model.fitted_.regions is None or changes.number is not None or seeds is not None:
        wanted = None if seeds is None else {topic.name: topic.words for topic in seeds}
        model.refit_topics(find(model), changes.number, wanted, changes.min_topic_size)
        log(topics_found(model))
    for numbers in changes.merge:
        model.merge_topics([_number(one) for one in numbers.split(",")])
    if changes.merge_to is not None:
        model.reduce_topics(changes.merge_to)
    for typed in changes.split:
        of, _, parts = typed.partition("=")
        number, groups = _number(of), model.fitted_.regions.groups if model.fitted_.regions else ()
        merged = any(group.number == number and len(group.components) > 1 for group in groups)
        model.split_topic(number, None if merged else find(model), _number(parts or "2"))
    for named in changes.rename:
        renamed, _, name = named.partition("=")
        model.rename_topic(_number(renamed), name)
    if changes.drop:
        model.drop_topics(changes.drop)
    if changes.words is not None:
        stop_words, ngrams, relevance = changes.words
        longest = ngram_lengths(ngrams)[1]
        regions = model.fitted_.regions
        documents = find(model) if longest > 1 and regions and not regions.phrases.terms else None
        model.update_words(documents, stop_words=typed_words(stop_words or ""), ngrams=longest, relevance=relevance)
    if changes.stability is not None:
        log(f"finding topics in {changes.stability} other draws of the documents ...")
        model.topic_stability(find(model), changes.stability)
    model.save(folder, overwrite=True)
    model.save_cache(folder)


def _number(text: str) -> int:
    if not text.strip().isdecimal():
        raise InputError(
            f"{text!r} is not the number of a topic or of parts. Examples: --merge 4,7, --split 5=3, --rename 3=NAME"
        )
    return int(text)


# Printing


def _print_topics(found: "list[TopicInfo]") -> None:
    for topic in found:
        stability = "" if topic.stability is None else f"stability {topic.stability:.2f}  "
        print(f"{topic.number:4} {topic.documents:8} documents  {stability}{topic.name}: {' '.join(topic.words)}")


def _print_tree(table: TopicTable) -> None:
    names = {topic.number: topic.name for topic in table.topics}
    for merge in table.tree:
        sides = (" + ".join(f"{number} ({names[number]})" for number in merge[side]) for side in ("left", "right"))
        print(f"{merge['distance']:.3f}  {'  |  '.join(sides)}")


def _print_shares(
    model: "DocumentModel",
    documents: "Documents",
    column: str,
    bins: str | None,
    write: Callable[[list[dict[str, Any]]], None] | None,
    as_json: bool,
) -> None:
    from varitext.evaluation.shares import NO_VALUE

    if len(documents) >= MANY_DOCUMENTS:
        log(f"topics of {len(documents):,} documents ...")
    values = column_values(documents, column) if bins is None else binned_values(documents, column, bins)
    values = [NO_VALUE if value in (None, "") else value for value in values]
    found = model.topic_shares(documents, values)
    words = model.distinct_words(documents, values)
    if write is not None:
        write(found.as_dicts())
    if as_json:
        return print_json({"shares": found.as_dicts(), "distinct_words": [one._asdict() for one in words]})
    for one in sorted(found, key=lambda one: (one.value, -one.share)):
        if one.documents:
            print(
                f"{one.value:20} {one.share:6.1%} [{one.low:5.1%}, {one.high:5.1%}]  "
                f"{one.documents:6} of {one.of:6}  {one.topic} ({one.name})"
            )
    if len(words) > 1:
        print("\nDistinctive words:")
        for row in words:
            print(f"{row.value} ({row.documents} documents): {' '.join(row.words) or 'no distinctive words'}")
