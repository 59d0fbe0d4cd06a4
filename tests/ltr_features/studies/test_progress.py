"""What is said of the running stage, its rate and the time left, by a clock that the tests turn."""

from __future__ import annotations

import io
import itertools
import re
from threading import Event, Thread

import pytest
from rich.console import Console

from ltr_features.studies.progress import Reporter, StageTimes, Work, duration_text


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def reporter(clock, *, shown=True, terminal=False):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200, highlight=False)
    return Reporter(shown=shown, console=console, clock=clock)


def printed(shown: Reporter) -> list[str]:
    return shown.console.file.getvalue().splitlines()  # type: ignore[attr-defined]


WORKS = [Work("models/a", "models", 3), Work("models/b", "models", 6), Work("report", "report")]


def test_the_time_left_comes_from_stages_of_the_same_kind(clock):
    shown = reporter(clock)
    with shown.running([w.name for w in WORKS], WORKS):
        assert shown.left() is None  # nothing is known yet
        with shown.stage("models/a"):
            clock.now += 30
        assert shown.left() == 60 + 9  # b is twice a; the report a tenth of all before it
        with shown.stage("models/b"):
            clock.now += 20
            assert shown.left() == 40 + 9
            clock.now += 100
            assert shown.left() == 15  # later than expected: never less than nothing
        with shown.stage("report"):
            assert shown.left() == 15
            clock.now += 20
            assert shown.left() == 0
        assert shown.left() == 0


def test_the_lines_of_stages_are_aligned(clock):
    names = [f"models/{'by-article ' * (i % 3)}{i}" for i in range(12)]
    shown = reporter(clock)
    with shown.running(names):
        for name in names:
            with shown.stage(name):
                clock.now += 7
    assert len({line.index("7.0 s") for line in printed(shown)}) == 1


def test_parts_of_the_stage_itself_say_more_than_other_stages(clock):
    shown = reporter(clock)
    with shown.running(["x"], [Work("x", "k")]), shown.stage("x"):
        clock.now += 10
        assert shown.left() is None
        shown.part(2, 8)
        assert shown.left() == 30


def test_a_quarter_of_the_time_left_may_be_a_guess(clock):
    works = [*(Work(f"a{i}", "a") for i in range(8)), Work("b", "b"), Work("c", "c")]
    shown = reporter(clock)
    with shown.running([w.name for w in works], works):
        seen = []
        for work in works[:8]:
            with shown.stage(work.name):
                clock.now += 10
            seen.append(shown.left())
    assert seen == [90, 80, *[None] * 6]  # b and c, the unknown, are as long as an average stage


def test_the_report_of_a_long_run_takes_no_tenth_of_it(clock):
    shown = reporter(clock)
    with shown.running(["models/a", "report"], [WORKS[0], WORKS[2]]):
        with shown.stage("models/a"):
            clock.now += 8000
        assert shown.left() == 60


# The stages of a run as the demo has them: many of one kind, long ones of others, a report.
RUN = [
    *(Work(name, name) for name in ("collection", "index", "columns")), Work("model", "model", 20),
    *(Work(f"system {i}", "system", 5) for i in range(12)), Work("refit", "model", 20),
    *(Work(f"system {i}", "system", 5) for i in range(12, 30)), Work("letor", "letor"),
    Work("report", "report"),
]  # fmt: skip
SECONDS = {"collection": 2, "index": 1, "columns": 40, "model": 10, "system": 5, "letor": 1,
           "report": 30}  # fmt: skip


def slow_to_start(n: int) -> float:
    return 3.0 if n < 5 else 1.0


def slower_and_slower(n: int) -> float:
    return 1 + n / 10


def busy_for_a_while(n: int) -> float:
    return 4.0 if 15 <= n < 22 else 1.0


@pytest.mark.parametrize(
    "pace", [lambda n: 1.0, slow_to_start, slower_and_slower, busy_for_a_while]
)
def test_the_figure_shown_never_jumps_up(clock, pace):
    """Second by second, whatever the machine's pace; and where the pace is even, it is about
    right."""
    shown = reporter(clock)
    figures: list[tuple[float, float]] = []
    with shown.running([w.name for w in RUN], RUN):
        for n, work in enumerate(RUN):
            with shown.stage(work.name):
                for _ in range(round(SECONDS[work.kind] * pace(n))):
                    clock.now += 1
                    told = re.search(r"(about|more than) (\d+):(\d+) left", shown.line())
                    if told is not None:
                        figures.append((clock.now, 60 * int(told[2]) + int(told[3])))
    assert figures[0][0] < 1000 + 0.6 * (clock.now - 1000)
    for (_, before), (_, after) in itertools.pairwise(figures):
        assert after <= 1.25 * before + 1
    if pace(0) == pace(20) == 1:
        long = [(clock.now - now, figure) for now, figure in figures if clock.now - now > 60]
        assert all(0.75 < figure / left < 1.25 for left, figure in long)


