"""Learning-to-rank features computed from text: the names that most programs need.

    from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline, get_ranker, k_fold
    from ltr_features import read_collection

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import declared_names, lazy_names

if TYPE_CHECKING:  # `as` marks a name as re-exported
    from letor.evaluation import evaluate as evaluate
    from letor.folds import k_fold as k_fold
    from letor.rankers.registry import get_ranker as get_ranker
    from ltr_features.columns.base import ColumnFamily as ColumnFamily
    from ltr_features.columns.base import ColumnSpec as ColumnSpec
    from ltr_features.columns.learned import LearnedColumn as LearnedColumn
    from ltr_features.columns.registry import get_family as get_family
    from ltr_features.feature_builder import FeatureBuilder as FeatureBuilder
    from ltr_features.scoring import ScoringPipeline as ScoringPipeline
    from ltr_features.sources.feature_log import read_feature_log as read_feature_log
    from ltr_features.sources.registry import read_collection as read_collection
    from ltr_features.text.analyzer import Analyzer as Analyzer
    from ltr_features.text.collection import Collection as Collection
    from ssi_models.registry import get_model as get_model
    from ssi_models.registry import load_model as load_model

_HOMES = declared_names(__file__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES, renamed={"ModelColumn": "LearnedColumn"})
