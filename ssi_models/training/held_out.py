"""Queries held out of training, and how well a model ranks documents for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr_base.names import counted
from ltr_base.slices import slices
from ssi_models.kernels.pair_losses import judged_lists, ranking_measures
from ssi_models.parallel import Workers
from ssi_models.training.preferences import Preferences, check_groups

#: What may be held out for early stopping.
HELD_OUT = ("auto", "parts", "queries", "pairs")
#: With "auto", the number of training queries from which holding out one share of them is enough.
MANY_QUERIES = 2000
N_PARTS = 3
#: Measures for early stopping; the rank loss is negated, so that higher is better.
VALIDATION_MEASURES = ("map", "rank_loss")
#: Standard errors of a gain in the validation measure that chance alone hardly explains.
ERRORS = 1.5
#: An irrelevant document with the same score counts as this share of one that is ranked above.
TIED = 0.5
#: Number of scores mixed and ranked at a time: few enough for a processor's cache.
BLOCK = 500_000
MAX_QUERIES = 1000  # the number of test queries of Bai et al., section 4


def hold_out_pairs(
    preferences: Preferences, share: float, seed: int
) -> tuple[Preferences, Preferences]:
    """(kept, held out) preferences: a seeded share of the relevant pairs is held out.

    Raises:
        ValueError: fewer than two pairs.
    """
    n = len(preferences)
    if n < 2:
        raise ValueError(f"{n} relevant pair; early stopping needs at least two")
    order = np.random.default_rng([seed, 2]).permutation(n)
    n_held_out = min(max(1, round(share * n)), n - 1)
    held_out, kept = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    return preferences.pairs(kept), preferences.pairs(held_out)


def hold_out_queries(
    preferences: Preferences, groups: ArrayLike | None, share: float, seed: int
) -> tuple[Preferences, Preferences]:
    """(kept, held out) preferences: a seeded share of the queries, at least one, is held out;
    queries of one group (a label per query row) stay together.

    Raises:
        ValueError: fewer than two queries, or groups, have relevant documents.
    """
    queries = preferences.queries
    label = _labels(preferences, groups)
    distinct = _distinct(label[queries], len(queries))
    rng = np.random.default_rng([seed, 2])
    n_held_out = min(max(1, round(share * len(distinct))), len(distinct) - 1)
    chosen = rng.permutation(distinct)[:n_held_out]
    held_out = np.isin(label[queries], chosen)
    return preferences.only(queries[~held_out]), preferences.only(queries[held_out])


def split_queries(
    preferences: Preferences, groups: ArrayLike | None, n_parts: int, seed: int
) -> list[NDArray[np.int64]]:
    """The queries that have relevant documents, split into seeded parts of about equal size that
    keep queries of one group (a label per query row) together: int64 query rows each, ascending.

    There are fewer than ``n_parts`` if there are fewer queries or groups.

    Raises:
        ValueError: fewer than two queries, or groups, have relevant documents.
    """
    queries = preferences.queries
    label = _labels(preferences, groups)[queries]
    distinct = _distinct(label, len(queries))
    order = np.random.default_rng([seed, 2]).permutation(distinct)
    parts = np.array_split(order, min(n_parts, len(order)))
    return [queries[np.isin(label, part)] for part in parts]


def n_validated(part: NDArray[np.int64], n_queries: int) -> int:
    """The number of queries of a part that are ranked in validation, where parts with ``n_queries``
    queries in total are each held out of a model of their own."""
    return max(1, MAX_QUERIES * len(part) // n_queries)


def exceeds_noise(
    values: NDArray[np.float64], start: NDArray[np.float64], errors: float = ERRORS
) -> bool:
    """Whether the mean of the values exceeds that of the start by more than so many standard errors
    of the paired differences: with many choices compared, the best of them exceeds the start by
    chance alone. Values that are not finite are left out."""
    gains = values - start
    gains = gains[np.isfinite(gains)]
    if len(gains) < 2:
        return bool(gains.sum() > 0)
    return bool(gains.mean() > errors * gains.std(ddof=1) / np.sqrt(len(gains)))


def n_groups(preferences: Preferences, groups: ArrayLike | None) -> int:
    """Number of queries, or groups of queries, that have relevant documents."""
    return len(np.unique(_labels(preferences, groups)[preferences.queries]))


def holds_out_parts(preferences: Preferences, groups: ArrayLike | None) -> bool:
    """Whether there are so few queries that each is held out once, to validate on all of them."""
    return n_groups(preferences, groups) < MANY_QUERIES


def _labels(preferences: Preferences, groups: ArrayLike | None) -> NDArray[np.generic]:
    """The group of each query row."""
    n = preferences.n_queries
    return np.arange(n) if groups is None else check_groups(groups, n)


def _distinct(label: NDArray[np.generic], n_queries: int) -> NDArray[np.generic]:
    distinct = np.unique(label)
    if len(distinct) < 2:
        raise ValueError(
            f"relevant documents: only {counted(n_queries, 'query')} in "
            f"{counted(len(distinct), 'group')} with any; early stopping needs at least two groups"
        )
    return distinct


class Validation:
    """Ranking of a pool of documents for the queries of held-out preferences. The relevant
    documents of the ``known`` preferences, and the ``excluded`` one, are not ranked.

    At most ``n_queries`` of the queries are used. The pool holds all documents if there are at
    most ``n_documents``, otherwise that many drawn at random and the queries' relevant ones (the
    protocol of Bai et al., section 4), so that memory does not grow with the collection.

    Attributes:
        queries: int64 [m], the query rows used. documents: int64 [p], the pool, ascending.
    """

    def __init__(
        self,
        preferences: Preferences,
        known: Preferences,
        excluded: NDArray[np.int64] | None,
        n_documents: int,
        seed: int,
        n_queries: int = MAX_QUERIES,
    ) -> None:
        rng = np.random.default_rng([seed, 3])
        self.queries = preferences.queries
        if len(self.queries) > n_queries:
            self.queries = np.sort(rng.choice(self.queries, n_queries, replace=False))
        self.documents = np.arange(preferences.n_documents)
        if preferences.n_documents > n_documents:
            drawn = rng.choice(preferences.n_documents, n_documents, replace=False)
            relevant = preferences.only(self.queries).document
            self.documents = np.unique(np.concatenate([drawn, relevant]))
        place = np.full(preferences.n_documents, -1, np.int64)
        place[self.documents] = np.arange(len(self.documents))
        shape = (len(self.queries), len(self.documents))
        self.relevant, self.hidden = np.zeros(shape, bool), np.zeros(shape, bool)
        for i, q in enumerate(self.queries):
            self.relevant[i, place[preferences.documents_of(q)]] = True
            hidden = known.documents_of(q)
            if excluded is not None:
                hidden = np.append(hidden, excluded[q : q + 1][excluded[q : q + 1] >= 0])
            self.hidden[i, place[hidden][place[hidden] >= 0]] = True

        self._lists = judged_lists(self.relevant, self.hidden)

    def values(
        self,
        name: str,
        scores: NDArray[np.float32],
        workers: Workers,
        rows: slice = slice(None),
    ) -> NDArray[np.float64]:
        """Average precision, or minus the rank loss, of each query (or of some rows of them) under
        scores [m, p]: float64 [m], NaN for a query without a relevant document to rank. Ties count
        half, so that breaking the ties of word matching at random is no improvement."""
        precision, loss = np.empty(len(scores)), np.empty(len(scores))
        offsets, documents, ranked = self._lists
        first = rows.start or 0

        def measure(a: int, b: int) -> None:
            of_rows = offsets[first + a : first + b + 1]
            ranking_measures(
                scores[a:b], of_rows, documents, ranked, precision[a:b], loss[a:b], TIED
            )

        workers.split(measure, len(scores))
        return precision if name == "map" else -loss

    def mixture_values(
        self,
        name: str,
        mixtures: Sequence[tuple[float, float]],
        diagonal: NDArray[np.float32] | None,
        learned: NDArray[np.float32] | None,
        workers: Workers,
    ) -> NDArray[np.float64]:
        """:meth:`values` for each mixture of two parts of the scores [m, p], see :func:`mixed`:
        float64 [n_mixtures, m]."""
        out = np.empty((len(mixtures), len(self.queries)))
        size = BLOCK // len(self.documents)
        for rows in slices(len(self.queries), size):
            parts = (None if part is None else part[rows] for part in (diagonal, learned))
            for line, scores in zip(out, mixed(mixtures, *parts), strict=True):
                line[rows] = self.values(name, scores, workers, rows)
        return out

    def measure(self, name: str, scores: NDArray[np.float32], workers: Workers) -> float:
        """The mean of :meth:`values`; 0 if all are NaN."""
        return mean_value(self.values(name, scores, workers))


def mean_value(values: NDArray[np.float64]) -> float:
    """The mean of the values that are not NaN; 0 if no value is finite."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0


