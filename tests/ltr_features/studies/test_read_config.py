"""Experiment files are read as a whole; every mistake is named."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from letor.errors import InputError
from ltr_features.studies.config import Section, read_config, read_toml


class Inner(Section):
    n: int = 1


@dataclass(frozen=True)
class Settings:
    alpha: float = 0.05


class Small(Section):
    title: str
    n: int = 1
    options: dict[str, int] = Field({})
    values: list[int] = Field([])
    pair: tuple[int, ...] = ()
    inner: Inner | None = None
    share: float = Field(0.5, gt=0, le=1)
    shares: tuple[float, ...] = ()
    wanted: bool = False
    file: Path | None = None
    two: tuple[str, str] | None = None
    one_of: Literal["a", "b"] = "a"
    name: str = Field("x", pattern=r"^[\w-]+$")
    label: str = Field("x", min_length=1)
    several: tuple[str, ...] = Field(("x",), min_length=1)
    tests: Settings = Settings()


def test_a_file_becomes_a_typed_description(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text('title = "a"\nn = 3\n')
    assert read_toml(file) == {"title": "a", "n": 3}
    assert read_config(file, Small) == Small(title="a", n=3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"n = 'x'\nm = 1",
            r"3 mistakes:\n  title: is missing\n  n: must be a whole number, got 'x'\n  m: ",
        ),
        (
            b"title = 'a'\nvalues = 3\npair = 3\ninner = 3\n[[options]]\na = 1",
            r"options: must be one table, \[options\]\n"
            r"  values: must be a list, values = \[...\] or \[\[values\]\]\n"
            r"  pair: must be a list.*\n  inner: must be one table, \[inner\]",
        ),
        (
            b"title = 'a'\nvalues = ['x', 2, 'y']\n",
            r"2 mistakes:\n  values\.0: .*\n  values\.2: ",
        ),
        (b"n = ", r"x\.toml: it cannot be read as TOML: Invalid value"),
        (b"\xff", "cannot be read as TOML"),
        (None, r"x\.toml: No such file"),
    ],
)
def test_mistakes_are_named_all_at_once(tmp_path, content, message):
    file = tmp_path / "x.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_config(file, Small)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n = 1.5", "n: must be a whole number, got 1.5"),
        ("n = true", "n: write 1, not true"),
        ("n = [1]", "n: must be a whole number, got [1]"),
        ('n = "2"', "n: write 2, not '2'"),
        ("values = ['x']", "values.0: must be a whole number, got 'x'"),
        ('values = [1, "2"]', "values: write 2, not '2'"),
        ("pair = [true]", "pair: write 1, not true"),
        ("options = { a = '2' }", "options: write 2, not '2'"),
        ("inner = { n = true }", "inner.n: write 1, not true"),
        ("share = nan", "share: must be a finite number, got nan"),
        ("share = 0", "share: must be above 0, got 0"),
        ("share = 1.5", "share: must be 1 or less, got 1.5"),
        ("share = 'half'", "share: must be a number, got 'half'"),
        ("shares = [0.5, inf]", "shares.1: must be a finite number, got inf"),
        ("wanted = 1", "wanted: write true, not 1"),
        ('wanted = "no"', "wanted: write false, not 'no'"),
        ("wanted = 2", "wanted: must be true or false, got 2"),
        ("file = 1", "file: must be the path of a file, got 1"),
        ("label = 1", "label: must be text, got 1"),
        ('label = ""', "label: must not be empty, got ''"),
        ('name = "a b"', "name: must have letters, digits, - and _ alone, got 'a b'"),
        ('one_of = "c"', "one_of: must be 'a' or 'b', got 'c'"),
        ("several = []", "several: must have 1 or more entries, got []"),
        ('two = ["a"]', "two.1: is missing"),
        ('two = ["a", "b", "c"]', "two: must have 2 entries, got ['a', 'b', 'c']"),
        ('tests = { alpha = "0.1" }', "tests: write 0.1, not '0.1'"),
        ("tests = { alfa = 0.1 }", "tests.alfa: unknown key; did you mean 'alpha'?"),
        ("tests = 1", "tests: must be one table, [tests]"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(tmp_path, line, message):
    file = tmp_path / "x.toml"
    file.write_text(f"title = 'a'\n{line}\n")
    with pytest.raises(InputError) as error:
        read_config(file, Small)
    assert str(error.value) == f"{file}: 1 mistake:\n  {message}"


def test_a_whole_number_may_be_written_as_a_decimal(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text("title = 'a'\nn = 1e4\nshare = 1\nshares = [1]\n")
    assert read_config(file, Small) == Small(title="a", n=10_000, share=1.0, shares=(1.0,))


def test_values_may_be_a_generator_in_python():
    assert list(Small(title="a", values=(n for n in (1, 2))).values) == [1, 2]


def test_dates_are_texts(tmp_path):
    """Which stages and manifests can hold."""
    text = "a = 2026-08-25\nb = [2026-08-25T10:00:00Z, 1]\nc = { d = 10:30:00 }"
    (tmp_path / "x.toml").write_text(text)
    assert read_toml(tmp_path / "x.toml") == {
        "a": "2026-08-25", "b": ["2026-08-25T10:00:00+00:00", 1], "c": {"d": "10:30:00"},
    }  # fmt: skip
