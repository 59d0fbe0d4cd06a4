"""Base classes: the declaration of a feature column, and the column family."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.former import former_names
from ltr_features.columns.context import ColumnContext
from ltr_features.text.collection import Pairs


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
    """

    name: str
    description: str
    unit: str
    value_range: str
    reference: str
    field: str | None = None
    letor_id: int | None = None


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
        reads_texts: whether the columns depend on more than the ids of queries and documents.
    """

    knows_added: ClassVar[bool] = False
    reads_texts: ClassVar[bool] = True
    name: ClassVar[str]
    description: ClassVar[str]
    reference: ClassVar[str]

    @property
    def trained_on(self) -> str:
        """What the columns were learned from, for their provenance; never the rows' own labels."""
        return "nothing: counts of the collection"

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks for the user on how the columns were learned, see
        :attr:`ssi_models.base.MatchingModel.remarks`."""
        return ()

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> Sequence[int]:
        """For each column the number of pairs that the family's sources do not know, and that get a
        substitute. Tables are made in blocks, so these numbers are added up before
        :meth:`missing_remark` speaks of all rows. By default 0."""
        return [0] * len(self.columns)

    def missing_remark(self, column: str, n_missing: int, n: int) -> str:
        """The remark on a column that has a substitute in ``n_missing`` of all ``n`` rows."""
        return f"{column}: {rows_without('value', n_missing, n)}"

    @property
    @abstractmethod
    def columns(self) -> Sequence[ColumnSpec]:
        """The declared columns, in the order of ``compute``."""

    @abstractmethod
    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        """Compute the columns of the pairs: float32 [len(pairs), len(columns)], finite.

        Raises:
            InputError: a pair lies outside the collection, or the context lacks something that
                the family needs.
        """

    def check(self, context: ColumnContext) -> None:  # noqa: B027, most families need no check
        """Raise InputError if ``compute`` cannot work in this context; all families are checked
        before any of them computes."""

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

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def select(self, values: NDArray[np.float32], names: Sequence[str]) -> NDArray[np.float32]:
        """Select columns by name from a result of ``compute``, in the given order.

        Raises:
            InputError: the family has no such column.
        """
        position = {name: j for j, name in enumerate(self.column_names)}
        unknown = [name for name in names if name not in position]
        if unknown:
            raise InputError(
                f"column family {self.name!r} has no column {', '.join(unknown)}; it has "
                f"{', '.join(position)}"
            )
        return np.ascontiguousarray(values[:, [position[name] for name in names]])


def rows_without(what: str, n_missing: int, n: int) -> str:
    """How many of n rows have no ``what``, for a remark."""
    return f"{n_missing:,} of {n:,} rows ({100 * n_missing / n:.1f} %) have no {what}"
