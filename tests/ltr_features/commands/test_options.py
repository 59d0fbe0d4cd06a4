"""Settings on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from letor.errors import InputError
from ltr_features import commands
from ltr_features.cli import app
from ltr_features.commands.options import (
    candidate_settings,
    echo,
    print_facts,
    settings,
    settings_by_owner,
    settings_of,
)


def test_settings_are_toml_or_text():
    given = ["rank=50", "splits=['a', 'b']", "folder=data/x", "c.id=sku", "c.title=true"]
    assert settings(given, "option") == {
        "rank": 50, "splits": ["a", "b"], "folder": "data/x", "c": {"id": "sku", "title": True},
    }  # fmt: skip
    for written in ("{Exact = 2}", '{"Exact": 2}'):
        assert settings([f"grades={written}"], "option") == {"grades": {"Exact": 2}}
    assert settings(["a={b"], "option") == {"a": "{b"}
    assert settings(["share=.25", "low=-.5", "file=.25.csv"], "option") == {
        "share": 0.25, "low": -0.5, "file": ".25.csv",
    }  # fmt: skip
    with pytest.raises(InputError, match="option 'a' is given twice"):
        settings(["a=1", "a=2"], "option")
    with pytest.raises(InputError, match=r"option 'a.b.c' is given twice"):
        settings(["a=1", "a.b.c=2"], "option")


def test_settings_of_a_single_owner_need_not_name_it():
    owners = (["ssi"], "model")
    for given in (["scale=0.5", "texts=a.b"], ["ssi.scale=0.5", "ssi.texts=a.b"]):
        assert settings_by_owner(given, "param", *owners) == {"ssi": {"scale": 0.5, "texts": "a.b"}}
    two = (["ssi", "lsi"], "model")
    given = ["ssi.rank=50", "lsi.rank=2"]
    assert settings_by_owner(given, "param", *two) == {"ssi": {"rank": 50}, "lsi": {"rank": 2}}
    with pytest.raises(InputError, match=r"rank=5: write ssi\.rank=5 or lsi\.rank=5"):
        settings_by_owner(["rank=5"], "param", *two)
    with pytest.raises(InputError, match="no model lsj is given; did you mean 'lsi'"):
        settings_by_owner(["lsj.rank=5"], "param", *two)
    assert settings_of(["rank=0.5"], "param", "ssi") == {"rank": 0.5}
    with pytest.raises(InputError, match=r"--param ssi\.rank=5: write rank=5"):
        settings_of(["ssi.rank=5"], "param", "ssi")


def test_a_source_of_candidates_may_come_without_settings():
    assert candidate_settings(["bm25", "lsi.depth=5"]) == {"bm25": {}, "lsi": {"depth": 5}}


def test_terminals_obey_nothing_that_commands_print(capsys):
    echo("run\x1b[2J\t\x9b1m\n", nl=False)
    assert capsys.readouterr().out == "run\\x1b[2J\t\\x9b1m\n"
    for path in Path(commands.__file__).parent.glob("*.py"):
        found = path.read_text(encoding="utf-8").count("typer.echo(")
        assert found == (path.name == "options.py"), f"{path.name}: print by echo of options"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["validate", ""], "file"),
        (["compare", "a.run", "", "--out", "x"], "runs"),
        (["compare", "a.run", "--qrels", "", "--out", "x"], "--qrels"),
        (["columns", "append", "rows", "--model-file=a", "--model-file="], "--model-file"),
    ],
)
def test_an_empty_path_is_not_the_current_folder(arguments, name):
    told = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert told.exit_code == 2
    assert f"{name} is an empty path: name the file or folder" in told.stderr


def test_facts_are_printed_for_readers(capsys):
    print_facts({"rows": 12000, "share": 2 / 3, "log": {"clicks": 3}})
    assert capsys.readouterr().out.splitlines() == [
        "  rows: 12,000",
        "  share: 0.667",
        "  log, clicks: 3",
    ]


@pytest.mark.parametrize(
    "command", ["serve", "pipeline add", "pipeline remove", "pipeline rank", "pipeline explain"]
)
def test_help_names_one_default_of_threads(command):
    """Commands that load a pipeline take one thread, and not all cores."""
    shown = CliRunner().invoke(app, [*command.split(), "--help"]).stdout
    words = " ".join(shown.replace("│", " ").split())
    assert "Worker threads" in words
    assert "all cores" not in words
