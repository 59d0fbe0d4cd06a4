"""Rankers: one contract (``base.Ranker``), found by name through ``registry``.

Names are imported when they are first used, since each ranker needs its own library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import declared_names, lazy_names

if TYPE_CHECKING:  # `as` marks a name as re-exported
    from letor.rankers.adarank import AdaRank as AdaRank
    from letor.rankers.coordinate_ascent import CoordinateAscent as CoordinateAscent
    from letor.rankers.lambdamart import LambdaMART as LambdaMART
    from letor.rankers.neural import ListNet as ListNet
    from letor.rankers.neural import RankNet as RankNet
    from letor.rankers.rankboost import RankBoost as RankBoost
    from letor.rankers.registry import get_ranker as get_ranker
    from letor.rankers.registry import load_ranker as load_ranker
    from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART as XGBoostLambdaMART

_HOMES = declared_names(__file__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
