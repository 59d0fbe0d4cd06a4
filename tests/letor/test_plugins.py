"""Objects by name: built in, and of other packages by entry points."""

from importlib.metadata import EntryPoint
from unittest.mock import patch

import pytest

from letor import plugins
from letor.errors import InputError
from letor.plugins import Plugins
from letor.rankers.registry import get_ranker

MATHS = Plugins("function", "maths", {"sqrt": "math:sqrt", "exp": "math:exp"})


@pytest.fixture(autouse=True)
def installed():
    def points(group):
        others = {"log": "math:log", "exp": "cmath:exp", "gone": "math:gone"}
        return [EntryPoint(name, value, group) for name, value in others.items()]

    with patch.object(plugins, "entry_points", points):
        yield


def test_names_are_ours_first_and_stay_ours():
    assert MATHS.names() == ["sqrt", "exp", "gone", "log"]
    assert MATHS.get("exp")(0) == 1.0
    assert isinstance(MATHS.get("exp")(0), float)
    assert MATHS.get("log")(1) == 0.0


def test_what_is_not_there_or_broken_is_named():
    with pytest.raises(InputError, match="there is no function 'sqr'; did you mean 'sqrt'"):
        MATHS.get("sqr")
    with pytest.raises(InputError, match=r"function 'gone' \(math:gone\) cannot be loaded: .*gone"):
        MATHS.get("gone")
    with pytest.raises(InputError, match=r"ranker 'log' \(math:log\) is .*subclass of Ranker"):
        get_ranker("log")


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("math:pi", "is 3.14.*: register a subclass of Ranker"),
        ("letor.rankers.base:Ranker", "does not define _fit, _importance, _load, _predict, _save"),
        ("letor.rankers.adarank:AdaRank", "has the name 'adarank': register it under"),
    ],
)
def test_a_class_that_could_not_be_used_or_found_again_is_refused(value, fault):
    point = EntryPoint("mine", value, "letor.rankers")
    with (
        patch.object(plugins, "entry_points", lambda group: [point]),
        pytest.raises(InputError, match=fault),
    ):
        get_ranker("mine")


def test_a_function_must_be_one():
    point = EntryPoint("pi", "math:pi", "maths")
    with (
        patch.object(plugins, "entry_points", lambda group: [point]),
        pytest.raises(InputError, match=r"function 'pi' .* is 3\.14.*: register a function"),
    ):
        MATHS.get("pi")


def test_a_name_that_two_packages_have_is_refused():
    """But not a package that is found twice."""
    points = [EntryPoint("log", value, "maths") for value in ("math:log", "math:log")]
    with patch.object(plugins, "entry_points", lambda group: points):
        assert MATHS.get("log")(1) == 0.0
        points.append(EntryPoint("log", "cmath:log", "maths"))
        assert MATHS.names() == ["sqrt", "exp", "log"]
        with pytest.raises(InputError, match=r"function 'log' \(cmath:log, math:log\): remove all"):
            MATHS.get("log")
