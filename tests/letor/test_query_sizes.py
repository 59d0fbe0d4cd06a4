"""Text of LightGBM and XGBoost, whose queries are told by their sizes."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from letor.column_names import read_rows
from letor.errors import InputError
from letor.query_sizes import query_sizes
from letor.svmlight import read_letor
from ltr_features.cli import app

TEXT = "0 1:0.5\n# a note\n2 2:1 # of c\n\n1\n0 1:2\n"


@pytest.mark.parametrize("ending", [".query", ".group"])
def test_convert_takes_the_sizes_beside_the_rows(ending, tmp_path):
    path = tmp_path / "rank.train"
    path.write_text(TEXT)
    path.with_name(path.name + ending).write_text("3\n0\n1\n")
    result = CliRunner().invoke(app, ["convert", str(path), str(tmp_path / "rows.txt")])
    assert result.exit_code == 0, result.output
    rows = read_rows(tmp_path / "rows.txt")
    assert (rows.query_ids, rows.group_sizes.tolist()) == (["1", "3"], [3, 1])
    assert rows.y.tolist() == [0, 2, 1, 0]
    assert rows.X.tolist() == [[0.5, 0], [0, 1], [0, 0], [2, 0]]


def test_a_comment_behind_a_byte_order_mark_is_no_row(tmp_path):
    (tmp_path / "rows").write_text("# a note\n1 1:2\n", encoding="utf-8-sig")
    assert read_letor(tmp_path / "rows", query_sizes=[1]).y.tolist() == [1]


def test_errors_name_file_and_line(tmp_path):
    path = tmp_path / "rank.train"
    path.write_text(TEXT)
    assert query_sizes(path) is None
    with pytest.raises(InputError, match=r"line 1: no qid .* NAME.query: `ltr-features convert`"):
        read_letor(path)
    with pytest.raises(InputError, match="4 rows, but the sizes of 2 queries sum to 5"):
        read_letor(path, query_sizes=[3, 2])
    path.write_text(TEXT.replace("2:1 #", "2:x #"))
    with pytest.raises(InputError, match=r"rank.train, line 3: '2:x' has no number"):
        read_letor(path, query_sizes=[3, 1])
    (tmp_path / "rank.train.query").write_text("3\n-1\n")
    with pytest.raises(InputError, match=r"rank.train.query, line 2: '-1' is not the number"):
        query_sizes(path)
