"""Outputs appear whole or not at all."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from letor.errors import InputError
from letor.files import (
    atomic_path,
    check_output,
    check_replaced,
    read_at_once,
    read_json,
    save_array,
    staged_folder,
)
from ltr_base.machine import process_of


def test_a_file_is_replaced_only_when_it_is_whole(tmp_path):
    target = tmp_path / "new" / "x.txt"
    with atomic_path(target) as partial:
        partial.write_text("one")
    with pytest.raises(FileNotFoundError), atomic_path(target) as partial:
        partial.rename(tmp_path / "elsewhere")
    assert target.read_text() == "one"
    assert os.listdir(target.parent) == ["x.txt"]


def test_a_folder_keeps_its_content_whenever_it_is_interrupted(tmp_path, monkeypatch):
    """Where folders cannot be exchanged."""
    monkeypatch.setattr("ltr_base.outputs._exchanged", lambda *_: False)
    target = tmp_path / "index"
    with atomic_path(target, kind="folder") as partial:
        partial.mkdir()
        (partial / "old").touch()
    replace, calls = os.replace, []

    def interrupted(source, destination):
        calls.append(destination)
        if len(calls) == 2:  # between moving the old folder aside and the new one in
            raise KeyboardInterrupt
        replace(source, destination)

    monkeypatch.setattr("ltr_base.outputs.os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_path(target, kind="folder") as partial:
        partial.mkdir()
    assert os.listdir(target) == ["old"]
    assert os.listdir(tmp_path) == ["index"]
    with atomic_path(target, kind="folder") as partial:
        partial.mkdir()
        (partial / "new").touch()
    assert os.listdir(target) == ["new"]
    assert os.listdir(tmp_path) == ["index"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges folders")
def test_a_folder_that_is_replaced_is_there_at_every_moment(tmp_path):
    target, missed, done = tmp_path / "index", [], Event()

    def write(n):
        with atomic_path(target, kind="folder") as partial:
            partial.mkdir()
            (partial / "n").write_text(str(n))

    def read():
        while not done.is_set():
            try:
                (target / "n").stat()
            except FileNotFoundError as error:
                missed.append(error)

    write(0)
    reader = Thread(target=read)
    reader.start()
    for n in range(1, 500):
        write(n)
    done.set()
    reader.join()
    assert (missed, (target / "n").read_text()) == ([], "499")
    assert os.listdir(tmp_path) == ["index"]


def test_files_of_two_versions_are_never_read_as_one(tmp_path):
    def write(version):
        with atomic_path(tmp_path / "p", kind="folder") as partial:
            partial.mkdir()
            for name in ("a", "b"):
                (partial / name).write_text(version)

    def read_both():
        first = (tmp_path / "p" / "a").read_text()
        if versions:
            write(versions.pop())
        return first + (tmp_path / "p" / "b").read_text()

    write("1")
    versions = ["3", "2"]
    assert read_at_once(tmp_path / "p", read_both) == "33"

    def refuse():
        if versions:
            write(versions.pop())
        raise InputError("damaged")

    versions = ["4"]
    with pytest.raises(InputError, match="damaged"):
        read_at_once(tmp_path / "p", refuse)
    assert versions == []


def test_files_never_replace_folders_nor_folders_files(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "notes").touch()
    with pytest.raises(InputError, match="thesis is a folder"), atomic_path(tmp_path / "thesis"):
        pass
    with (
        pytest.raises(InputError, match="notes is a file"),
        atomic_path(tmp_path / "notes", kind="folder"),
    ):
        pass
    assert sorted(os.listdir(tmp_path)) == ["notes", "thesis"]


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    for name in ("there.txt", "new.txt"):
        (tmp_path / name).symlink_to(Path("real") / name)
        (tmp_path / "real" / "there.txt").write_text("old")
        with atomic_path(tmp_path / name) as partial:
            partial.write_text("text")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "real" / name).read_text() == "text"
    (tmp_path / "folder").symlink_to("real")
    with atomic_path(tmp_path / "folder", kind="folder") as partial:
        partial.mkdir()
        (partial / "only").touch()
    assert (tmp_path / "folder").is_symlink()
    assert os.listdir(tmp_path / "real") == ["only"]


def test_what_cannot_be_replaced_is_refused_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to("pipe")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("pipe", "to-pipe", "circle"):
        with pytest.raises(InputError, match=f"{name} is a device, a pipe or a circle of links"):
            check_output(tmp_path / name)
        assert os.path.lexists(tmp_path / name)
    (tmp_path / "notes").touch()
    with pytest.raises(InputError, match=r"notes/x: .*/notes is a file, not a folder"):
        check_output(tmp_path / "notes" / "x")


def test_the_current_folder_is_not_replaced_nor_one_above_it(tmp_path, monkeypatch):
    """A shell that stands in it would be nowhere."""
    here = tmp_path / "above" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    for name in (".", "..", here, tmp_path):
        with pytest.raises(InputError, match="is the current folder, or one above it"):
            check_replaced(Path(name), "mark", "pipeline")
        refused = pytest.raises(InputError, match="is the current folder, or one above it")
        with refused, atomic_path(name, kind="folder"):
            raise AssertionError("it is refused before any work")
    check_replaced(Path("new"), "mark", "pipeline")
    with atomic_path("../new", kind="folder") as partial:
        partial.mkdir()
    assert (tmp_path / "above" / "new").is_dir()


def test_where_nothing_can_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    """For root, no permission is needed, so that the system's answer is made up."""
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append(path))
    with pytest.raises(InputError, match=rf"new/x: nothing can be written in {tmp_path} "):
        check_output(tmp_path / "new" / "x")
    assert asked == [tmp_path]


