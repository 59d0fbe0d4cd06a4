"""Kernels: when they are compiled, what is kept, who may call them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from ltr_base.compiled import CompilationWarning, _tell_not_kept, kernel

MODULE = """
from ltr_base.compiled import kernel

@kernel()
def _half(x):
    return x / 2

@kernel()
def half_of_sum(x, y):
    "The mean."
    return _half(x + y)
"""
PROGRAM = """
import sys
from ltr_base.compiled import on_compilation
from means import half_of_sum
assert "numba" not in sys.modules
with on_compilation(lambda: print("compiling")):
    print(half_of_sum(1.0, 2.0), half_of_sum(1.0, 4.0), half_of_sum(1, 2))
"""


def run(folder: Path, cache: Path, program: str = PROGRAM) -> list[str]:
    """What the program prints whose kernels are in the folder."""
    path = os.pathsep.join([str(folder), *sys.path])
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return result.stdout.split("\n")[:-1]


def test_compiled_once_and_told_once(tmp_path: Path) -> None:
    (tmp_path / "means.py").write_text(MODULE)
    assert run(tmp_path, tmp_path / "cache") == ["compiling", "1.5 2.5 1.5"]
    assert run(tmp_path, tmp_path / "cache") == ["1.5 2.5 1.5"]


def test_compiled_again_when_a_file_changes_whose_kernels_or_numbers_it_uses(
    tmp_path: Path,
) -> None:
    """Its own file stays as it is."""
    (tmp_path / "sizes.py").write_text("SHARE = 2\n")
    (tmp_path / "parts.py").write_text(MODULE)
    (tmp_path / "means.py").write_text(
        "from ltr_base.compiled import kernel\n"
        "from parts import _half\nfrom sizes import SHARE\n\n"
        "@kernel()\ndef half_of_sum(x, y):\n    return _half(x + y) * SHARE\n"
    )
    cache = tmp_path / "cache"
    assert run(tmp_path, cache) == ["compiling", "3.0 5.0 3.0"]
    assert run(tmp_path, cache) == ["3.0 5.0 3.0"]
    (tmp_path / "parts.py").write_text(MODULE.replace("x / 2", "x / 2 / 2"))
    assert run(tmp_path, cache) == ["compiling", "1.5 2.5 1.5"]
    (tmp_path / "sizes.py").write_text("SHARE = 2 + 2\n")
    assert run(tmp_path, cache) == ["compiling", "3.0 5.0 3.0"]


def test_without_a_folder_that_can_be_written() -> None:
    found: dict[str, object] = {"kernel": kernel}
    for n in (2, 3):  # no file, so no folder for it
        exec(f"@kernel()\ndef times_{n}(x):\n    return {n} * x", found)
    _tell_not_kept.cache_clear()
    with warnings.catch_warnings(record=True, action="always") as told:
        assert found["times_2"](21) == 42  # type: ignore[operator]
        assert found["times_3"](21) == 63  # type: ignore[operator]
    (once,) = [w for w in told if w.category is CompilationWarning]
    assert "by every process" in str(once.message)


def test_inner_kernels_are_for_kernels() -> None:
    @kernel()
    def _inner(x: float) -> float:
        return x

    with pytest.raises(TypeError, match="_inner can only be called by other kernels"):
        _inner(1.0)
    assert _inner.py_func(1.0) == 1.0


def test_a_terminal_is_told(tmp_path: Path) -> None:
    """``validate`` of a file that is long enough for kernels, on a terminal and in a log."""
    pty = pytest.importorskip("pty")
    rows = tmp_path / "rows.txt"
    rows.write_text("1 qid:7 1:0.5 2:3\n0 qid:7 1:0.25 2:4\n" * 3000)
    command = [sys.executable, "-m", "ltr_features.cli", "validate", str(rows)]

    def environment(cache: str) -> dict[str, str]:
        return {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / cache)}

    log = subprocess.run(command, env=environment("log"), capture_output=True, timeout=120)
    assert log.returncode == 0
    assert log.stderr == b""
    ours, theirs = pty.openpty()
    shown = subprocess.run(
        command, env=environment("terminal"), stdout=subprocess.PIPE, stderr=theirs, timeout=120
    )
    os.close(theirs)
    told = os.read(ours, 1000)
    os.close(ours)
    assert shown.stdout == log.stdout
    assert told.count(b"compiling kernels (once)") == 1


def test_what_another_version_left_is_made_anew(tmp_path: Path) -> None:
    """Compiled code refers to the types of arguments by their names, which a new version may
    change."""
    program = "from sums import total; from {0} import Two; print(total(Two(1.0, 2.0)))"
    for module in ("pairs", "couples"):
        for old in tmp_path.glob("*.py"):
            old.unlink()
        (tmp_path / f"{module}.py").write_text(
            "from typing import NamedTuple\nclass Two(NamedTuple):\n    x: float\n    y: float\n"
        )
        (tmp_path / "sums.py").write_text(
            f"from ltr_base.compiled import kernel\nimport {module}\n"
            "@kernel()\ndef total(two):\n    return two.x + two.y\n"
        )
        assert run(tmp_path, tmp_path / "cache", program.format(module)) == ["3.0"]
    assert list((tmp_path / "cache").rglob("*.nbi"))
