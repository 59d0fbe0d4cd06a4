"""``index``."""

from __future__ import annotations

from toys import done, run
from typer.main import get_command

from ltr_features.cli import app
from ltr_features.sources.registry import sources


def test_index_says_what_it_read(beir, tmp_path):
    text = done("index", "beir", f"folder={beir}", "splits=['test']", "--out", tmp_path / "w")
    assert "fields body, title" in text
    assert "documents: 80" in text
    assert "judged pairs: 400" in text


def test_index_says_that_text_cannot_hold_ids_with_blanks(tmp_path):
    (tmp_path / "d.csv").write_text("id,text,query,label\na 1,red shoe,shoe,1\nb 2,hat,hat,1\n")
    table = [f"documents={tmp_path / 'd.csv'}", "judgement_columns.text=query"]
    told = run("index", "table", *table, "--out", tmp_path / "w").stderr
    assert "note: document id 'a 1' and 1 more: LETOR text and TREC files need ids without" in told
    assert "rename them, the first to 'a_1' for example, unless you build Parquet only" in told


def test_the_help_of_index_names_every_source():
    """It is written by hand, as a list from the registry would make every command start later."""
    command = get_command(app).commands["index"]
    named = next(p.help for p in command.params if p.name == "source").split(", or")[0].split(", ")
    assert named == sources()
