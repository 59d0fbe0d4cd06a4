"""Files as byte buffers and byte streams; .gz, .bz2 and .zst are (de)compressed on the way."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from letor.errors import InputError

# Arrow's streams read files of several frames and, unlike others, notice a truncated one.
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


#: How every Parquet file begins.
_PARQUET = b"PAR1"


@contextmanager
def open_input(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A text file's content as a stream of bytes, decompressed according to its suffix.

    Raises:
        InputError: no such file, or a Parquet file; or its compressed data is damaged (raised while
            reading).
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    codec = _CODECS.get(path.suffix)
    try:
        with path.open("rb") as raw:
            if raw.read(len(_PARQUET)) == _PARQUET:
                raise InputError(
                    f"{path} is Parquet, not text; to make LETOR text of it: ltr-features convert "
                    f"{path} {path.with_suffix('.txt')}"
                )
            raw.seek(0)
            yield pa.CompressedInputStream(raw, codec) if codec else raw
    except OSError as error:
        if codec is None or error.errno is not None:
            raise
        raise InputError(f"{path}: damaged {path.suffix} file: {error}") from error


def read_buffer(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """A file's content as a read-only uint8 array: memory-mapped, or decompressed into memory.

    Raises:
        InputError: no such file, or damaged compressed data.
    """
    with open_input(path) as stream:
        if Path(path).suffix in _CODECS:
            return np.frombuffer(stream.read(), dtype=np.uint8)
        if os.fstat(stream.fileno()).st_size == 0:  # an empty file cannot be mapped
            return np.frombuffer(b"", dtype=np.uint8)
        return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)


@contextmanager
def open_output(path: str | os.PathLike[str], suffix: str) -> Iterator[IO[bytes]]:
    """Open ``path`` for writing, compressing as ``suffix`` says (the path may be temporary)."""
    codec = _CODECS.get(suffix)
    with open(path, "wb") as raw:
        if codec is None:
            yield raw
        else:
            with pa.CompressedOutputStream(raw, codec) as stream:
                yield stream
