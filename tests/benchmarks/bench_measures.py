"""Per-query measures: ours against ranx and ir_measures (pytrec_eval), same run.

    python tests/benchmarks/bench_measures.py [--queries 2000] [--documents 100]

The peers take dictionaries of strings; their conversion is timed apart, ours needs none. Every
pair is checked to agree before it is timed. Last, the time to read the run from a TREC file.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import ranx
from timing import peer, repeated, timed

from letor.dataset import RankingData
from letor.evaluation import Evaluator
from letor.measures import MeasureDefinition
from letor.trec import read_run, write_run


def best_time(call, repeats):
    """Least wall time of several calls, and what the first, which only compiles, returned."""
    result = call()
    return min(repeated(repeats, call)), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--documents", type=int, default=100, help="per query")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    ir_measures = peer("ir_measures", "ir-measures")

    rng = np.random.default_rng(0)
    m, size = arguments.queries, arguments.documents
    n = m * size
    query_ids = [f"q{i:06d}" for i in range(m)]
    names = np.array([f"d{i}" for i in range(size)], dtype=object)
    y = rng.choice([0, 0, 0, 0, 1, 2], n)
    scores = rng.permutation(n).astype(np.float64)
    data = RankingData.from_rows(np.zeros((n, 1)), y, np.repeat(query_ids, size))

    def dictionaries_of(values):
        rows = zip(query_ids, values.reshape(m, size).tolist(), strict=True)
        return {query: dict(zip(names, row, strict=True)) for query, row in rows}

    dictionaries, (qrels, run) = timed(lambda: (dictionaries_of(y), dictionaries_of(scores)))
    typed, (ranx_qrels, ranx_run) = timed(lambda: (ranx.Qrels(qrels), ranx.Run(run)))
    print(f"{m} queries of {size} documents; conversion: dictionaries {dictionaries:.3f} s, "
          f"ranx objects {typed:.3f} s")  # fmt: skip

    pairs = [
        (MeasureDefinition("ndcg", 10, "linear"), "ndcg@10", ir_measures.nDCG @ 10),
        (MeasureDefinition("ap"), "map", ir_measures.AP),
        (MeasureDefinition("precision", 10), "precision@10", ir_measures.P @ 10),
        (MeasureDefinition("rr"), "mrr", ir_measures.RR),
    ]
    for definition, ranx_name, ir_measure in pairs:
        evaluator = Evaluator(definition, data)
        ours, values = best_time(lambda e=evaluator: e.per_query(scores), arguments.repeats)
        whole, _ = best_time(
            lambda d=definition: Evaluator(d, data).per_query(scores), arguments.repeats
        )
        by_ranx, ranx_values = best_time(
            lambda r=ranx_name: ranx.evaluate(ranx_qrels, ranx_run, r, return_mean=False),
            arguments.repeats,
        )
        by_ir, found = best_time(
            lambda i=ir_measure: {
                v.query_id: v.value for v in ir_measures.iter_calc([i], qrels, run)
            },
            arguments.repeats,
        )
        for theirs in (ranx_values, [found[q] for q in query_ids]):
            if not np.allclose(values, theirs):
                sys.exit(f"{definition.name}: values differ from a peer's; nothing to compare")
        print(
            f"{definition.name:8s} ours {1e3 * ours:7.2f} ms (labels prepared each time: "
            f"{1e3 * whole:7.2f} ms), ranx {1e3 * by_ranx:8.1f} ms = {by_ranx / ours:6.1f} x, "
            f"ir_measures {1e3 * by_ir:8.1f} ms = {by_ir / ours:6.1f} x"
        )

    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.trec"
        write_run(
            pd.DataFrame({"qid": np.repeat(query_ids, size), "docno": np.tile(names, m),
                          "score": scores}), path,
        )  # fmt: skip
        ours, _ = best_time(lambda: read_run(path), arguments.repeats)
        by_ranx, _ = best_time(lambda: ranx.Run.from_file(str(path), kind="trec"), 1)
        by_ir, _ = best_time(lambda: list(ir_measures.read_trec_run(str(path))), arguments.repeats)
        print(
            f"reading the run of {n:,} lines: ours {ours:.2f} s, ranx {by_ranx:.2f} s = "
            f"{by_ranx / ours:.1f} x, ir_measures {by_ir:.2f} s = {by_ir / ours:.1f} x"
        )


if __name__ == "__main__":
    main()
