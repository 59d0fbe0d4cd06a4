"""Runs of a good system and of a bad one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from letor.dataset import RankingData
from letor.trec import qrels_of, run_of, write_qrels, write_run
from letor.writing import write_letor


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """20 queries of 5 rows: a good system, a bad one, in all formats."""
    folder: Path = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    y = np.tile([2, 1, 0, 0, 0], 20).astype(np.float32)
    order = np.concatenate([5 * i + rng.permutation(5) for i in range(20)])
    y = y[order]
    rows = RankingData(
        X=np.stack([y, rng.random(100)], axis=1).astype(np.float32),
        y=y,
        query_ids=[f"q{i}" for i in range(20)],
        query_index=np.repeat(np.arange(20), 5),
        column_names=["a", "b"],
        document_ids=np.array([f"d{i:03d}" for i in range(100)], dtype=object),
    )
    scores = {"good": y + 0.5 * rng.random(100), "bad": rng.random(100)}
    write_letor(rows, folder / "rows.txt")
    write_qrels(qrels_of(rows), folder / "qrels.txt")
    for name, values in scores.items():
        write_run(run_of(rows, values), folder / f"{name}.run")
        (folder / f"{name}.scores").write_text("".join(f"{v!r}\n" for v in values.tolist()))
        lines = [
            f"q{i // 5}\t{i % 5}\t{v!r}\n" for i, v in enumerate(values.tolist())
        ]  # RankLib -score
        (folder / f"{name}.ranklib").write_text("".join(lines))
    return folder, rows, scores
