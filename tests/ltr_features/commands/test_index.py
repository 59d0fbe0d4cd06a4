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


def test_index_tells_of_ids_that_two_files_write_otherwise(tmp_path):
    (tmp_path / "d.csv").write_text("docno,text\nA1,red shoe\na1,blue shoe\nb,hat\n")
    (tmp_path / "j.csv").write_text("qid,query,docno,label\n7,shoe,A1,1\n07,hat,b,1\n8,red,a1,1\n")
    table = [f"documents={tmp_path / 'd.csv'}", f"judgements={tmp_path / 'j.csv'}"]
    told = run("index", "table", *table, "--out", tmp_path / "w").stderr
    assert "note: 1 of 3 document ids differ from another one only in case, blanks" in told
    assert "such as 'a1' from 'A1': if both are one document, write its id alike" in told
    assert "such as '07' from '7': if both are one query" in told


def test_index_tells_of_ids_that_lost_digits(tmp_path):
    rows = ["1.2345678901234568e+18,shoe", "1.2345678901234570e+18,hat"]
    (tmp_path / "d.csv").write_text("id,text\n" + "".join(f"{row}\n" for row in rows))
    (tmp_path / "j.csv").write_text(f"qid,query,docno,label\n7,shoe,{rows[0][:-5]},1\n")
    table = [f"documents={tmp_path / 'd.csv'}", f"judgements={tmp_path / 'j.csv'}"]
    told = run("index", "table", *table, "--out", tmp_path / "w").stderr
    assert "2 of 2 document ids are like '1.2345678901234568e+18', and may be those of" in told
    assert "query ids are like" not in told


def test_index_tells_of_documents_without_words_and_of_copies(tmp_path):
    """Copies differ in case, order and url; the others in a field or in how often a word occurs."""
    rows = [
        "a,Red,shoe shoe,x/1", "b,red,Shoe - shoe,x/2", "c,shoe,red shoe,x/3", "d,red,shoe,x/4",
        "e,-,,shop/5", "f,,?,shop/6", "g,RED,shoe shoe!,x/7", "h,hat,,x/8", "i,,hat,x/9",
    ]  # fmt: skip
    (tmp_path / "d.csv").write_text("id,title,text,url\n" + "".join(f"{row}\n" for row in rows))
    (tmp_path / "j.csv").write_text("qid,query,docno,label\n7,shoe,a,1\n")
    table = [f"documents={tmp_path / 'd.csv'}", f"judgements={tmp_path / 'j.csv'}"]
    told = run("index", "table", *table, "--out", tmp_path / "w").stderr
    assert "note: 3 of 9 documents have the same words as another one, such as 'b' and 'a'" in told
    none = "have no word but those of the url, if there is one, such as 'e': columns of words find"
    assert f"note: 2 of 9 documents {none} them by that at most" in told


def test_the_help_of_index_names_every_source():
    """It is written by hand, as a list from the registry would make every command start later."""
    command = get_command(app).commands["index"]
    named = next(p.help for p in command.params if p.name == "source").split(", or")[0].split(", ")
    assert named == sources()
