"""Rankers by name. Other packages add theirs through the entry-point group ``letor.rankers``."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from letor.errors import InputError
from letor.rankers.base import Ranker, read_description
from ltr_base.names import nearest

GROUP = "letor.rankers"

# Imported on demand, since each ranker needs its own library.
_BUILT_IN = {
    "adarank": ("letor.rankers.adarank", "AdaRank"),
    "coordinate-ascent": ("letor.rankers.coordinate_ascent", "CoordinateAscent"),
    "lambdamart": ("letor.rankers.lambdamart", "LambdaMART"),
    "listnet": ("letor.rankers.neural", "ListNet"),
    "rankboost": ("letor.rankers.rankboost", "RankBoost"),
    "ranknet": ("letor.rankers.neural", "RankNet"),
    "xgboost": ("letor.rankers.xgboost_lambdamart", "XGBoostLambdaMART"),
}


def ranker_names() -> list[str]:
    """Names of all rankers, built in and installed, sorted."""
    return sorted({*_BUILT_IN, *(e.name for e in entry_points(group=GROUP))})


def get_ranker(name: str) -> type[Ranker]:
    """The ranker class of a name.

    Raises:
        InputError: the name is unknown, or an installed plug-in does not provide a ``Ranker``.
    """
    if name in _BUILT_IN:
        module, attribute = _BUILT_IN[name]
        found = getattr(import_module(module), attribute)
    else:
        matches = [e for e in entry_points(group=GROUP) if e.name == name]
        if not matches:
            raise InputError(f"there is no ranker {name!r}; {nearest(name, ranker_names())}")
        found = matches[0].load()
    if not (isinstance(found, type) and issubclass(found, Ranker)):
        raise InputError(f"ranker {name!r} of group {GROUP} is {found!r}, not a Ranker class")
    return found


def load_ranker(folder: str | os.PathLike[str]) -> Ranker:
    """Load the ranker saved in ``folder``, of any kind.

    Raises:
        InputError: the folder is not a saved ranker, is damaged or of a newer version, or of a kind
            that is not installed.
    """
    folder = Path(folder)
    try:
        kind = get_ranker(str(read_description(folder).get("ranker")))
    except InputError as error:
        raise error if str(folder) in str(error) else InputError(f"{folder}: {error}") from None
    return kind.load(folder)
