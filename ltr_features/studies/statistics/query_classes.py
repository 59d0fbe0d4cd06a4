"""Gains by class of queries: by length, entities, relevant documents and shared words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.entity_source import EntitySource
from ltr_features.studies.statistics.paired_tests import group_labels
from ltr_features.studies.statistics.significance import USUAL, TestSettings, gain_row

ENTITIES = "entities"
#: Classes that do not depend on the queries: largest value of each but the last, and their names.
_FIXED = {ENTITIES: ((0.0, 1.0), ("none", "one", "two or more"))}


def query_properties(context: ColumnContext, source: EntitySource | None = None) -> pd.DataFrame:
    """Properties of every query that has a relevant document, index = query ids.

    Args:
        context: of the collection. source: links entities in queries, see :func:`entity_source`.

    Returns:
        ``words``: distinct words of the query that occur in some document. ``relevant documents``:
        number judged 1 or more. ``overlap``: share of the query's words that a relevant document
        has, mean over these. ``entities``: distinct entities in the query, if there is a source.
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
    if source is not None:
        bags = source.query_entities(context).bags
        table[ENTITIES] = np.asarray(bags.sum(axis=1)).ravel().astype(np.int64)
    return table[n > 0]


def judged_properties(qrels: pd.DataFrame, texts: Mapping[str, str]) -> pd.DataFrame:
    """Properties, known without the collection, of every query that has a relevant document.

    Args:
        qrels: columns ``qid`` and ``label``. texts: of the queries; may be empty.

    Returns:
        ``words``: distinct words of the query, separated by blanks, if all queries have a text.
        ``relevant documents``: number judged 1 or more. Index = query ids.
    """
    n = qrels[qrels["label"] >= 1].groupby("qid", sort=False).size()
    table = pd.DataFrame({"relevant documents": n})
    if len(table) and table.index.isin(list(texts)).all():
        words = [len(set(texts[query].lower().split())) for query in table.index]
        table.insert(0, "words", words)
    return table


def entity_source(families: Iterable[ColumnFamily]) -> EntitySource | None:
    """The first column family, or part of one, that links entities; None if there is none."""
    parts = chain.from_iterable(getattr(family, "parts", [family]) for family in families)
    return next((part for part in parts if isinstance(part, EntitySource)), None)


def query_classes(properties: pd.DataFrame) -> pd.DataFrame:
    """The class of every query by every property.

    Args:
        properties: numbers; a row per query, a column per property. Each property gives up to
            three classes of about equally many queries, where queries of equal value stay
            together; ``entities`` gives the classes none, one, and two or more.

    Returns:
        Index and columns as given (no columns if there are no queries); ordered categories, named
        after their values, none of them empty.
    """
    classes = {}
    for name in properties.columns if len(properties) else []:
        values = properties[name].to_numpy(dtype=np.float64)
        if name in _FIXED:
            edges, names = _FIXED[name]
            codes = np.searchsorted(edges, values, side="left")
            labels = {code: names[code] for code in np.unique(codes)}
        else:
            thirds = np.unique(np.quantile(values, [1 / 3, 2 / 3], method="inverted_cdf"))
            codes = np.searchsorted(thirds, values, side="left")
            groups = {code: values[codes == code] for code in np.unique(codes)}
            labels = {code: _label(group, _short) for code, group in groups.items()}
            if len(set(labels.values())) < len(labels):
                labels = {code: _label(group, repr) for code, group in groups.items()}
        places = np.searchsorted(list(labels), codes)
        classes[name] = pd.Categorical.from_codes(places, list(labels.values()), ordered=True)
    return pd.DataFrame(classes, index=properties.index)


def query_class_table(
    classes: pd.DataFrame,
    comparison: str,
    values: tuple[pd.Series | pd.DataFrame, pd.Series | pd.DataFrame],
    *,
    settings: TestSettings = USUAL,
    groups: Mapping[str, Hashable] | None = None,
) -> pd.DataFrame:
    """Gains by class of queries.

    Args:
        classes: as made by :func:`query_classes`, of the queries to be counted.
        comparison: its name. values: per query, of system and baseline; of systems that were
            fitted several times a frame with a column per fit.
        groups: group of each query; queries are tested by group.

    Returns:
        One row per (property, class): ``comparison``, ``property``, ``class`` (name of the class),
        and the columns of :func:`significance.gain_row`; p is not corrected.

    Raises:
        InputError: a system has no value for some query, or a query has no group.
    """
    if not all(classes.index.isin(v.index).all() for v in values):
        raise InputError(f"{comparison}: system or baseline has no value for some query")
    s, b = (v.loc[classes.index].to_numpy(dtype=np.float64) for v in values)
    rows = []
    for name in classes.columns:
        for label in classes[name].cat.categories:
            chosen = (classes[name] == label).to_numpy()
            row: dict[str, object] = {"comparison": comparison, "property": name, "class": label}
            labels = group_labels(classes.index[chosen], groups)
            rows.append(row | gain_row(s[chosen], b[chosen], settings, labels))
    return pd.DataFrame(rows)


def _label(values: NDArray[np.float64], shown: Callable[[float], str]) -> str:
    low, high = float(values.min()), float(values.max())
    return shown(low) if low == high else f"{shown(low)} to {shown(high)}"


def _short(value: float) -> str:
    return f"{value:g}" if value == round(value) else f"{value:.2f}"
