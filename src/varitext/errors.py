"""What a user can put right is an `InputError`: one line that says what is wrong, where, and what to do."""


class InputError(ValueError):
    """Bad input, in one line for people. The command line prints it and exits with code 2."""


class TrainingDiverged(InputError):
    """Training kept producing infinities after every rescue; the message says which setting to change."""
