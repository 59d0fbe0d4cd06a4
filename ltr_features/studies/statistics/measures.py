"""Per-query retrieval measures (computed by ranx) and the definition that each number carries."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError

RULES = (
    "A document with label 1 or more is relevant. A query without relevant documents counts 0 and "
    "stays in the mean; so does a query for which nothing was retrieved. A query without any "
    "judgement is left out. Equal scores are ordered by document id, ascending."
)
"""What holds for every measure of this module; part of each definition."""

_IDEAL = (
    "divided by the same sum for the ideal ranking of all judged documents, those that the "
    "candidate pool missed included"
)
# family: (ranx name, needs a cut-off, definition; {top} = "the first k documents")
_FAMILIES = {
    "NDCG": (
        "ndcg_burges",
        False,
        f"Sum over {{top}} of the gain 2^label - 1 times the discount 1 / log2(rank + 1), {_IDEAL}",
    ),
    "NDCG-linear": (
        "ndcg",
        False,
        f"Sum over {{top}} of the gain label times the discount 1 / log2(rank + 1), {_IDEAL}",
    ),
    "MAP": (
        "map",
        False,
        "Mean over queries of the average precision: precision at the rank of each relevant "
        "document among {top}, summed and divided by the number of all relevant documents, those "
        "that the candidate pool missed included",
    ),
    "P": (
        "precision",
        True,
        "Number of relevant documents among {top}, divided by {k} even where fewer were retrieved",
    ),
    "Recall": (
        "recall",
        True,
        "Number of relevant documents among {top}, divided by the number of all relevant "
        "documents, those that the candidate pool missed included",
    ),
    "MRR": (
        "mrr",
        False,
        "Mean over queries of 1 / rank of the first relevant document among {top}, 0 if there is "
        "none",
    ),
}


@dataclass(frozen=True)
class Measure:
    """A measure by name.

    Attributes:
        name: e.g. ``"NDCG@10"``; the column's name in every table.
        formula: what is computed: gain, discount, cut-off, normalisation.
        ranx_name: the name under which ranx computes it.
    """

    name: str
    formula: str
    ranx_name: str

    @property
    def definition(self) -> str:
        """One line: the formula, queries without relevant documents, ties."""
        return f"{self.formula} {RULES}"


def get_measure(name: str) -> Measure:
    """The measure of that name: NDCG[@k] (exponential gain), NDCG-linear[@k], MAP[@k], P@k,
    Recall@k, MRR[@k]; k is a positive integer.

    Raises:
        InputError: unknown name, or a cut-off that is missing or not positive.
    """
    family, at, cut_off = name.partition("@")
    if family not in _FAMILIES:
        near = difflib.get_close_matches(family, _FAMILIES, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}{at}{cut_off}?" if near else ""
        raise InputError(f"unknown measure {name!r}; known are {', '.join(_FAMILIES)}{hint}")
    ranx_name, needs_cut_off, definition = _FAMILIES[family]
    if (at and not re.fullmatch(r"[1-9]\d*", cut_off)) or (needs_cut_off and not at):
        raise InputError(f"measure {name!r} needs a positive cut-off, for example {family}@10")
    top = f"the first {cut_off} documents" if at else "all ranked documents"
    formula = definition.format(top=top, k=cut_off) + "."
    return Measure(name, formula, ranx_name + at + cut_off)


def evaluate(qrels: pd.DataFrame, run: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Values of each measure for each query of ``qrels``.

    Ties are broken before the documents are handed to ranx: score descending, then document id
    ascending (compared as strings). Queries of ``run`` without any judgement are left out, as
    nothing can be said of them; :func:`unjudged_queries` lists them.

    Args:
        qrels: columns ``qid``, ``docno``, ``label`` (whole numbers; below 1 = not relevant).
        run: columns ``qid``, ``docno``, ``score`` (no NaN); rows in any order.
        measures: names as in :func:`get_measure`.

    Returns:
        float64 frame in [0, 1]: index ``qid`` (strings, in order of first appearance in
        ``qrels``), one column per measure. Queries absent from ``run`` have value 0.

    Raises:
        InputError: unknown measure, missing column, duplicate pair, label that is not a whole
            number, NaN score, or a run that shares no query with the judgements.
    """
    wanted = [get_measure(m) for m in measures]
    if not wanted:
        raise InputError("no measure was named")
    qrels, run = _checked(qrels, "label", "qrels"), _checked(run, "score", "run")
    queries = pd.Index(qrels["qid"].unique(), name="qid")
    run = run[run["qid"].isin(queries)]
    if run.empty:
        raise InputError(
            f"the run has no row for any of the {len(queries)} judged queries (the first is "
            f"{queries[0]!r}); do both use the same query ids?"
        )
    # Codes follow the order of the ids as strings and are exact in float64; ranx itself would
    # hash ids into float64, where two of them can collide.
    codes, _ = pd.factorize(np.concatenate([qrels["docno"], run["docno"]]), sort=True)
    judged = _per_query(queries, qrels["qid"], codes[: len(qrels)], qrels["label"])
    ranked = _per_query(queries, run["qid"], codes[len(qrels) :], run["score"])
    names = [m.ranx_name for m in wanted]
    values = _ranx_values(judged, ranked, names)
    columns = {m.name: np.asarray(values[m.ranx_name], dtype=np.float64) for m in wanted}
    return pd.DataFrame(columns, index=queries)


