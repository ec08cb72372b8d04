"""Checks of what was typed that several commands make, before anything is loaded."""

from collections.abc import Mapping
from pathlib import Path

from varitext.errors import InputError


def refuse_options(options: Mapping[str, object], reason: str) -> None:
    """None of these may have been typed: None and False stand for an option that was not."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(f"--{name.replace('_', '-')} does not apply: {reason}")


def check_new_file(path: Path) -> None:
    from varitext.files import check_can_write

    if path.exists():
        raise InputError(f"{path} exists already: name another file, or remove it first")
    check_can_write(path)
