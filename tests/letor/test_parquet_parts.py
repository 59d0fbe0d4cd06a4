"""Parts of folds: some of the rows of a file, with columns of their own."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from same_rows import assert_same

from letor.arrow_rows import KEY
from letor.dataset import RankingData
from letor.errors import InputError
from letor.missing import Missing
from letor.parquet import read_parquet, write_parquet
from letor.parquet_parts import write_part

N, QUERIES = 5000, 300
MISSING = Missing({"q7": {1: 2}, "gone": {2: 1}})
ADDED = {"row": {"trained on": "others"}, "ssi": {"fold": "Fold1"}}


@pytest.fixture
def parted(tmp_path, monkeypatch):
    """All rows, the values that a fold adds to them, which of them a part has, and its file."""
    for module in ("parquet_rows", "parquet_parts"):
        monkeypatch.setattr(f"letor.{module}._BLOCK_BYTES", 1)  # row groups of 1024 rows
    rng = np.random.default_rng(3)
    index = np.sort(rng.integers(0, QUERIES, N))
    data = RankingData(
        rng.normal(size=(N, 3)).astype(np.float32),
        rng.integers(0, 3, N).astype(np.float32),
        [f"q{i}" if i != 5 else "\udcff" for i in range(QUERIES)],
        index,
        ["bm25", "label", "query_id"],
        np.array([f"d{i}" * (i % 3) for i in range(N)], dtype=object),
        np.array([b"#\xff\0 %d" % i if i % 2 else b"" for i in range(N)], dtype=object),
        {"bm25": {"definition": "Okapi"}},
        Missing({"q7": {1: 2}, "q8": {1: 1}, "gone": {2: 1}}),
    )
    values = rng.normal(size=(N, 2)).astype(np.float32)
    has = np.isin(index, rng.choice(QUERIES, 120, replace=False))
    write_parquet(data, tmp_path / "columns.parquet")
    path = tmp_path / "Fold1" / "train.parquet"
    write_part(path, has, values, ADDED, MISSING)
    wider = data.with_columns(list(ADDED), values, ADDED)
    return replace(wider.select_rows(np.flatnonzero(has)), missing=MISSING), path, has


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("memory", [None, 1000])
def test_a_part_has_its_rows_and_all_columns(parted, threads, memory):
    expected, path, has = parted
    read = read_parquet(path, threads=threads, memory=memory)
    assert isinstance(read.X, np.memmap) == (memory is not None)
    assert_same(read, expected)
    plain = pq.read_table(path)  # as other programs read it
    assert plain.column_names == ["row_", "row", "ssi"]
    np.testing.assert_array_equal(plain["row_"], np.flatnonzero(has))
    assert pq.ParquetFile(path).num_row_groups > 2


@pytest.mark.parametrize("features", [["ssi", "bm25", "row"], ["row", "label"], ["bm25"], []])
def test_some_columns_of_a_part(parted, features):
    expected, path, _ = parted
    some = read_parquet(path, features=features, comments=False)
    assert some.X.tobytes() == expected.select_columns(features).X.tobytes()
    assert some.column_names == features
    assert some.comments is None
    with pytest.raises(InputError, match=r"train\.parquet: no columns none"):
        read_parquet(path, features=["none"])


def test_an_empty_part(parted):
    _, path, has = parted
    write_part(path.with_name("vali.parquet"), has & False, np.empty((N, 0), np.float32), {}, None)
    empty = read_parquet(path.with_name("vali.parquet"))
    assert (empty.X.shape, empty.n_queries, empty.missing) == ((0, 3), 0, None)


def rewritten(path, change):
    """The part with other row numbers or other metadata."""
    table = pq.read_table(path)
    meta = json.loads(table.schema.metadata[KEY])
    rows = change(table["row_"].to_numpy().copy(), meta)
    table = table.set_column(0, "row_", pa.array(rows))
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(meta)}), path)


def test_numbers_that_are_none_of_the_rows_are_refused(parted):
    _, path, _ = parted
    whole = path.read_bytes()
    for change in (
        lambda rows, meta: rows + N,
        lambda rows, meta: rows - rows[0] - 1,
        lambda rows, meta: rows[::-1],
        lambda rows, meta: np.where(np.arange(len(rows)) == 5, rows[4], rows),
        lambda rows, meta: rows.astype(np.float64),
    ):
        rewritten(path, change)
        with pytest.raises(InputError, match=r"train\.parquet: its rows are not numbers of rows"):
            read_parquet(path)
        path.write_bytes(whole)


def test_a_part_belongs_to_one_file(parted):
    expected, path, _ = parted
    home = path.parent.parent / "columns.parquet"
    home.rename(home.with_name("elsewhere.parquet"))
    with pytest.raises(InputError, match=r"train\.parquet: a part of a fold, whose rows are in"):
        read_parquet(path)
    write_parquet(expected.select_columns(["bm25"]), home)
    with pytest.raises(InputError, match=r"train\.parquet: its rows refer to another"):
        read_parquet(path)
    home.write_bytes(path.read_bytes())
    with pytest.raises(InputError, match=r"columns\.parquet"):
        read_parquet(path)


def test_what_is_no_json_is_refused(parted):
    _, path, has = parted
    with pytest.raises(InputError, match="JSON"):
        write_part(path, has, np.empty((N, 1), np.float32), {"a": {"b": {1}}}, None)
