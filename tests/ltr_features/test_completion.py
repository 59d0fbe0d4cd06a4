"""What a shell completes."""

import shlex

import pytest
from typer.testing import CliRunner

from ltr_features.cli import app
from ltr_features.commands import completion


def completed(line):
    """What bash would offer for the last word of a line."""
    words = shlex.split(line) if not line.endswith(" ") else [*shlex.split(line), ""]
    shell = {
        "_LTR_FEATURES_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    result = CliRunner().invoke(app, [], env=shell, prog_name="ltr-features")
    return result.stdout.split()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("ltr-features rank train --ranker list", ["listnet"]),
        ("ltr-features rank list co", ["coordinate-ascent"]),
        ("ltr-features columns build --family letor", ["letor46"]),
        ("ltr-features columns list ensan", ["ensan2017"]),
        ("ltr-features columns build --model s", ["sparse", "ssi", "s2net"]),
        ("ltr-features models list cl", ["cl-lsa"]),
        ("ltr-features models fit cl", ["cl-lsa"]),
        ("ltr-features index ir", ["ir-datasets"]),
        ("ltr-features clicks judge --model d", ["dcm", "dbn"]),
        ("ltr-features run study_c", ["study_cisi", "study_cranfield"]),
    ],
)
def test_names_are_completed(line, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert completed(line) == names


def test_experiments_may_be_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demands").mkdir()
    (tmp_path / "demands" / "x.toml").touch()
    (tmp_path / "demography.toml").touch()
    (tmp_path / "demolition.txt").touch()
    assert completion.experiments("dem") == ["demo", "demography.toml", "demands/"]
    assert completion.experiments("demands/") == ["demands/x.toml"]
