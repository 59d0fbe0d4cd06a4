"""Exceptions for errors that the user can correct."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

#: Errors of writing: a full disk, a quota, a limit of the size of files.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class InputError(ValueError):
    """Input that cannot be used: the message names the file, line, column or parameter, what was
    found there, and what to do. The command line prints it as one line and exits with code 2."""


class NotFittedError(InputError):
    """An object was used before it was fitted."""


class LetorWarning(UserWarning):
    """Something was left out, filled in or rounded while reading, or see the classes below."""


class RankerWarning(LetorWarning):
    """A ranker learned nothing, or the label itself, or rows differ from its training rows."""


@contextmanager
def reading(path: str | os.PathLike[str], advice: str = "it is damaged") -> Iterator[None]:
    """Context manager for code that reads a file: turns any error into an :class:`InputError`.

    The exceptions that damaged files lead to have no common base class (KeyError, RecursionError,
    errors of Arrow, zlib, SQLite, ...).

    Args:
        path: the file or folder, which the message names.
        advice: what to do; ends the messages of errors other than ``InputError``.

    Raises:
        InputError: the block raised an error; an InputError that names the path is left unchanged.
        ImportError: a module is missing.
        OSError: the disk is full; reading fills none, so that the fault is another file's.
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
        raise InputError(f"{path}: needs more memory than is available") from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:  # a file that is written meanwhile
            raise
        whose = getattr(error, "filename", None) or path  # a file in the folder ``path``
        raise InputError(f"{whose}: {described(error)}; {advice}") from error


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Context manager for code that may be a plug-in's: notes on errors that leave it whose they
    are, "in column family 'x'", which the command line shows too. An InputError says so itself."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        error.add_note(f"in {what}")
        raise


def described(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
