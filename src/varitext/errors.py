"""Errors that a user can correct, and foreign text as a terminal may show it."""

import re

# Controls except line ends and tabs, line separators, and marks that change the direction of the text after them.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

MAX_QUOTED = 300  # characters of another error


class InputError(ValueError):
    """Bad input: one line that says what is wrong, where, and what to do.

    The command line prints it and exits with code 2.
    """


def first_line(error: BaseException) -> str:
    """The beginning of an error's message, or its kind if it has none, to quote in an `InputError`."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:MAX_QUOTED]


def printable(text: str) -> str:
    r"""The text with controls as \uXXXX, as JSON has them, so that foreign words cannot command a terminal."""
    return _CONTROLS.sub(lambda control: f"\\u{ord(control[0]):04x}", text)


class MissingPackage(InputError, ModuleNotFoundError):
    """A package that is not installed; the message has the command that installs it. An ImportError, too."""


class TrainingDiverged(InputError):
    """Training kept producing infinities after every rescue; the message names the setting to change."""
