"""StringArray: many short strings in one buffer, made into Python objects only on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class StringArray(Sequence[Any]):
    """n strings, each a piece of one byte buffer; behaves like a read-only object array.

    An integer index gives one ``str`` (or ``bytes``); a slice, positions or a mask give another
    StringArray over the same buffer; ``numpy.asarray`` gives an object array.

    Attributes:
        buffer: uint8, the bytes of all strings.
        start, stop: int64 [n], piece i is ``buffer[start[i]:stop[i]]``.
        is_text: whether pieces are ``str`` (UTF-8, with invalid bytes kept as surrogates) or
            ``bytes``.
    """

    def __init__(
        self,
        buffer: NDArray[np.uint8],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        *,
        is_text: bool,
    ) -> None:
        self.buffer, self.start, self.stop, self.is_text = buffer, start, stop, is_text

    @classmethod
    def from_values(cls, values: Iterable[str | bytes]) -> StringArray:
        """Pack values, all ``str`` or all ``bytes`` (the first decides)."""
        if isinstance(values, StringArray):
            return values
        values = list(values)
        is_text = bool(values) and isinstance(values[0], str)
        pieces = [encode(value) for value in values]
        lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
        stop = np.cumsum(lengths)
        return cls(
            np.frombuffer(b"".join(pieces), dtype=np.uint8), stop - lengths, stop, is_text=is_text
        )

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, index: Any) -> Any:
        start, stop = self.start[index], self.stop[index]
        if isinstance(start, np.ndarray):
            return StringArray(self.buffer, start, stop, is_text=self.is_text)
        return self._piece(int(start), int(stop))

    def __iter__(self) -> Iterator[Any]:
        return (
            self._piece(*span) for span in zip(self.start.tolist(), self.stop.tolist(), strict=True)
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        values = np.empty(len(self), dtype=object)
        values[:] = list(self)
        return values if dtype is None else values.astype(dtype)

    def __eq__(self, other: object) -> Any:
        return np.asarray(self) == np.asarray(other, dtype=object)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"StringArray of {len(self)}: {list(self[:3])!r}{', ...' * (len(self) > 3)}"

    def tolist(self) -> list[Any]:
        """The strings as a list."""
        return list(self)

    @property
    def spans(self) -> NDArray[np.int64]:
        """int64 [n, 2]: start and stop of each piece."""
        return np.stack([self.start, self.stop], axis=1)

    def _piece(self, start: int, stop: int) -> str | bytes:
        piece = self.buffer[start:stop].tobytes()
        return piece.decode("utf8", "surrogateescape") if self.is_text else piece


def encode(value: str | bytes) -> bytes:
    """Encode a string as it is stored in files; bytes are returned unchanged."""
    return value.encode("utf8", "surrogateescape") if isinstance(value, str) else value
