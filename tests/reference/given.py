"""Scores and vectors that other systems might have made."""

import atexit
import gzip
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from safetensors.numpy import save_file

from ltr_features.text.collection import Pairs


def given_files() -> Path:
    """A folder for the collection of the contracts: ``engine.tsv`` (scores of half of the pairs of
    queries q0 to q6 and documents d0 to d39), ``numbers.csv`` (two of each document),
    ``queries.npy`` and ``documents.npy`` (five numbers each) and their ids."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rng = np.random.default_rng(8)
    lines = [f"q{q}\td{d}\t{rng.normal():.4f}" for q in range(7) for d in range(q % 2, 40, 2)]
    (folder / "engine.tsv").write_text("qid\tdocno\tscore\n" + "\n".join(lines) + "\n")
    numbers = "".join(f"d{d},{d * 1.25},\n" for d in range(39))
    (folder / "numbers.csv").write_text(f"id,Unit price,stars\nd39,,4\n{numbers}")
    for name, prefix, n in (("queries", "q", 7), ("documents", "d", 40)):
        vectors = rng.normal(size=(n, 5)).astype(np.float32)
        vectors[3] = 0
        np.save(folder / f"{name}.npy", vectors[:-1])
        ids = "".join(f"{prefix}{i}\n" for i in range(n - 1))
        (folder / f"{name}.txt").write_text(ids)
    return folder


#: (query, document): score; "a" and "b" have no score for d2, "c" is not in the collection.
SCORES = {("a", "d0"): 1.5, ("a", "d1"): -2.0, ("b", "d0"): 3.0, ("b", "d1"): 3.0, ("c", "d0"): 9.0}

PAIRS = Pairs(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 1, 2]))


def write_scores(path, form):
    """Write :data:`SCORES` in one of the forms that are read; return the path."""
    rows = [(q, d, s) for (q, d), s in SCORES.items()]
    if form == "run":
        path.write_text("".join(f"{q} Q0 {d} 1 {s} x\n" for q, d, s in rows))
    elif form in ("csv", "tsv"):
        mark = {"csv": ",", "tsv": "\t"}[form]
        lines = ["Query-Id,Doc ID,rank,engine", *(f"{q},{d},1,{s}" for q, d, s in rows)]
        path.write_text("\n".join(lines).replace(",", mark) + "\n")
    elif form == "csv.gz":
        text = "score,docno,qid\n" + "".join(f"{s},{d},{q}\n" for q, d, s in rows)
        path.write_bytes(gzip.compress(text.encode()))
    elif form == "jsonl":
        lines = [f'{{"qid": "{q}", "docno": "{d}", "s": {s}}}\n' for q, d, s in rows]
        path.write_text("".join(lines))
    else:
        columns = zip(*rows, strict=True)
        pq.write_table(pa.table(dict(zip(("query_id", "doc_id", "s"), columns, strict=True))), path)
    return path


def save_vectors(path, rows, ids):
    """Write vectors in the format of the path's suffix, and their ids; return the path."""
    if path.suffix == ".parquet":
        flat = pa.array(rows.ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
        names = pa.array(ids, pa.large_string())  # as polars writes it
        pq.write_table(pa.table({"id": names, "vector": lists}), path)
        return path
    if path.suffix == ".vec":
        lines = (f"{name} {' '.join(map(str, row))}\n" for name, row in zip(ids, rows, strict=True))
        path.write_text(f"{rows.shape[0]} {rows.shape[1]}\n" + "".join(lines))
        return path
    path.with_suffix(".txt").write_text("".join(f"{name}\n" for name in ids))
    if path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".npz":
        sp.save_npz(path, sp.csr_matrix(rows))
    else:
        save_file({"embedding": rows}, path)
    return path
