"""Stages that wait for nothing of each other run side by side and share the cores."""

from __future__ import annotations

import threading
from io import StringIO
from types import SimpleNamespace
from typing import ClassVar

import pytest
from rich.console import Console

from ltr_base.parallel import side_by_side
from ltr_features.studies.progress import Reporter
from ltr_features.studies.stages import Planned
from ltr_features.studies.study import Study

WAIT = 60  # seconds, of tests that have failed


class Fits(Study):
    """A stage of each name in ``config.names``, which does what ``config.work`` says."""

    read = classmethod(lambda cls, path, data: None)

    def stages(self):
        return [self._stage(name) for name in self.config.names]

    def _stage(self, name):
        def make(folder):
            self.config.work(self, name)
            (folder / "name").write_text(name)

        together = "fits" if name.startswith("fit") else ""
        return Planned(name, {}, make, "", "fit", code=("letor.errors",), together=together)

    def message_after(self, stage):
        return f"said of {stage.name}"

    settings: ClassVar[dict[str, object]] = {}

    def report(self):
        raise NotImplementedError

    def _write(self, folder, **_):
        (folder / "report.html").write_text("")


def study(folder, names, work, threads=2, reporter=None):
    return Fits(SimpleNamespace(names=names, work=work), folder, threads=threads, reporter=reporter)


def test_they_run_at_one_time_and_are_told_in_the_order_of_the_plan(tmp_path):
    met, shares = threading.Barrier(2), {}

    def work(self, name):
        if name != "before":
            met.wait(WAIT)  # passes only if two are there at one time
        shares[name] = self.threads_each

    shown = StringIO()
    reporter = Reporter(shown=True, console=Console(file=shown, width=100))
    study(tmp_path, ["before", "fit1", "fit2"], work, threads=5, reporter=reporter).run()
    assert shares == {"before": 5, "fit1": 2, "fit2": 2}
    said = [line for line in shown.getvalue().splitlines() if line.startswith("said")]
    assert said == ["said of before", "said of fit1", "said of fit2"]
    assert shown.getvalue().count(" s  made\n") == 4
    assert {p.parent.name for p in tmp_path.rglob("name")} == {"before", "fit1", "fit2"}


def test_one_core_takes_one_after_the_other(tmp_path):
    order = []

    def work(self, name):
        order.append((name, threading.current_thread() is threading.main_thread()))

    study(tmp_path, ["fit1", "fit2"], work, threads=1).run()
    assert order == [("fit1", True), ("fit2", True)]


def test_parts_of_all_stages_share_the_cores(tmp_path):
    """No more of them run than there are cores, and the last stage has both."""
    met, lock, running, most = threading.Barrier(2), threading.Lock(), [], []

    def work(self, name):
        def part(number):
            with self.one_core():
                with lock:
                    running.append(name)
                    most.append(len(running))
                if name == "fit2":
                    met.wait(WAIT)  # passes only if two parts of this stage run at one time
                with lock:
                    running.remove(name)

        side_by_side(part, range(6), 4)

    study(tmp_path, ["fit1", "fit2"], work).run()
    assert max(most) == 2


def test_no_part_begins_after_an_interrupt(tmp_path):
    one = study(tmp_path, [], lambda *_: None)
    one._stopping.set()
    with pytest.raises(KeyboardInterrupt), one.one_core():
        raise AssertionError("begun")


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_where_one_fails_the_others_end_after_their_part(tmp_path, error):
    begun, parts = threading.Barrier(3), []

    def work(self, name):
        begun.wait(WAIT)
        if name == "fit1":
            raise error
        assert self._stopping.wait(WAIT)
        parts.append(name)
        self.part_done(1, 2)
        raise AssertionError("a second part")

    with pytest.raises(type(error)):
        study(tmp_path, ["fit1", "fit2", "fit3"], work, threads=3).run()
    assert sorted(parts) == ["fit2", "fit3"]
    assert not list(tmp_path.rglob("name"))
