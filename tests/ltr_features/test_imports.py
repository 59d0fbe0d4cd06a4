"""What the first commands do without: packages that take long to import, and numba's compiler."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "gensim", "lightgbm", "llvmlite", "matplotlib", "numba", "pandas", "pyarrow", "ranx", "sklearn",
    "statsmodels", "tagme", "torch", "xgboost",
}  # fmt: skip
PROGRAM = """
import sys
from ltr_features.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def imported(*arguments: object) -> set[str]:
    """The modules that a command has imported when it ends."""
    program = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    result = subprocess.run(program, capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout
    return set(result.stderr.split())


@pytest.mark.parametrize(
    "command",
    [
        "--help", "--version", "columns list", "columns build --help", "models list",
        "models list ssi", "models fit --help", "rank --help", "rank train --help", "demo --help",
    ],
)  # fmt: skip
def test_listings_and_help_import_no_heavy_package(command):
    assert not imported(*command.split()) & HEAVY


def test_a_short_file_is_validated_without_a_compiler(tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("1 qid:7 1:0.5 2:3 #docid = a\n0 qid:7 1:0.25 2:4 #docid = b\n")
    assert not imported("validate", file) & {"numba", "llvmlite", "pandas", "sklearn"}
