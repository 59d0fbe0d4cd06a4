"""Two runs never work in one folder; what a dead one left is taken over."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys

import pytest
from filelock import FileLock

from letor.errors import InputError
from letor.files import LOCK, LOCKED
from letor.lock import locked

HOLD = """
import sys, time
from pathlib import Path
from letor.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_held_folder_is_refused_by_the_process_that_holds_it(other, tmp_path):
    with pytest.raises(InputError, match=rf"a run is going on there \(process {other.pid} on "):
        locked(tmp_path).__enter__()
    assert json.loads((tmp_path / LOCK).read_text())["process"] == other.pid


def test_what_a_killed_run_left_is_taken_over_and_said(other, tmp_path):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path) as said:
        assert f"process {other.pid} ended without finishing" in said
        assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()
    assert not (tmp_path / LOCK).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"process": 1}'])
def test_a_lock_that_says_nothing_is_taken_over(tmp_path, content):
    (tmp_path / LOCK).write_text(content)
    with locked(tmp_path) as said:
        assert said == ""


@pytest.mark.parametrize("name", [LOCK, LOCKED])
def test_a_link_is_not_followed(tmp_path, name):
    (tmp_path / "thesis").write_text("important")
    (tmp_path / name).symlink_to(tmp_path / "thesis")
    with pytest.raises(InputError, match=r"\.lock.*: cannot be opened.*remove it: it is a link"):
        locked(tmp_path).__enter__()
    assert (tmp_path / "thesis").read_text() == "important"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EROFS, r"cannot be written \(Read-only file system\)$"),
        (errno.EACCES, r"\.locked: cannot be .*another user's, write elsewhere"),
    ],
)
def test_advice_on_a_lock_that_cannot_be_taken_is_for_another_user_s_only(
    tmp_path, monkeypatch, number, message
):
    with locked(tmp_path):
        pass  # which leaves the file that the next run locks

    def refused(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(FileLock, "acquire", refused)
    with pytest.raises(InputError, match=message):
        locked(tmp_path).__enter__()


def test_of_another_machine_only_the_user_knows_whether_it_runs(tmp_path):
    (tmp_path / LOCK).write_text('{"process": 12, "host": "elsewhere"}')
    with pytest.raises(InputError, match=r"process 12 on elsewhere.*if it has ended, remove"):
        locked(tmp_path).__enter__()
    assert (tmp_path / LOCK).exists()


def test_a_folder_is_free_again_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), locked(tmp_path):
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == [LOCKED]
    with locked(tmp_path) as said:
        assert said == ""


def test_a_file_is_held_by_a_lock_beside_it(tmp_path):
    target = tmp_path / "rows.parquet"
    with locked(target):
        with pytest.raises(InputError, match=r"rows\.parquet: a run is going on there \(process"):
            locked(target).__enter__()
        with locked(tmp_path / "other.parquet"), locked(tmp_path):
            pass
    assert [path.name for path in tmp_path.iterdir()] == [LOCKED]
    with locked(target) as said:
        assert said == ""
