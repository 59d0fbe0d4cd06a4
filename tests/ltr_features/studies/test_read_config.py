"""Experiment files are read as a whole; every mistake is named."""

import pytest
from pydantic import Field

from letor.errors import InputError
from ltr_features.studies.config import Section, read_config, read_toml


class Inner(Section):
    n: int = 1


class Small(Section):
    title: str
    n: int = 1
    options: dict[str, int] = Field({})
    values: list[int] = Field([])
    pair: tuple[int, ...] = ()
    inner: Inner | None = None


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
            r"3 mistakes:\n  title: Field required\n  n: must be a number, not 'x'\n  m: ",
        ),
        (
            b"title = 'a'\nvalues = 3\npair = 3\ninner = 3\n[[options]]\na = 1",
            r"options: must be one table, \[options\]\n"
            r"  values: must be a list, values = \[...\] or \[\[values\]\]\n"
            r"  pair: must be a list.*\n  inner: must be one table, \[inner\]",
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


def test_mistakes_in_items_of_a_list_have_the_places_of_the_file(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text("title = 'a'\nvalues = ['x', 2, 'y']\n")
    with pytest.raises(InputError, match=r"2 mistakes:\n  values\.0: .*\n  values\.2: "):
        read_config(file, Small)


def test_dates_are_texts(tmp_path):
    """Which stages and manifests can hold."""
    text = "a = 2026-08-25\nb = [2026-08-25T10:00:00Z, 1]\nc = { d = 10:30:00 }"
    (tmp_path / "x.toml").write_text(text)
    assert read_toml(tmp_path / "x.toml") == {
        "a": "2026-08-25", "b": ["2026-08-25T10:00:00+00:00", 1], "c": {"d": "10:30:00"},
    }  # fmt: skip