def unjudged_queries(qrels: pd.DataFrame, run: pd.DataFrame) -> list[str]:
    """Queries of a run that no judgement names, which ``evaluate`` leaves out."""
    judged = set(qrels["qid"].astype(str))
    return [q for q in run["qid"].astype(str).unique() if q not in judged]


def _checked(table: pd.DataFrame, value: str, what: str) -> pd.DataFrame:
    """The three columns, ids as strings and the value as float64."""
    missing = [c for c in ("qid", "docno", value) if c not in table.columns]
    if missing:
        raise InputError(
            f"{what} lacks the column {', '.join(missing)}; it has {', '.join(map(str, table))}"
        )
    if table.empty:
        raise InputError(f"{what} has no rows")
    table = pd.DataFrame(
        {
            "qid": table["qid"].astype(str).astype(object),
            "docno": table["docno"].astype(str).astype(object),
            value: table[value].astype(np.float64),
        }
    )
    twice = table.duplicated(["qid", "docno"])
    if twice.any():
        first = table[twice].iloc[0]
        raise InputError(
            f"{what} has {int(twice.sum())} (query, document) pairs more than once; the first is "
            f"query {first['qid']!r}, document {first['docno']!r}"
        )
    bad = table[value].isna() if value == "score" else table[value] % 1 != 0
    if bad.any():
        first = table[bad].iloc[0]
        found = "a score that is NaN" if value == "score" else f"the label {first[value]}"
        needed = "scores must be numbers" if value == "score" else "labels must be whole numbers"
        raise InputError(
            f"{what}: query {first['qid']!r}, document {first['docno']!r} has {found}; {needed}"
        )
    return table


def _per_query(
    queries: pd.Index, qid: pd.Series, documents: NDArray[np.int64], values: pd.Series
) -> list[NDArray[np.float64]]:
    """For each query float64 [documents, 2]: document code and value, the largest value first."""
    query = queries.get_indexer(pd.Index(qid))
    value = values.to_numpy()
    order = np.lexsort((documents, -value, query))
    rows = np.column_stack([documents.astype(np.float64), value])[order]
    ends = np.cumsum(np.bincount(query, minlength=len(queries)))
    return np.split(rows, ends[:-1])


def _ranx_values(
    judged: list[NDArray[np.float64]], ranked: list[NDArray[np.float64]], names: Sequence[str]
) -> dict[str, Any]:
    with _numba_state_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compile-time remarks about ranx's own code
        import ranx
        from numba.typed import List

        # A single name would make ranx look its result up without the cut-off (KeyError).
        repeated = [*names, names[0]]
        values: dict[str, Any] = ranx.evaluate(
            List(judged), List(ranked), repeated, return_mean=False
        )
    return values


@contextmanager
def _numba_state_kept() -> Iterator[None]:
    """ranx chooses numba's threading layer when imported and lowers the number of threads for
    fewer than ten queries; both are put back."""
    import numba

    config: Any = numba.config
    threads, layer = numba.get_num_threads(), config.THREADING_LAYER
    try:
        yield
    finally:
        config.THREADING_LAYER = layer
        numba.set_num_threads(threads)
