"""The old name of :mod:`ltr_features.feature_builder`, kept for one release."""

from ltr_base.former import warn_of_former
from ltr_features.feature_builder import FeatureBuilder

__all__ = ["FeatureBuilder"]

warn_of_former(
    "ltr_features.pipeline is called ltr_features.feature_builder now; change the import"
)
