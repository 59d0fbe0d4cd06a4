"""What candidates from BM25 and LSA together do to the final ranking, at equal depth.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_candidate_sources.py

Two pools with the same number of rows: BM25's best 100, and the union of the best k of BM25 and the
best k of LSA (rank 100, which looks at no label), k the largest that makes no more rows. On both,
LambdaMART learns from LETOR's 46 columns, the tf-idf cosine and LSA, in five folds (of the demo's
queries by article), and relevant documents that a pool lacks count as missed. The demo's collection
needs no data set; NFCorpus is left out where it is not in LTR_DATA. Takes a minute.

=====================  ======  ======  =======  ====================================
735 queries, demo      rows    recall  NDCG@10  MAP (difference, interval, Holm's p)
=====================  ======  ======  =======  ====================================
BM25, 100              73,473  .571    .3896    .3530
BM25 and LSA, 63 each  72,732  .726    .3967    .4065 (+.0535, .0426 to .0647, .0002)
=====================  ======  ======  =======  ====================================

=====================  ======  ======  =======  ====================================
325 queries, NFCorpus  rows    recall  NDCG@10  MAP (difference, interval, Holm's p)
=====================  ======  ======  =======  ====================================
BM25, 100              20,660  .208    .3096    .1245
BM25 and LSA, 47 each  20,418  .251    .3255    .1438 (+.0193, .0120 to .0280, .0002)
=====================  ======  ======  =======  ====================================

NDCG@10 is higher by .0072 (.0010 to .0135, p .025) and .0159 (.0058 to .0268, p .002).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pandas as pd
from data_sets import AbsentError, folder_of

from letor.evaluation import evaluate
from letor.folds import k_fold
from letor.measures import parse_measure
from letor.rankers.lambdamart import LambdaMART
from ltr_features.candidates import Candidates, candidate_sources, find_candidates
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.learned import LearnedColumn
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.sources.registry import read_collection
from ltr_features.sources.wikipedia import excerpt_path
from ltr_features.sources.wikipedia_sections import section_collection
from ltr_features.studies.statistics.significance import compare
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.candidates import candidate_recall
from ltr_features.text.collection import Collection
from ltr_features.text.index import TermIndex

DEPTH, RANK = 100, 100
MEASURES = [parse_measure(name) for name in ("NDCG@10", "MAP")]
LSA = LearnedColumn("lsa", "lsa", {"rank": RANK})


def collections() -> Iterator[Collection]:
    yield section_collection(excerpt_path())
    with suppress(AbsentError):
        yield read_collection("beir", folder=folder_of("nfcorpus"), splits=["test"])


def both(k: int) -> dict[str, dict[str, Any]]:
    lsa = {"model": "lsa", "depth": k, "params": {"rank": RANK}}
    return {"bm25": {"depth": k}, "lsa": lsa}


def pools(collection: Collection) -> dict[str, tuple[dict[str, Any], Candidates]]:
    """The settings of both pools, and what they find."""
    context = ColumnContext(collection, TermIndex.build(collection, Analyzer("english")))

    def found(settings: dict[str, Any]) -> Candidates:
        return find_candidates(context, candidate_sources(settings))

    alone = {"bm25": {"depth": DEPTH}}
    pool = found(alone)
    low, high = 1, DEPTH
    while low < high:  # the union only grows with k
        middle = (low + high + 1) // 2
        fits = len(found(both(middle)).pairs) <= len(pool.pairs)
        low, high = (middle, high) if fits else (low, middle - 1)
    union = both(low)
    return {"BM25": (alone, pool), f"BM25 + LSA, {low} each": (union, found(union))}


def measured(collection: Collection, settings: dict[str, Any]) -> pd.DataFrame:
    """The measures of each query, ranked by the model of its fold."""
    folds = k_fold(collection.query_ids, 5, seed=0, groups=collection.query_groups)
    builder = FeatureBuilder(["letor46", "vsm"], [LSA], candidates=settings)
    parts = []
    for train, vali, test in builder.folds(collection, folds):
        ranker = LambdaMART(seed=0).fit(train, vali)
        parts.append(evaluate(test, ranker.predict(test), MEASURES))
    return pd.concat(parts)


def main() -> None:
    for collection in collections():
        found, values = pools(collection), {}
        print(f"\n{collection.name}: {collection.n_queries} queries")
        for name, (settings, pool) in found.items():
            values[name] = measured(collection, settings)
            judged, n = collection.judgements, collection.n_queries
            recalls = {of: recall.mean for of, recall in pool.recalls(judged, n).items()}
            whole = candidate_recall(pool.pairs, judged, n).mean
            parts = ", ".join(f"{of} alone {recall:.3f}" for of, recall in recalls.items())
            print(f"  {name}: {len(pool.pairs):,} rows, recall {whole:.3f} ({parts})")
        first, second = values
        groups = collection.query_groups
        table = compare(
            values, [(second, first)], list(values[first].columns),
            groups=None if groups is None else dict(zip(collection.query_ids, groups, strict=True)),
        )  # fmt: skip
        shown = ["measure", "n_queries", "n_groups", "baseline_mean", "system_mean", "difference",
                 "low", "high", "p", "p_corrected"]  # fmt: skip
        print(table[shown].round(4).to_string(index=False))


if __name__ == "__main__":
    main()
