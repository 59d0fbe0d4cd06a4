"""Projection models against their peers: ``svd``, ``s2net`` and ``opca``.

- ``svd``: 200 singular vectors of Wikispeedia, 4,598 x 30,000 tf-idf, by ours, scikit-learn's
  randomised SVD and scipy's Lanczos: median seconds, and the share of the best energy.
- ``s2net``: seconds after the LSA start to the best validation loss of L-BFGS, by L-BFGS and by
  mini-batches, and tuples (q, d+, d-) per second of both and of PyTorch (skipped where it is not
  installed): of the same mini-batches, whose pairs share their negatives, and of the usual ones,
  whose pairs have 4 of their own. A tuple of shared negatives costs, and teaches, less than one of
  its own, so that the two kinds of rates are not to be compared as if they were one. On the titles
  of NFCorpus and on English-Japanese sentences.
- ``opca``: seconds by the number of words, dense and matrix-free.

Two cores that others used too, medians of 3, one split per run for ``s2net``:

- 200 vectors in 1.65 s; scikit-learn 4.8 s (its choice), 11.6 s (4 iterations), scipy 7.2 s (one
  run).
- S2Net, 2 threads: mini-batches reach the loss on every split, in 1/8.8, 1/11 and 1/13 of L-BFGS's
  1.1 to 1.4 s on NFCorpus (1/6.9 to 1/14 over five runs), in 1/18 to 1/30 of its 3.1 to 4.0 s on
  the sentences.
- M tuples/s of S2Net, NFCorpus and sentences: steps of our mini-batches 41 and 34, the same in
  PyTorch 9.6 and 6.8 (4.3 and 5.0 x; 3.8 to 4.3 and 3.0 to 5.0 over four runs). Four negatives of
  its own per pair: L-BFGS 5.6 and 1.2, usual mini-batches in PyTorch 0.19 and 0.27 with SGD (30
  and 4.4 x), 0.14 and 0.16 with AdaGrad.
- A step of NFCorpus takes 1.5 ms on one thread: gradients and their three matrix products 0.63, the
  update of words 0.25, texts projected 0.20, turned by word 0.11; one of the sentences 2.1 ms
  (0.88, 0.32, 0.35, 0.17), on two threads 1.8 ms.
- OPCA matrix-free, 100 directions of NFCorpus and random words, one run on one thread: 40,000 words
  15 s and 0.9 GiB of memory at most, 100,000 words 26 s and 1.1 GiB.

    LTR_DATA=<data folder> python tests/benchmarks/bench_projections.py svd|s2net|opca
        [--data nfcorpus|sentences] [--threads 2] [--runs 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import chain, count, islice
from statistics import median
from typing import Any

import numpy as np
import ranking_tasks
import scipy.sparse as sp
from data_sets import data_folder, folder_of
from threadpoolctl import threadpool_limits
from timing import repeated, timed

from ltr_features.text.analyzer import Analyzer
from ssi_models.parallel import Workers
from ssi_models.projections import opca
from ssi_models.projections.opca import OPCA
from ssi_models.projections.svd import right_singular_vectors
from ssi_models.s2net.model import S2Net
from ssi_models.training.preferences import Preferences
from ssi_models.weighting import TfIdf

Data = tuple[sp.csr_matrix, sp.csr_matrix, Preferences, dict[str, Any]]
# The library's own settings of mini-batches, chosen on splits of seeds 7 to 12 of both data sets;
# the timed splits are those of seeds 0, 1, ...
MINI_BATCH = S2Net()


def nfcorpus() -> Data:
    """Training queries and titles."""
    from ltr_features.studies.kinds.clickthrough_config import TaskConfig
    from ltr_features.studies.kinds.clickthrough_tasks import make_task

    task = make_task(TaskConfig(folder="nfcorpus", train="train"), data_folder())
    weigh = TfIdf().fit(task.D).transform
    return weigh(task.Q), weigh(task.D), task.train, {}


def sentences() -> Data:
    """50,000 English sentences and their Japanese translations; words of two sentences or more."""
    matrices = []
    for language in ("en", "ja"):
        path = folder_of("small_parallel_enja") / f"train.{language}"
        texts = path.read_text(encoding="utf-8").splitlines()
        matrices.append(ranking_tasks.of_texts(texts, Analyzer(min_length=1), 2)[0])
    every = np.arange(len(texts))
    return *matrices, ranking_tasks.pairs(matrices, every, every), {"vocabularies": "separate"}


def median_of(runs: int, work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """(Median seconds, last result)."""
    seconds, results = zip(*(timed(work, *arguments) for _ in range(runs)), strict=True)
    return median(seconds), results[-1]


def svd(threads: int, runs: int) -> None:
    from bench_ssi import task_of
    from scipy.sparse.linalg import svds
    from sklearn.utils.extmath import randomized_svd

    X = task_of(full=True).D
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz} entries, 200 vectors, {threads} threads")

    def ours() -> Any:
        with Workers(threads) as workers:
            return right_singular_vectors([X], 200, 0, workers)[0]

    def theirs(n_iter: Any) -> Any:
        with threadpool_limits(threads):
            return randomized_svd(X, 200, n_iter=n_iter, random_state=0)[2].T

    ours()
    rows = {
        "ours": median_of(runs, ours),
        "scikit-learn, 4 iterations": median_of(runs, theirs, 4),
        "scikit-learn, its choice": median_of(runs, theirs, "auto"),
        "scipy svds": timed(lambda: svds(X, k=200, random_state=0)[2].T),
    }
    energy = {name: (np.asarray(X @ V, np.float64) ** 2).sum() for name, (_, V) in rows.items()}
    for name, (seconds, _) in rows.items():
        share = energy[name] / energy["scipy svds"]
        ratio = seconds / rows["ours"][0]
        print(f"{name:28} {seconds:6.2f} s  {ratio:5.2f} x ours  energy {share:.5f}")


def s2net(data: Data, threads: int, runs: int) -> None:
    Q, D, pairs, options = data
    print(f"{len(pairs)} pairs, {Q.shape} queries, {D.shape} documents, {threads} threads")
    common = {"threads": threads, "margin": 0.1, "validation_measure": "loss", "word_weight": 0.0}
    # The objective of L-BFGS, and of the validation loss.
    common |= {"validation_share": 0.05, "negatives": "uniform", **options}
    full = {"optimizer": "l-bfgs", "max_epochs": 40, "patience": 5}
    for settings in (full, {}):
        S2Net(**common | settings | {"max_epochs": 1}).fit(Q, D, pairs)  # compiles

    def curve(**settings: Any) -> list[tuple[float, float]]:
        """(seconds after the start, validation loss) of each epoch."""
        line: list[tuple[float, float]] = []
        S2Net(**common | settings).fit(
            Q,
            D,
            pairs,
            callback=lambda epoch: line.append((time.perf_counter(), -epoch.validation)),
        )
        return [(at - line[0][0], loss) for at, loss in line]

    best, slow, fast = [], [], []
    for seed in range(runs):
        line_of_full = curve(**full, seed=seed)
        at, goal = min(line_of_full, key=lambda point: point[1])
        best.append(goal)
        slow.append(at)
        line = curve(max_epochs=40, patience=40, seed=seed)
        fast.append(next((at for at, loss in line if loss <= goal), float("inf")))
    for loss, l_bfgs, mini_batches in zip(best, slow, fast, strict=True):
        ratio = f"1/{l_bfgs / mini_batches:.1f}" if mini_batches < float("inf") else "not reached"
        print(f"loss {loss:.4f}: L-BFGS {l_bfgs:.2f} s, mini-batches {mini_batches:.2f} s, {ratio}")
    ratios = sorted(m / at for m, at in zip(fast, slow, strict=True))
    print(f"median of mini-batches / L-BFGS: {median(ratios):.2f}")
    rate = our_rate(data, threads, runs)
    print(f"{rate / 1e6:.1f} M tuples/s in mini-batches")
    # An iteration's one gradient or more, of the pairs that training keeps, and its validation.
    own = 0.95 * len(pairs) * (len(line_of_full) - 1) * 4 / line_of_full[-1][0]
    print(f"{own / 1e6:.2f} M tuples/s in L-BFGS, each pair with 4 documents of its own")
    try:
        rates = torch_rates(data, threads, runs)
    except ImportError:
        print("PyTorch is not installed: no peer for the rate")
        return
    for name, theirs in rates.items():
        ours = f"ours {rate / theirs:.1f} x in mini-batches, {own / theirs:.1f} x in L-BFGS"
        print(f"PyTorch, {name}: {theirs / 1e6:.3f} M tuples/s: {ours}")


def our_rate(data: Data, threads: int, runs: int) -> float:
    """Tuples per second of the steps, batches drawn included, without validation."""
    Q, D, pairs, options = data
    model = S2Net(threads=threads, negatives="uniform", **options)
    with Workers(threads) as workers, threadpool_limits(1, user_api="blas"):
        training = model._prepared(Q, D, pairs)
        run = model.make_run(training, model.training.rates[0], workers)
        batches = chain.from_iterable(run.batches(number) for number in count())
        for batch in islice(batches, 3):
            run.step(batch)

        def steps() -> int:
            chosen = islice(batches, 40)
            return sum(len(batch.query) for batch in chosen if run.step(batch))

        seconds, n_pairs = median_of(runs, steps)
    return n_pairs * model.training.n_negatives / seconds


def torch_rates(data: Data, threads: int, runs: int) -> dict[str, float]:
    """Tuples per second in PyTorch, with bags of words and sparse gradients, on one thread or on
    all, whichever is faster: of our mini-batches (by AdaGrad: its RMSProp takes no sparse
    gradients), and of the usual ones, 256 pairs with 4 random documents each."""
    import torch
    from torch.nn.functional import embedding_bag, normalize, softplus

    Q, D, pairs, options = data

    def embed(X: sp.csr_matrix, rows: Any, A: Any) -> Any:
        chosen = X[rows]
        words, starts = (
            torch.from_numpy(a.astype(np.int64)) for a in (chosen.indices, chosen.indptr[:-1])
        )
        weights = torch.from_numpy(chosen.data)
        bag = embedding_bag(words, A, starts, mode="sum", per_sample_weights=weights, sparse=True)
        return normalize(bag)

    def rate(optimizer: Any, batch_size: int, n_drawn: int, shared: bool) -> float:
        rng = np.random.default_rng(0)
        A_q, A_d = (
            torch.tensor(rng.standard_normal((X.shape[1], 100), np.float32), requires_grad=True)
            for X in (Q, D)
        )
        if "vocabularies" not in options:
            A_d = A_q
        tables = [A_q] if A_d is A_q else [A_q, A_d]
        stepping = optimizer(tables)
        steps = min(43 if shared else 103, len(pairs) // batch_size)
        order = rng.permutation(len(pairs))
        for step in range(steps):
            if step == 3:
                begun = time.perf_counter()
            batch = order[step * batch_size : (step + 1) * batch_size]
            q, p = embed(Q, pairs.query[batch], A_q), embed(D, pairs.document[batch], A_d)
            own = (q * p).sum(1, keepdim=True)
            if shared:
                other = q @ embed(D, rng.choice(D.shape[0], n_drawn, replace=False), A_d).T
            else:
                n = embed(D, rng.integers(D.shape[0], size=batch_size * n_drawn), A_d)
                other = (q[:, None] * n.view(batch_size, n_drawn, -1)).sum(2)
            loss = softplus(-10 * (own - other)).mean()
            stepping.zero_grad()
            loss.backward()
            stepping.step()
        return (steps - 3) * batch_size * n_drawn / (time.perf_counter() - begun)

    def adagrad(tables: Any) -> Any:
        return torch.optim.Adagrad(tables, lr=0.1)

    def best(*settings: Any) -> float:
        rates = []
        for n in sorted({1, threads}):
            torch.set_num_threads(n)
            rates.append(median(rate(*settings) for _ in range(runs)))
        return max(rates)

    B, K = MINI_BATCH.training.batch_size, MINI_BATCH.training.n_negatives
    return {
        "the same mini-batches": best(adagrad, B, K, True),
        "256 pairs with 4 documents each, AdaGrad": best(adagrad, 256, 4, False),
        "the same, Adam": best(lambda tables: torch.optim.SparseAdam(tables), 256, 4, False),
        "the same, SGD": best(lambda tables: torch.optim.SGD(tables, lr=0.1), 256, 4, False),
    }


def opca_times(threads: int, runs: int) -> None:
    """Random words added to NFCorpus until there are enough."""
    Q, D, pairs, _ = nfcorpus()
    rng = np.random.default_rng(0)

    def seconds(Q: sp.csr_matrix, D: sp.csr_matrix) -> float:
        return median(repeated(runs, OPCA(threads=threads).fit, Q, D, pairs))

    few = Q[:, :3_000], D[:, :3_000]
    line = f"  3,000 words: matrix-free {seconds(*few):6.1f} s"
    opca.DENSE_WORDS = 3_000
    print(f"{line}, dense {seconds(*few):6.1f} s", flush=True)
    opca.DENSE_WORDS = 2_000
    print(f"{D.shape[1]:7,} words: matrix-free {seconds(Q, D):6.1f} s", flush=True)
    for n_words in (40_000, 100_000):
        extra = n_words - D.shape[1]
        noise = sp.random_array((D.shape[0], extra), density=20 / extra, rng=rng, dtype=np.float32)
        wide = sp.csr_matrix(sp.hstack([D, 0.1 * noise]))
        queries = sp.csr_matrix((Q.data, Q.indices, Q.indptr), (Q.shape[0], n_words))
        print(f"{n_words:7,} words: matrix-free {seconds(queries, wide):6.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("svd", "s2net", "opca"))
    parser.add_argument("--data", choices=("nfcorpus", "sentences"), default="nfcorpus")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if options.what == "svd":
        svd(options.threads, options.runs)
    elif options.what == "opca":
        opca_times(options.threads, options.runs)
    else:
        data = nfcorpus() if options.data == "nfcorpus" else sentences()
        s2net(data, options.threads, options.runs)


if __name__ == "__main__":
    main()
