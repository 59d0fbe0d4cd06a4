"""Warnings that name the user's line, however deep in this software their cause is found."""

from __future__ import annotations

import sys
import warnings

from ltr_base.source_code import is_ours


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside this software that led here."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__"))
        if not is_ours(module) and not module.startswith("importlib."):
            break
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})  # one warning for a line
    place = frame.f_code.co_filename, frame.f_lineno
    warnings.warn_explicit(message, category, *place, registry=registry)
