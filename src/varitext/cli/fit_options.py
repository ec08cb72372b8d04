"""The options of `varitext fit`: those that are settings are made from the records that fitting reads.

A setting is said once, in `DocumentSettings` or `AnswerSettings`: its default, limits, help and group. Here are the
options that are no settings, and what makes both into one command.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import Field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from varitext.answers.settings import AnswerSettings
from varitext.cli.data_settings import DataSettings, QuestionSettings
from varitext.documents.settings import DEFAULT_MODEL, DocumentSettings
from varitext.models.answers import ANSWER_MODELS
from varitext.models.documents import DOCUMENT_MODELS
from varitext.records import DATA, GROUPS, MODEL, TRAINING, WHERE_IT_RUNS, Option, options_of

DOCUMENT_OPTIONS = options_of(DataSettings) | options_of(DocumentSettings)
ANSWER_OPTIONS = options_of(QuestionSettings) | options_of(AnswerSettings)

OutFolder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the model folder goes; must not exist yet.", rich_help_panel=MODEL),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help=f"Documents: {', '.join(DOCUMENT_MODELS)}. Answers: {', '.join(ANSWER_MODELS)}. "
        f"If left out, {DEFAULT_MODEL}, or {AnswerSettings.model} for questions.",
        rich_help_panel=MODEL,
    ),
]
Continued = Annotated[
    Path | None,
    typer.Option(
        "--continue",
        metavar="DIR",
        help="Documents: go on from the model in DIR, which stays as it is with --out.",
        rich_help_panel=MODEL,
    ),
]
NewWords = Annotated[
    bool,
    typer.Option(
        "--new-words",
        help="With --continue: also learn words that the model does not have yet.",
        rich_help_panel=MODEL,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in DIR.", rich_help_panel=TRAINING)]
TrainingPart = Annotated[
    str,
    typer.Option(metavar="NAME", help="The part to learn from; qasent also has train-all.", rich_help_panel=DATA),
]
RayWorkers = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Documents: learn in this many processes, started by Ray Train.",
        rich_help_panel=WHERE_IT_RUNS,
    ),
]


class FitCommand(TyperCommand):
    """A command whose help has the options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{group: [] for group in GROUPS}, "Options": []}
        for parameter in self.get_params(ctx):
            if shown := parameter.get_help_record(ctx):
                without_group = "Arguments" if parameter.param_type_name == "argument" else "Options"
                groups[getattr(parameter, "rich_help_panel", None) or without_group].append(shown)
        for group, entries in groups.items():
            if entries:
                with formatter.section(group):
                    formatter.write_dl(entries)


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every setting of the two records, which it takes as keyword arguments."""
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
    asked = typer.Option(
        defaults.pop() if len(defaults) == 1 else None,
        f"--{name.replace('_', '-')}",
        metavar=option.metavar,
        min=option.minimum,
        max=option.maximum,
        help=_help(name),
        rich_help_panel=option.group,
        parser=PARSERS.get(option.metavar or ""),
    )
    annotation = kind if kind is bool else kind | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=asked, annotation=annotation)


def _help(name: str) -> str:
    """That of the one record that has the setting, or of both."""
    sides = {"Documents": DOCUMENT_OPTIONS, "Answers": ANSWER_OPTIONS}
    said = {side: fields[name].metadata["option"].help for side, fields in sides.items() if name in fields}
    if len(said) == len(sides) and len(set(said.values())) == 1:
        return str(said["Documents"])
    return " ".join(f"{side}: {_within_sentence(text)}" for side, text in said.items())


def _within_sentence(text: str) -> str:
    return text if text[1].isupper() else text[0].lower() + text[1:]  # KL stays KL


def _type_of(field: "Field[Any]", name: str) -> type[Any]:
    """What is typed for the field: one of the names to choose from, a number, nothing for a flag, or else a text."""
    if choices := field.metadata["option"].choices:
        return StrEnum(name, {choice: choice for choice in choices})  # type: ignore[return-value]  # mypy takes it for a member
    kinds = get_args(field.type) or (field.type,)
    return next((kind for kind in (bool, int, float) if kind in kinds), str)


def _seconds(duration: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", duration.strip())
    if not match or float(match[1]) == 0:
        raise typer.BadParameter(f"{duration!r} is not a duration such as 60s, 10m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match[2]]


PARSERS = {"TIME": _seconds}  # what a metavar stands for, where that is not written as a number
