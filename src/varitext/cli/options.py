"""Options that several commands share, their groups in the help, and how settings records become options.

A setting is declared once, in `DocumentSettings`, `AnswerSettings`, `DataSettings` or `QuestionSettings`: its default,
limits, help and group. `with_settings` adds an option for each of them to a command.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from varitext.answers.settings import AnswerSettings
from varitext.documents.settings import DocumentSettings
from varitext.errors import InputError
from varitext.records import DATA, GROUPS, WHERE_IT_RUNS, Option, options_of, setting

if TYPE_CHECKING:  # none of this is loaded before it is needed
    from varitext.corpora import Columns, QuestionColumns
    from varitext.text import TokenRules, VocabularyRules

GROUPED = "Topics by column"


def option(help_text: str, metavar: str | None = None, *names: str, group: str | None = None, **limits: Any) -> Any:
    """An option of a command, in a group of its help; `names` if not the parameter's own, `min` and `max` as limits."""
    return typer.Option(*names, metavar=metavar, help=help_text, rich_help_panel=group, **limits)


def refuse_options(options: Mapping[str, object], reason: str) -> None:
    """None of these may have been typed; None and False mean that an option was not."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(f"--{name.replace('_', '-')} does not apply: {reason}")


class GroupedCommand(TyperCommand):
    """A command whose help lists its options in groups, with defaults as `(default: X)`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], **{group: [] for group in GROUPS}}
        for parameter in self.get_params(ctx):
            if shown := parameter.get_help_record(ctx):
                without_group = "Arguments" if parameter.param_type_name == "argument" else "Options"
                group = getattr(parameter, "rich_help_panel", None) or without_group
                described = re.sub(r"\.?\s*\\?\[(default: [^\]]*)\]", r" (\1).", shown[1])
                groups.setdefault(group, []).append((shown[0], described))
        for group, entries in groups.items():
            if entries:
                with formatter.section(group):
                    formatter.write_dl(entries)


# Settings that describe the user's files


def _of_data(help_text: str, metavar: str = "NAME", minimum: int | None = None) -> Any:
    return setting(None, Option(help_text, DATA, metavar, minimum))


@dataclass(frozen=True)
class DataSettings:
    """The columns of a table of texts, and the rules for its words. None: not typed."""

    text_column: str | None = _of_data("Column that holds the text (default: 'text', or the only text column).")
    id_column: str | None = _of_data("Column of document ids.")
    label_column: str | None = _of_data("Column of labels (default: 'label', if there is one).")
    date_column: str | None = _of_data("Column of dates, such as 2026-01-31.")
    encoding: str | None = _of_data("Encoding of the file (default: UTF-8).")
    vectors: str | None = _of_data(
        "Sentence vectors: a .npy file with a row per document, or minilm to encode the texts.", "FILE"
    )
    vocabulary_size: int | None = _of_data("Maximum number of words in the vocabulary.", "N", 2)
    min_documents: int | None = _of_data("Drop words in fewer documents (default: 3, or 1 % if that is less).", "N", 1)
    max_share: float | None = _of_data("Drop words in a larger share of the documents (default: 0.5).", "SHARE")
    stop_words: str | None = _of_data(
        "Stop words: languages, files with one word per line, or none, separated by commas: german,my.txt "
        "(default: those of the language of the texts).",
        "LIST",
    )
    ngrams: str | None = _of_data("Lengths of n-grams: 1-2 for words and pairs (default: 1).", "N-M")
    phrases: bool = setting(False, Option("Find word pairs that belong together; count each as one word.", DATA))
    strip_html: bool = setting(False, Option("Remove HTML tags.", DATA))
    strip_urls: bool = setting(False, Option("Remove web addresses.", DATA))
    segmenter: str | None = setting(
        None,
        Option(
            "Word segmenter for Chinese, Japanese or Thai. Detected if omitted.",
            DATA,
            choices=("auto", "chinese", "japanese", "thai", "none"),
        ),
    )

    def columns(self) -> "Columns":
        from varitext.corpora import Columns

        return Columns(self.text_column, self.id_column, self.label_column, self.date_column, self.encoding)

    def token_rules(self) -> "TokenRules | None":
        """None if nothing about tokens was typed."""
        from varitext.text import TokenRules

        shortest, longest = ngram_lengths(self.ngrams)
        rules = TokenRules(
            strip_html=self.strip_html,
            strip_urls=self.strip_urls,
            segmenter=self.segmenter or "auto",
            shortest_ngram=shortest,
            longest_ngram=longest,
            phrases=self.phrases,
        )
        return None if rules == TokenRules(segmenter="auto") else rules

    def vocabulary_rules(self) -> "VocabularyRules | None":
        """None if nothing about the vocabulary was typed."""
        from varitext.text import VocabularyRules

        typed: dict[str, Any] = {
            "size": self.vocabulary_size,
            "minimum_documents": self.min_documents,
            "maximum_document_share": self.max_share,
            "stop_words": None if self.stop_words is None else _stop_words(self.stop_words),
        }
        values = {name: value for name, value in typed.items() if value is not None}
        return VocabularyRules(**values) if values else None


