"""Labels that queries share: groups and strata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def first_unlabelled(labels: Iterable[Any]) -> int | None:
    """The place of the first label that is missing (None, NaN, and pandas' NA and NaT), if any:
    as a label, it would join queries that have nothing to do with each other."""
    missing = ("None", "nan", "NaT", "<NA>")
    places = (i for i, v in enumerate(labels) if not isinstance(v, str) and str(v) in missing)
    return next(places, None)
