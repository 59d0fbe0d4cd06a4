"""Click models by name."""

from __future__ import annotations

from letor.plugins import Plugins
from ltr_features.clicks.base import ClickModel

_BUILT_IN = {
    "ctr": "ltr_features.clicks.position_models:ClickRate",
    "pbm": "ltr_features.clicks.position_models:PositionBased",
    "cascade": "ltr_features.clicks.cascade_models:Cascade",
    "dcm": "ltr_features.clicks.dependent_click:DependentClick",
    "dbn": "ltr_features.clicks.dynamic_bayesian:DynamicBayesian",
}
_MODELS = Plugins("click model", "", _BUILT_IN)


def click_models() -> list[str]:
    """Names of all click models."""
    return _MODELS.names()


def get_click_model(name: str) -> type[ClickModel]:
    """The class of a click model.

    Raises:
        InputError: no such model.
    """
    return _MODELS.get(name)
