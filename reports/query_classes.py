"""Where a system wins and loses: queries by length, relevant documents, overlap of words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.columns.registry import ColumnContext
from reports.significance import TestSettings, bootstrap_interval, fisher_randomisation


def query_properties(context: ColumnContext) -> pd.DataFrame:
    """Properties of every query that has a relevant document, index = query ids.

    Returns:
        ``words``: distinct words of the query that some document has. ``relevant documents``:
        judged 1 or more. ``overlap``: share of its words that a relevant document has, mean over
        these.
    """
    collection, Q = context.collection, context.query_counts
    relevant = collection.judgements.grade >= 1
    query, document = (
        collection.judgements.query[relevant],
        collection.judgements.document[relevant],
    )
    D = context.index.counts("whole").astype(bool)
    shared = np.asarray(Q[query].astype(bool).multiply(D[document]).sum(axis=1)).ravel()
    words = np.diff(Q.indptr)
    n = np.bincount(query, minlength=collection.n_queries)
    sums = np.bincount(query, shared / np.maximum(words[query], 1), collection.n_queries)
    table = pd.DataFrame(
        {"words": words, "relevant documents": n, "overlap": sums / np.maximum(n, 1)},
        index=pd.Index(collection.query_ids, name="qid"),
    )
    return table[n > 0]


def query_class_table(
    properties: pd.DataFrame,
    systems: Mapping[str, tuple[pd.Series, pd.Series]],
    *,
    n_classes: int = 3,
    settings: TestSettings | None = None,
) -> pd.DataFrame:
    """Gains by class of queries. Each property makes up to ``n_classes`` classes of about equally
    many queries; queries of equal value stay together.

    Args:
        properties: a row per query (others are left out), a number per column.
        systems: values of system and baseline by query, by the name of the comparison.

    Returns:
        One row per (comparison, property, class): ``comparison``, ``property``, ``class``
        (the values in it), ``n_queries``, ``baseline_mean``, ``system_mean``, ``gain``, ``low``,
        ``high`` (percentile bootstrap), ``p`` (Fisher's randomisation test, not corrected).

    Raises:
        InputError: a system without a value for some query.
    """
    settings = settings or TestSettings()
    rows = []
    for comparison, (system, baseline) in systems.items():
        queries = properties.index.intersection(baseline.index)
        if not queries.isin(system.index).all():
            raise InputError(f"{comparison}: system and baseline have values of other queries")
        for name in properties.columns:
            values = properties.loc[queries, name].to_numpy(dtype=np.float64)
            codes = _classes(values, n_classes)
            for code in np.unique(codes):
                chosen = queries[codes == code]
                s = system.loc[chosen].to_numpy(dtype=np.float64)
                b = baseline.loc[chosen].to_numpy(dtype=np.float64)
                low, high = bootstrap_interval(
                    s - b,
                    confidence=settings.confidence,
                    n_resamples=settings.n_resamples,
                    seed=settings.seed,
                )[0]
                p = fisher_randomisation(
                    s - b, n_permutations=settings.n_permutations, seed=settings.seed
                )[0]
                rows.append(
                    {
                        "comparison": comparison,
                        "property": name,
                        "class": _label(values[codes == code]),
                        "n_queries": len(chosen),
                        "baseline_mean": b.mean(),
                        "system_mean": s.mean(),
                        "gain": (s - b).mean(),
                        "low": low,
                        "high": high,
                        "p": p,
                    }
                )
    return pd.DataFrame(rows)


def _classes(values: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    edges = np.quantile(values, np.arange(1, n) / n, method="inverted_cdf")
    return np.searchsorted(np.unique(edges), values, side="left")


def _label(values: NDArray[np.float64]) -> str:
    low, high = values.min(), values.max()
    return f"{low:g}" if low == high else f"{_short(low)} to {_short(high)}"


def _short(value: float) -> str:
    return f"{value:g}" if value == round(value) else f"{value:.2f}"