def test_an_earlier_run_in_the_folder_tells_before_anything_ran(clock, tmp_path):
    path = tmp_path / "times.json"
    first = reporter(clock)
    with first.running([w.name for w in WORKS], WORKS, StageTimes(path)):
        for work, seconds in zip(WORKS, (10, 30, 5), strict=True):
            with first.stage(work.name):
                clock.now += seconds
    again = reporter(clock)
    with again.running([w.name for w in WORKS], WORKS[1:], StageTimes(path)):
        assert again.left() == 35
    other = [Work("models/c", "models", 9)]  # 40 s for 9 in the earlier run
    with again.running(["models/c"], other, StageTimes(path)):
        assert again.left() == 40
    # What this run has measured goes before, and a stage that is now of another kind says nothing.
    times = StageTimes(path)
    times.add(Work("models/c", "models", 3), 60)
    assert times.expected(Work("models/d", "models", 1)) == 20
    assert times.expected(Work("models/a", "models", 3)) == 10
    assert times.expected(Work("models/a", "trees", 3)) is None


def test_stages_side_by_side_share_the_time(clock, tmp_path):
    """Ten seconds of two stages are five of each."""
    works = [Work(name, "k") for name in "abc"]
    times, ending, begun = StageTimes(tmp_path / "times.json"), Event(), Event()
    for work in works:
        times.add(work, 20)
    shown = reporter(clock)

    def first() -> None:
        with shown.stage("a"):
            begun.set()
            ending.wait(60)

    with shown.running(list("abc"), works, StageTimes(tmp_path / "times.json")):
        other = Thread(target=first)
        other.start()
        begun.wait(60)
        with shown.stage("b"):
            clock.now += 10
            assert shown.left() == 15 + 15 + 20
        ending.set()
        other.join()
    assert StageTimes(tmp_path / "times.json").expected(works[1]) == 5


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3, "1 minute"), (200, "3 minutes"), (5400, "90 minutes"), (7200, "2 hours"),
     (47 * 3600, "47 hours"), (50 * 3600, "2 days"), (61 * 3600, "3 days")],
)  # fmt: skip
def test_rough_durations_in_words(seconds, words):
    assert duration_text(seconds) == words


def test_reused_and_interrupted_stages_teach_nothing(clock, tmp_path):
    path = tmp_path / "times.json"
    shown = reporter(clock)
    with shown.running(["a", "b"], [Work("a", "k"), Work("b", "k")], StageTimes(path)):
        for outcome in ("reused", "interrupted"):
            with shown.stage("a") as said:
                clock.now += 1
                said.append(outcome)
    assert not path.exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"a": {}}', '{"a": 3}'])
def test_damaged_times_are_as_none(tmp_path, content):
    path = tmp_path / "times.json"
    path.write_text(content)
    assert StageTimes(path).expected(Work("a", "k")) is None


def test_the_line_has_stage_time_parts_and_rate(clock):
    shown = reporter(clock)
    with shown.running(["a", "b"], [Work("b", "k")]):
        with shown.stage("a") as said:
            clock.now += 5
            said.append("reused")
        with shown.stage("b", "ssi, by query"):
            clock.now += 55
            shown.part(1, 4)
            shown.step("epoch 3 of ssi-12")
            for _ in range(3):
                clock.now += 2
                shown.tick("epochs")
            assert shown.line() == (
                "2/2 ssi, by query · 1:06 · about 3:03 left · 1 of 4 · 0.5 epochs/s · "
                "epoch 3 of ssi-12"
            )
            clock.now += 3600
            shown.part(0, 0)
            assert "· 1:01:06 ·" in shown.line()


def test_logs_get_a_line_for_each_stage_and_one_a_minute(clock):
    shown = reporter(clock)
    with shown.running(["a"], [Work("a", "k")]), shown.stage("a") as said:
        for _ in range(7):
            clock.now += 20
            shown.tick("queries")
        said.append("made")
    lines = printed(shown)
    assert lines[:2] == ["1/1 a · 1:00 · 0.05 queries/s", "1/1 a · 2:00 · 0.05 queries/s"]
    assert lines[2].split() == ["1/1", "a", "140.0", "s", "made"]


def test_logs_of_short_runs_have_messages_alone_unless_asked(clock):
    shown = reporter(clock, shown=None)
    with shown.running(["a", "b"]):
        shown.message("the report in a:b:c will be replaced")
        with shown.stage("a"):
            clock.now += 59
        assert printed(shown) == ["the report in a:b:c will be replaced"]
        with shown.stage("b"):
            clock.now += 1
            shown.step("now this")
    lines = [line.split()[:2] for line in printed(shown)]
    assert lines[1:] == [["2/2", "b"], ["2/2", "b"]]


def test_a_stage_that_needs_another_one_first_goes_on_with_its_own_line_and_error(clock):
    shown = reporter(clock)
    with pytest.raises(ValueError, match="its own"), shown.stage("columns"):  # noqa: PT012
        with shown.stage("index"):
            pass
        raise ValueError("its own")


def test_quiet_says_nothing(clock):
    for terminal in (False, True):
        shown = reporter(clock, shown=False, terminal=terminal)
        with shown.running(["a"], [Work("a", "k")]), shown.stage("a"):
            clock.now += 100
            shown.step("x")
            shown.part(1, 2)
            shown.message("y")
        assert printed(shown) == []


def test_a_terminal_shows_a_live_line(clock):
    shown = reporter(clock, terminal=True)
    with shown.running(["a"], [Work("a", "k")]), shown.stage("a"):
        shown.step("now this")
    assert "0/1 · 0:00" in "\n".join(printed(shown))


def test_outside_of_a_run_nothing_is_counted(clock):
    shown = reporter(clock)
    shown.step("x")
    shown.part(1, 2)
    shown.tick("epochs")
    assert printed(shown) == []
