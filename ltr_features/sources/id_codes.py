"""Numbers in place of the ids in a table's columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.sources.table_blocks import Block, ColumnName, texts


def refuse_empty(
    block: Block, column: ColumnName, values: Sequence[str], index: NDArray[np.int64]
) -> None:
    """Raise InputError naming the first row with an empty value; ``values`` and ``index`` are
    those of :func:`texts`."""
    empty = np.array([not value for value in values], dtype=bool)
    if empty[index].any():
        raise InputError(f"{block.where(int(np.argmax(empty[index])))}: {column} is empty")


@dataclass
class Codes:
    """Numbers ids in order of first appearance.

    Attributes:
        number: the number of each id.
        rule: applied to each id first; by default ids are taken as they are.
    """

    rule: Callable[[str], str] | None = None
    number: dict[str, int] = field(default_factory=dict)

    def of(self, block: Block, column: ColumnName) -> NDArray[np.int64]:
        """int64 [n]: the numbers of a column's ids.

        Raises:
            InputError: an empty id.
        """
        values, index = texts(block, column)
        ids = values if self.rule is None else list(map(self.rule, values))
        refuse_empty(block, column, ids, index)
        codes = np.array([self.number.setdefault(i, len(self.number)) for i in ids], np.int64)
        return codes[index]
