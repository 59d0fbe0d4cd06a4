"""Folds: division of queries into training, validation and test queries.

Queries are never split: all rows of a query lie in one part. ``letor_rotation`` gives LETOR's
official folds of its parts S1 .. S5, ``k_fold`` makes seeded folds, ``by_time`` folds that train on
earlier queries than they test, ``given_parts`` a fold of official training and test queries;
explicit lists are given as ``Fold(name, train, validation, test)``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData, check_texts, distinct
from letor.errors import InputError
from ltr_base.labels import first_unlabelled
from ltr_base.names import counted


@dataclass(frozen=True)
class Fold:
    """Three disjoint lists of query ids.

    Attributes:
        parts: the training queries divided into parts, each to be scored by models trained on the
            others; needed unless the parts are the test queries of other folds, see
            :func:`training_parts`.

    Raises:
        InputError: a query id is not a string, or occurs twice, in one list or in two; or ``parts``
            does not hold exactly the training queries.
    """

    name: str
    train: Sequence[str]
    validation: Sequence[str]
    test: Sequence[str]
    parts: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for part in ("train", "validation", "test"):
            check_texts(f"fold {self.name!r}: query ids", getattr(self, part))
            for query_id in getattr(self, part):
                if query_id in seen:
                    raise InputError(
                        f"fold {self.name!r}: query {query_id!r} is in {part} and already in "
                        f"{seen[query_id]}; each query belongs to one part; if these are "
                        "different queries, make their ids distinct"
                    )
                seen[query_id] = part
        if self.parts and sorted(chain.from_iterable(self.parts)) != sorted(self.train):
            raise InputError(f"fold {self.name!r}: parts must hold exactly the training queries")

    def only(self, query_ids: Collection[str]) -> Fold:
        """The fold restricted to the queries in ``query_ids``, such as those that have rows because
        retrieval found candidates for them."""
        wanted = set(query_ids)
        train, validation, test, *parts = (
            [query for query in part if query in wanted]
            for part in (self.train, self.validation, self.test, *self.parts)
        )
        return Fold(self.name, train, validation, test, [part for part in parts if part] or ())

    def split(self, data: RankingData) -> tuple[RankingData, RankingData, RankingData]:
        """The rows of the training, validation and test queries, each in the order of ``data`` and
        with what is known to be ``missing`` of them.

        Raises:
            InputError: a query id of the fold is not in the data.
        """
        known = set(data.all_query_ids)
        for part in ("train", "validation", "test"):
            missing = [q for q in getattr(self, part) if q not in known]
            if missing:
                raise InputError(
                    f"fold {self.name!r}: {counted(len(missing), f'{part} query')} not in the "
                    f"data: {', '.join(missing[:5])}"
                )
        return (
            data.select_queries(self.train),
            data.select_queries(self.validation),
            data.select_queries(self.test),
        )


def letor_rotation(parts: Sequence[Sequence[str]]) -> list[Fold]:
    """LETOR's official folds: fold i trains on parts i .. i + k - 3, validates on part i + k - 2
    and tests on part i + k - 1, cyclically (k = 5 in LETOR and MSLR).

    Args:
        parts: query ids of S1, S2, ..., at least three parts.
    """
    k = len(parts)
    if k < 3:
        raise InputError(f"{k} parts: folds of training, validation and test need at least 3")
    folds = []
    for i in range(k):
        turn = [parts[(i + j) % k] for j in range(k)]
        train = [q for part in turn[:-2] for q in part]
        folds.append(Fold(f"Fold{i + 1}", train, list(turn[-2]), list(turn[-1])))
    return folds


def k_fold(
    query_ids: Sequence[str] | RankingData,
    k: int = 5,
    *,
    seed: int,
    strata: Sequence[Hashable] | NDArray[Any] | None = None,
    groups: Sequence[Hashable] | NDArray[Any] | None = None,
) -> list[Fold]:
    """Seeded folds by query: k parts of nearly equal size in LETOR's rotation.

    Args:
        query_ids: distinct query ids, [m]; or rows, for their ``all_query_ids``.
        k: number of parts, at least 3.
        seed: the same seed gives the same folds.
        strata: [m], stratum of each query (such as ``has_relevant``): each part gets nearly the
            same share of each stratum.
        groups: [m], group of each query (such as the article that it was made from): queries of
            one group stay in one part.

    Raises:
        InputError: ids are not strings or occur twice, there are fewer groups than parts, lengths
            differ, or a pandas Series has another index than the ids, or 0, 1, ..., m - 1.
    """
    if isinstance(query_ids, RankingData):
        query_ids = query_ids.all_query_ids
    query_ids = list(query_ids)  # a series would find query_ids[i] by its index
    m = len(query_ids)
    if len(set(query_ids)) != m:
        raise InputError("query ids for k_fold must be distinct")
    for name, values in (("strata", strata), ("groups", groups)):
        if values is not None and len(values) != m:
            raise InputError(f"{name} has {len(values)} entries for {m} queries")
        _check_order(name, values, query_ids)
        if values is not None and (row := first_unlabelled(values)) is not None:
            raise InputError(
                f"{name}: query {query_ids[row]!r} has none; give one of its own to each query "
                "that belongs with no other"
            )
    stratum = _codes(strata) if strata is not None else np.zeros(m, dtype=np.int64)
    group = _codes(groups) if groups is not None else np.arange(m)
    n_groups = int(group.max(initial=-1)) + 1
    if k < 3 or n_groups < k:
        what = "query" if groups is None else "group"
        among = "" if groups is None else f" in {counted(n_groups, what)}"
        raise InputError(
            f"{counted(m, 'query')}{among} cannot be dealt into {k} parts: folds need at least 3 "
            f"parts, and each part a {what}; give more of these, or another number of parts"
        )
    part = _deal(stratum, group, k, np.random.default_rng(seed))
    return letor_rotation(
        [[query_ids[i] for i in np.flatnonzero(part == p).tolist()] for p in range(k)]
    )


def _check_order(name: str, values: Any, query_ids: Sequence[str]) -> None:
    """Raise InputError if values of queries are a pandas Series in an order of its own."""
    index = getattr(values, "index", None)
    if index is not None and not callable(index) and list(index) != list(query_ids):
        from letor.frames import check_row_order

        check_row_order(name, values, len(query_ids))


def by_time(
    query_ids: Sequence[str], times: Sequence[float] | NDArray[np.float64], k: int = 4
) -> list[Fold]:
    """Folds that train on earlier queries than they validate and test on.

    Queries are cut by time into k parts of nearly equal size; those with equal times stay together.
    Fold i tests on part i + 3, validates on the part before it, and trains on all earlier ones, so
    that k parts give k - 3 folds; no fold tests on the first three parts.

    Args:
        query_ids: distinct query ids, [m]. times: [m], any numbers that grow with time.
        k: number of parts, at least 4.

    Raises:
        InputError: ids occur twice, lengths differ, a time is not finite, or there are fewer
            different times than parts.
    """
    _check_order("times", times, query_ids)
    query_ids = list(query_ids)
    time = np.asarray(times, np.float64)
    if len(set(query_ids)) != len(query_ids) or time.shape != (len(query_ids),):
        raise InputError(f"by_time: {len(query_ids)} distinct query ids need as many times")
    if not np.isfinite(time).all():
        first = query_ids[int(np.argmin(np.isfinite(time)))]
        raise InputError(f"by_time: query {first!r} has no time")
    different, counts = np.unique(time, return_counts=True)
    if k < 4 or len(different) < k:
        raise InputError(
            f"k={k}: give at least 4 parts (two or more to train on, one to validate, one to test) "
            f"and no more than there are different times of queries ({len(different)})"
        )
    cut = np.arange(1, k)
    # Number of different times before each cut, by their middle queries; no part is left empty.
    before = np.searchsorted(np.cumsum(counts) - counts / 2, cut * len(time) / k)
    before = np.maximum.accumulate(np.clip(before, cut, len(different) - k + cut) - cut) + cut
    part = np.searchsorted(different[before], time, side="right")
    parts = [[query_ids[i] for i in np.flatnonzero(part == p).tolist()] for p in range(k)]
    return [
        Fold(f"Fold{number}", list(chain.from_iterable(train)), parts[last], parts[last + 1], train)
        for number, last in enumerate(range(2, k - 1), start=1)
        for train in [parts[:last]]
    ]


def given_parts(
    query_ids: Sequence[str],
    parts: Sequence[str],
    *,
    seed: int,
    groups: Sequence[Hashable] | NDArray[Any] | None = None,
    k: int = 5,
) -> Fold:
    """The fold of parts that are given, such as the official training and test queries of a data
    set. Without validation queries, a part of the training queries validates.

    Args:
        query_ids: distinct query ids, [m]. parts: [m], "train", "validation" or "test".
        seed: of the validation queries, and of the parts that score each other out of fold.
        groups: [m], see :func:`k_fold`; not regarded between the parts given.
        k: number of parts into which the training queries are dealt.

    Raises:
        InputError: another name of a part, no training or test queries, or as :func:`k_fold`.
    """
    _check_order("parts", parts, query_ids)
    _check_order("groups", groups, query_ids)
    query_ids = list(query_ids)
    rows: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    for row, part in enumerate(parts):
        if part not in rows:
            raise InputError(f"parts: {part!r} is unknown; use {', '.join(rows)}")
        rows[part].append(row)
    if not rows["train"] or not rows["test"]:
        raise InputError("parts: there must be queries for training, and others for the test")
    label = range(len(query_ids)) if groups is None else list(groups)
    trained = [query_ids[row] for row in rows["train"]]
    try:
        dealt = k_fold(trained, k, seed=seed, groups=[label[row] for row in rows["train"]])
    except InputError as error:
        raise InputError(f"parts, the training queries: {error}") from error
    tested = [list(fold.test) for fold in dealt]
    validation = [query_ids[row] for row in rows["validation"]] or tested.pop()
    return Fold(
        "Fold1",
        list(chain.from_iterable(tested)),
        validation,
        [query_ids[row] for row in rows["test"]],
        tested,
    )


def training_parts(folds: Sequence[Fold], fold: Fold) -> list[list[str]]:
    """The training queries of a fold, divided by the fold of ``folds`` that tests on them; or its
    own ``parts``, if it has any."""
    if fold.parts:
        return [list(part) for part in fold.parts]
    train = set(fold.train)
    parts = ([q for q in other.test if q in train] for other in folds)
    return [part for part in parts if part]


def queries_of_trained_groups(folds: Sequence[Fold], groups: Mapping[str, Hashable]) -> int:
    """Number of test queries, over all folds, of groups that the fold trains on, too. A query
    without an entry in ``groups`` is a group of its own."""
    again = 0
    for fold in folds:
        trained = {groups.get(query, query) for query in fold.train}
        again += sum(groups.get(query, query) in trained for query in fold.test)
    return again


def with_fewer_queries(
    folds: Sequence[Fold],
    share: float,
    *,
    seed: int,
    groups: Mapping[str, Hashable] | None = None,
) -> list[Fold]:
    """The folds with a share of their training queries; validation and test queries are unchanged.

    Of each part (the test queries of a fold, or one of its ``parts``), the first queries in a
    seeded order are kept, so that a larger share includes the queries of a smaller one, and all
    folds that train on a part use the same queries of it.

    Args:
        share: in (0, 1]; at least one query of each part is kept.
        groups: group of each query; queries of one group are adjacent in the seeded order.
    """
    kept: set[str] = set()
    tested = [tuple(fold.test) for fold in folds]
    others = dict.fromkeys(tuple(part) for fold in folds for part in fold.parts)
    for number, part in enumerate(dict.fromkeys([*tested, *others])):
        label = [query if groups is None else groups.get(query, query) for query in part]
        codes = _codes(label)
        order = np.random.default_rng([seed, number]).permutation(codes.max(initial=-1) + 1)
        queries = [part[i] for i in np.argsort(np.argsort(order)[codes], kind="stable")]
        kept |= set(queries[: math.ceil(round(share * len(queries), 6))])
    fewer = []
    for fold in folds:
        rest = fold.only(kept)
        fewer.append(replace(rest, validation=fold.validation, test=fold.test))
    return fewer


def rows_of_parts(data: RankingData, folds: Iterable[Fold], *parts: str) -> RankingData:
    """The rows, without columns, of the queries that folds have in some of the parts "train",
    "validation" and "test", as far as they have rows here."""
    wanted = {q for fold in folds for part in parts for q in getattr(fold, part)}
    return data.select_columns([]).select_queries([q for q in data.all_query_ids if q in wanted])


def has_relevant(data: RankingData) -> NDArray[np.bool_]:
    """bool [m + r]: whether each query of ``data.all_query_ids`` has a row with a label of 1 or
    more; as ``strata``, it spreads queries without such rows evenly."""
    result = np.zeros(len(data.all_query_ids), dtype=bool)
    result[data.query_index[data.y >= 1]] = True
    return result


def has_pairs(data: RankingData) -> NDArray[np.bool_]:
    """bool [m + r]: whether each query of ``data.all_query_ids`` has rows of two different labels,
    without which a ranker has nothing to order."""
    low, high = np.full((2, len(data.all_query_ids)), [[np.inf], [-np.inf]])
    np.minimum.at(low, data.query_index, data.y)
    np.maximum.at(high, data.query_index, data.y)
    return low < high


def _codes(values: Sequence[Hashable] | NDArray[Any]) -> NDArray[np.int64]:
    return distinct([str(v) for v in values])[1]


def _deal(
    stratum: NDArray[np.int64], group: NDArray[np.int64], k: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """int64 [m]: the part of each query.

    Groups are dealt in random order, larger ones first, each to the part that has least of the
    strata in the group; among equal parts, the smallest is taken, then the first.
    """
    counts = np.zeros((group.max() + 1, stratum.max() + 1), dtype=np.int64)
    np.add.at(counts, (group, stratum), 1)
    share = 1.0 / counts.sum(axis=0)
    shuffled = rng.permutation(len(counts))
    shuffled = shuffled[np.argsort(-counts[shuffled].sum(axis=1), kind="stable")]
    filled = np.zeros((k, counts.shape[1]), dtype=np.int64)
    part_of_group = np.empty(len(counts), dtype=np.int64)
    for g in shuffled:
        # Growth of the sum of squared shares is least where shares are most even afterwards.
        growth = ((filled * counts[g]) * share).sum(axis=1)
        part = np.lexsort((np.arange(k), filled.sum(axis=1), growth.round(9)))[0]
        filled[part] += counts[g]
        part_of_group[g] = part
    return part_of_group[group]
