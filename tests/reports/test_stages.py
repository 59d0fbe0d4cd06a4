"""Stages are made once, made again when an input changes, and never half-made."""

from __future__ import annotations

import json

import pytest

from letor.errors import InputError
from reports.stages import Stages


def writer(text: str, calls: list[str]):
    def make(path):
        calls.append(text)
        path.write_text(text)

    return make


def test_reused_while_inputs_are_equal_and_said_why_not(tmp_path):
    calls: list[str] = []
    first = Stages(tmp_path).run("a/b.txt", {"x": 1}, writer("one", calls))
    again = Stages(tmp_path).run("a/b.txt", {"x": 1}, writer("two", calls))
    assert (first.reused, first.reason, again.reused) == (False, "not made yet", True)
    assert first.key == again.key
    changed = Stages(tmp_path).run("a/b.txt", {"x": 2, "y": 0}, writer("three", calls))
    assert changed.reason == "changed: x, y"
    assert changed.key != first.key
    (tmp_path / "a" / "b.txt").unlink()
    missing = Stages(tmp_path).run("a/b.txt", {"x": 2, "y": 0}, writer("four", calls))
    assert missing.reason == "b.txt is missing"
    assert calls == ["one", "three", "four"]
    assert (tmp_path / "a" / "b.txt").read_text() == "four"


def test_a_failed_stage_leaves_nothing_under_its_name(tmp_path):
    def fail(path):
        path.mkdir()
        (path / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stages(tmp_path).run("out", {}, fail)
    assert [p.name for p in tmp_path.iterdir()] == [".stages"]
    calls: list[str] = []
    assert Stages(tmp_path).run("out", {}, writer("x", calls)).reason == "interrupted"


def test_a_resumable_stage_goes_on_with_the_same_inputs_only(tmp_path):
    def interrupted(path):
        (path / "first").write_text("done")
        raise KeyboardInterrupt

    def finish(path):
        seen.append(sorted(p.name for p in path.iterdir()))
        (path / "second").write_text("done")

    seen: list[list[str]] = []
    with pytest.raises(KeyboardInterrupt):
        Stages(tmp_path).run("models", {"x": 1}, interrupted, resumable=True)
    result = Stages(tmp_path).run("models", {"x": 1}, finish, resumable=True)
    assert (result.reused, result.reason) == (False, "interrupted")
    Stages(tmp_path).run("models", {"x": 2}, finish, resumable=True)
    assert seen == [["first"], []]  # other inputs: nothing of the former run is left


def test_what_others_made_is_not_touched(tmp_path):
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "mine").write_text("precious")
    with pytest.raises(InputError, match="was not made by this program"):
        Stages(tmp_path).run("report", {}, writer("x", []))
    assert (tmp_path / "report" / "mine").read_text() == "precious"


def test_folders_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file/out: cannot write there"):
        Stages(tmp_path / "file" / "out")


def test_a_damaged_note_means_made_again(tmp_path):
    calls: list[str] = []
    Stages(tmp_path).run("x", {}, writer("one", calls))
    (tmp_path / ".stages" / "x.json").write_text("{")
    Stages(tmp_path).run("x", {}, writer("two", calls))
    assert calls == ["one", "two"]
    assert json.loads((tmp_path / ".stages" / "x.json").read_text())["complete"]
