"""Out-of-fold scores: which model scores which rows of a fold, so that no row is scored by a model
that saw its label, and how far the scores of training rows lie from those of the other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from letor.folds import Fold, queries_of_trained_groups, training_parts
from letor.mapped import empty_array
from ltr_base.slices import slices
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.trained import FoldColumn
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.query_texts import nearly_equal, normalised

#: The key of :func:`training_distance` in a trained column's provenance.
DISTANCE = "distance of training rows"
#: Number of scores compared at a time.
_BLOCK = 2**20

#: Scores pairs with a model trained on the labels of the given query rows only.
ScoresFrom = Callable[[NDArray[np.int64], Pairs], NDArray[np.float32]]


def check_parts(train_parts: Sequence[NDArray[np.int64]]) -> None:
    """Raise InputError if there are fewer than two parts, an empty one, or two share a query."""
    if len(train_parts) < 2:
        raise InputError(
            "out-of-fold scores need at least two parts of training queries: give 4 or more folds "
            "(one part tests, one validates and the others train), which test each other's "
            "training queries, or Fold(..., parts=[...])"
        )
    if empty := sum(len(part) == 0 for part in train_parts):
        raise InputError(
            f"out-of-fold scores: {empty} of {len(train_parts)} parts of the training queries are "
            "empty, as too few queries have judgements and candidates: add some, or make fewer "
            "folds"
        )
    train = np.concatenate(train_parts)
    if len(np.unique(train)) != len(train):
        raise InputError("the parts of the training queries share a query")


def fold_scores(
    scores_from: ScoresFrom, pairs: Pairs, train_parts: Sequence[NDArray[np.int64]]
) -> NDArray[np.float32]:
    """A learned column for one fold, in which no row was scored by a model that saw its labels.

    Rows of queries outside training are scored by a model trained on all training parts. Rows of
    training queries are scored out of fold: those of one part by a model trained on the other
    parts, so that a ranker is trained on scores of the same quality as those it is tested on.

    Args:
        scores_from: trains (or looks up) a model for a sorted array of query rows, and scores
            pairs with it.
        pairs: all pairs of the fold (training, validation and test queries).
        train_parts: two or more disjoint arrays of query rows, together the training queries.

    Returns:
        float32 [len(pairs)].

    Raises:
        InputError: as :func:`check_parts`.
    """
    check_parts(train_parts)
    train = np.sort(np.concatenate(train_parts))
    scores = np.empty(len(pairs), dtype=np.float32)
    rest = ~np.isin(pairs.query, train)
    parts = [(np.isin(pairs.query, part), np.setdiff1d(train, part)) for part in train_parts]
    for rows, seen in [(rest, train), *parts]:
        if rows.any():
            scores[rows] = scores_from(seen, pairs.select(rows))
    return scores


def column_facts(of_fold: FoldColumn, scores: NDArray[np.float32], pairs: Pairs) -> dict[str, Any]:
    """Provenance of a trained column in one fold: remarks on the fit of its models, and how far
    the scores of training rows lie from those of the other rows.

    Returns:
        "remarks": a list of sentences; missing if there are none. "distance of training rows": the
        Kolmogorov-Smirnov distance, 0 to 1.
    """
    train = np.concatenate(of_fold.train_parts)
    distance, expected = training_distance(scores, pairs, train)
    remarks = list(of_fold.models[0].remarks)
    if distance > expected:
        remarks.append(
            f"the scores of training rows differ from those of the other rows (Kolmogorov-Smirnov "
            f"distance {distance:.2f}, at most {expected:.2f} by chance): rankers learn from a "
            "column that means something else at test time; use more training queries"
        )
    facts: dict[str, Any] = {DISTANCE: round(distance, 3)}
    return facts | ({"remarks": remarks} if remarks else {})


def training_distance(
    scores: NDArray[np.float32], pairs: Pairs, train_queries: NDArray[np.int64]
) -> tuple[float, float]:
    """The Kolmogorov-Smirnov distance between the scores of training rows and of the other rows,
    and the distance that samples of as many queries exceed by chance once in a thousand times
    (counting the rows of a query as one; at least .1). (0, 1) if either side has no rows.
    """
    n_queries = 1 + max(pairs.query.max(initial=-1), train_queries.max(initial=-1))
    trains, has_rows = np.zeros(n_queries, dtype=bool), np.zeros(n_queries, dtype=bool)
    trains[train_queries], has_rows[pairs.query] = True, True
    in_training = trains[pairs.query]
    sides = [_sorted(scores, in_training), _sorted(scores, ~in_training)]
    if not all(len(side) for side in sides):
        return 0.0, 1.0
    distance = 0.0
    for values in (side[rows] for side in sides for rows in slices(len(side), _BLOCK)):
        below = [np.searchsorted(side, values, side="right") / len(side) for side in sides]
        distance = max(distance, float(np.abs(below[0] - below[1]).max()))
    m, n = (int((has_rows & chosen).sum()) for chosen in (trains, ~trains))
    by_chance = 1.95 * np.sqrt((m + n) / (m * n))
    return distance, float(min(1.0, max(0.1, by_chance)))


def _sorted(scores: NDArray[np.float32], chosen: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The chosen scores in ascending order; memory-mapped if ``scores`` are."""
    memory = 0 if isinstance(scores, np.memmap) else None
    result: NDArray[np.float32] = empty_array((int(chosen.sum()),), scores.dtype, memory=memory)
    start = 0
    for rows in slices(len(scores), _BLOCK):
        block = scores[rows][chosen[rows]]
        result[start : start + len(block)] = block
        start += len(block)
    result.sort()
    return result


