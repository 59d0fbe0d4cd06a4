"""What every kind of study owes its users: a plan, reuse, the same bytes again, and a memory of its
inputs by content. (The kind "ranking" has its own tests, test_experiment and test_inputs.)"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest
from axe import open_all, violations
from browser import BROWSER, Browser
from folders import different, written
from small_studies import WRITERS

from letor.errors import InputError
from letor.files import LOCKED
from ltr_features.studies.identity import files_within
from ltr_features.studies.progress import TIMES, Reporter
from ltr_features.studies.run import run_file, study_kinds
from ltr_features.studies.stages import NOTE


class Small:
    """A study, run once."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.data, self.out, self.toml = folder / "data", folder / "out", folder / "x.toml"
        self.toml.write_text(WRITERS[kind](self.data), encoding="utf-8")
        self.report = self.run(self.out)

    def run(self, out: Path, **options) -> Path:
        return run_file(self.toml, data=options.pop("data", self.data), out=out, **options)


@pytest.fixture(scope="module", params=list(WRITERS))
def small(request, tmp_path_factory):
    return Small(request.param, tmp_path_factory.mktemp(request.param))


def test_every_kind_is_under_contract():
    assert {*study_kinds()} == {"ranking", *WRITERS}, "add it to tests/reference/small_studies.py"


def made(out: Path) -> dict[Path, int]:
    """When each file was written, but for the one that runs lock."""
    return {path: at for path, at in written(out).items() if path.name != LOCKED}


def manifest_of(report: Path) -> dict[str, Any]:
    return json.loads((report / "manifest.json").read_text(encoding="utf-8"))


def with_times(report: Path) -> set[str]:
    """Names of the files that show clock times."""
    return {"times.json", TIMES, NOTE, *manifest_of(report).get("files with clock times", [])}


def test_a_second_run_makes_nothing(small, capsys):
    before = made(small.out)
    assert small.run(small.out, threads=1, reporter=Reporter(shown=True)) == small.report
    assert made(small.out) == before
    assert "of an earlier run, not of this experiment" not in capsys.readouterr().err


def test_another_run_gives_the_same_bytes_but_for_clock_times(small, tmp_path, windows_line_ends):
    """On another system, too."""
    report = small.run(tmp_path / "out", threads=2)
    manifest, timed = manifest_of(report), with_times(report)
    assert {Path(name).name for name in different(small.out, tmp_path / "out")} <= timed
    shown = {p.relative_to(report).as_posix() for p in report.rglob("*") if p.is_file()}
    assert shown - timed - {"manifest.json"} == set(manifest["files"]) - timed


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_workers_make_the_same_bytes_also_if_each_is_killed(small, tmp_path, workers):
    """At a moment that the stages that are done tell; one is there again before the next goes."""
    out, victims = tmp_path / "out", [nanny.pid for nanny in workers.workers.values()]

    def kill() -> None:
        for done, victim in enumerate(victims, start=1):
            # os.walk passes over a folder that is renamed or deleted meanwhile.
            while sum(NOTE in names for _, _, names in os.walk(out)) < done:
                if (out / "report").exists():
                    break
                sleep(0.001)
            with suppress(TimeoutError):
                workers.wait_for_workers(len(victims), timeout=30)
                os.kill(victim, signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    report = small.run(out, scheduler=workers.scheduler_address)
    killer.join()
    assert {Path(name).name for name in different(small.out, out)} <= with_times(report)


def test_a_dry_run_prints_the_plan_and_makes_nothing(small, tmp_path, capsys):
    small.run(tmp_path / "out", dry_run=True)
    assert ", 0 cached, " in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    small.run(small.out, dry_run=True)
    assert ", 0 to do." in capsys.readouterr().out


def test_missing_data_are_named_before_anything_is_made(small, tmp_path):
    with pytest.raises(InputError, match=r"no such f|no file|is not a folder"):
        small.run(tmp_path / "out", data=tmp_path)
    assert not (tmp_path / "out").exists()


def test_every_file_is_known_by_its_content(small, tmp_path, capsys):
    """Whatever its path: stages are made again of other content, which the report lists."""
    data, out = tmp_path / "copied", tmp_path / "out"
    shutil.copytree(small.data, data)
    shutil.copytree(small.out, out)
    before = made(out)
    small.run(out, data=data)
    assert made(out) == before
    listed = set()
    for _, found in files_within(manifest_of(small.report)["inputs"]):
        listed |= {file["sha256"] for file in found.get("files", [found])}
    files = [path for path in data.rglob("*") if path.is_file()]
    assert listed == {sha256(path.read_bytes()).hexdigest() for path in files}
    if not any(path.parent.name != "report" for path in out.rglob(NOTE)):
        return  # the report is all that this kind makes
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content + content.splitlines(keepends=True)[-1])
        small.run(out, data=data, dry_run=True)
        assert "to do: changed: " in capsys.readouterr().out, path
        path.write_bytes(content)


def test_new_words_train_nothing(small, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(small.out, out)
    before = made(out)
    toml = tmp_path / "edited.toml"
    lines = small.toml.read_text(encoding="utf-8").replace("\ntitle", "\n# title", 1)
    toml.write_text('title = "New"\n' + lines, encoding="utf-8")
    report = run_file(toml, data=small.data, out=out)
    assert "<h1>New</h1>" in (report / "report.html").read_text(encoding="utf-8")
    changed = {path for path, _ in made(out).items() ^ before.items()}
    assert {path for path in changed if report not in path.parents} <= {out / TIMES}


def test_what_was_lost_is_made_again_and_nothing_else(small, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(small.out, out)
    stages = sorted(path.parent for path in out.rglob(NOTE) if path.parent.name != "report")
    if not stages:
        pytest.skip("the report is all that this kind makes")
    lost = next(path for path in sorted(stages[0].iterdir()) if path.name != NOTE)
    before = made(out)
    lost.unlink()
    small.run(out)
    assert lost.exists()
    changed = {path for path, _ in made(out).items() ^ before.items()}
    others = {path for path in changed if not {stages[0], out / "report"} & {*path.parents}}
    assert others <= {out / TIMES}


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
def test_axe_core_finds_nothing_on_the_page(small, tmp_path):
    with Browser(tmp_path) as browser:
        for width, scheme in ((1400, "light"), (400, "dark")):
            browser.open(small.report / "report.html", width=width, scheme=scheme)
            open_all(browser)
            assert violations(browser) == []
