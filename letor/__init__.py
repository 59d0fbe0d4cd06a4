"""Rows, labels and queries: LETOR files, folds, normalisation, measures, rankers.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import lazy_names

if TYPE_CHECKING:
    from letor.dataset import RankingData
    from letor.errors import InputError
    from letor.evaluation import evaluate
    from letor.folds import Fold, k_fold
    from letor.parquet import read_parquet, write_parquet
    from letor.rankers.scorer import ranking_scorer
    from letor.svmlight import read_letor
    from letor.writing import write_letor

__all__ = [
    "Fold",
    "InputError",
    "RankingData",
    "evaluate",
    "k_fold",
    "ranking_scorer",
    "read_letor",
    "read_parquet",
    "write_letor",
    "write_parquet",
]

_HOMES = {
    "Fold": ".folds",
    "InputError": ".errors",
    "RankingData": ".dataset",
    "evaluate": ".evaluation",
    "k_fold": ".folds",
    "ranking_scorer": ".rankers.scorer",
    "read_letor": ".svmlight",
    "read_parquet": ".parquet",
    "write_letor": ".writing",
    "write_parquet": ".parquet",
}


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
