"""Hash kernels, training and scoring in word pairs per second: ours and Vowpal Wabbit's ``-q``.

Both have 2^20 weights, one thread, texts of 100 distinct words drawn by Zipf's law. A word pair is
one (query word, document word) of one (query, document) pair that is scored, or learned from.
Vowpal Wabbit learns from one pair of texts at a time; its examples are parsed beforehand. Ours
learns from batches of queries with shared negatives and counts the same word pairs: B positives
and B x K negatives per batch. Medians of three runs.

    python tests/benchmarks/bench_hash_kernels.py
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits
from timing import NotInstalledError, peer, seconds_of

from ssi_models.matrices import check_csr
from ssi_models.parallel import Workers
from ssi_models.ssi.hash_kernel import HashKernelSSI
from ssi_models.training.preferences import Preferences

N_WORDS, LENGTH, N_TEXTS, BUCKETS = 30_000, 100, 2_000, 2**20
B = K = 256
N_EXAMPLES = 1_000


def texts(seed: int) -> sp.csr_matrix:
    """Unit rows of 100 words."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(20, N_WORDS + 20)
    chance /= chance.sum()
    columns = [rng.choice(N_WORDS, LENGTH, replace=False, p=chance) for _ in range(N_TEXTS)]
    weights = rng.random(N_TEXTS * LENGTH, np.float32) / 7
    indptr = np.arange(N_TEXTS + 1) * LENGTH
    return check_csr("X", sp.csr_matrix((weights, np.concatenate(columns), indptr),
                                        (N_TEXTS, N_WORDS)))  # fmt: skip


def median_of(work: Callable[[], float]) -> float:
    """Of three runs, after one that compiles."""
    work()
    return median(work() for _ in range(3))


def ours(X: sp.csr_matrix) -> tuple[float, float]:
    """Word pairs per second of training, and of scoring pairs of texts."""
    rng = np.random.default_rng(5)
    pairs = np.unique(rng.integers(N_TEXTS, size=(8 * B, 2)), axis=0)
    labels = Preferences.from_pairs(*pairs.T, n_queries=N_TEXTS, n_documents=N_TEXTS)
    model = HashKernelSSI(
        n_buckets=BUCKETS, batch_size=B, n_negatives=K, max_epochs=0, threads=1
    ).fit(X, X, labels)
    data = model._prepared(X, X, labels)
    with Workers(1) as workers, threadpool_limits(1, user_api="blas"):
        run = model.make_run(data, 0.03, workers)
        batches = run.batches(0)

        def train() -> float:
            batch = next(batches)
            n = len(batch.query) * (len(batch.negatives) + 1)
            return n * LENGTH**2 / seconds_of(run.step, batch)

        def score() -> float:
            seconds = seconds_of(lambda: model.cache(X).scores(X[:B]))
            return B * N_TEXTS * LENGTH**2 / seconds

        return median_of(train), median_of(score)


def vowpal_wabbit(X: sp.csr_matrix) -> tuple[float, float] | None:
    """The same of Vowpal Wabbit; None if it cannot be imported."""
    try:
        library = peer("vowpalwabbit")
    except NotInstalledError as error:
        print(f"left out: {error}, into another environment")
        return None
    vw = library.Workspace("-q ab --noconstant -b 20 --loss_function hinge --quiet")
    rng = np.random.default_rng(6)

    def words(row: int) -> str:
        own = slice(*X.indptr[row : row + 2])
        return " ".join(f"{j}:{x:.5f}" for j, x in zip(X.indices[own], X.data[own], strict=True))

    rows = rng.integers(N_TEXTS, size=(N_EXAMPLES, 2)).tolist()
    lines = [f"{1 - 2 * (i % 2)} |a {words(q)} |b {words(d)}" for i, (q, d) in enumerate(rows)]

    def pass_over(act: Callable[[object], object]) -> float:
        examples = [vw.parse(line) for line in lines]
        return N_EXAMPLES * LENGTH**2 / seconds_of(lambda: [act(one) for one in examples])

    return median_of(lambda: pass_over(vw.learn)), median_of(lambda: pass_over(vw.predict))


def main() -> None:
    X = texts(0)
    rates = {"ours": ours(X), "Vowpal Wabbit -q": vowpal_wabbit(X)}
    for name, found in rates.items():
        if found is not None:
            print(f"{name:18} training {found[0] / 1e6:8.1f} M word pairs/s, "
                  f"scoring {found[1] / 1e6:8.1f} M word pairs/s")  # fmt: skip
    peer = rates["Vowpal Wabbit -q"]
    if peer is not None:
        train, score = (a / b for a, b in zip(rates["ours"], peer, strict=True))
        print(f"ours / Vowpal Wabbit: training {train:.1f}, scoring {score:.1f}")


if __name__ == "__main__":
    main()
