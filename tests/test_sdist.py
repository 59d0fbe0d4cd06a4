"""The source distribution has what its tests and its documentation read."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
BUILD = "from setuptools import build_meta; build_meta.build_sdist('made')"
#: What is made where the tree is used, and what is not for users.
LEFT_OUT = shutil.ignore_patterns(".*_cache", "__pycache__", ".git*", "*.egg-info", "build", "dist")


def test_every_file_of_the_tree_is_in_it(tmp_path):
    # Building writes beside the sources.
    shutil.copytree(TREE, tmp_path / "tree", ignore=LEFT_OUT)
    files = {path for path in (tmp_path / "tree").rglob("*") if path.is_file()}
    expected = {path.relative_to(tmp_path / "tree").as_posix() for path in files}
    done = subprocess.run(
        [sys.executable, "-c", BUILD],
        cwd=tmp_path / "tree", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (made,) = (tmp_path / "tree" / "made").iterdir()
    with tarfile.open(made) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert {n for n in expected - found if not n.startswith(".") or n.startswith(".ci/")} == set()
