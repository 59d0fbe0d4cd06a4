"""Parquet keeps a data set exactly, names and origin included."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from same_rows import assert_same

import letor.parquet_rows
from letor.arrow_rows import ArrowRows
from letor.column_names import write_rows
from letor.dataset import RankingData
from letor.errors import InputError
from letor.parquet import read_parquet, write_parquet
from letor.parquet_rows import ParquetRows
from letor.string_array import StringArray
from letor.svmlight import read_letor, write_letor

NAMES = ["LMIR.ABS", "LMIR", "label", "label_", "query_id"]


def make(n: int = 3000) -> RankingData:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, len(NAMES))).astype(np.float32)
    X[0] = [np.nan, np.inf, -0.0, 1e-45, 3.4e38]
    return RankingData(
        X,
        rng.integers(-1, 3, n).astype(np.float32),
        ["z", "ü", "\udcff", "a"],  # not in order of appearance
        np.array([3, 0, 1, 2] * (n // 4), dtype=np.int64),
        NAMES,
        np.array([f"d{i}" * (i % 3) for i in range(n)], dtype=object),
        np.array([b"#\xff\0 %d" % i if i % 2 else b"" for i in range(n)], dtype=object),
        {"LMIR": {"definition": "Dirichlet", "fold": 1}},
    )


@pytest.mark.parametrize("compression", ["lz4", "zstd", "none"])
def test_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str) -> None:
    monkeypatch.setattr(letor.parquet_rows, "_BLOCK_BYTES", 1)  # row groups of 1024 rows
    data = make()
    write_parquet(data, tmp_path / "rows.parquet", compression=compression)
    for threads in (1, 2):
        again = read_parquet(tmp_path / "rows.parquet", threads=threads)
        assert_same(again, data)
        assert isinstance(again.comments, StringArray)
    assert pq.ParquetFile(tmp_path / "rows.parquet").num_row_groups == 3


def test_a_value_changed_on_disk_is_told(tmp_path: Path) -> None:
    path, data = tmp_path / "rows.parquet", make(8)
    write_parquet(data, path, compression="none")
    whole, label = path.read_bytes(), data.y.astype("<f4").tobytes()
    for value in (data.X[2, 1].tobytes(), label):
        assert whole.count(value) == 1
        at = whole.index(value)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InputError, match=r"rows\.parquet: .*CRC"):
            read_parquet(path)


def test_other_tools_read_the_columns(tmp_path: Path) -> None:
    data = RankingData.from_rows([[1.0, 2.0]], [1], ["q7"], column_names=["bm25", "pagerank"])
    write_parquet(data, tmp_path / "rows.parquet")
    frame = pd.read_parquet(tmp_path / "rows.parquet")
    assert frame.to_dict("list") == {
        "bm25": [1.0],
        "pagerank": [2.0],
        "label": [1.0],
        "query_id": ["q7"],
    }


def test_some_columns_without_comments(tmp_path: Path) -> None:
    data = make()
    write_parquet(data, tmp_path / "rows.parquet")
    some = read_parquet(tmp_path / "rows.parquet", features=["label", "LMIR"], comments=False)
    assert np.array_equal(some.X, data.X[:, [2, 1]])
    assert some.column_names == ["label", "LMIR"]
    assert some.provenance == data.provenance
    assert some.comments is None
    assert np.array_equal(some.query_index, data.query_index)
    assert read_parquet(tmp_path / "rows.parquet", features=[]).X.shape == (3000, 0)


def test_row_groups_hold_whole_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letor.parquet_rows, "_BLOCK_BYTES", 1)  # row groups of 1024 rows or more
    sizes = [700, 900, 100, 3000, 1, 500]
    query = np.repeat([f"q{i}" for i in range(6)], sizes)
    data = RankingData.from_rows(np.ones((len(query), 2)), np.zeros(len(query)), query)
    write_parquet(data, tmp_path / "rows.parquet")
    meta = pq.ParquetFile(tmp_path / "rows.parquet").metadata
    groups = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
    assert groups == [1600, 3100, 501]
    assert read_parquet(tmp_path / "rows.parquet").query_ids == data.query_ids

    def write_blocks(*parts: list[str]) -> bytes:
        with ParquetRows(tmp_path / "blocks.parquet") as rows:
            for part in parts:
                rows.add(ArrowRows.of(data.select_queries(part)))
        return (tmp_path / "blocks.parquet").read_bytes()

    ids = list(data.query_ids)
    assert write_blocks(ids[:3], ids[3:]) == (tmp_path / "rows.parquet").read_bytes()
    with pytest.raises(InputError, match="rows of a query in several blocks"):
        write_blocks(ids, ids[:1])


def test_empty_data_set(tmp_path: Path) -> None:
    empty = make().select_rows(np.zeros(0, dtype=np.int64))
    write_parquet(empty, tmp_path / "rows.parquet")
    assert_same(read_parquet(tmp_path / "rows.parquet"), empty)


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with pytest.raises(InputError, match="no such file"):
        read_parquet(path)
    with pytest.raises(InputError, match="a folder, not a file"):
        read_parquet(tmp_path)
    path.write_bytes(b"1 qid:1 1:1\n")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_parquet(path)
    pq.write_table(pa.table({"x": [1.0]}), path)
    with pytest.raises(InputError, match="not written by write_parquet"):
        read_parquet(path)
    write_parquet(make(), path)
    with pytest.raises(InputError, match="no columns bm26"):
        read_parquet(path, features=["bm26"])
    X = np.zeros((1, 1), dtype=np.float32)
    with pytest.raises(InputError, match="column name is empty"):
        write_parquet(RankingData.from_rows(X, [0], ["q"], column_names=[""]), path)
    odd = RankingData.from_rows(X, [0], ["q"], provenance={"1": {"model": object()}})
    with pytest.raises(InputError, match="JSON"):
        write_parquet(odd, path)
    assert_same(read_parquet(path), make())


@pytest.mark.parametrize("short", [1, 0.9], ids=["at the end", "before"])
def test_a_full_disk_is_told_with_the_file_and_leaves_none(tmp_path: Path, short: float) -> None:
    resource = pytest.importorskip("resource", reason="limits how much is written")
    path = tmp_path / "rows.parquet"
    write_parquet(make(), path)
    room = int(path.stat().st_size * short) - 1
    path.unlink()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(OSError) as caught:
            write_parquet(make(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.data
def test_mq2008_to_parquet_and_back_to_the_same_bytes(data_folder: Path, tmp_path: Path) -> None:
    for part in range(1, 6):
        path = data_folder / "letor4_mq2008" / f"S{part}.txt"
        data = read_letor(path)
        write_parquet(data, tmp_path / "rows.parquet", compression="zstd")
        again = read_parquet(tmp_path / "rows.parquet")
        assert_same(again, data)
        write_letor(again, tmp_path / "again.txt", digits=6, line_end="\r\n")
        assert (tmp_path / "again.txt").read_bytes() == path.read_bytes()
        assert (tmp_path / "rows.parquet").stat().st_size < path.stat().st_size / 3


def test_equal_values_that_would_fill_the_memory_are_refused(tmp_path):
    path, n = tmp_path / "rows.parquet", 30_000_000
    zeros = pa.array(np.zeros(n, np.float32))
    query = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["1"]))
    pq.write_table(pa.table({"1": zeros, "label": zeros, "qid": query}), path)
    assert path.stat().st_size < 2**20
    with pytest.raises(InputError, match=r"rows\.parquet: its [\d,]+ bytes expand to 0\.3 GiB"):
        read_parquet(path, label="label", qid="qid")


def test_as_many_zeros_as_are_written_are_read(tmp_path):
    X = np.zeros((2**18, 300), np.float32)
    data = RankingData(X, X[:, 0], ["1"], np.zeros(len(X), np.int64), [f"c{j}" for j in range(300)])
    write_parquet(data, tmp_path / "rows.parquet")
    assert X.nbytes > 100 * (tmp_path / "rows.parquet").stat().st_size
    assert read_parquet(tmp_path / "rows.parquet").X.shape == X.shape


def test_a_long_comment_of_many_rows_is_refused(tmp_path):
    path, n = tmp_path / "rows.parquet", 10_000
    zeros, ids = np.zeros(n, np.float32), [f"d{i}" for i in range(n)]
    data = RankingData(zeros[:, None], zeros, ["1"], np.zeros(n, np.int64), ["c"], ids)
    for length in (10, 10**5):
        write_parquet(data, path)
        comment = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(n, np.int32)), pa.array([b"x" * length], pa.large_binary())
        )
        table = pq.read_table(path)
        meta = json.loads(pq.read_metadata(path).metadata[b"letor"])
        meta["roles"]["comment"] = "comment"
        table = table.append_column("comment", comment).replace_schema_metadata(
            {b"letor": json.dumps(meta)}
        )
        pq.write_table(table, path)
        if length == 10:
            assert list(read_parquet(path).comments) == [b"x" * 10] * n
    with pytest.raises(InputError, match=r"rows\.parquet: its [\d,]+ bytes expand to 0\.9 GiB"):
        read_parquet(path)


def test_columns_with_one_name_are_told(tmp_path):
    path, f = tmp_path / "rows.parquet", pa.array([0.5])
    names = ["label", "qid", "f", "g", "g"]
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array(["q"]), f, f, f], names), path)
    with pytest.raises(InputError, match=r"rows.parquet: two columns are called g; rename one"):
        read_parquet(path, label="label", qid="qid")
    assert read_parquet(path, label="label", qid="qid", features=["f"]).X.tolist() == [[0.5]]


@pytest.mark.parametrize("suffix", [".parquet", ".txt"])
def test_a_name_that_is_no_text_is_refused(tmp_path, suffix):
    data = RankingData(np.ones((1, 1)), [0], ["1"], np.zeros(1, np.int64), ["caf\udce9"])
    with pytest.raises(InputError, match=r"column 'caf.udce9' is not Unicode text: rename it"):
        write_rows(data, tmp_path / f"rows{suffix}")
    assert list(tmp_path.iterdir()) == []
