"""Errors that a user can correct."""


class InputError(ValueError):
    """Bad input: one line that says what is wrong, where, and what to do.

    The command line prints it and exits with code 2.
    """


class TrainingDiverged(InputError):
    """Training kept producing infinities after every rescue; the message names the setting to change."""
