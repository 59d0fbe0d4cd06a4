"""BM25 top-100 retrieval against bm25s with its numba backend, in one process on equal threads.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_candidates.py [threads]

Title queries on Wikispeedia's articles; both get the same tokens. Prints queries per second and
by how much the scores differ. bm25s comes with the test extra.
"""

import sys
from statistics import median

import numpy as np
from data_sets import articles
from timing import seconds_of

from ltr_features.text.bm25 import BM25
from ltr_features.text.candidates import BM25Retriever
from ltr_features.text.collection import Collection, Judgements
from ltr_features.text.index import TermIndex

DEPTH = 100
RUNS = 7


def main(threads: int) -> None:
    import bm25s
    import numba

    numba.set_num_threads(threads)
    titles, texts = articles()
    ids, fields = [str(row) for row in range(len(titles))], {"title": titles, "body": texts}
    index = TermIndex.build(Collection("articles", ids, fields, [], [], Judgements.none()))
    analyzer = index.analyzer
    retriever = BM25Retriever(index, bm25=BM25(k1=1.5, b=0.75))
    counts = index.query_counts(titles)

    peer = bm25s.BM25(k1=1.5, b=0.75, method="atire", backend="numba")
    peer.index(
        [analyzer.tokens(f"{title} {text}") for title, text in zip(titles, texts, strict=True)],
        show_progress=False,
    )
    asked = np.flatnonzero(np.diff(counts.indptr))
    tokens = [sorted(set(analyzer.tokens(titles[q]))) for q in asked]
    ids = [[peer.vocab_dict[t] for t in query if t in peer.vocab_dict] for query in tokens]

    def ours() -> tuple:
        return retriever.top(counts, DEPTH, threads=threads)

    def theirs() -> tuple:
        return peer.retrieve(ids, k=DEPTH, show_progress=False, n_threads=threads)

    pairs, scores = ours()
    _, peer_scores = theirs()
    # A query whose words are in all documents has no pool here and zeros there.
    best = np.zeros(len(titles))
    np.maximum.at(best, pairs.query, scores)
    print(f"largest difference of best scores {np.abs(best[asked] - peer_scores[:, 0]).max():.1e}")

    rates: dict[str, list[float]] = {"bm25s numba": [], "ours": []}
    for _ in range(RUNS):
        for name, search in (("bm25s numba", theirs), ("ours", ours)):
            rates[name].append(len(asked) / seconds_of(search))
    print(f"{len(asked):,} title queries, {len(texts):,} documents, top {DEPTH}, {threads} threads")
    for name, values in rates.items():
        print(f"{name:12} {median(values):10,.0f} queries/s")
    print(f"ours / bm25s {median(rates['ours']) / median(rates['bm25s numba']):.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
