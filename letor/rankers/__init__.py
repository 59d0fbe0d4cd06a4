"""Rankers: one contract (``base.Ranker``), found by name through ``registry``.

Names are imported when they are first used, since each ranker needs its own library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import lazy_names

if TYPE_CHECKING:
    from letor.rankers.adarank import AdaRank
    from letor.rankers.coordinate_ascent import CoordinateAscent
    from letor.rankers.lambdamart import LambdaMART
    from letor.rankers.neural import ListNet, RankNet
    from letor.rankers.rankboost import RankBoost
    from letor.rankers.registry import get_ranker, load_ranker
    from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART

__all__ = [
    "AdaRank",
    "CoordinateAscent",
    "LambdaMART",
    "ListNet",
    "RankBoost",
    "RankNet",
    "XGBoostLambdaMART",
    "get_ranker",
    "load_ranker",
]

_HOMES = {
    "AdaRank": ".adarank",
    "CoordinateAscent": ".coordinate_ascent",
    "LambdaMART": ".lambdamart",
    "ListNet": ".neural",
    "RankBoost": ".rankboost",
    "RankNet": ".neural",
    "XGBoostLambdaMART": ".xgboost_lambdamart",
    "get_ranker": ".registry",
    "load_ranker": ".registry",
}


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
