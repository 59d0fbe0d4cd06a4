"""Models by name."""

import pytest

from ssi_models.registry import MODELS, get_model


def test_registry_names_models_and_refuses_others():
    assert all(kind.name == name for name, kind in MODELS.items())
    with pytest.raises(ValueError, match="there is no model 'bert'; use one of popularity"):
        get_model("bert")
