"""Parts that take long run side by side; what they share is made once."""

from __future__ import annotations

import threading

import pytest
from toys import context_of, toy

from ltr_base.parallel import side_by_side

WAIT = 60  # seconds, of tests that have failed


def test_parts_run_at_one_time_and_results_stand_in_their_order():
    met = threading.Barrier(3)

    def work(part):
        met.wait(WAIT)  # passes only if three are there at one time
        return part * 10

    assert side_by_side(work, [1, 2, 3], 3) == [10, 20, 30]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_threads(threads):
    assert side_by_side(str, range(7), threads) == list("0123456")
    assert side_by_side(str, [], threads) == []


def test_one_thread_is_the_callers_own():
    assert side_by_side(lambda _: threading.get_ident(), "ab", 1) == [threading.get_ident()] * 2


def test_an_error_does_not_wait_for_other_parts():
    begun, free, worked = threading.Event(), threading.Event(), []

    def work(part):
        worked.append(part)
        if part == "bad":
            begun.wait(WAIT)
            raise ValueError(part)
        begun.set()
        free.wait(WAIT)

    try:
        with pytest.raises(ValueError, match="bad"):
            side_by_side(work, ["endless", "bad", "never begun"], 2)
    finally:
        free.set()
    assert sorted(worked) == ["bad", "endless"]


def test_what_a_context_remembers_is_made_once():
    context = context_of(toy({"body": ["word"]}))
    first, made = threading.Event(), []

    def compute():
        made.append(1)
        first.wait(1)  # long enough for the others to ask
        return len(made)

    assert side_by_side(lambda _: context.cached("key", compute), range(4), 4) == [1] * 4
