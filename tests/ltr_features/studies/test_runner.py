"""Planned stages: run once each, in a folder that is held; a plan touches nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from letor.errors import InputError
from ltr_features.studies.progress import TIMES, Reporter
from ltr_features.studies.runner import StageRunner
from ltr_features.studies.stages import Planned


def planned(name, calls, inputs=None):
    def make(path):
        calls.append(name)
        (path / "x").write_text(name)

    return Planned(name, inputs or {}, make, "one file", "kind", title=f"stage {name}")


def test_stages_run_once_and_leave_their_times(tmp_path):
    calls: list[str] = []
    stages = [planned("a", calls), planned("b/c", calls)]
    for _ in range(2):
        runner = StageRunner(tmp_path / "out")
        with runner.running(stages):
            first = [runner.done(stage) for stage in stages]
            assert [runner.done(stage) for stage in stages] == first
    assert calls == ["a", "b/c"]
    assert set(json.loads((tmp_path / "out" / TIMES).read_text())) == {"a", "b/c"}


def test_an_error_names_its_stage(tmp_path):
    def make(path):
        raise InputError("no column has two different values")

    runner, stage = StageRunner(tmp_path), Planned("a", {}, make, "", "kind", title="fold 1, trees")
    with runner.running([stage]), pytest.raises(InputError, match=r"^fold 1, trees: no column"):
        runner.done(stage)


def test_a_plan_says_what_is_to_do_and_writes_nothing(tmp_path):
    calls: list[str] = []
    runner = StageRunner(tmp_path / "out")
    text = runner.plan_text([planned("a", calls), planned("b", calls)])
    assert "2 stages, 0 cached, 2 to do" in text
    assert not (tmp_path / "out").exists()
    with runner.running([planned("a", calls)]):
        runner.done(planned("a", calls))
    text = runner.plan_text(
        [planned("a", calls), planned("b", calls), planned("a", calls, {"x": 1})]
    )
    assert [line.split("  ")[0] for line in text.splitlines()[2:5]] == [
        "stage a",
        "stage b",
        "stage a",
    ]
    assert "3 stages, 1 cached, 2 to do" in text
    assert "to do: changed: x" in text


def test_a_plan_tells_how_long_it_takes_or_that_this_is_unknown(tmp_path):
    def stage(name, kind, seconds=0.0):
        return Planned(name, {}, lambda path: None, "", kind, seconds=seconds)

    runner = StageRunner(tmp_path, cores=2)
    usual = [stage("a", "trees", 30_000), stage("b", "sums", 6000)]
    assert "about 5 hours on 2 cores, or a tenth or three times that" in runner.plan_text(usual)
    assert runner.plan_text([*usual, stage("c", "unknown")]).endswith(
        "3 to do. How long they take is not known until a run here has made such stages."
    )
    early = [usual[0], replace(usual[1], name="c", first_result=True), usual[1]]
    assert "about 6 hours on 2 cores, the first result about 5 hours, or" in runner.plan_text(early)
    measured = {n: {"kind": n, "amount": 1, "seconds": s} for n, s in (("trees", 200), ("sums", 9))}
    (tmp_path / TIMES).write_text(json.dumps(measured))
    assert runner.plan_text(usual).endswith(
        "By the times of earlier runs they take about 3 minutes."
    )


def test_what_is_replaced_is_said_before(tmp_path, capsys):
    calls: list[str] = []
    before, now = planned("a", calls), planned("a", calls, {"version": 2})
    outcomes = {"made": [before], "reused": [before], "made; changed: version": [now]}
    for outcome, stages in outcomes.items():
        runner = StageRunner(tmp_path / "out", Reporter(shown=True))
        with runner.running(stages):
            said = capsys.readouterr().err
            assert (tmp_path / "out" / "a" / "x").exists() == (len(calls) > 0)
            runner.done(stages[0])
        assert capsys.readouterr().err.endswith(f" s  {outcome}\n")
        assert ("outdated and made again: a (changed: version)" in said) == (stages == [now])


def test_outputs_that_are_no_longer_of_the_experiment_are_named(tmp_path, capsys):
    (tmp_path / "systems" / "mine").mkdir(parents=True)
    for names, told in ((("systems/x", "systems/y"), False), (("systems/y",), True)):
        stages = [planned(name, []) for name in names]
        runner = StageRunner(tmp_path, Reporter(shown=True))
        with runner.running(stages, "report"):
            said = capsys.readouterr().err
            for stage in stages:
                runner.done(stage)
        capsys.readouterr()
        assert ("of an earlier run, not of this experiment: systems/x; remove" in said) == told
    assert (tmp_path / "systems" / "x").is_dir()


def test_many_stages_that_are_replaced_are_counted(tmp_path, capsys):
    for version in (1, 2):
        stages = [planned(f"s{i}", [], {"version": version}) for i in range(40)]
        runner = StageRunner(tmp_path, Reporter(shown=True))
        with runner.running(stages):
            said = capsys.readouterr().err
            for stage in stages:
                runner.done(stage)
        capsys.readouterr()
    assert "s9 (changed: version), ... (40 in all)\n" in said
    assert "s10" not in said