@dataclass(frozen=True)
class QuestionSettings:
    """The columns of a table of questions and answers."""

    question_column: str | None = _of_data("Column of the question (default: 'question').")
    answer_column: str | None = _of_data("Column of the answer (default: 'answer').")
    label_column: str | None = _of_data("Column of the label, 1 right or 0 wrong (default: 'label').")
    id_column: str | None = _of_data("Column of the question's id (default: 'question_id', or its text).")
    min_relevance: float | None = _of_data("Labels are grades; answers of this grade or higher are right.", "GRADE")
    count_column: str | None = _of_data("Column of counts, such as clicks, in the place of labels: 0 is wrong.")

    def columns(self) -> "QuestionColumns":
        from varitext.corpora import QuestionColumns

        return QuestionColumns(**vars(self))


def ngram_lengths(typed: str | None) -> tuple[int, int]:
    match = re.fullmatch(r"([1-5])(?:-([1-5]))?", (typed or "1").strip())
    if not match:
        raise InputError(f"--ngrams {typed!r} is not a length or a range from 1 to 5, such as 2 or 1-2")
    return int(match[1]), int(match[2] or match[1])


def _stop_words(typed: str) -> str | tuple[str, ...]:
    """Languages by name; with a file among them the words themselves, which the model folder then keeps."""
    from varitext.text.stop_words import is_language, read_stop_words, stop_words_of

    names = [name.strip() for name in typed.split(",")]
    if all(map(is_language, names)):
        return ",".join(names)
    found: set[str] = set()
    for name in names:
        found |= stop_words_of(name) if is_language(name) else read_stop_words(Path(name))
    return tuple(sorted(found))


def typed_words(typed: str) -> list[str]:
    """Words, or those of languages and files, separated by commas."""
    from varitext.text.stop_words import is_language, read_stop_words, stop_words_of

    found: set[str] = set()
    for name in filter(None, (name.strip() for name in typed.split(","))):
        is_file = "." in name or "/" in name
        found |= read_stop_words(Path(name)) if is_file else stop_words_of(name) if is_language(name) else {name}
    return sorted(found)


# Shared arguments and options


def _setting(record: Any, name: str, only_for: str = "") -> Any:
    """The option of a setting, for a command that has few of them."""
    one: Option = options_of(record)[name].metadata["option"]
    help_text = f"{only_for}: {_within_sentence(one.help)}" if only_for else one.help
    return option(help_text, one.metavar, group=one.group, min=one.minimum, max=one.maximum)


def _within_sentence(text: str) -> str:
    return text if text[1].isupper() else text[0].lower() + text[1:]  # KL stays KL


