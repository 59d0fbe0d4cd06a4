"""Rows, labels and queries: LETOR files, folds, normalisation, measures, rankers.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import declared_names, lazy_names

if TYPE_CHECKING:  # `as` marks a name as re-exported
    from letor.column_names import read_rows as read_rows
    from letor.column_names import write_rows as write_rows
    from letor.dataset import RankingData as RankingData
    from letor.errors import InputError as InputError
    from letor.evaluation import evaluate as evaluate
    from letor.folds import Fold as Fold
    from letor.folds import k_fold as k_fold
    from letor.parquet import read_parquet as read_parquet
    from letor.parquet import write_parquet as write_parquet
    from letor.rankers.scorer import ranking_scorer as ranking_scorer
    from letor.svmlight import read_letor as read_letor
    from letor.writing import write_letor as write_letor

_HOMES = declared_names(__file__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
