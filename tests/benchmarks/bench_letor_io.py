"""Read and write 300,000 x 136 dense LETOR rows, against the readers that people use.

    python tests/benchmarks/bench_letor_io.py [--rows 300000] [--threads 2] [--folder /tmp]

Prints MB of text per second, the ratio to the fastest peer, and memory per row. Every figure is
the best of three runs; rates of Parquet are per MB of the same rows as text. The process time of a
run on a busy machine says more than the clock: both are printed.
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from timing import on_two_clocks

from letor.dataset import RankingData
from letor.parquet import read_parquet, write_parquet
from letor.svmlight import append_columns, read_letor, write_letor

RUNS = 3


def report(name: str, megabytes: float, action: Callable[[], Any]) -> float:
    wall, processor = map(min, on_two_clocks(RUNS, action))
    rate = megabytes / wall
    print(f"  {name:34s} {rate:8.0f} MB/s {megabytes / processor:8.0f} MB per processor second")
    return rate


def make(rows: int, columns: int, seed: int) -> RankingData:
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((rows, columns), dtype=np.float32), 6)
    X[rng.random(X.shape) < 0.2] = 0  # LETOR's columns have many zeros
    y = rng.integers(0, 5, rows).astype(np.float32)
    queries = np.arange(rows) // 100
    return RankingData(
        X,
        y,
        [str(q) for q in range(queries[-1] + 1)],
        queries,
        [str(j + 1) for j in range(columns)],
        np.array([f"GX{i:09d}" for i in range(rows)], dtype=object),
    )


def sklearn_read(path: Path) -> None:
    load_svmlight_file(str(path), query_id=True, zero_based=False, dtype=np.float32)


def sklearn_write(data: RankingData, path: Path) -> None:
    dump_svmlight_file(
        data.X, data.y, str(path), zero_based=False, query_id=data.query_index.astype(np.int32)
    )


def xgboost_read(path: Path, threads: int) -> None:
    with xgboost.config_context(verbosity=0):
        xgboost.DMatrix(f"{path}?format=libsvm", nthread=threads)


def lightgbm_read(path: Path, threads: int) -> None:
    lightgbm.Dataset(str(path), params={"verbose": -1, "num_threads": threads}).construct()


def pandas_read(path: Path) -> None:
    pd.read_csv(path, sep=" ", header=None, dtype=np.float32)


def write_peers_files(data: RankingData, folder: Path) -> tuple[Path, Path]:
    """The same rows without qid and comment for LightGBM, as bare numbers for pandas."""
    text = (folder / "slice.txt").read_bytes().splitlines()
    bare = folder / "bare.txt"
    bare.write_bytes(b"\n".join(_without_query(line) for line in text) + b"\n")
    table = folder / "table.txt"
    with table.open("w") as out:
        np.savetxt(out, data.X, fmt="%.6f")
    return bare, table


def _without_query(line: bytes) -> bytes:
    label, _, rest = line.split(b" ", 2)
    return label + b" " + rest.partition(b" #")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--columns", type=int, default=136)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="where to put temporary files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        run(Path(folder), options.rows, options.columns, options.threads)


def run(folder: Path, rows: int, columns: int, threads: int) -> None:
    small = make(max(100, rows // 15), columns, seed=1)
    write_letor(small, folder / "slice.txt", digits=6)
    read_letor(folder / "slice.txt")  # compile
    data = make(rows, columns, seed=0)
    text = folder / "rows.txt"
    write_letor(data, text, digits=6)
    mb = text.stat().st_size / 1e6
    print(f"{rows:,} rows x {columns} columns, {mb:.0f} MB of text, {threads} threads")
    ours = reading(folder, small, mb, threads)
    parquet(folder, data, mb, ours, threads)
    writing(folder, data, small, mb, threads)
    memory(text, columns)


def reading(folder: Path, small: RankingData, mb: float, threads: int) -> float:
    print("reading (full validation, comments, document ids):")
    text, part = folder / "rows.txt", folder / "slice.txt"
    ours = report("read_letor", mb, lambda: read_letor(text, threads=threads))
    one = report("read_letor, one thread", mb, lambda: read_letor(text, threads=1))
    bare, table = write_peers_files(small, folder)
    part_mb, bare_mb, table_mb = (p.stat().st_size / 1e6 for p in (part, bare, table))
    peers = {
        "xgboost DMatrix": (mb, lambda: xgboost_read(text, threads)),
        "scikit-learn (slice)": (part_mb, lambda: sklearn_read(part)),
        "lightgbm Dataset, no qid (slice)": (bare_mb, lambda: lightgbm_read(bare, threads)),
        "pandas, bare numbers (slice)": (table_mb, lambda: pandas_read(table)),
    }
    for name, (size, action) in peers.items():
        rate = report(name, size, action)
        print(f"    read_letor is {ours / rate:.1f} x as fast")
    print(f"  {threads} threads are {ours / one:.2f} x as fast as one")
    return ours


def parquet(folder: Path, data: RankingData, mb: float, text_rate: float, threads: int) -> None:
    print("Parquet:")
    path = folder / "rows.parquet"
    report("write_parquet", mb, lambda: write_parquet(data, path))
    print(f"  the file is {mb * 1e6 / path.stat().st_size:.1f} x smaller than the text")
    rate = report("read_parquet", mb, lambda: read_parquet(path, threads=threads))
    print(f"    read_parquet is {rate / text_rate:.1f} x as fast as read_letor")


def writing(folder: Path, data: RankingData, small: RankingData, mb: float, threads: int) -> None:
    print("writing:")
    out, part_mb = folder / "out.txt", (folder / "slice.txt").stat().st_size / 1e6
    fixed = report(
        "write_letor, 6 decimals", mb, lambda: write_letor(data, out, digits=6, threads=threads)
    )
    report("write_letor, shortest", mb, lambda: write_letor(data, out, threads=threads))
    theirs = report("scikit-learn dump (slice)", part_mb, lambda: sklearn_write(small, out))
    print(f"    write_letor is {fixed / theirs:.0f} x as fast")
    source, added = folder / "rows.txt", data.X[:, :10]
    report(
        "append_columns, 10 of them",
        mb,
        lambda: append_columns(source, out, added, threads=threads),
    )


def memory(text: Path, columns: int) -> None:
    tracemalloc.start()
    data = read_letor(text)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"memory per row: {kept / len(data):.0f} bytes kept, {peak / len(data):.0f} at the peak; "
        f"the {columns} values themselves take {4 * columns}"
    )


if __name__ == "__main__":
    main()
