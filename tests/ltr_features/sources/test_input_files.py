"""Files, folders and patterns in place of one file."""

import os
from pathlib import Path

import pytest

from letor.errors import InputError
from ltr_features.clicks.source import read_clicks
from ltr_features.sources.input_files import files_of
from ltr_features.studies.identity import Digests
from ltr_features.studies.kinds.sections import with_content, with_paths


@pytest.fixture
def folder(tmp_path):
    """Two days of logs, one of them in a folder, and what Spark writes beside them."""
    for name in ("b.csv", "a.gz", "day/c.csv", "_SUCCESS", "day/.c.crc", "_old/d.csv"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "logs"


def names(paths):
    return [file.name for file in files_of(paths)]


def test_folders_and_patterns_are_read_by_name(folder):
    assert names(folder) == ["a.gz", "b.csv", "c.csv"]
    assert names(str(folder / "*.csv")) == ["b.csv"]
    assert names(folder / "**" / "*.csv") == ["b.csv", "c.csv"]
    assert names(folder / "d*") == ["c.csv"]
    assert names(folder / "**") == names(folder)
    assert names(folder / "*" / "**") == ["c.csv"]
    assert names(folder / "*") == names(folder)
    assert names(folder / "_*" / "*") == names(folder / "_old" / "*") == ["d.csv"]
    assert names(folder / "_S*") == ["_SUCCESS"]
    assert names([folder / "b.csv", folder / "[a]*"]) == ["b.csv", "a.gz"]
    assert names(folder / "_SUCCESS") == ["_SUCCESS"]
    assert files_of([]) == []


def test_a_name_like_a_pattern_is_that_of_the_file(folder):
    (folder / "a[1].csv").write_text("")
    assert names(folder / "a[1].csv") == ["a[1].csv"]


def test_what_is_not_there_is_told(folder):
    with pytest.raises(InputError, match=r"x\.csv: no such file"):
        files_of(folder / "x.csv")
    with pytest.raises(InputError, match=r"logs/\*\.tsv: no file matches this pattern"):
        files_of(folder / "*.tsv")
    (folder / "day" / "c.csv").unlink()
    with pytest.raises(InputError, match=r"day: a folder without files"):
        files_of([folder / "day"])


def test_a_folder_that_cannot_be_read_is_told(folder, monkeypatch):
    def scandir(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(InputError, match=r"logs: cannot be read \(Permission denied\)"):
        files_of(folder)


def test_links_in_a_folder_are_told(folder, tmp_path):
    """A walk through the folder would pass over them, as over files that are gone."""
    (folder / "gone.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(InputError, match=r"gone\.csv: no such file"):
        files_of(folder)
    (folder / "gone.csv").unlink()
    (folder / "linked.csv").symlink_to(folder / "_old" / "d.csv")
    assert names(folder) == ["a.gz", "b.csv", "c.csv", "linked.csv"]
    (folder / "other").symlink_to(folder / "_old")
    with pytest.raises(InputError, match=r"other: a link to a folder, .* pattern of them \(.*\*\)"):
        files_of(folder)
    assert names(folder / "[!_]*") == ["a.gz", "b.csv", "c.csv", "linked.csv", "d.csv"]


def test_patterns_in_experiments_are_relative_to_the_data_and_known_by_content(folder, tmp_path):
    def paths(log):
        return with_paths(read_clicks, {"log": log, "documents": "[d]"}, tmp_path)

    a, b = str(folder / "a.gz"), str(folder / "b.csv")
    assert paths("logs/*.*") == {"log": [a, b], "documents": str(tmp_path / "[d]")}
    assert paths(["logs/b.csv", "logs/*.gz"])["log"] == [b, a]
    assert paths("logs")["log"] == str(folder)
    assert paths("logs/**")["log"] == [str(folder)]
    assert paths("logs/*.tsv")["log"] == str(tmp_path / "logs" / "*.tsv")

    def content():
        return with_content(read_clicks, {"log": "logs/*.*"}, tmp_path, Digests())["log"]

    before = content()
    assert [file["name"] for file in before] == ["a.gz", "b.csv"]
    Path(b).write_text("other")
    assert content() != before
