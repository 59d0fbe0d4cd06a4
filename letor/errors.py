"""The exceptions for what a user can correct."""


class InputError(ValueError):
    """Input that cannot be used: the message names the file, line, column or parameter, what was
    found there, and what to do. The command line prints it as one line and exits with code 2."""


class NotFittedError(InputError):
    """Something that ``fit`` has to make first was asked for."""
