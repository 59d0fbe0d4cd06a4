"""Digests of a folder's files: what was changed since it was written is told."""

import json
import os
import shutil

import pytest
import small_files
from typer.testing import CliRunner

from letor.digests import (
    DIGESTS,
    changed_files,
    check_files,
    check_part,
    folder_digest,
    named_files,
    write_digests,
)
from letor.errors import InputError
from ltr_features.cli import app


def test_changed_missing_and_new_files_are_told(tmp_path):
    (tmp_path / "within").mkdir()
    for name in ("a", "b", "within/c"):
        (tmp_path / name).write_text(name)
    write_digests(tmp_path)
    assert changed_files(tmp_path) == []
    (tmp_path / "a").unlink()
    (tmp_path / "d").touch()
    (tmp_path / "within" / "c").write_text("x")
    assert changed_files(tmp_path) == ["a: missing", "d: new", "within/c: changed"]
    (tmp_path / DIGESTS).write_text("[1]")
    with pytest.raises(InputError, match="digests are damaged"):
        changed_files(tmp_path)
    (tmp_path / DIGESTS).unlink()
    with pytest.raises(InputError, match=r"has no digests\.json"):
        changed_files(tmp_path)


@pytest.mark.parametrize(
    ("kind", "folder"),
    [("ranker rankboost", "ranker"), ("index", "index"), ("knowledge base", "kb"),
     ("pipeline", "pipeline")],
)  # fmt: skip
def test_folders_of_ours_have_them(kind, folder, tmp_path):
    path = small_files.make(kind, tmp_path / "made") / folder
    said = CliRunner().invoke(app, ["validate", str(path)])
    assert (said.exit_code, "all files are as they were written" in said.output) == (0, True)
    files = [file for file in path.rglob("*.*") if file.name != DIGESTS]
    victim = max(files, key=lambda file: file.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    said = CliRunner().invoke(app, ["validate", str(path)])
    assert (said.exit_code, f"{victim.relative_to(path)}: changed" in said.output) == (2, True)


def test_chosen_files_are_checked_by_name(tmp_path):
    (tmp_path / "within").mkdir()
    for name in ("a", "within/b"):
        (tmp_path / name).write_text(name)
        check_files(tmp_path, "*")  # no digests yet
    write_digests(tmp_path)
    check_files(tmp_path, "*")
    (tmp_path / "within" / "b").write_text("x")
    check_files(tmp_path, "a")
    with pytest.raises(InputError, match=r"within/b is damaged: it is not the file that was saved"):
        check_files(tmp_path, "within/*")
    (tmp_path / "a").unlink()
    with pytest.raises(InputError, match=r"/a: No such file or directory; restore it"):
        check_files(tmp_path, "a")
    (tmp_path / DIGESTS).write_text("[]")
    with pytest.raises(InputError, match=r"digests\.json: .*the digests are damaged"):
        check_files(tmp_path, "a")


def test_devices_and_pipes_are_not_read(tmp_path):
    """Reading them would never end."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", f"{'../' * 20}dev/zero"):
        (tmp_path / DIGESTS).write_text(json.dumps({name: "0"}))
        with pytest.raises(InputError, match=f"{name}: a pipe or a device, not a file"):
            check_files(tmp_path, "*")


def test_a_part_of_another_folder_is_told(tmp_path):
    for name in ("one", "two"):
        part = tmp_path / name / "part"
        (part / "deep").mkdir(parents=True)
        (part / "deep" / "x").write_text(name)
        (part / "settings").write_text("")
        write_digests(part)
        write_digests(tmp_path / name)
        check_part(tmp_path / name, "part")
        (part / "settings").write_text(name)  # may change later
        write_digests(part)
        check_part(tmp_path / name, "part")
    shutil.rmtree(tmp_path / "one" / "part")
    (tmp_path / "two" / "part").rename(tmp_path / "one" / "part")
    with pytest.raises(InputError, match=r"one/part is not what was saved .* deep/x is that of"):
        check_part(tmp_path / "one", "part")


def test_files_and_folders_with_digests_are_found_in_nested_settings(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "a").write_text("1")
    settings = {"k": str(tmp_path / "made"), "f": [{"x": tmp_path / "made" / "a"}, 3, "missing"]}
    assert named_files(settings) == {str(tmp_path / "made" / "a")}
    write_digests(tmp_path / "made")
    assert named_files(settings) == {str(tmp_path / "made" / "a"), str(tmp_path / "made")}
    before = folder_digest(str(tmp_path / "made"))
    (tmp_path / "made" / "a").write_text("2")
    write_digests(tmp_path / "made")
    assert folder_digest(str(tmp_path / "made")) != before
