"""The command line as a page: every command with its arguments and options, from the commands themselves."""

import inspect
import re
from typing import Any

import typer

from varitext.cli import app
from varitext.reproduce.engine import markdown_table


def command_reference() -> str:
    return "\n\n".join(_sections("varitext", typer.main.get_command(app)))


def _sections(name: str, command: Any) -> list[str]:
    """A command's section, or those of its commands."""
    if hasattr(command, "commands"):
        return [section for each, one in command.commands.items() for section in _sections(f"{name} {each}", one)]
    usage = " ".join([name, "[OPTIONS]", *filter(None, map(_argument, command.params))])
    told, _, examples = inspect.cleandoc(command.help or "").replace("\b", "").partition("Examples:")
    parts = [f"## {name}", told.strip(), f"```text\n{usage}\n```"]
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    rows = [[_name(parameter), _help(parameter)] for parameter in shown]
    if rows:
        parts.append(markdown_table(["", ""], rows))
    if examples:
        parts.append(f"```sh\n{inspect.cleandoc(examples)}\n```")
    return ["\n\n".join(part for part in parts if part)]


def _argument(parameter: Any) -> str:
    """As it is typed; versions of typer differ in brackets."""
    if parameter.param_type_name != "argument":
        return ""
    typed = (parameter.metavar or parameter.name).upper()
    return typed if parameter.required or typed.startswith("[") else f"[{typed}]"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).upper()}`"
    value = "" if parameter.is_flag else f" {parameter.metavar or 'TEXT'}"
    return ", ".join(f"`{option}{value}`" for option in (*parameter.opts, *parameter.secondary_opts))


def _help(parameter: Any) -> str:
    told = re.sub(r"\s+", " ", getattr(parameter, "help", None) or "").replace("|", "\\|")
    default = parameter.default
    if default in (None, False, "", ()) or callable(default) or "default" in told:
        return told
    return f"{told} (default: `{getattr(default, 'value', default)}`)"
