"""Link ranking on Wikispeedia: MAP and rank loss over training time of U'V + I, against baselines.

Links are split 70/30; every query is an article, the documents are all articles. Settings were
chosen on training links kept apart, never on test links. ``--steps`` prints the time of one step
of the models instead.

What was chosen, by MAP of a tenth of the training links (one seed; up to 12 epochs): words left
out at random and a factor for the learned part help most (.168 without both, .172 with words left
out, .176 with the factor, .186 with both); rank 200 gives .187 in twice the time. Negatives from
the uniform pool are best: in-batch ones, drawn by popularity, give .138 where uniform ones give
.189 (both with 1 + log(tf)). WARP on uniform negatives gives .168 where equal
weights give .161 and MAP's weights .173 where WARP gives .185 (with dropout).

    LTR_DATA=<data folder> python tests/benchmarks/bench_ssi.py [--full] [--seconds 30]
        [--model ssi] [--set rank=100 ...] [--baselines] [--validation] [--steps]
"""

from __future__ import annotations

import argparse
import re
import time
from ast import literal_eval

import numpy as np
import scipy.sparse as sp
import wikispeedia
from threadpoolctl import threadpool_limits

from ssi_models.kernels.pair_losses import judged_lists, ranking_measures
from ssi_models.matrices import check_csr
from ssi_models.parallel import Workers
from ssi_models.registry import get_model
from ssi_models.training.preferences import Preferences
from ssi_models.weighting import TfIdf

N_WORDS, TOP = 30_000, 100
#: Chosen by hand on a tenth of the training links, 4 to 12 epochs per trial (``--validation``).
SETTINGS = {
    "rank": 100,
    "rank_weight": "warp",
    "accumulator_start": 0.1,
    "dropout": 0.5,
    "scales": (0.1, 0.2, 0.3),
    "batch_size": 256,
    "n_negatives": 256,
    "hold_out": "pairs",
    "validation_share": 0.05,
    "max_epochs": 1000,
    "patience": 3,
}


def tfidf(full: bool, log_tf: bool = False) -> sp.csr_matrix:
    """Unit tf-idf rows over the 30,000 most frequent words; 100 heaviest words each, or all.

    With ``log_tf`` a word that occurs tf times counts 1 + log(tf).
    """
    _, texts = wikispeedia.articles()
    counts: dict[str, int] = {}
    rows = []
    for text in texts:
        row: dict[str, int] = {}
        for word in re.findall(r"\w\w+", text.lower()):
            row[word] = row.get(word, 0) + 1
        rows.append(row)
        for word in row:
            counts[word] = counts.get(word, 0) + 1
    words = sorted(counts, key=lambda w: (-counts[w], w))[:N_WORDS]
    number = {word: j for j, word in enumerate(words)}
    entries = [
        (i, number[w], c) for i, row in enumerate(rows) for w, c in row.items() if w in number
    ]
    i, j, c = np.array(entries).T
    X = sp.csr_matrix((c.astype(np.float32), (i, j)), (len(texts), len(words)))
    if log_tf:
        X.data = 1 + np.log(X.data)
    weighted = TfIdf().fit(X).transform(X)
    if not full:
        weighted = sp.csr_matrix(weighted)
        for row in range(weighted.shape[0]):
            own = slice(*weighted.indptr[row : row + 2])
            if own.stop - own.start > TOP:
                least = np.partition(weighted.data[own], -TOP)[-TOP]
                weighted.data[own][weighted.data[own] < least] = 0
        weighted.eliminate_zeros()
        norm = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1))).ravel()
        weighted = sp.diags(1 / np.maximum(norm, 1e-12)) @ weighted
    return check_csr("X", weighted.tocsr())


def split(n: int, seed: int = 0) -> tuple[Preferences, Preferences]:
    """Links of training (70 %) and of testing; links of an article to itself are left out."""
    links = np.unique([(a, b) for a, b in wikispeedia.links() if a != b], axis=0)
    chosen = np.random.default_rng(seed).random(len(links)) < 0.7
    return tuple(
        Preferences.from_pairs(*part.T, n_queries=n, n_documents=n)
        for part in (links[chosen], links[~chosen])
    )


def evaluate(model, X: sp.csr_matrix, train: Preferences, test: Preferences) -> tuple[float, float]:
    """(MAP, rank loss) of test links over all articles but the query and its training links."""
    rng = np.random.default_rng(1)
    queries = rng.choice(test.queries, 1000, replace=False)
    scores = model.cache(X).scores(X[queries])
    relevant = np.zeros(scores.shape, bool)
    hidden = np.zeros(scores.shape, bool)
    for i, q in enumerate(queries):
        relevant[i, test.document[test.offsets[q] : test.offsets[q + 1]]] = True
        hidden[i, train.document[train.offsets[q] : train.offsets[q + 1]]] = True
        hidden[i, q] = True
    precision, loss = np.empty(len(queries)), np.empty(len(queries))
    ranking_measures(scores, *judged_lists(relevant, hidden), precision, loss)
    return float(np.nanmean(precision)), float(np.nanmean(loss))


