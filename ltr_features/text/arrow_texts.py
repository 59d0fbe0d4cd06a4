"""A column of texts in Arrow format, which may be memory-mapped: texts become Python strings on
access, and processes on a machine share the memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from ltr_base.names import is_unicode

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 4096  # texts


class StoredTexts(Sequence[str]):
    """The texts of an Arrow column, as a sequence.

    Args:
        column: a column of strings without nulls.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, rows: int) -> str: ...
    @overload
    def __getitem__(self, rows: slice) -> list[str]: ...
    def __getitem__(self, rows: int | slice) -> str | list[str]:
        if isinstance(rows, slice):
            return [self[row] for row in range(*rows.indices(len(self)))]
        return self._column[int(rows)].as_py()

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _BLOCK):
            yield from self._column.slice(first, _BLOCK).to_pylist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def take(self, rows: NDArray[np.int64]) -> list[str]:
        """The texts of some rows."""
        return self._column.take(rows).to_pylist()

    def places(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """int64 [len(texts)]: the position of each text in the column, whose texts must be
        distinct; -1 for texts that it lacks."""
        import pyarrow as pa
        import pyarrow.compute as pc

        # A column cannot contain texts that have no UTF-8 encoding.
        asked = pa.array([text if is_unicode(text) else None for text in texts], pa.large_string())
        with _table_released():
            found = pc.index_in(asked, value_set=self._column, skip_nulls=True)
        return np.asarray(found.fill_null(-1), dtype=np.int64)

    @property
    def distinct(self) -> bool:
        """Whether all texts are distinct."""
        import pyarrow.compute as pc

        with _table_released():
            return bool(pc.count_distinct(self._column).as_py() == len(self))

    def arrow(self, first: int, last: int) -> pa.Array:
        """The texts ``first`` to ``last`` (exclusive), as large_string."""
        import pyarrow as pa

        part = self._column.slice(first, last - first)
        return part.chunk(0) if part.num_chunks == 1 else pa.concat_arrays(part.chunks)


@contextmanager
def _table_released() -> Iterator[None]:
    """Release the memory of a hash table of all texts afterwards, which Arrow would keep."""
    import pyarrow as pa

    yield
    pa.default_memory_pool().release_unused()
