"""Gains by class of queries: by length, entities, relevant documents and shared words, and by what
users know of their queries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.names import in_words
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.entity_source import EntitySource
from ltr_features.studies.statistics.paired_tests import group_labels
from ltr_features.studies.statistics.significance import USUAL, TestSettings, gain_row

ENTITIES = "entities"
#: Properties by which the classes of queries are made; users may give others.
PROPERTIES = ("words", "relevant documents", "overlap", ENTITIES)
#: A property with more values is no class but, for instance, a text.
MOST_CLASSES = 30
#: Class of the queries that users gave none.
NOT_GIVEN = "not given"
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


def with_given(
    classes: pd.DataFrame, given: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, str]:
    """Add classes that a user gave to those by :func:`query_classes`, with a note on columns that
    tell nothing: they have more than :data:`MOST_CLASSES` classes, or one or none for all queries.

    Args:
        given: texts, as read by :func:`~ltr_features.studies.kinds.given_files.read_classes`. A
            query without one is in the class :data:`NOT_GIVEN`.
    """
    if given is None:
        return classes, ""
    left_out = texts_among(given)
    found = {}
    for name in given.columns.difference(left_out, sort=False):
        of_query = given[name].replace("", NOT_GIVEN)
        values = of_query.reindex(classes.index, fill_value=NOT_GIVEN)
        known = [label for label in of_query.unique() if label != NOT_GIVEN]
        labels = [label for label in (*known, NOT_GIVEN) if (values == label).any()]
        found[name] = pd.Categorical(values, labels, ordered=True)
    alike = {name: of[0] for name, of in found.items() if len(of.categories) == 1}
    notes = (
        (left_out, f"more than {MOST_CLASSES} values, so no classes"),
        ([name for name, label in alike.items() if label != NOT_GIVEN], "the same for all queries"),
        (
            [name for name, label in alike.items() if label == NOT_GIVEN],
            "none of the queries has one",
        ),
    )
    told = (f"{in_words(names)}: {why}." for names, why in notes if names)
    # Not by assign(**found): columns may have any name, such as that of its parameter.
    return classes.join(pd.DataFrame(found, index=classes.index)), " ".join(told)


def texts_among(given: pd.DataFrame) -> list[str]:
    """The columns with more than :data:`MOST_CLASSES` values, besides queries that have none."""
    return [n for n in given.columns if given[n][given[n] != ""].nunique() > MOST_CLASSES]


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
        the columns of :func:`significance.gain_row`, ``p_corrected`` (over these rows; NaN for a
        class of all queries, which is no further test) and ``significant``.

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
    table = pd.DataFrame(rows)
    if rows:
        table["p_corrected"] = np.nan
        part = table["n_queries"] < len(classes)
        table.loc[part, "p_corrected"] = settings.corrected(table.loc[part, "p"])
        table["significant"] = table["p_corrected"] < settings.alpha
    return table


def _label(values: NDArray[np.float64], shown: Callable[[float], str]) -> str:
    low, high = float(values.min()), float(values.max())
    return shown(low) if low == high else f"{shown(low)} to {shown(high)}"


def _short(value: float) -> str:
    return f"{value:g}" if value == round(value) else f"{value:.2f}"
