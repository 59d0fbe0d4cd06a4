"""Damaged files of every kind are read or refused by name: no crash, no hang, no traceback.

``HOSTILE_CASES=1400 pytest tests/test_hostile_files.py`` reads so many of each kind, 100,000 in
all; ``python tests/reference/hostile.py`` does so with a table of what came of them.
"""

import faulthandler
import mmap
import os
import signal
from pathlib import Path

import hostile
import pytest
import small_files

N_CASES = int(os.environ.get("HOSTILE_CASES", "20"))


def test_every_kind_of_file_has_a_reader():
    assert set(hostile.READERS) == set(small_files.MAKERS)


@pytest.mark.parametrize("kind", hostile.READERS)
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    found = hostile.read_damaged(kind, tmp_path, seed=0, n=N_CASES)
    assert [case for case, _, _ in found] == list(range(N_CASES))
    assert hostile.failures(found) == []
    assert any(outcome == "refused" for _, outcome, _ in found)


def _crash(folder: Path) -> None:
    if folder.name == "damaged":
        faulthandler.disable()  # it would write a page
        os.kill(os.getpid(), signal.SIGSEGV)


def _wait(folder: Path) -> None:
    if folder.name == "damaged":
        signal.pause()


def _take(folder: Path) -> None:
    if folder.name == "damaged":
        with mmap.mmap(-1, 2 * hostile.BYTES) as pages:  # new: the heap may have room of its own
            pages.write(b"x" * len(pages))


def _fail(folder: Path) -> None:
    if folder.name == "damaged":
        raise KeyError("no InputError")


@pytest.mark.parametrize(
    ("read", "outcome"),
    [(_crash, "crash"), (_wait, "hang"), (_take, "memory"), (_fail, "traceback")],
)
def test_what_happens_is_noticed_and_the_next_case_is_read(read, outcome, tmp_path, monkeypatch):
    monkeypatch.setattr(hostile, "BYTES", 2**26)
    monkeypatch.setattr(hostile, "SECONDS", 1 if outcome == "hang" else hostile.SECONDS)
    monkeypatch.setitem(hostile.READERS, "run", read)
    fork = hostile.multiprocessing.get_context("fork")  # that inherits what was set here
    monkeypatch.setattr(hostile, "_FORKS", fork)
    monkeypatch.setattr(fork, "set_forkserver_preload", lambda names: None)
    found = hostile.read_damaged("run", tmp_path, seed=0, n=2)
    assert [case[1] for case in found] == [outcome] * 2
