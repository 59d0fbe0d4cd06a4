"""Base classes: the declaration of a feature column, and the column family."""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError, described, naming
from letor.name_checks import positions_of
from ltr_base.former import former_names
from ltr_base.names import nearest
from ltr_features.columns.context import ColumnContext
from ltr_features.parameters import check_values
from ltr_features.text.collection import Pairs
from ssi_models.parameters import plain_number

#: How :attr:`ColumnFamily.trained_on` begins where nothing was learned.
NOTHING = "nothing"
_LARGEST = float(np.finfo(np.float32).max)


@former_names(stream="field")
@dataclass(frozen=True)
class ColumnSpec:
    """The declaration of one column.

    Attributes:
        name: unique within the family, e.g. ``bm25_title``.
        description: one line, with the formula if there is one.
        unit: what the number counts or measures (``tokens``, ``nats``, ``links``, ...).
        value_range: the values that can occur, e.g. ``>= 0``.
        reference: the paper that defines the column.
        field: the document field that the column reads, or None.
        letor_id: number in LETOR 4.0's list of 46, or None.

    Raises:
        InputError: the name cannot be that of a column, see :func:`check_column_name`.
    """

    name: str
    description: str
    unit: str
    value_range: str
    reference: str
    field: str | None = None
    letor_id: int | None = None

    def __post_init__(self) -> None:
        check_column_name(self.name)


