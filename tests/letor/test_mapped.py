"""Rows whose values lie in a temporary file are the same rows, and teach the same ranker."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from letor import mapped
from letor.dataset import RankingData
from letor.mapped import GrowingArray, empty_array, take_rows
from letor.parquet import read_parquet, write_parquet
from letor.rankers import xgboost_lambdamart
from letor.rankers.lambdamart import LambdaMART
from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART


def rows(n=2000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=n) > 0.5).astype(np.float32)
    index = np.sort(rng.integers(0, 50, n))
    return RankingData(X, y, [str(q) for q in range(50)], index, list("abcd"))


def test_only_what_is_too_large_is_mapped():
    assert not isinstance(empty_array((10, 10), memory=None), np.memmap)
    assert not isinstance(empty_array((10, 10), memory=400), np.memmap)
    matrix = empty_array((10, 10), memory=399)
    assert isinstance(matrix, np.memmap)
    matrix[...] = 3
    assert matrix.sum() == 300


def test_a_full_disk_is_told_by_its_folder_and_not_blamed_on_the_file_that_is_read(
    tmp_path, monkeypatch
):
    def full(descriptor, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    write_parquet(rows(), tmp_path / "rows.parquet")
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="set TMPDIR to a folder with more space") as caught:
        read_parquet(tmp_path / "rows.parquet", memory=1000)
    assert caught.value.filename == tempfile.gettempdir()
    assert "rows.parquet" not in str(caught.value)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_an_array_that_outgrows_the_disk_names_the_folder(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "r+b", buffering=0))
    with pytest.raises(OSError, match="set TMPDIR") as caught:
        GrowingArray(np.int64, memory=0).append(np.arange(10))
    assert caught.value.filename == tempfile.gettempdir()


def test_xgboost_is_not_started_on_a_disk_without_room(tmp_path, monkeypatch):
    write_parquet(rows(), tmp_path / "rows.parquet")
    data = read_parquet(tmp_path / "rows.parquet", memory=1000)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=data.X.size - 1))
    with pytest.raises(OSError, match="set TMPDIR") as caught:
        XGBoostLambdaMART(n_estimators=2).fit(data)
    assert caught.value.filename == tempfile.gettempdir()


@pytest.mark.parametrize("block", [7, 10_000])
def test_rows_are_taken_into_a_file_of_their_own(monkeypatch, block):
    monkeypatch.setattr(mapped, "ROWS_AT_ONCE", block)
    X = empty_array((100, 3), memory=0)
    X[...] = np.arange(300).reshape(100, 3)
    wanted = np.random.default_rng(0).permutation(100)
    taken = take_rows(X, wanted)
    assert isinstance(taken, np.memmap)
    np.testing.assert_array_equal(taken, np.asarray(X)[wanted])
    assert not isinstance(take_rows(np.asarray(X), wanted), np.memmap)


def test_a_ranker_learns_the_same_of_mapped_rows(tmp_path):
    path, data = tmp_path / "rows.parquet", rows()
    write_parquet(data, path)
    rankers, found = [], []
    for memory in (None, 1000):
        read = read_parquet(path, memory=memory)
        assert isinstance(read.X, np.memmap) == (memory is not None)
        np.testing.assert_array_equal(read.X, data.X)
        ranker = LambdaMART(n_estimators=20).fit(read, read)
        rankers.append(ranker.dump())
        found.append(ranker.predict(read).tobytes())
    assert rankers[0] == rankers[1]
    assert found[0] == found[1]


@pytest.mark.parametrize("memory", [0, 100, 10_000])
def test_an_array_grows_in_memory_and_on_the_disk(memory):
    rng = np.random.default_rng(0)
    grown, parts = GrowingArray(np.int32, memory=memory), []
    for _ in range(2):  # what was taken is gone
        for size in (3, 0, 40, 1, 17):
            parts.append(rng.integers(-9, 9, size))
            grown.append(parts[-1])
        assert len(grown) == 61
        values = grown.taken()
        assert type(values) is np.ndarray
        assert values.dtype == np.int32
        np.testing.assert_array_equal(values, np.concatenate(parts))
        values += 1  # it can be written
        parts.clear()
    assert len(grown.taken()) == 0


def test_xgboost_reads_rows_in_a_file_block_by_block(tmp_path, monkeypatch):
    """With fewer values than bins their places are exact, and the trees are those of rows in
    memory, for training and validation rows."""
    monkeypatch.setattr(xgboost_lambdamart, "_BLOCK_BYTES", 4 * 4 * 150)
    data = rows()
    data = replace(data, X=np.round(data.X, 1))
    data.X[::7, 1] = np.nan
    data.X[::11, 2] = np.inf
    queries = data.query_ids
    write_parquet(data.select_queries(queries[:35]), tmp_path / "train.parquet")
    write_parquet(data.select_queries(queries[35:]), tmp_path / "vali.parquet")
    fits = []
    for memory in (None, 0, 0):
        train, vali = (
            read_parquet(tmp_path / f"{part}.parquet", memory=memory) for part in ("train", "vali")
        )
        assert isinstance(train.X, np.memmap) == (memory == 0)
        ranker = XGBoostLambdaMART(n_estimators=12, early_stopping_rounds=3).fit(train, vali)
        ranker.save(tmp_path / str(len(fits)))
        fits.append((tmp_path / str(len(fits)) / "model.json").read_bytes())
    assert fits[0] == fits[1] == fits[2]