def test_an_output_is_no_input_and_holds_none(tmp_path):
    (tmp_path / "rows.txt").touch()
    (tmp_path / "link").symlink_to("rows.txt")
    inputs = [tmp_path / "other.txt", tmp_path / "rows.txt"]
    for name in ("rows.txt", "link"):
        with pytest.raises(InputError, match=f"{name} is the input itself; name another file"):
            check_output(tmp_path / name, inputs=inputs)
    with pytest.raises(InputError, match=r"holds the input .*other.txt; name another folder"):
        check_output(tmp_path, inputs=inputs, kind="folder")
    check_output(tmp_path / "new.txt", inputs=inputs)


def test_errors_of_the_system_name_the_file_and_not_the_temporary_one(tmp_path):
    def full(partial):
        raise OSError(28, "No space left on device")

    def no_folder(partial):
        (partial / "x").touch()

    def no_copy(partial):  # as shutil tells it
        raise OSError(28, "No space left on device", "source", None, str(partial))

    def write(make):
        with atomic_path(tmp_path / "out.txt") as partial:
            make(partial)

    for make in (full, no_folder, no_copy):
        with pytest.raises(OSError) as caught:
            write(make)
        assert caught.value.filename == str(tmp_path / "out.txt")
        assert caught.value.filename2 is None


def test_errors_in_a_staged_folder_name_the_folder(tmp_path):
    with pytest.raises(OSError, match="No such file") as caught, staged_folder(tmp_path) as staged:
        (staged / "Fold1" / "train.txt").touch()
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_an_array_that_the_disk_has_no_room_for():
    for size in (1, 10**6):  # the header, or the values
        with pytest.raises(OSError) as caught:
            save_array(Path("/dev/full"), np.zeros(size))
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")


def test_what_a_killed_process_left_is_removed_with_the_next_version(tmp_path):
    """And nothing else: neither what a running process writes, nor another machine, nor a version
    that was moved aside, perhaps the last one."""
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, check=True, text=True)
    node, ended = platform.node(), dead.stdout.strip()
    left = f".out[1].txt.{node}-00c0ffee.{ended}.partial"
    kept = [
        f".out[1].txt.{node}-00c0ffee.{os.getpid()}.partial",
        f".out[1].txt.another-00c0ffee.{ended}.partial",
        f".out[1].txt.{node}-00c0ffee.{ended}.old",
        f".other.txt.{node}-00c0ffee.{ended}.partial",
    ]
    for name in (left, *kept):
        (tmp_path / name).write_text("half")
    with atomic_path(tmp_path / "out[1].txt") as partial:
        partial.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "out[1].txt"])


def test_names_may_be_as_long_as_the_system_allows(tmp_path):
    for name in ("x" * 255, "é" * 127):
        with atomic_path(tmp_path / name) as partial:
            partial.write_text("text")
        assert process_of(partial.name) == os.getpid()
        assert (tmp_path / name).read_text() == "text"


def test_an_array_that_was_written_in_part(tmp_path, monkeypatch):
    def in_part(file, array):
        raise OSError("1000 requested and 500 written")  # numpy's words, without a number

    monkeypatch.setattr(np, "save", in_part)
    with pytest.raises(OSError, match=r"cannot be written fully .1000 requested.*: '.*x\.npy'"):
        save_array(tmp_path / "x.npy", np.zeros(1000))


def test_two_writers_of_one_file_do_not_meet_and_leftovers_tell_their_maker(tmp_path):
    target = tmp_path / "out.txt"
    with atomic_path(target) as one, atomic_path(target) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert target.read_text() == "one"  # the last to be renamed
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]
    assert process_of(one.name) == os.getpid()
    assert process_of(".out.txt.77.old") == 77  # of former versions
    assert process_of(f".out.txt.another-machine-00c0ffee.{os.getpid()}.partial") is None
    assert process_of("out.txt") is None


def test_json_that_cannot_be_read(tmp_path):
    path = tmp_path / "a.json"
    for content in (b"[" * 100_000, b"{", b"\xff"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"deeply|Expecting|decode"):
            read_json(path)
    path.write_text('{"a": [1]}')
    assert read_json(path) == {"a": [1]}


def test_arrows_errors_name_the_target(tmp_path):
    target = tmp_path / "rows.parquet"
    with pytest.raises(OSError, match="rows") as caught, atomic_path(target) as partial:
        raise OSError(errno.EROFS, f"Failed to open local file '{partial}'. Detail: [errno 30] ...")
    assert (caught.value.filename, caught.value.strerror) == (str(target), os.strerror(errno.EROFS))
