"""What the validation of a LETOR file finds, and what it says about it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from letor.dataset import RankingData
from letor.errors import InputError
from letor.lint import Validation, render, validate
from letor.parquet import write_parquet

CLEAN = "".join(
    f"{label} qid:{q} 1:0.{q}{label} 2:{label} #docid = d{q}{label}\n"
    for q in (1, 2, 3)
    for label in (0, 2, 1, 0.5)[:3]
).replace("1 qid:2 1:0.21 2:1 #docid = d21\n", "0 qid:2 1:0.21 2:1 #docid = d21\n")


def check(folder: Path, text: str) -> Validation:
    path = folder / "rows.txt"
    path.write_text(text)
    return validate(path)


def codes(validation: Validation) -> set[str]:
    return {finding.code for finding in validation.findings}


def test_parquet_without_rows_is_told(tmp_path: Path) -> None:
    nothing = RankingData(np.empty((0, 2)), [], [], np.empty(0, np.int64), ["a", "b"])
    write_parquet(nothing, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"rows\.parquet: no rows"):
        validate(tmp_path / "rows.parquet")


def test_rows_in_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "label": [0, 1, 2, 0],
            "qid": ["a", "a", "a", "b"],
            "docno": ["x", "y", "y", "z"],
            "f": [1, 2, np.nan, 4],
            "none": [np.nan] * 4,
            "far": [1, 3, 2, 4],
        }
    )
    data = RankingData.from_frame(frame)
    data.X[1::2, 2] = [np.inf, -np.inf]
    write_parquet(data, tmp_path / "rows.parquet")
    found = {f.code: f for f in validate(tmp_path / "rows.parquet").findings}
    assert found["no-values"].columns == (2,)
    assert (found["missing-values"].level, found["missing-values"].columns) == ("note", (1,))
    assert found["duplicate-documents"].lines == (3,)
    infinite = found["infinite-values"]
    assert (infinite.level, infinite.columns) == ("warning", (3,))
    assert "infinite values: 2" in infinite.message
    assert found.keys() - {"single-document-queries"} == {
        "no-values",
        "missing-values",
        "infinite-values",
        "duplicate-documents",
    }


def test_counts_of_a_clean_file(tmp_path: Path) -> None:
    v = check(tmp_path, CLEAN)
    assert (v.rows, v.queries, v.columns, v.documents) == (9, 3, 2, 9)
    assert v.labels == {0: 4, 1: 2, 2: 3}
    assert v.rows_per_query == (3, 3, 3)
    assert v.queries_without_relevant == 0
    assert v.findings == []
    assert v.is_readable
    assert "no problems found" in render(v)


@pytest.mark.parametrize(
    ("added", "code", "level", "columns", "lines"),
    [
        ("0 qid:3 1:x\n", "malformed-lines", "error", (), (10,)),
        ("0 qid:3 1:NULL 2:1\n", "null", "warning", (1,), ()),
        ("0 qid:3 1:nan 2:1\n", "nan", "error", (1,), ()),
        ("0 qid:3 1:1 2:-inf\n", "infinite", "error", (2,), ()),
        ("0 qid:3 1:1.797e308 2:NULL\n", "huge", "error", (1,), ()),
        ("0 qid:3 1:1 2:1 5:1\n", "gaps", "warning", (3, 4), ()),
        ("0 qid:3 1:1\n", "sparse", "note", (), ()),
        ("0.5 qid:3 1:1 2:1\n", "fractional-labels", "warning", (), (10,)),
        ("-1 qid:3 1:1 2:1\n", "negative-labels", "warning", (), (10,)),
        ("31 qid:3 1:1 2:1\n", "large-labels", "warning", (), (10,)),
        ("1 qid:1 1:1 2:1\n", "split-groups", "warning", (), (10,)),
        ("1 qid:4 1:1 2:1\n", "single-document-queries", "note", (), ()),
        ("0 qid:3 1:1 2:1 3:0\n", "zero-columns", "warning", (3,), ()),
        ("0 qid:3 1:1 2:1750000001\n", "large-values", "note", (2,), ()),
        ("\n0 qid:3 1:1 2:1 #docid = d32\n", "duplicate-documents", "warning", (), (11,)),
        ("0 qid:3 1:1 2:1 #docid = 1.59e+18\n", "rounded-ids", "warning", (), ()),
        ("0 qid:3 1:1 2:1\n", "unnamed-documents", "warning", (), ()),
    ],
)
def test_each_finding(
    tmp_path: Path,
    added: str,
    code: str,
    level: str,
    columns: tuple[int, ...],
    lines: tuple[int, ...],
) -> None:
    v = check(tmp_path, CLEAN + added)
    found = {finding.code: finding for finding in v.findings}
    assert code in found
    finding = found[code]
    assert (finding.level, finding.columns, finding.lines) == (level, columns, lines)
    assert finding.message in render(v)
    assert finding.advice in render(v)
    assert v.is_readable == (level != "error")


def test_columns_constant_within_queries(tmp_path: Path) -> None:
    v = check(tmp_path, "1 qid:1 1:5 2:1\n0 qid:1 1:5 2:2\n1 qid:2 1:6 2:2\n0 qid:2 1:6 2:1\n")
    assert codes(v) == {"query-columns"}
    assert v.findings[0].columns == (1,)
    assert v.documents is None


def test_listwise_files_are_recognised(tmp_path: Path) -> None:
    ranks = {1: (3, 1, 2, 0), 2: (0, 2, 1), 3: (1, 2)}
    text = "".join(
        f"{r} qid:{q} 1:{i} 2:{r * q}\n" for q, row in ranks.items() for i, r in enumerate(row)
    )
    assert "list-labels" in codes(check(tmp_path, text))
    assert "list-labels" not in codes(check(tmp_path, CLEAN))


def labelled(queries: int, labels: tuple[int, ...], column: str = "{row}") -> str:
    """Queries of rows with these labels; ``column`` is the value of column 2."""
    return "".join(
        f"{label} qid:{q} 1:{(5 * q + 3 * row) % 7} 2:{column.format(q=q, row=row, label=label)}\n"
        for q in range(queries)
        for row, label in enumerate(labels)
    )


def test_rows_in_descending_order_of_labels(tmp_path: Path) -> None:
    v = check(tmp_path, labelled(9, (2, 1, 1, 0)) + labelled(2, (1, 0)).replace("qid:", "qid:x"))
    found = next(f for f in v.findings if f.code == "descending-labels")
    assert found.message == "the rows of 9 of 9 queries are in descending order of their labels"
    for others in (
        labelled(4, (2, 1, 1, 0)),  # too few to tell
        labelled(9, (2, 1, 1, 0)) + labelled(1, (0, 1, 0)).replace("qid:", "qid:x"),
        labelled(9, (0, 0, 1)),
        labelled(9, (1, 1, 1)),
        labelled(9, (1, 0)),
    ):
        assert "descending-labels" not in codes(check(tmp_path, others))


@pytest.mark.parametrize(
    ("column", "found"),
    [
        ("{label}", True),
        ("-{label}", True),
        ("{q}{label}.{row}", True),  # rows with the same label may differ
        ("{row}", False),
        ("1", False),
    ],
)
def test_columns_made_from_the_labels(tmp_path: Path, column: str, found: bool) -> None:
    labels = (0, 2, 1, 0)
    v = check(tmp_path, labelled(20, labels, column))
    assert [f.columns for f in v.findings if f.code == "label-order"] == [(2,)] * found
    for others in (
        labelled(19, labels, column),  # too few to tell
        labelled(19, labels, column) + "1 qid:x 1:0 2:5\n0 qid:x 1:1 2:5\n",
    ):
        assert "label-order" not in codes(check(tmp_path, others))
    absent = labelled(20, labels, "{label}").replace(" 2:0", "")  # 0, as in sparse files
    assert "label-order" in codes(check(tmp_path, absent))


def test_grades_that_begin_at_1(tmp_path: Path) -> None:
    v = check(tmp_path, labelled(3, (1, 3, 2, 1)))
    message = next(f.message for f in v.findings if f.code == "no-label-0")
    assert "no row has label 0, the least is 1" in message
    assert codes(check(tmp_path, labelled(3, (1, 1)))) >= {"one-label"}
    assert "no-label-0" not in codes(check(tmp_path, labelled(3, (1, 1))))
    assert "no-label-0" not in codes(check(tmp_path, labelled(3, (0, 3, 2))))


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    whole = CLEAN.removesuffix("\n")
    for lost in ("1 2:1 #docid = d31\n", " 2:1 #docid = d31\n", " #docid = d31\n"):
        v = check(tmp_path, CLEAN.removesuffix(lost))
        assert [f.lines for f in v.findings if f.code == "cut-off"] == [(9,)]
    sparse = "0 qid:1 1:1 2:1\n1 qid:1 2:1\n1 qid:1 1:1"
    for other in (whole, CLEAN + "0 qid:3 1:1\n", sparse):
        assert "cut-off" not in codes(check(tmp_path, other))


def test_another_number_of_names_than_columns(tmp_path: Path) -> None:
    side_file = tmp_path / "rows.columns.json"
    for names, code in (("a", "too-few-names"), ("abc", "too-many-names")):
        side_file.write_text(json.dumps([{"name": name} for name in names]))
        v = check(tmp_path, CLEAN)
        assert [f.code for f in v.findings] == [code]
        assert f"rows.columns.json names {len(names)} columns, the rows have 2" in render(v)
        assert v.is_readable == (code == "too-many-names")
    side_file.write_text('[{"name": "a"}, {"name": "b"}]')
    assert check(tmp_path, CLEAN).findings == []


def test_what_is_said_of_several_columns_is_found_once(tmp_path: Path) -> None:
    names = [{"name": name, "remarks": ["2 rows have no score"]} for name in "abc"]
    names[1]["remarks"] = ["learned nothing"]
    (tmp_path / "rows.columns.json").write_text(json.dumps(names))
    (tmp_path / "rows.txt").write_text("1 qid:1 1:1 2:2 3:3\n0 qid:1 1:2 2:1 3:1\n")
    found = [f for f in validate(tmp_path / "rows.txt").findings if f.code == "column-remarks"]
    assert [f.columns for f in found] == [(1, 3), (2,)]
    told = ["2 columns (1, 3): 2 rows have no score", "column 2 (b): learned nothing"]
    assert [f.message for f in found] == told


def test_all_labels_equal(tmp_path: Path) -> None:
    assert "one-label" in codes(check(tmp_path, "0 qid:1 1:1\n0 qid:1 1:2\n"))


def test_labels_that_differ_between_queries_alone(tmp_path: Path) -> None:
    rows = "0 qid:1 1:1\n0 qid:1 1:2\n2 qid:2 1:1\n2 qid:2 1:3\n"
    assert codes(check(tmp_path, rows)) == {"equal-labels"}
    assert codes(check(tmp_path, rows + "1 qid:2 1:2\n")) == set()


def test_rows_that_are_checked_some_at_a_time_have_the_same_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = "0 qid:4 1:NULL 2:1\nbad\n1 qid:4 1:1 2:nan\n0 qid:5 1:1e300 2:1\n"
    by_query = "".join(f"{row} qid:{q} 1:{q} 2:{q * row}\n" for q in range(4) for row in range(3))
    for text, found in (
        (odd + CLEAN + odd.replace("qid:", "qid:1"), {"null", "nan", "huge", "malformed-lines"}),
        (by_query, {"query-columns"}),
    ):
        with monkeypatch.context() as patch:
            at_once = check(tmp_path, text)
            assert codes(at_once) >= found
            patch.setattr("letor.lint.BLOCK", 2)
            assert check(tmp_path, text) == at_once


def test_errors_come_first_and_bad_lines_are_listed(tmp_path: Path) -> None:
    v = check(tmp_path, "0 qid:1 1:0\n0 qid:1 1:0\nbad\n")
    assert [finding.level for finding in v.findings] == ["error", "warning", "warning"]
    assert "line 3: the label 'bad' is not a number" in render(v)
    assert "malformed lines: 1" in render(v)
    assert "2 rows, 1 query, 1 column;" in render(v)


def test_nothing_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no rows; line 1"):
        check(tmp_path, "bad\n")
    with pytest.raises(InputError, match="no rows"):
        check(tmp_path, "")


@pytest.mark.data
def test_mq2008(data_folder: Path) -> None:
    v = validate(data_folder / "letor4_mq2008" / "S1.txt")
    assert (v.rows, v.queries, v.columns) == (2933, 157, 46)
    assert {f.code: f.columns for f in v.findings} == {"zero-columns": (6, 7, 8, 9, 10, 43)}


def test_constant_columns_are_given_in_all_rows(tmp_path: Path) -> None:
    rows = [f"{i % 2} qid:{i // 4} 1:{i} 2:7" for i in range(8)]
    found = {f.code: f for f in check(tmp_path, "\n".join(rows) + "\n").findings}
    assert tuple(found["constant-columns"].columns) == (2,)
    # A column of ones that some rows leave out, as sparse files do with 0, varies.
    rows[3] = rows[3].removesuffix(" 2:7")
    assert "constant-columns" not in codes(check(tmp_path, "\n".join(rows) + "\n"))