def time_steps(X: sp.csr_matrix, train: Preferences, threads: int) -> None:
    """Median time of a step of each model, and its ratio to U'V + I."""
    forms = [("ssi", {}), ("psi", {"degree": 2}), ("psi", {"degree": 3}), ("diagonal", {}),
             ("hash", {"identity": "added"})]  # fmt: skip
    reference = float("nan")
    for name, options in forms:
        kind = get_model(name)
        wanted = {"rank": 100, "batch_size": 256, "n_negatives": 256, "threads": threads}
        known = kind().get_params()
        model = kind(**{k: v for k, v in wanted.items() if k in known}, **options)
        data = model._prepared(X, X, train, excluded=np.arange(X.shape[0]))
        with Workers(threads) as workers, threadpool_limits(1, user_api="blas"):
            run = model.make_run(data, 0.03, workers)
            spent = []
            for _, batch in zip(range(4 if name == "hash" else 40), run.batches(0), strict=False):
                start = time.perf_counter()
                run.step(batch)
                spent.append(time.perf_counter() - start)
        step = float(np.median(spent))
        reference = step if name == "ssi" else reference
        rate = wanted["batch_size"] * wanted["n_negatives"] / step / 1e6
        print(
            f"{name:9} {options!s:24} {step * 1e3:8.1f} ms per step of 256 x 256 tuples, "
            f"{rate:6.2f} M tuples/s, {step / reference:6.2f} x U'V + I"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="full text, not the top 100 words")
    parser.add_argument("--log-tf", action="store_true", help="count 1 + log(tf), not tf")
    parser.add_argument("--links", type=float, default=1.0, help="share of the training links")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--model", default="ssi")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--baselines", action="store_true")
    parser.add_argument("--steps", action="store_true", help="time single steps only")
    parser.add_argument("--validation", action="store_true", help="no test measures")
    options = parser.parse_args()
    X = tfidf(options.full, options.log_tf)
    train, test = split(X.shape[0])
    print(f"{X.shape[0]} articles, {X.nnz / X.shape[0]:.0f} words each, {len(train)} links")
    if options.steps:
        time_steps(X, train, options.threads)
        return
    if options.baselines:
        for name in ("tfidf", "popularity", "tfidf-popularity", "lsi", "lsi-tfidf"):
            start = time.perf_counter()
            model = get_model(name)().fit(X, X, train)
            spent = time.perf_counter() - start
            precision, loss = evaluate(model, X, train, test)
            print(f"{name:18} {spent:6.1f} s  MAP {precision:.4f}  rank loss {loss:.4f}")
    kind = get_model(options.model)
    known = kind().get_params()
    settings = {k: v for k, v in SETTINGS.items() if k in known}
    for item in options.set:
        name, value = item.split("=", 1)
        settings[name] = literal_eval(value) if value[:1] in "0123456789.([NTF-" else value
    model = kind(**{**settings, "threads": options.threads, "max_seconds": options.seconds})
    excluded = np.arange(X.shape[0])
    clock = [time.perf_counter()]
    seconds: list[float] = []

    def note(epoch) -> None:
        clock.append(time.perf_counter())
        if epoch.number == 0:
            clock[0] = clock[-1]
        seconds.append(clock[-1] - clock[0])

    warm = kind(**{**settings, "threads": options.threads, "max_epochs": 1})
    warm.fit(X, X, train.pairs(np.arange(2000)), excluded=excluded)
    begun = time.perf_counter()
    chosen = np.random.default_rng(0).permutation(len(train))[: int(options.links * len(train))]
    model.fit(X, X, train.pairs(np.sort(chosen)), excluded=excluded, callback=note)
    print(f"fit {time.perf_counter() - begun:.1f} s, {model}")
    for epoch, at in zip(model.history_.epochs, seconds, strict=True):
        print(
            f"  {at:6.2f} s epoch {epoch.number:3}  loss {epoch.loss:.4f}  violations "
            f"{epoch.violations:.3f}  validation {epoch.validation:.4f}"
        )
    if not options.validation:
        precision, loss = evaluate(model, X, train, test)
        print(f"test MAP {precision:.4f}, rank loss {loss:.4f}")


if __name__ == "__main__":
    main()
