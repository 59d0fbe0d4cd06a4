"""This machine: cores and memory that may be used, and names of temporary files of its own."""

from __future__ import annotations

import os
import platform
import re
import secrets
from pathlib import Path

#: Names of temporary files, those of former versions among them: machine, and process.
_TEMPORARY = re.compile(
    r"\.(?:.*\.(?P<host>[^/]*)-[0-9a-f]{8}|.*)\.(?P<process>\d+)\.(?:partial|old)"
)


def available_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def address_space() -> float:
    """Bytes of memory that this process may reserve (``ulimit -v``), infinity without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return float("inf")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def temporary_paths(target: Path) -> tuple[Path, Path]:
    """Two paths beside a file or folder that nobody else takes: of what is being written
    (``.partial``), and of what it replaces (``.old``)."""
    # Two machines may write to one folder, and numbers of processes come again.
    own = f".{target.name}.{platform.node()}-{secrets.token_hex(4)}.{os.getpid()}"
    return target.with_name(f"{own}.partial"), target.with_name(f"{own}.old")


def is_temporary(name: str) -> bool:
    """Whether a file of that name was being written, here or elsewhere."""
    return _TEMPORARY.fullmatch(name) is not None


def process_of(name: str) -> int | None:
    """The process of this machine that the temporary file of that name was made by; None where it
    is none, or another machine's."""
    found = _TEMPORARY.fullmatch(name)
    if found is None or found["host"] not in (None, platform.node()):
        return None
    return int(found["process"])
