"""Properties of this machine: usable cores and memory, temporary files and their names."""

from __future__ import annotations

import math
import os
import platform
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

#: Names of temporary files, including those of earlier versions; groups: machine and process.
_TEMPORARY = re.compile(
    r"\.(?:.*\.(?P<host>[^/]*)-[0-9a-f]{8}|.*)\.(?P<process>\d+)\.(?:partial|old)"
)


def available_cores() -> int:
    """Number of cores that this process may use, by its affinity and its container's quota."""
    some = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(min(some, core_quota()))


@cache
def core_quota(groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Cores' worth of time that a container may use (``docker run --cpus``, limits of Kubernetes),
    rounded up; infinity without a limit. Such a container still sees all cores of its machine.

    Args:
        groups: where the system shows the container's control group, of version 2 or 1.
    """
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = b" ".join((groups / name).read_bytes() for name in names).split()
            # Without a limit, the quota is "max" or -1.
            return math.ceil(int(quota) / int(period)) if int(quota) > 0 else math.inf
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return math.inf


@cache
def usable_memory(groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Bytes of memory that this process may use: those of the machine, or the container's limit.
    8 GiB where the system does not tell.

    Args:
        groups: where the system shows the container's control group, of version 2 or 1.
    """
    try:
        machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        machine = 8.0 * 2**30
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limit = (groups / name).read_bytes().strip()
            # Without a limit, it is "max" or more than any machine has.
            return min(machine, math.inf if limit == b"max" else int(limit), address_space())
        except (OSError, ValueError):
            continue
    return min(machine, address_space())


def address_space() -> float:
    """Bytes of memory that this process may reserve (``ulimit -v``), infinity without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return float("inf")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return float("inf") if limit == resource.RLIM_INFINITY else limit


@cache
def processor_name(info: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model (``AMD EPYC 7763 64-Core Processor``), or else its architecture.

    Args:
        info: where Linux describes each of its processors.
    """
    with suppress(OSError):
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()


def is_running(process: int) -> bool:
    """Whether a process of that id runs on this machine; a killed one whose parent has not asked
    for its end does not."""
    if os.name == "nt":  # Windows has no signal that only checks for the process
        return True
    with suppress(OSError):  # Linux tells the state behind the command's name in brackets
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state not in (b"Z", b"X")
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def temporary_paths(target: Path) -> tuple[Path, Path]:
    """Two unique paths beside a file or folder: for the new version while it is being written
    (``.partial``), and for the version it replaces (``.old``)."""
    # Several machines may write to one folder, and process ids are reused.
    prefix = f"{temporary_stem(target)}.{platform.node()}-{secrets.token_hex(4)}.{os.getpid()}"
    return target.with_name(f"{prefix}.partial"), target.with_name(f"{prefix}.old")


def temporary_stem(target: Path) -> str:
    """What the names of :func:`temporary_paths` begin with: the name of the target, without the end
    of a long one, as systems allow no more than 255 bytes."""
    return "." + os.fsencode(target.name)[:120].decode(errors="ignore")


@contextmanager
def temporary_folder_named() -> Iterator[None]:
    """Errors of files without a name (``tempfile.TemporaryFile``) name the folder where they are,
    and say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = tempfile.gettempdir()
            error.strerror = f"{os.strerror(error.errno)}; set TMPDIR to a folder with more space"
        raise


def is_temporary(name: str) -> bool:
    """Whether a name is that of a temporary file, made on this machine or another."""
    return _TEMPORARY.fullmatch(name) is not None


def process_of(name: str) -> int | None:
    """Id of the process on this machine that made a temporary file; None if the name is not that
    of a temporary file, or another machine made it."""
    match = _TEMPORARY.fullmatch(name)
    if match is None or match["host"] not in (None, platform.node()):
        return None
    return int(match["process"])