Corpus = Annotated[
    str,
    typer.Argument(metavar="CORPUS", help="A corpus name (see `varitext data list`), or a path to a file or folder."),
]
ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A model folder, written by `varitext fit --out`.")]
DocumentFile = Annotated[
    str, typer.Argument(metavar="FILE", help="Documents: a path to a file or folder, or a corpus name.")
]
DataDir = Annotated[
    Path | None, option("Folder of corpora (default: $VARITEXT_DATA, then the cache).", "DIR", group=DATA)
]
TextColumn = Annotated[str | None, _setting(DataSettings, "text_column")]
Vectors = Annotated[str | None, _setting(DataSettings, "vectors")]
QuestionColumn = Annotated[str | None, _setting(QuestionSettings, "question_column", "Questions")]
AnswerColumn = Annotated[str | None, _setting(QuestionSettings, "answer_column", "Questions")]
LabelColumn = Annotated[str | None, _setting(QuestionSettings, "label_column", "Questions")]
IdColumn = Annotated[str | None, _setting(QuestionSettings, "id_column", "Questions")]
MinRelevance = Annotated[float | None, _setting(QuestionSettings, "min_relevance", "Questions")]
CountColumn = Annotated[str | None, _setting(QuestionSettings, "count_column", "Questions")]
Part = Annotated[
    str | None, option("Part: train, dev or test (default: test, or the whole file if undivided).", "NAME", group=DATA)
]
Samples = Annotated[int | None, option("Samples of h per document or question (default: 20).", "N", min=1, max=10_000)]
RawCsv = Annotated[
    bool,
    option("Do not put an apostrophe before text in a .csv that a spreadsheet reads as a formula.", None, "--raw-csv"),
]
AsJson = Annotated[bool, option("Print exactly one JSON object and nothing else.", None, "--json")]
Threads = Annotated[int | None, _setting(DocumentSettings, "threads")]
Device = Annotated[str, _setting(DocumentSettings, "device")]
OnRay = Annotated[
    bool,
    option(
        "Run on Ray, on all cores of this machine. Needs: pip install 'varitext[ray]'.",
        None,
        "--ray",
        group=WHERE_IT_RUNS,
    ),
]
RayAddress = Annotated[
    str | None,
    option("Address of a running Ray cluster: HOST:6379, ray://HOST:10001 or auto.", "ADDRESS", group=WHERE_IT_RUNS),
]
Trust = Annotated[
    str | None, option("Allow a model folder to import this class of an installed plug-in.", "PACKAGE.MODULE:CLASS")
]
Protocol = Annotated[
    str | None,
    option(
        "Answers: which questions count: answerable (some right answer), both or clean (right and wrong answers), all "
        "or raw, paper-qasent (default: clean for qasent, answerable for other corpora).",
        "NAME",
    ),
]
By = Annotated[str | None, option("Topic shares for each value of a column.", "COLUMN", group=GROUPED)]
OverTime = Annotated[str | None, option("Topic shares over a column of dates.", "COLUMN", group=GROUPED)]

# From settings records to options

DOCUMENT_OPTIONS = options_of(DataSettings) | options_of(DocumentSettings)
ANSWER_OPTIONS = options_of(QuestionSettings) | options_of(AnswerSettings)


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every setting, which it takes as keyword arguments."""
    own = inspect.signature(command)
    parameters = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters += [_parameter(name) for name in DOCUMENT_OPTIONS | ANSWER_OPTIONS]
    command.__dict__["__signature__"] = own.replace(parameters=parameters)  # where typer looks for the options
    return command


def typed_options(context: typer.Context) -> dict[str, Any]:
    """The options that were typed; the others keep the defaults of the records."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        name: str(value) if isinstance(value, StrEnum) else value
        for name, value in context.params.items()
        if (source := sources[name]) and source.name != "DEFAULT"
    }


def _parameter(name: str) -> inspect.Parameter:
    fields = [side[name] for side in (DOCUMENT_OPTIONS, ANSWER_OPTIONS) if name in side]
    defaults = {field.default for field in fields}
    option: Option = fields[0].metadata["option"]
    kind = _type_of(fields[0], name)
    default = typer.Option(
        defaults.pop() if len(defaults) == 1 else None,
        f"--{name.replace('_', '-')}",
        metavar=option.metavar,
        min=option.minimum,
        max=option.maximum,
        help=_help(name),
        rich_help_panel=option.group,
        parser=_seconds if option.metavar == "TIME" else None,
    )
    annotation = kind if kind is bool else kind | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _help(name: str) -> str:
    """The help of the one record that has the setting, or of both."""
    sides = {"Documents": DOCUMENT_OPTIONS, "Answers": ANSWER_OPTIONS}
    texts = {side: str(fields[name].metadata["option"].help) for side, fields in sides.items() if name in fields}
    if len(texts) == len(sides) and len(set(texts.values())) == 1:
        return texts["Documents"]
    return " ".join(f"{side}: {_within_sentence(text)}" for side, text in texts.items())


def _type_of(field: "Field[Any]", name: str) -> type[Any]:
    """An enumeration of the choices, a number, bool for a flag, or else str."""
    if choices := field.metadata["option"].choices:
        return StrEnum(name, {choice: choice for choice in choices})  # type: ignore[return-value]  # mypy takes it for a member
    kinds = get_args(field.type) or (field.type,)
    return next((kind for kind in (bool, int, float) if kind in kinds), str)


def _seconds(duration: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", duration.strip())
    if not match or float(match[1]) == 0:
        raise typer.BadParameter(f"{duration!r} is not a duration such as 60s, 10m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match[2]]
