"""Cores and memory that a container may use."""

from __future__ import annotations

import math
import os
import platform
import signal
import subprocess
import sys

import pytest

from ltr_base import machine
from ltr_base.parallel import thread_count


def control_group(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        ({"cpu.max": "something else\n"}, math.inf),
        ({}, math.inf),
    ],
)
def test_quotas_of_containers(tmp_path, files, cores):
    assert machine.core_quota(control_group(tmp_path, files)) == cores


@pytest.mark.parametrize(
    ("described", "name"),
    [
        ("processor\t: 0\nmodel name\t: Some Processor @ 2.0 GHz\n", "Some Processor @ 2.0 GHz"),
        ("processor\t: 0\nmodel name\t:\nBogoMIPS\t: 50.00\n", None),
        (None, None),
    ],
)
def test_name_of_the_processor(tmp_path, described, name):
    info = tmp_path / "cpuinfo"
    if described is not None:
        info.write_text(described)
    assert machine.processor_name(info) == (name or platform.processor() or platform.machine())


def test_no_more_threads_than_the_quota(monkeypatch):
    monkeypatch.setattr(machine, "core_quota", lambda: 1)
    assert thread_count(None) == 1
    assert thread_count(3) == 3


@pytest.mark.parametrize(
    ("files", "n_bytes"),
    [
        ({"memory.max": "1048576\n"}, 2**20),
        ({"memory/memory.limit_in_bytes": "1048576\n"}, 2**20),
    ],
)
def test_memory_of_containers(tmp_path, files, n_bytes):
    assert machine.usable_memory(control_group(tmp_path, files)) == n_bytes


@pytest.mark.parametrize(
    "files", [{"memory.max": "max\n"}, {"memory/memory.limit_in_bytes": f"{2**63 - 4096}\n"}, {}]
)
def test_memory_without_a_limit_is_the_machines(tmp_path, files):
    assert 2**28 < machine.usable_memory(control_group(tmp_path, files)) < 2**50


@pytest.mark.skipif(sys.platform != "linux", reason="reads states of processes as Linux has them")
def test_a_killed_process_runs_no_longer_even_if_nobody_has_asked_for_its_end():
    with subprocess.Popen(["sleep", "60"]) as process:
        assert machine.is_running(process.pid)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and still listed
        assert not machine.is_running(process.pid)
    assert not machine.is_running(process.pid)
    assert machine.is_running(os.getpid())
