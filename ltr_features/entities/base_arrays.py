"""The arrays of a knowledge base, as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.files import append_array, save_array
from ltr_features.entities.knowledge import ARRAYS


class BaseArrays:
    """The arrays of a knowledge base to come, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def save(self, name: str, values: NDArray) -> None:
        """Write a whole array."""
        save_array(self.path(name), values.astype(ARRAYS[name], copy=False))

    def append(self, name: str, values: NDArray) -> None:
        """Write more of an array."""
        append_array(self.folder / f"{name}.raw", values.astype(ARRAYS[name], copy=False))

    def close(self, *names: str) -> None:
        """Put a header before arrays that were written in parts."""
        for name in names:
            _raw_to_npy(self.folder / f"{name}.raw", self.path(name), ARRAYS[name])


def _raw_to_npy(raw: Path, path: Path, dtype: Any) -> None:
    """Put a header before the bytes of a file, a piece at a time."""
    size = raw.stat().st_size // np.dtype(dtype).itemsize
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (size,)}
    with path.open("wb") as out, raw.open("rb") as source:
        np.lib.format.write_array_header_1_0(out, header)
        while piece := source.read(1 << 24):
            out.write(piece)
    raw.unlink()
