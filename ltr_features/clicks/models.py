"""Click models by name."""

from __future__ import annotations

from letor.errors import InputError
from ltr_base.names import nearest
from ltr_features.clicks.base import ClickModel
from ltr_features.clicks.cascade_models import Cascade
from ltr_features.clicks.dependent_click import DependentClick
from ltr_features.clicks.dynamic_bayesian import DynamicBayesian
from ltr_features.clicks.position_models import ClickRate, PositionBased

_MODELS: dict[str, type[ClickModel]] = {
    kind.name: kind for kind in (ClickRate, PositionBased, Cascade, DependentClick, DynamicBayesian)
}


def click_models() -> list[str]:
    """Names of all click models."""
    return list(_MODELS)


def get_click_model(name: str) -> type[ClickModel]:
    """The class of a click model.

    Raises:
        InputError: no such model.
    """
    if name not in _MODELS:
        raise InputError(f"there is no click model {name!r}; {nearest(name, _MODELS)}")
    return _MODELS[name]
