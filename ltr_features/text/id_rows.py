"""Rows of ids, and ids of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.arrays import read_only
from ltr_base.names import folded
from ltr_features.text.arrow_texts import StoredTexts

#: Finds the rows of ids, int64; -1 for unknown ids.
Finder: TypeAlias = Callable[[Sequence[str]], NDArray[np.int64]]


def finder(known: Sequence[str] | Mapping[str, int]) -> Finder:
    """Make a finder of known ids: a sequence in the order of rows, or a mapping of ids to rows."""
    if isinstance(known, StoredTexts):
        return known.places
    row = known if isinstance(known, Mapping) else {name: i for i, name in enumerate(known)}
    return lambda ids: np.array([row.get(name, -1) for name in ids], dtype=np.int64)


def rows_of(ids: Iterable[str], wanted: Sequence[str]) -> NDArray[np.int64]:
    """int64 [len(ids)]: the position of each id in ``wanted``, -1 if it is missing."""
    return finder(wanted)([*ids])


def ids_of(rows: NDArray[np.int64], ids: Sequence[str]) -> NDArray[np.object_]:
    """object [len(rows)]: the ids of some rows."""
    found = np.empty(len(rows), dtype=object)
    if isinstance(ids, StoredTexts):
        found[:] = ids.take(rows)
    else:
        found[:] = [ids[row] for row in rows.tolist()]
    return found


def alike_within(ids: Sequence[str]) -> dict[str, str]:
    """For each id that differs only in :data:`~ltr_base.names.OTHERWISE` from earlier ones, the
    first of these. Of other ids only a number each is kept, as there may be many millions."""
    form = np.fromiter((hash(folded(name)) for name in ids), np.int64, len(ids))
    order = np.argsort(form, kind="stable")
    again = form[order[1:]] == form[order[:-1]]
    rows = np.sort(order[np.append(again, False) | np.append(False, again)])
    first: dict[str, str] = {}
    return {n: other for n in ids_of(rows, ids) if (other := first.setdefault(folded(n), n)) != n}


def places_of(wanted: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [len(wanted)]: the (first) position of each number in the ascending ``keys``, -1 if it
    is missing. For many keys, several times faster than ``np.isin``, which sorts them again."""
    if not len(keys):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def are_reversed(
    pairs: Sequence[NDArray[np.int64]], among: Sequence[NDArray[np.int64]], n: int
) -> NDArray[np.bool_]:
    """Which pairs are of different rows and among other pairs the other way round.

    Args:
        pairs, among: first and second rows, int64, below n; pairs whose first row is -1 are not.
    """
    first, second = pairs
    counted = (first >= 0) & (first != second)
    return np.isin(second * n + first, among[0] * n + among[1]) & counted


def known_rows(
    ids: Sequence[str], wanted: Sequence[str], path: str | os.PathLike[str], what: str
) -> NDArray[np.int64]:
    """Like :func:`rows_of`, for the distinct ids of a file.

    Args:
        what: "query" or "document", for the message.

    Raises:
        InputError: none of the ids is in the collection, though it has some: a stored one has no
            queries.
    """
    rows = rows_of(ids, wanted)
    if len(rows) and len(wanted) and (rows < 0).all():
        raise InputError(
            f"{path}: none of its {len(ids):,} {what} ids ({examples(ids)}) is one of the "
            f"{len(wanted):,} of the collection ({examples(wanted)})"
        )
    return rows


def examples(ids: Sequence[str]) -> str:
    """The first few ids, for messages."""
    return ", ".join(repr(name) for name in ids[:3]) + (", ..." if len(ids) > 3 else "")


def keep_integers(given: object, what: str) -> None:
    """Keep arrays of integers as int64, in which products of rows do not overflow, and read-only.

    Raises:
        InputError: one is something else, or they differ in length.
    """
    n = None
    for name, values in vars(given).items():
        if not isinstance(values, np.ndarray) or not np.issubdtype(values.dtype, np.integer):
            kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
            raise InputError(
                f"{what}.{name} must be an int64 array, got {kind}; np.array(..., dtype=np.int64)"
            )
        n = len(values) if n is None else n
        if values.shape != (n,):
            raise InputError(f"{what}.{name} has shape {values.shape}, must be ({n},)")
        object.__setattr__(given, name, read_only(values.astype(np.int64, copy=False)))


def by_position(values: Any) -> Any:
    """A pandas Series as a list: it would find ``values[0]`` by its index, which need not be the
    first of a filtered or sorted frame. Sequences and None unchanged."""
    return values if values is None or isinstance(values, Sequence) else list(values)


def check_rows(name: str, rows: NDArray[np.int64], limit: int, least: int = 0) -> None:
    """Raise InputError if a row is below ``least``, or not below ``limit``."""
    if len(rows) and (rows.min() < least or rows.max() >= limit):
        bad = rows[(rows < least) | (rows >= limit)][0]
        raise InputError(f"{name} holds row {bad}, outside {least}..{limit - 1}")


def check_of_queries(what: str, values: Sequence[Any] | None, queries: Sequence[str]) -> None:
    """Check the sources, groups (a list) or times of a collection's queries, if it has them.

    Raises:
        InputError: they are not as many as the queries, or a group is not text.
    """
    if values is None:
        return
    if len(values) != len(queries):
        raise InputError(f"{what} has {len(values)} entries for {len(queries)} queries")
    if isinstance(values, np.ndarray):
        return
    for query, group in zip(queries, values, strict=True):
        if not isinstance(group, str):
            raise InputError(
                f"{what}: query {query!r} has {group}, must be text; write str(group), and its id "
                "for a query alone"
            )
