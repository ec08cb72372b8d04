"""Errors that a user can correct."""


class InputError(ValueError):
    """Bad input: one line that says what is wrong, where, and what to do.

    The command line prints it and exits with code 2.
    """


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its kind if it has none, to quote in an `InputError`."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class MissingPackage(InputError, ModuleNotFoundError):
    """A package that is not installed; the message has the command that installs it. An ImportError, too."""


class TrainingDiverged(InputError):
    """Training kept producing infinities after every rescue; the message names the setting to change."""
