"""Stages are made once, made again when an input changes, and never half-made."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from letor.errors import InputError
from ltr_features.studies import stages
from ltr_features.studies.stages import NOTE, Planned, StageResult, Stages, code_digest


def run(
    folder: Path, name: str, inputs: dict[str, Any], make: Callable[[Path], None], **options: Any
) -> StageResult:
    """Run a stage as a new process does."""
    return Stages(folder).run(Planned(name, inputs, make, **options))


def writer(text: str, calls: list[str]):
    def make(path):
        calls.append(text)
        (path / "x.txt").write_text(text)

    return make


def test_reused_while_inputs_are_equal_and_said_why_not(tmp_path):
    calls: list[str] = []
    first = run(tmp_path, "a/b", {"x": 1}, writer("one", calls))
    again = run(tmp_path, "a/b", {"x": 1}, writer("two", calls))
    assert (first.reused, first.reason, again.reused) == (False, "not made yet", True)
    assert first.key == again.key
    changed = run(tmp_path, "a/b", {"x": 2, "y": 0}, writer("three", calls))
    assert changed.reason == "changed: x, y"
    assert changed.key != first.key
    run(tmp_path, "b", {"x": 1}, writer("four", calls))
    many = run(tmp_path, "b", {str(i): i for i in range(90)}, writer("five", calls))
    assert many.reason == "changed: 0, 1, 2, 3, 4, 5, ... (90 in all)"
    assert calls == ["one", "three", "four", "five"]
    assert (tmp_path / "a" / "b" / "x.txt").read_text() == "three"


@pytest.mark.parametrize("damage", [os.unlink, lambda path: path.write_text("")])
def test_lost_or_cut_files_are_made_again(tmp_path, damage):
    calls: list[str] = []
    run(tmp_path, "x", {}, writer("whole", calls))
    damage(tmp_path / "x" / "x.txt")
    again = run(tmp_path, "x", {}, writer("whole", calls))
    assert again.reason == "its files have changed"
    assert (tmp_path / "x" / "x.txt").read_text() == "whole"
    assert run(tmp_path, "x", {}, writer("whole", calls)).reused


def test_ids_of_queries_are_read_as_they_were_written(tmp_path):
    def make(path):
        (path / "per_query.csv").write_text("qid,MAP\n01,0.5\nNA,\n")

    values = run(tmp_path, "x", {}, make).per_query()["MAP"]
    assert list(values.index) == ["01", "NA"]
    assert values["01"] == 0.5
    assert math.isnan(values["NA"])


def test_a_failed_stage_leaves_nothing(tmp_path):
    def fail(path):
        (path / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "out", {}, fail)
    assert list(tmp_path.iterdir()) == []
    calls: list[str] = []
    assert run(tmp_path, "out", {}, writer("x", calls)).reason == "not made yet"


def test_a_resumable_stage_goes_on_with_the_same_inputs_only(tmp_path):
    def interrupted(path):
        (path / "first").write_text("done")
        raise KeyboardInterrupt

    def finish(path):
        seen.append(sorted(p.name for p in path.iterdir() if p.name != NOTE))
        (path / "second").write_text("done")

    seen: list[list[str]] = []
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "models", {"x": 1}, interrupted, resumable=True)
    result = run(tmp_path, "models", {"x": 1}, finish, resumable=True)
    assert (result.reused, result.reason) == (False, "interrupted")
    run(tmp_path, "models", {"x": 2}, finish, resumable=True)
    assert seen == [["first"], []]  # other inputs: nothing of the former run is left


def test_of_a_finished_resumable_stage_only_the_files_that_changed_are_made_again(tmp_path):
    def make(path):
        for name in ("first", "second"):
            if not (path / name).exists():
                made.append(name)
                (path / name).write_text(name)

    made: list[str] = []
    run(tmp_path, "models", {}, make, resumable=True)
    (tmp_path / "models" / "second").write_text("spoilt")
    again = run(tmp_path, "models", {}, make, resumable=True)
    assert again.reason == "its files have changed"
    assert made == ["first", "second", "second"]
    assert (again.path / "second").read_text() == "second"


@pytest.fixture
def fresh_digests() -> Iterator[None]:
    code_digest.cache_clear()
    yield
    code_digest.cache_clear()


@pytest.mark.usefixtures("fresh_digests")
def test_other_versions_of_libraries_make_stages_again(tmp_path, monkeypatch):
    calls: list[str] = []
    run(tmp_path, "x", {}, writer("one", calls))
    monkeypatch.setattr(stages, "version", lambda name: "99.0" if name == "lightgbm" else "1.0")
    code_digest.cache_clear()
    again = run(tmp_path, "x", {}, writer("two", calls))
    assert (again.reason, calls) == ("changed: code", ["one", "two"])


def test_old_outputs_never_pass_for_those_of_new_inputs(tmp_path, monkeypatch):
    def old(path):
        (path / "model").write_text("old")

    def new(path):
        assert not (path / "model").exists()
        (path / "model").write_text("new")

    def interrupted(path, **kwargs):
        raise KeyboardInterrupt

    run(tmp_path, "models", {"x": 1}, old, resumable=True)
    with monkeypatch.context() as patch:
        patch.setattr("ltr_features.studies.stages.shutil.rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, "models", {"x": 2}, new, resumable=True)
    again = run(tmp_path, "models", {"x": 2}, new, resumable=True)
    assert (again.path / "model").read_text() == "new"


@pytest.mark.parametrize("resumable", [False, True])
def test_what_others_made_is_not_touched(tmp_path, resumable):
    with pytest.raises(ZeroDivisionError):
        run(tmp_path, "report", {}, lambda path: 1 / 0, resumable=False)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "mine").write_text("precious")
    for attempt in (
        lambda: Stages(tmp_path).check(["report"]),
        lambda: run(tmp_path, "report", {}, writer("x", []), resumable=resumable),
    ):
        with pytest.raises(InputError, match="was not made by this program"):
            attempt()
    assert (tmp_path / "report" / "mine").read_text() == "precious"


def test_what_killed_runs_left_is_swept_and_running_ones_are_spared(tmp_path):
    dead, alive = tmp_path / "a" / ".x.999999999.partial", tmp_path / f".y.{os.getpid()}.partial"
    (dead / "deep").mkdir(parents=True)
    alive.touch()
    with Stages(tmp_path).claimed():
        pass
    assert not dead.exists()
    assert alive.exists()


def test_folders_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="file/out: cannot write there"),
        Stages(tmp_path / "file" / "out").claimed(),
    ):
        pass


def test_a_damaged_note_means_made_again(tmp_path):
    calls: list[str] = []
    run(tmp_path, "x", {}, writer("one", calls))
    for damaged in ("{", "{}", "[]"):
        (tmp_path / "x" / NOTE).write_text(damaged)
        run(tmp_path, "x", {}, writer(damaged, calls))
    assert calls == ["one", "{", "{}", "[]"]
