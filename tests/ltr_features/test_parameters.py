"""Values are checked by the annotations of the functions that take them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest

from letor.errors import InputError
from ltr_features import LearnedColumn, get_family, read_collection
from ltr_features.parameters import check_call, check_range, check_values


def reader(
    folder: str | os.PathLike[str],
    splits: Sequence[str] | None = None,
    grades: Mapping[str, int] | None = None,
    share: float = 0.5,
    keep: bool = False,
    mode: Literal["a", "b"] = "a",
    seed: int = 0,
    gain: Literal["exponential", "linear"] | Sequence[float] = "linear",
    cuts: Sequence[str | float | date] = (),
    rest: Any = None,
) -> None:
    """What is called."""


@pytest.mark.parametrize(
    "values",
    [
        {"folder": "x", "splits": ["a"], "grades": {"Exact": 2}, "share": 1, "keep": True},
        {"folder": Path("x"), "splits": None, "grades": None, "mode": "b", "seed": 3},
        {"gain": [0, 1.5], "cuts": ["a", 3, date(2026, 7, 1)]},
        {"rest": object(), "unknown": 3, "splits": ("a", "b")},
    ],
)
def test_values_of_their_types_pass(values):
    assert check_values(reader, values, "reader") is None


@pytest.mark.parametrize(
    ("family", "options"),
    [
        (family, {name: value})
        for family, names in {
            "vsm": ["min_document_frequency"],
            "w2v-word": ["dimension", "epochs", "window", "min_count"],
            "d2v-word": ["dimension", "epochs", "min_count"],
            "d2v-chunk": ["dimension", "epochs", "min_count"],
            "w2v-entity": ["dimension", "epochs", "window", "min_count"],
            "d2v-entity": ["dimension", "epochs", "min_count"],
            "ensan2017": ["dimension", "epochs", "window", "min_count"],
        }.items()
        for name in names
        for value in (-1, 0)
    ]
    + [
        ("w2v-word", {"negative": -1}),
        ("d2v-chunk", {"seed": -1}),
        ("w2v-word", {"dimension": 10**9}),
    ],
)
def test_whole_numbers_of_families_have_ranges(family, options):
    with pytest.raises(
        InputError, match=rf"{next(iter(options))} must be .*{next(iter(options.values()))}"
    ):
        get_family(family, **options)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"splits": "test"}, "reader: splits must be a list of texts, .*got 'test'"),
        ({"splits": [1]}, "splits must be a list"),
        ({"folder": 3}, "folder must be text or a path, got 3; write text in quotes: '\"3\"'"),
        ({"folder": ["a"]}, r"folder must be text or a path, got \['a'\]$"),
        ({"grades": 3}, "grades must be a table whose values are whole numbers"),
        ({"gain": "no"}, r"gain must be 'exponential' or 'linear' or a list of numbers, \[1, 2\]"),
        ({"cuts": 3}, r'cuts must be a list of texts or numbers or dates, \["a", "b"\], got 3'),
        ({"cuts": [None]}, "cuts must be a list of texts or numbers or dates"),
        ({"grades": {"Exact": "x"}}, "grades must be a table"),
        ({"share": "abc"}, "share must be a number, got 'abc'"),
        ({"seed": 1.5}, "seed must be a whole number, got 1.5"),
        ({"seed": True}, "seed must be a whole number, got True"),
        ({"keep": "maybe"}, "keep must be true or false, got 'maybe'"),
        ({"mode": "c"}, "mode must be 'a' or 'b', got 'c'"),
    ],
)
def test_others_are_named(values, message):
    with pytest.raises(InputError, match=message):
        check_values(reader, values, "reader")


def test_calls_name_what_is_unknown_and_what_is_lacking():
    assert check_call(reader, {"folder": "x", "seed": 3}, "reader") is None
    with pytest.raises(InputError, match="reader needs the option 'folder'"):
        check_call(reader, {"seed": 3}, "reader")
    with pytest.raises(InputError, match="reader has no option 'folders'; did you mean 'folder'"):
        check_call(reader, {"folders": "x"}, "reader")


@pytest.mark.parametrize("value", [-1, math.inf, math.nan])
def test_ranges_hold_finite_numbers(value):
    assert check_range("share", 0, 0) is check_range("share", 1, 0, 1) is None
    with pytest.raises(InputError, match=f"share must be 0 or more, got {value}"):
        check_range("share", value, 0)
    with pytest.raises(InputError, match="share must lie between 0 and 1, got 2"):
        check_range("share", 2, 0, 1)


def test_sources_families_and_models_check_theirs(tmp_path):
    with pytest.raises(InputError, match="source 'beir': splits must be a list of text"):
        read_collection("beir", folder=tmp_path, splits="test")
    with pytest.raises(InputError, match="source 'ir-datasets': dataset must be text, got 5"):
        read_collection("ir-datasets", dataset=5)
    with pytest.raises(InputError, match="column family 'vsm': min_document_frequency must be"):
        get_family("vsm", min_document_frequency="abc")
    with pytest.raises(InputError, match="model 'ssi': rank must be a whole number, got 'abc'"):
        LearnedColumn("x", "ssi", {"rank": "abc"})
    with pytest.raises(InputError, match="'a/b': the name becomes a file name"):
        LearnedColumn("a/b", "ssi")


def test_a_source_may_have_an_option_called_name(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        read_collection("beir", folder=tmp_path / "absent", name="mine")
