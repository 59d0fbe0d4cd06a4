"""Time and size of a report on 1,000 queries x 20 systems, 10,000 permutations each.

python tests/benchmarks/bench_reports.py [QUERIES] [SYSTEMS]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from ltr_features.studies.page import html
from ltr_features.studies.page.outputs import write_outputs
from ltr_features.studies.page.report import (
    ColumnInfo,
    QueryRankings,
    RankedDocument,
    Report,
    Study,
    SystemResult,
)
from ltr_features.studies.statistics.hard_queries import hard_query_table
from ltr_features.studies.statistics.query_classes import query_class_table, query_classes
from ltr_features.studies.statistics.significance import TestSettings

MEASURES = ["NDCG@10", "NDCG@20", "MAP", "P@10"]
COLUMNS = [f"column {i}" for i in range(100)]


def report_of(n_queries: int, n_systems: int, seed: int = 0) -> Report:
    """Random per-query values of systems that differ a little; all compared with the first. Each
    has a ranker of 100 columns; queries are classed, and documents move in 24 of them."""
    rng = np.random.default_rng(seed)
    ids = [f"q{i:06d}" for i in range(n_queries)]
    base = rng.beta(1.2, 1.6, (n_queries, 1))
    systems = []
    for i in range(n_systems):
        values = np.clip(base + rng.normal(0.003 * i, 0.1, (n_queries, len(MEASURES))), 0, 1)
        frame = pd.DataFrame(np.round(values, 6), index=ids, columns=MEASURES)
        gain = pd.DataFrame({"column": COLUMNS, "gain": rng.gamma(0.5, 100, len(COLUMNS))})
        systems.append(
            SystemResult(
                f"system {i}",
                "random values",
                frame,
                columns=COLUMNS[: 80 + i],
                importance=gain[: 80 + i],
            )
        )
    test = TestSettings(n_permutations=10_000)
    hard = {s.name: s.per_query["NDCG@20"] for s in systems}
    words = [f"word{i}" for i in range(5000)]
    kinds = query_classes(
        pd.DataFrame(
            {"words": rng.integers(1, 12, n_queries), "entities": rng.integers(0, 4, n_queries)},
            index=ids,
        )
    )
    headline = (systems[1].per_query["NDCG@10"], systems[0].per_query["NDCG@10"])
    pushes = [("column 1", 0.5), ("column 2", 0.25), ("column 3", 0.1)]
    moves = [
        RankedDocument(f"d{i}", "The title of a document", 1, i + 2, i + 1, pushes)
        for i in range(6)
    ]
    study = Study(
        name="Benchmark",
        description="",
        split_rule="",
        systems=systems,
        pairs=[(s.name, systems[0].name) for s in systems[1:]],
        measures=MEASURES,
        query_texts={q: " ".join(rng.choice(words, 6)) for q in ids},
        hard_queries=hard_query_table(
            hard["system 0"], {"system 1": hard["system 1"]}, settings=test
        ),
        query_classes=query_class_table(kinds, {"1 - 0": headline}, settings=test),
        query_kinds=kinds,
        drill_down=[QueryRankings(q, moves) for q in ids[:24]],
        column_correlation=pd.DataFrame(
            np.corrcoef(rng.normal(size=(len(COLUMNS), 30))), COLUMNS, COLUMNS
        ),
        test=test,
    )
    columns = [ColumnInfo(name, f"family {i // 20}", name) for i, name in enumerate(COLUMNS)]
    return Report(title="Benchmark", introduction="", studies=[study], columns=columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n_queries", metavar="QUERIES", type=int, nargs="?", default=1000)
    parser.add_argument("n_systems", metavar="SYSTEMS", type=int, nargs="?", default=20)
    n_queries, n_systems = vars(parser.parse_args()).values()
    start = time.perf_counter()
    report = report_of(n_queries, n_systems)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report"
        path.mkdir()
        size = len(html.render(report).encode()) / 1e6
        page = time.perf_counter() - start
        write_outputs(report, path)
        every = time.perf_counter() - start
        total = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) / 1e6
    print(
        f"{n_queries:,} queries x {n_systems} systems: tests and page {page:.1f} s, {size:.2f} MB; "
        f"with all other files {every:.1f} s, {total:.1f} MB"
    )


if __name__ == "__main__":
    main()
