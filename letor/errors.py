"""The exceptions for what a user can correct."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Input that cannot be used: the message names the file, line, column or parameter, what was
    found there, and what to do. The command line prints it as one line and exits with code 2."""


class NotFittedError(InputError):
    """Something that ``fit`` has to make first was asked for."""


@contextmanager
def reading(path: str | os.PathLike[str], advice: str = "it is damaged") -> Iterator[None]:
    """The border of the program: around what reads a file.

    What a damaged file leads to has no common base (KeyError, RecursionError, errors of Arrow,
    zlib, SQLite, ...); whatever it is becomes an :class:`InputError`.

    Args:
        path: the file or folder, which the message names.
        advice: what to do, the end of messages of errors other than ``InputError``.

    Raises:
        InputError: the block raised something; one that names the path is left as it is.
        ImportError: a module is missing.
    """
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except ImportError:  # the installation's fault, never the file's
        raise
    except MemoryError as error:
        raise InputError(f"{path}: takes more memory than there is") from error
    except Exception as error:
        raise InputError(f"{path}: {_said(error)}; {advice}") from error


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
