"""Per-query measures: our kernels against ranx and ir_measures (pytrec_eval), same run.

    python tests/benchmarks/bench_measures.py [--queries 2000] [--documents 100]

The peers take dictionaries of strings; their conversion is timed apart, ours needs none. Every
pair is checked to agree before it is timed.
"""

import argparse
import importlib
import sys
import time

import numpy as np

from letor.dataset import RankingData
from letor.evaluation import Evaluator
from letor.measures import MeasureDefinition


def peer(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        sys.exit(f"this benchmark compares with {name}: pip install {name.replace('_', '-')}")


def best_time(call, repeats):
    """Least wall time of several calls, and the last result; the first call only compiles."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--documents", type=int, default=100, help="per query")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    ranx, ir_measures = peer("ranx"), peer("ir_measures")

    rng = np.random.default_rng(0)
    m, size = arguments.queries, arguments.documents
    n = m * size
    query_ids = [f"q{i:06d}" for i in range(m)]
    names = np.array([f"d{i}" for i in range(size)], dtype=object)
    y = rng.choice([0, 0, 0, 0, 1, 2], n)
    scores = rng.permutation(n).astype(np.float64)
    data = RankingData.from_rows(np.zeros((n, 1)), y, np.repeat(query_ids, size))

    start = time.perf_counter()
    lists = zip(query_ids, y.reshape(m, size).tolist(), scores.reshape(m, size).tolist(),
                strict=True)  # fmt: skip
    qrels, run = {}, {}
    for q, labels, values in lists:
        qrels[q] = dict(zip(names, labels, strict=True))
        run[q] = dict(zip(names, values, strict=True))
    dictionaries = time.perf_counter() - start
    start = time.perf_counter()
    ranx_qrels, ranx_run = ranx.Qrels(qrels), ranx.Run(run)
    typed = time.perf_counter() - start
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


if __name__ == "__main__":
    main()
