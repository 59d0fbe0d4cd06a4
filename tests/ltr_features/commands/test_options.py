"""Settings on the command line."""

from __future__ import annotations

import pytest

from letor.errors import InputError
from ltr_features.commands.options import settings


def test_settings_are_toml_or_text():
    given = ["rank=50", "splits=['a', 'b']", "folder=data/x", "c.id=sku", "c.title=true"]
    assert settings(given, "option") == {
        "rank": 50, "splits": ["a", "b"], "folder": "data/x", "c": {"id": "sku", "title": True},
    }  # fmt: skip
    for written in ("{Exact = 2}", '{"Exact": 2}'):
        assert settings([f"grades={written}"], "option") == {"grades": {"Exact": 2}}
    assert settings(["a={b"], "option") == {"a": "{b"}
    assert settings(["share=.25", "low=-.5", "file=.25.csv"], "option") == {
        "share": 0.25, "low": -0.5, "file": ".25.csv",
    }  # fmt: skip
    with pytest.raises(InputError, match="option 'a' is given twice"):
        settings(["a=1", "a=2"], "option")
    with pytest.raises(InputError, match=r"option 'a.b.c' is given twice"):
        settings(["a=1", "a.b.c=2"], "option")