def mixed(
    mixtures: Sequence[tuple[float, float]],
    diagonal: NDArray[np.float32] | None,
    learned: NDArray[np.float32] | None,
) -> Iterator[NDArray[np.float32]]:
    """Yield a diagonal + b learned for each mixture (a, b); a part that is None is left out."""
    for a, b in mixtures:
        if diagonal is None or learned is None:
            scores = diagonal if learned is None else learned
            if scores is None:
                raise ValueError("neither a diagonal nor a learned score to measure")
            yield scores
        else:
            yield np.float32(a) * diagonal + np.float32(b) * learned


def sample_triples(
    preferences: Preferences,
    candidates: NDArray[np.int64],
    n: int,
    seed: int,
    excluded: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """n random (query, d+, d-), int64 each: a relevant pair and a candidate not judged as high.

    Triples whose negative is judged at least as high as d+, or is the query's ``excluded``
    document, are left out, so there may be fewer.
    """
    rng = np.random.default_rng([seed, 4])
    pair = rng.integers(len(preferences), size=n)
    query, positive = preferences.query[pair], preferences.document[pair]
    negative = candidates[rng.integers(len(candidates), size=n)]
    keep = ~preferences.as_high(query, negative, preferences.grade[pair])
    if excluded is not None:
        keep &= negative != excluded[query]
    return query[keep], positive[keep], negative[keep]
