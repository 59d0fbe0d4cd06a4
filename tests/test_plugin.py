"""A separate package is installed, and its column family, ranker and source are found by name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "plugin"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs the command line with the package installed in a folder of its own."""
    folder = tmp_path_factory.mktemp("plugin")
    copy = folder / "package"  # building writes beside the sources
    shutil.copytree(PACKAGE, copy)
    target = folder / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
               "--no-build-isolation", "--target", str(target), str(copy)]  # fmt: skip
    done = subprocess.run([sys.executable, *install], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "ltr_features.cli", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(target)},
        )

    return run


def test_what_a_package_brings_is_used_by_name(run, tmp_path):
    (tmp_path / "text").write_text("Tax law of the land\nA hat\nMoney and tax\n")
    out = tmp_path / "w"
    done = run("index", "lines", f"file={tmp_path / 'text'}", "query=tax", "--out", out)
    assert done.returncode == 0, done.stderr
    table = tmp_path / "rows.txt"
    done = run("columns", "build", "--workspace", out, "--family", "title-length", "--out", table)
    assert done.returncode == 0, done.stderr
    rows = {line.split("docid = ")[1]: line for line in table.read_text().splitlines()}
    assert rows["line0"].startswith("0 qid:q 1:3")
    assert rows["line2"].startswith("1 qid:q 1:5")
    done = run("rank", "train", table, "--ranker", "first-column", "--out", tmp_path / "ranker")
    assert done.returncode == 0, done.stderr
    done = run("rank", "score", tmp_path / "ranker", table)
    assert sorted(done.stdout.split()) == ["3", "5"]
    assert "title-length: characters of the title" in run("columns", "list").stdout
    assert "first-column: Scores by the first column" in run("rank", "list").stdout
