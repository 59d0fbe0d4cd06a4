"""Docstrings as texts for users."""

import inspect


def summary(thing: object) -> str:
    """The first paragraph of a docstring, on one line and without its full stop."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()).rstrip(".")