def check_folds(n_folds: int, *, out_of_fold: bool = True) -> None:
    """Raise InputError for fewer than 4 folds, or than 3 if there is no trained column."""
    least = 4 if out_of_fold else 3
    if n_folds < least:
        scored = " (two or more, to score training rows out of fold)" * out_of_fold
        raise InputError(
            f"{n_folds} folds: one part tests, one validates and the others train{scored}; "
            f"give {least} or more"
        )


def keep_groups(collection: Collection, folds: Sequence[Fold]) -> bool:
    """Whether each group's queries lie in one part of the folds, and some group has several."""
    groups = collection.query_groups
    if groups is None or not folds:
        return False
    group = dict(zip(collection.query_ids, groups, strict=True))
    parts = [{group[query] for query in fold.test if query in group} for fold in folds]
    kept = sum(map(len, parts)) == len(set().union(*parts))
    return kept and len(set(groups)) < len(groups)


def separated(context: ColumnContext, folds: Sequence[Fold]) -> list[str]:
    """Remarks if folds test queries whose text, or nearly the same, they train on under another
    id."""
    return [*_same_separated(context.collection, folds), *_nearly_separated(context, folds)]


def _nearly_separated(context: ColumnContext, folds: Sequence[Fold]) -> list[str]:
    if not folds:
        return []
    ids, texts = context.collection.query_ids, context.collection.query_texts
    near: dict[str, list[str]] = {}
    pairs = context.cached_for_queries(
        "nearly equal queries", lambda: nearly_equal(context.query_words[1])
    )
    for a, b in pairs.tolist():
        if normalised(texts[a]) != normalised(texts[b]):
            near.setdefault(ids[a], []).append(ids[b])
            near.setdefault(ids[b], []).append(ids[a])
    told = []
    for fold in folds:
        trained = set(fold.train)
        told += [
            (query, twin)
            for query in fold.test
            if (twin := next((q for q in near.get(query, ()) if q in trained), None))
        ]
    if not told:
        return []
    return [
        f"at least {len(told):,} test {'query has' if len(told) == 1 else 'queries have'} nearly "
        f"the same words as a training query of their fold ({told[0][0]!r} as {told[0][1]!r}, "
        "say): if they are versions of one text, such as a family of patents, give these groups "
        '(index --groups) and keep them together (--by-group, in an experiment by = "group")'
    ]


def _same_separated(collection: Collection, folds: Sequence[Fold]) -> list[str]:
    labels = collection.kept_together()
    if labels is None:
        return []
    label = dict(zip(collection.query_ids, labels.tolist(), strict=True))
    n = 0
    for fold in folds:
        trained = {label.get(query) for query in fold.train} - {None}
        n += sum(label.get(query) in trained for query in fold.test)
    if not n:
        return []
    return [
        f"{n:,} test {'query has' if n == 1 else 'queries have'} the same text as a training query "
        "of their fold, which gives their judgements away unless they were asked again later and "
        "judged anew: leave these out, or make random folds, which `columns build` does by default "
        "and k_fold(..., groups=collection.kept_together())"
    ]


def groups_separated(collection: Collection, folds: Sequence[Fold]) -> list[str]:
    """A remark if folds test queries of groups that they train on, too."""
    groups = collection.query_groups
    if groups is None:
        return []
    again = queries_of_trained_groups(folds, dict(zip(collection.query_ids, groups, strict=True)))
    if not again:
        return []
    told = (
        f"{again:,} of {sum(len(fold.test) for fold in folds):,} test queries belong to a group "
        "that their fold also trains on"
    )
    if _follow_time(collection, folds):
        return [f"{told}, at earlier times"]
    return [
        f"{told}: keep groups together (--by-group, or in the parts of --split), or let folds "
        "follow time (--by-time)"
    ]


def _follow_time(collection: Collection, folds: Sequence[Fold]) -> bool:
    """Whether each fold trains on queries from before all those that it tests."""
    if collection.query_times is None:
        return False
    time = dict(zip(collection.query_ids, collection.query_times.tolist(), strict=True))
    return all(max(time[q] for q in f.train) < min(time[q] for q in f.test) for f in folds)


def train_parts(
    collection: Collection, folds: Sequence[Fold], fold: Fold, n_parts: int | None = None
) -> list[NDArray[np.int64]]:
    """Query rows of each part that a fold trains on, for :func:`fold_scores`.

    Args:
        folds: all folds, see :func:`letor.folds.training_parts`.
        n_parts: merge the parts into this many, taken in turn; None leaves them as they are.

    Raises:
        InputError: a query of the folds is not in the collection.
    """
    row = {query: i for i, query in enumerate(collection.query_ids)}
    asked = chain.from_iterable((*part.train, *part.test) for part in folds)
    unknown = next((query for query in asked if query not in row), None)
    if unknown is not None:
        raise InputError(
            f"folds: query {unknown!r} is not in collection {collection.name!r}; make folds from "
            "its query_ids"
        )
    parts = training_parts(folds, fold)
    n_parts = n_parts or len(parts)
    joined = [[q for part in parts[i::n_parts] for q in part] for i in range(n_parts)]
    return [np.array(sorted(row[q] for q in part), dtype=np.int64) for part in joined]