class ColumnFamily(ABC):
    """Columns that are computed together.

    A column's value depends on its (query, document) pair and on the context only, never on the
    other pairs of the call: any batch gives the same numbers.

    Attributes:
        name: the family's name in the registry.
        description: one line.
        reference: the paper or report that defines the family.
        knows_added: whether everything that the family learns from documents comes from
            ``context.learned_from``, so that it can compute its columns for added documents too.
        knows_new_queries: whether it can compute its columns for queries that were not there.
        reads_texts: whether the columns depend on more than the ids of queries and documents.
    """

    knows_added: ClassVar[bool] = False
    knows_new_queries: ClassVar[bool] = True
    reads_texts: ClassVar[bool] = True
    name: ClassVar[str]
    description: ClassVar[str]
    reference: ClassVar[str]

    @classmethod
    def file_beside(cls, path: Path) -> Path | None:
        """The file that the family reads with one that an option names, though no option names it.
        By default none."""
        return None

    @classmethod
    def without_unused(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options without those that have no effect beside the others, which the constructor may
        refuse. By default all."""
        return dict(options)

    @property
    def trained_on(self) -> str:
        """What the columns were learned from, for their provenance; never the rows' own labels.
        Begins with :data:`NOTHING` if nothing was learned."""
        return f"{NOTHING}: counts of the collection"

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks for the user on how the columns were learned, see
        :attr:`ssi_models.base.MatchingModel.remarks`."""
        return ()

    def remarks_on(self, context: ColumnContext) -> Sequence[str]:
        """Remarks for the user on what the family's sources lack of the documents. By default
        none."""
        return ()

    def remarks_on_added(self, ids: Sequence[str]) -> Sequence[str]:
        """Remarks for the user on what the family's sources lack of documents that are added under
        these ids. By default none."""
        return ()

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> Sequence[int]:
        """For each column the number of pairs that the family's sources do not know, and that get a
        substitute. Tables are made in blocks, so these numbers are added up before
        :meth:`missing_remark` speaks of all rows. By default 0."""
        return [0] * len(self.columns)

    def missing_remark(self, column: str, n_missing: int, n: int) -> str:
        """The remark on a column that has a substitute in ``n_missing`` of all ``n`` rows, without
        its name: columns of which the same is said are named together."""
        return rows_without("value", n_missing, n)

    @property
    @abstractmethod
    def columns(self) -> Sequence[ColumnSpec]:
        """The declared columns, in the order of ``compute``."""

    @abstractmethod
    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        """Compute the columns of the pairs: float32 [len(pairs), len(columns)], finite.
        :func:`computed` checks it.

        Raises:
            InputError: a pair lies outside the collection, or the context lacks something that
                the family needs.
        """

    def check(self, context: ColumnContext) -> None:  # noqa: B027, most families need no check
        """Raise InputError if ``compute`` cannot work in this context; all families are checked
        before any of them computes."""

    def save_learned(self, context: ColumnContext, folder: Path) -> None:  # noqa: B027
        """Write what the family trains on the documents' texts into the folder of a saved builder,
        for :meth:`load_learned`: another machine may not train the same bits. By default
        nothing."""

    def load_learned(self, context: ColumnContext, folder: Path) -> None:  # noqa: B027
        """Put what :meth:`save_learned` wrote, if it is there, into the context's cache."""

    def absent(self, context: ColumnContext) -> dict[str, str]:
        """Map the name of each column that is 0 throughout, because the collection lacks its
        source, to the reason in one line. By default: columns of fields that are missing."""
        return {
            column.name: f"0: the collection has no field {column.field!r}"
            for column in self.columns
            if column.field is not None and column.field not in context.index
        }

    def get_params(self) -> dict[str, Any]:
        """The constructor's parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def settings(self, context: ColumnContext) -> dict[str, Any]:
        """What decides the columns' values, for their provenance, see
        :data:`letor.dataset.SETTINGS`."""
        analysis = {"text analysis": str(context.index.analyzer)} if self.reads_texts else {}
        return analysis | plain_settings(self.without_unused(self.get_params()))

    def column_settings(self, context: ColumnContext, column: str) -> dict[str, Any]:
        """What decides the values of one of the columns, by default :meth:`settings`."""
        return self.settings(context)

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def select(self, values: NDArray[np.float32], names: Sequence[str]) -> NDArray[np.float32]:
        """Select columns by name from a result of ``compute``, in the given order.

        Raises:
            InputError: the family has no such column.
        """
        chosen = positions_of(names, self.column_names, f"column family {self.name!r}")
        return np.ascontiguousarray(values[:, chosen])


def computed(family: ColumnFamily, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
    """The columns of the pairs by ``family.compute``, which sees no judgements, checked: float32
    [len(pairs), len(columns)], finite. Other errors of the family are noted to come from it.

    Raises:
        InputError: the family returns something else.
    """
    what = f"column family {family.name!r}"
    with naming(what):
        values = family.compute(context.unjudged, pairs)
    shape = (len(pairs), len(family.columns))
    if not isinstance(values, np.ndarray) or values.dtype != np.float32 or values.shape != shape:
        found = type(values).__name__
        if isinstance(values, np.ndarray):
            found = f"{values.dtype} {list(values.shape)}"
        raise InputError(
            f"{what} computed {found}; its compute must return an array float32 {list(shape)}, a "
            "row per pair and a column per column that it declares"
        )
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        ids = context.collection.query_ids, context.collection.document_ids
        raise InputError(
            f"{what}, column {family.column_names[column]!r}: query {ids[0][pairs.query[row]]} and "
            f"document {ids[1][pairs.document[row]]} have the value {values[row, column]}; its "
            "compute must return finite numbers"
        )
    return values


def check_declared(family: ColumnFamily) -> None:
    """Raise InputError, before any work, unless a family declares what its columns are, and keeps
    its parameters, by which it is stored and made again."""
    what = f"column family {getattr(family, 'name', type(family).__name__)!r}"
    for part in ("name", "description", "reference"):
        if not isinstance(getattr(family, part, None), str):
            raise InputError(f"{what} has no {part}: set it in the class, {part} = '...'")
    try:
        specs = family.columns
    except Exception as error:
        raise InputError(
            f"{what}: its columns cannot be made: {described(error)} (--debug shows where)"
        ) from error
    if not isinstance(specs, Sequence) or not all(isinstance(spec, ColumnSpec) for spec in specs):
        raise InputError(f"{what}: columns must be a list of ColumnSpec, got {str(specs)[:80]}")
    if type(family).get_params is not ColumnFamily.get_params:
        return
    for name, parameter in inspect.signature(type(family)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InputError(
                f"{what}: {parameter} hides its parameters: name each of them, or define get_params"
            )
        if not hasattr(family, name):
            raise InputError(
                f"{what}: its constructor must store the parameter {name!r} unchanged, as "
                f"self.{name}"
            )


def check_families(families: Iterable[ColumnFamily], context: ColumnContext) -> None:
    """Raise InputError if a family cannot compute its columns in this context; other errors of a
    family are noted to come from it."""
    for family in families:
        with naming(f"column family {family.name!r}"):
            family.check(context.unjudged)


def plain_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that decide values and that JSON holds: numbers, texts, tables of these, and
    files by their names, as they may be moved. Folders, threads, tables of files, which queries may
    have of their own, arrays and objects are left out."""
    aside = ("folder", "threads", "files")
    return _plain({name: value for name, value in params.items() if name not in aside})


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        value = plain_number(value)
        if isinstance(value, Mapping):
            found[str(name)] = _plain(value)
        elif isinstance(value, bool | int | float):
            found[str(name)] = value
        elif isinstance(value, str | os.PathLike):
            found[str(name)] = Path(value).name
    return found


def check_column_name(name: object) -> None:
    """Raise InputError for a name that files of columns cannot hold: it must be text, not empty,
    without ``#`` and line breaks, as in LETOR text ``#`` begins a comment."""
    if not isinstance(name, str) or not name.strip() or "#" in name or len(name.splitlines()) > 1:
        raise InputError(
            f"column {name!r}: the name must be text, not empty, of one line and without '#'"
        )


def n_without(queries: NDArray[np.bool_], documents: NDArray[np.bool_], pairs: Pairs) -> int:
    """The number of pairs whose query or document lacks something, given which ones have it."""
    return int((~queries[pairs.query] | ~documents[pairs.document]).sum())


def having_members(ends: Iterable[NDArray[np.integer[Any]]], n: int) -> NDArray[np.bool_]:
    """bool [n]: whether each of n texts has members in any of its fields, given where each text's
    end, [n + 1] for each field."""
    found = np.zeros(n, dtype=np.bool_)
    for of_field in ends:
        found |= np.diff(of_field) > 0
    return found


def rows_without(what: str, n_missing: int, n: int) -> str:
    """How many of n rows have no ``what``, for a remark."""
    return f"{n_missing:,} of {n:,} rows ({100 * n_missing / n:.1f} %) have no {what}"


def substitutes(family: Any, usual: Any) -> dict[str, Any]:
    """What stands for values that a column of the family lacks, by name of the column.

    Args:
        family: with the parameter ``missing``: one for all columns, or a mapping from names of
            columns, where others have the ``usual`` one.

    Raises:
        InputError: a value is of another type than the parameter takes, or a number is not finite
            in float32, or no column has such a name.
    """
    missing, columns = family.missing, family.column_names
    check_values(type(family), {"missing": missing}, f"column family {family.name!r}")
    several = isinstance(missing, Mapping)
    for value in missing.values() if several else [missing]:
        if not isinstance(value, str | None) and not abs(value) <= _LARGEST:
            raise InputError(f"{family.name}: missing must be finite in float32, got {value}")
    for name in set(missing).difference(columns) if several else ():
        raise InputError(f"{family.name}: missing: no column {name!r}; {nearest(name, columns)}")
    return {name: missing.get(name, usual) if several else missing for name in columns}
