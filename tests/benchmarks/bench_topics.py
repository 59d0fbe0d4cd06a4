"""EM for topic models, K = 100: ours (PLSA, BLTM, BLTM-PR) and scikit-learn's NMF-KL; tomotopy's
Gibbs sampler and fold-in if it can be imported.

Rates count nnz (word types per pair) x topics per iteration; Gibbs counts tokens x topics.

Run: python tests/benchmarks/bench_topics.py [pairs]
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse as sp
from timing import peer, seconds_of, timed

from ssi_models.matrices import check_csr
from ssi_models.parallel import Workers
from ssi_models.topics.bilingual import BLTM
from ssi_models.topics.em import Blocks, EStep, PosteriorConstraint, Prior, iterate
from ssi_models.topics.state import State

K, V = 100, 20_000
ITERATIONS = 16


def synthetic(n: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Queries of 3 and titles of 9 words (about) from 100 planted topics over Zipfian words."""
    rng = np.random.default_rng(0)
    weight = 1 / np.arange(10, V + 10)
    weight /= weight.sum()
    vocabulary = [rng.choice(V, 2000, p=weight) for _ in range(K)]

    def side(mean: int, topics: np.ndarray) -> sp.csr_matrix:
        lengths = 1 + rng.poisson(mean - 1, n)
        rows = np.repeat(np.arange(n), lengths)
        topic = np.where(rng.random(len(rows)) < 0.8, topics[rows], rng.integers(0, K, len(rows)))
        words = np.array(vocabulary)[topic, rng.integers(0, 2000, len(rows))]
        counts = np.ones(len(rows), np.float32)
        return check_csr("side", sp.csr_matrix((counts, (rows, words)), shape=(n, V)))

    topics = rng.integers(0, K, n)
    return side(3, topics), side(9, topics)


def per_iteration(
    Q: sp.csr_matrix, D: sp.csr_matrix, constraint: PosteriorConstraint | None, threads: int
) -> tuple[list[float], list[float]]:
    """Seconds, and gradients per pair, of each iteration after one that compiles."""
    n = Q.shape[0]
    rng = np.random.default_rng(1)
    phis = [1 + rng.random((V, K), np.float32) for _ in "qd"]
    for phi in phis:
        phi /= phi.sum(axis=0)
    state = State(
        np.full((n, K), 1 / K, np.float32),
        phis[0],
        phis[1],
        np.zeros((n, 0 if constraint is None else K), np.float32),
    )
    rows = np.arange(n)
    seconds, gradients = [], []
    with Workers(threads) as workers:
        prior, totals = Prior(1.1, 1.01, constraint), state.zeros()
        e_step = EStep(Blocks(Q, D, rows, rows), state, prior, workers)
        for number in range(1 + ITERATIONS):
            taken, line = timed(
                lambda n=number: iterate(e_step.shards(n), state, prior, totals, workers, n)
            )
            seconds.append(taken)
            gradients.append(line.evaluations)
    return seconds[1:], gradients[1:]


def nmf(X: sp.csr_matrix, iterations: int = 3) -> float:
    from sklearn.decomposition import NMF

    def run(count: int) -> float:
        model = NMF(
            K, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=count, tol=0,
            random_state=0,
        )  # fmt: skip
        return seconds_of(model.fit, X)

    return (run(iterations + 1) - run(1)) / iterations


def tomotopy(X: sp.csr_matrix, threads: int) -> float:
    model = peer("tomotopy").LDAModel(k=K, alpha=0.1, eta=0.01, seed=1)
    for i in range(X.shape[0]):
        row = X[i]
        model.add_doc([str(w) for w in np.repeat(row.indices, row.data.astype(int))])
    model.train(2, workers=threads)
    return seconds_of(lambda: model.train(10, workers=threads)) / 10


def main() -> None:
    import warnings

    warnings.filterwarnings("ignore", category=UserWarning)  # NMF says that it did not converge.
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    Q, D = synthetic(n)
    work = (Q.nnz + D.nnz) * K / 1e9
    print(f"{n} pairs, {Q.nnz + D.nnz} entries, {V} words, {K} topics; G nnz x topics per second")
    for threads in (1, 2):
        plain, _ = per_iteration(Q, D, None, threads)
        print(f"BLTM, {threads} thread(s)     {work / np.median(plain):6.2f}")
    for tolerance in (1e-6, 1e-4):
        projected, gradients = per_iteration(Q, D, PosteriorConstraint(tolerance), 2)
        print(
            f"BLTM-PR {tolerance:.0e}, 2 threads {work / np.median(projected):6.2f}; "
            f"{np.sum(projected) / np.sum(plain):.2f} x plain EM; gradients per pair "
            + " ".join(f"{g:.1f}" for g in gradients)
        )
    model = BLTM(n_topics=K, threads=2)
    model.n_words_ = model.n_query_words_ = V
    model.phi_q_ = model.phi_d_ = np.full((V, K), 1 / V, np.float32)
    model.document_topics(D[:2000])
    rate = D.nnz * K * model.fold_in_iterations / 1e9 / seconds_of(model.document_topics, D)
    print(f"folding-in, 2 threads  {rate:6.2f}")
    part = sp.csr_matrix(D[:10_000])
    print(f"scikit-learn NMF-KL    {part.nnz * K / 1e9 / nmf(part):6.2f}")
    rate = D[:50_000].sum() * K / 1e9 / tomotopy(D[:50_000], 2)
    print(f"tomotopy, 2 threads    {rate:6.2f} (tokens)")


if __name__ == "__main__":
    main()
