"""``columns append``."""

from __future__ import annotations

import re

import numpy as np
from toys import done, refused

from letor.column_names import read_rows, write_rows
from letor.svmlight import names_path


def test_columns_are_appended_after_columns_that_no_row_has(workspace, tmp_path):
    file, table = tmp_path / "a.txt", tmp_path / "a.parquet"
    file.write_text("1 qid:q0 1:1 #docid = d0\n0 qid:q0 1:2 #docid = d1\n")
    append = ("--workspace", workspace, "--family", "vsm", "--columns", 3, "--out")
    for out in (tmp_path / "b.txt", tmp_path / "b.parquet"):
        assert "4: vsm" in done("columns", "append", file, *append, out)
        assert read_rows(out).column_names == ["1", "2", "3", "vsm"]
    done("convert", file, table)
    for source in (table, tmp_path / "b.txt"):
        assert "leave the number out" in refused(
            "columns", "append", source, *append, tmp_path / "c.txt"
        )


def test_appended_columns_have_names_beside_the_new_file(workspace, tmp_path):
    first, second, plain = (tmp_path / f"{name}.txt" for name in ("first", "second", "plain"))
    done("columns", "build", "--workspace", workspace, "--family", "letor46", "--out", first)
    append = ("--workspace", workspace, "--family", "vsm", "--out", second)
    assert "47: vsm" in done("columns", "append", first, *append)
    rows, both = read_rows(second), tmp_path / "both.parquet"
    done("columns", "build", "--workspace", workspace, "--family", "letor46", "--family", "vsm",
         "--out", both)  # fmt: skip
    np.testing.assert_array_equal(rows.X, read_rows(both).X)
    assert rows.column_names == read_rows(both).column_names
    assert rows.column_names == [*read_rows(first).column_names, "vsm"]
    assert rows.provenance["vsm"]["family"] == "vsm"
    assert "has a column vsm already" in refused(
        "columns", "append", second, *append[:-1], tmp_path / "third.txt"
    )
    assert read_rows(second).column_names == rows.column_names  # neither file was touched
    bare = tmp_path / "bare.txt"  # whose rows cannot be joined, which takes longer to find
    bare.write_text(re.sub("#.*", "", second.read_text(encoding="utf-8")), encoding="utf-8")
    names_path(bare).write_bytes(names_path(second).read_bytes())
    assert "bare.txt has a column vsm already" in refused(
        "columns", "append", bare, *append[:-1], tmp_path / "third.txt"
    )
    plain.write_bytes(first.read_bytes())  # no names beside it
    done("columns", "append", plain, *append)
    assert read_rows(second).column_names == [*map(str, range(1, 47)), "vsm"]
    by_text, table = read_rows(second), tmp_path / "a.parquet"
    write_rows(read_rows(first), table)
    done("columns", "append", table, *append)
    by_table = read_rows(second)
    assert by_table.column_names == rows.column_names
    assert by_table.provenance == rows.provenance
    np.testing.assert_array_equal(by_table.X, by_text.X)
    assert "already" in refused("columns", "append", second, *append[:-1], table)
    assert "two columns are called vsm" in refused(
        "columns", "append", plain, "--family", "vsm", *append
    )
    names = tmp_path / "second.columns.json"
    names.write_text("[1")
    assert "second.columns.json: not a list of columns" in refused("rank", "train", second, "--out",
                                                                   tmp_path / "r")  # fmt: skip
    names.write_text('[{"name": "a"}]')
    assert "names 1 column, the rows have 47: it belongs to another file" in refused(
        "rank", "train", second, "--out", tmp_path / "r"
    )


def test_appended_and_converted_files_know_what_they_lack(gaps, tmp_path):
    first, second, third = (tmp_path / name for name in ("a.txt", "b.txt", "c.parquet"))
    build = ("columns", "build", "--workspace", gaps, "--family", "letor46", "--depth", 5)
    done(*build, "--out", first)
    done("columns", "append", first, "--workspace", gaps, "--family", "vsm", "--out", second)
    done("convert", second, third)
    missing = read_rows(first).missing
    assert set(missing.relevant) >= {"lost"}
    assert missing.unjudged == {"free"}
    assert read_rows(second).missing == read_rows(third).missing == missing
