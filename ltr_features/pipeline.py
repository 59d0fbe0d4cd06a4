"""The old name of :mod:`ltr_features.feature_builder`, kept for one release."""

import warnings

from ltr_base.former import FormerName
from ltr_features.feature_builder import FeatureBuilder

__all__ = ["FeatureBuilder"]

warnings.warn(
    "ltr_features.pipeline is called ltr_features.feature_builder now; change the import",
    FormerName,
    stacklevel=2,
)
