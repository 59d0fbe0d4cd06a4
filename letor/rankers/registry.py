"""Rankers by name. Other packages add theirs through the entry-point group ``letor.rankers``."""

from __future__ import annotations

import os
from pathlib import Path

from letor.errors import InputError
from letor.plugins import Plugins
from letor.rankers.base import Ranker, read_description

# Imported on demand, since each ranker needs its own library.
_BUILT_IN = {
    "adarank": "letor.rankers.adarank:AdaRank",
    "coordinate-ascent": "letor.rankers.coordinate_ascent:CoordinateAscent",
    "lambdamart": "letor.rankers.lambdamart:LambdaMART",
    "listnet": "letor.rankers.neural:ListNet",
    "rankboost": "letor.rankers.rankboost:RankBoost",
    "ranknet": "letor.rankers.neural:RankNet",
    "xgboost": "letor.rankers.xgboost_lambdamart:XGBoostLambdaMART",
}
_RANKERS = Plugins("ranker", "letor.rankers", _BUILT_IN)


def ranker_names() -> list[str]:
    """Names of all rankers, built in and installed, sorted."""
    return sorted(_RANKERS.names())


def get_ranker(name: str) -> type[Ranker]:
    """The ranker class of a name.

    Raises:
        InputError: the name is unknown, or an installed plug-in does not provide a ``Ranker``.
    """
    found = _RANKERS.get(name)
    if not (isinstance(found, type) and issubclass(found, Ranker)):
        raise InputError(
            f"ranker {name!r} of group {_RANKERS.group} is {found!r}, not a Ranker class"
        )
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
