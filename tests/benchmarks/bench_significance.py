"""Randomisation test of 1,000 queries x 10 pairs x 10,000 permutations: ours, scipy, ranx.

Run: python tests/benchmarks/bench_significance.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from timing import repeated

from ltr_features.studies.statistics.paired_tests import (
    bootstrap_interval,
    fisher_randomisation,
    paired_t,
)

QUERIES, PAIRS, PERMUTATIONS = 1000, 10, 10_000


def seconds(work: Callable[..., object], *arguments: object, runs: int = 3, **options) -> float:
    """The best of a few runs, after a first one."""
    _, *times = repeated(1 + runs, work, *arguments, **options)
    return min(times)


def with_scipy(d: np.ndarray) -> None:
    from scipy.stats import permutation_test

    for j in range(d.shape[1]):
        permutation_test(
            (d[:, j],),
            lambda x, axis: x.mean(axis=axis),
            permutation_type="samples",
            n_resamples=PERMUTATIONS,
            vectorized=True,
            batch=1000,
            rng=0,
        )


def with_ranx(d: np.ndarray) -> None:
    from ranx.statistical_tests import fisher_randomization_test

    for j in range(d.shape[1]):
        fisher_randomization_test(d[:, j], np.zeros(len(d)), n_permutations=PERMUTATIONS)


def main() -> None:
    d = np.random.default_rng(0).normal(0.01, 0.2, (QUERIES, PAIRS))
    ours = seconds(fisher_randomisation, d, n_permutations=PERMUTATIONS)
    print(f"{QUERIES} queries x {PAIRS} pairs x {PERMUTATIONS} permutations, best of runs")
    print(f"ours   {ours:8.4f} s   (goal: at most 0.1 s)")
    for name, peer in (("scipy", with_scipy), ("ranx", with_ranx)):
        peer_seconds = seconds(peer, d, runs=1)
        print(f"{name:6} {peer_seconds:8.4f} s   {peer_seconds / ours:7.0f} x ours")
    print(f"bootstrap intervals {seconds(bootstrap_interval, d):.4f} s")
    print(f"paired t            {seconds(paired_t, d):.4f} s")


if __name__ == "__main__":
    main()
