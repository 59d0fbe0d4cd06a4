"""Rows, labels and queries: LETOR files, folds, normalisation, measures, rankers.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "Fold": "folds",
    "InputError": "errors",
    "RankingData": "dataset",
    "evaluate": "evaluation",
    "k_fold": "folds",
    "ranking_scorer": "rankers.scorer",
    "read_letor": "svmlight",
    "read_parquet": "parquet",
    "write_letor": "writing",
    "write_parquet": "parquet",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
