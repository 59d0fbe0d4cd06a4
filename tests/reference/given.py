"""Scores and vectors that other systems might have made for the collection of the contracts."""

import atexit
import shutil
import tempfile
from pathlib import Path

import numpy as np


def given_files() -> Path:
    """A folder with ``engine.tsv`` (scores of half of the pairs of queries q0 to q6 and documents
    d0 to d39), ``numbers.csv`` (two of each document), ``queries.npy`` and ``documents.npy`` (five
    numbers each) and their ids."""
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
