"""Warnings that name the user's line, however deep in this software their cause is found."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from ltr_base.source_code import is_ours


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside this software and Python's library that led here."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_passed(_module(frame)):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})  # one warning for a line
    place = frame.f_code.co_filename, frame.f_lineno, _module(frame)
    warnings.warn_explicit(message, category, *place, registry=registry)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _is_passed(module: str) -> bool:
    """Whether it is ours, or of Python: ``functools`` calls cached properties, for example."""
    return is_ours(module) or module.partition(".")[0] in sys.stdlib_module_names
