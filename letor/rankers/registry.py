"""Rankers by name. Other packages add theirs through the entry-point group ``letor.rankers``."""

from __future__ import annotations

import os
from pathlib import Path

from letor.errors import InputError
from letor.plugins import Plugins
from letor.rankers.base import Ranker
from letor.rankers.description import read_description

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
_RANKERS = Plugins("ranker", "letor.rankers", _BUILT_IN, Ranker)


def ranker_names() -> list[str]:
    """Names of all rankers, built in and installed, sorted."""
    return sorted(_RANKERS.names())


def get_ranker(name: str) -> type[Ranker]:
    """The ranker class of a name.

    Raises:
        InputError: the name is unknown, or an installed plug-in does not provide a ``Ranker`` of
            that name.
    """
    return _RANKERS.get(name)


def load_ranker(folder: str | os.PathLike[str]) -> Ranker:
    """Load the ranker saved in ``folder``, of any kind.

    Raises:
        InputError: the folder is not a saved ranker, is damaged or of a newer version, or of a kind
            that is not installed.
    """
    folder = Path(folder)
    name = str(read_description(folder).get("ranker"))
    try:
        kind = get_ranker(name)
    except InputError as error:
        raise InputError(
            f"{folder}: {error} (use the class of a ranker of your own that is not registered: "
            "MyRanker.load(folder), or ScoringPipeline.load(folder, ranker=MyRanker))"
        ) from None
    return kind.load(folder)
