"""Files as bytes, streams and lines; .gz, .bz2 and .zst are (de)compressed on the way."""

from __future__ import annotations

import codecs
import io
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from letor.files import check_is_file

# Arrow's streams read files of several frames and, unlike others, notice a truncated one.
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
#: Suffixes of compressed files.
COMPRESSED = tuple(_CODECS)
#: Formats that text is often mistaken for: how their files begin, and what to do about them.
_FORMATS = (
    ("gzip", rb"\x1f\x8b", "end its name in .gz"),
    ("bz2", rb"BZh[1-9]1AY&SY", "end its name in .bz2"),
    ("zstd", rb"\x28\xb5\x2f\xfd", "end its name in .zst"),
    ("Parquet", rb"PAR1", "end its name in .parquet"),
    ("Arrow (Feather)", rb"ARROW1", "save the table as .parquet"),
    ("a pickle", rb"\x80[\x02-\x05]", "it may run code: save the table as .parquet or .csv"),
    ("xz", rb"\xfd7zXZ\0", "decompress it (xz -d), or compress it as .gz, .bz2 or .zst"),
    ("a zip file", rb"PK\x03\x04", "unpack it; of a spreadsheet, save a sheet as .csv"),
    ("a NumPy array", rb"\x93NUMPY", "write its values as text, by numpy.savetxt for example"),
)
#: What a compressed file may hold: so many bytes in any case, and so many times its own from one
#: MiB on. (Tables and logs have 3 to 20 times the bytes of their files, LETOR text that is nearly
#: all zeros 100 times; what is made to fill the memory has 1,000 times as many, or a million.)
ALWAYS_UNPACKED, LARGEST_MULTIPLE, FROM_BYTES = 2**25, 128, 2**20
_BLOCK_BYTES = 1 << 20


def check_unpacked(path: str | os.PathLike[str], n_bytes: int) -> None:
    """Raise InputError if a compressed file of this name may not hold so many bytes."""
    size = os.stat(path).st_size
    most = max(ALWAYS_UNPACKED, LARGEST_MULTIPLE * size * (size >= FROM_BYTES))
    if n_bytes > most:
        raise InputError(
            f"{path}: its {size:,} bytes hold more than {most:,} bytes, {most // max(1, size):,} "
            "times as many, which may be meant to fill the memory; if you trust the file, "
            "decompress it and name what comes of it"
        )


class Unpacked(io.RawIOBase):
    """What a compressed file holds, as a stream that refuses to go on for ever.

    Args:
        stream: the decompressed bytes.
        path: the compressed file.
    """

    def __init__(self, stream: IO[bytes], path: str | os.PathLike[str]) -> None:
        self._stream, self._path, self._read = stream, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; 0 at the end.

        Raises:
            InputError: as :func:`check_unpacked`.
        """
        n = cast(Any, self._stream).readinto(buffer) or 0
        self._read += n
        check_unpacked(self._path, self._read)
        return n

    def readall(self) -> bytes:
        whole = io.BytesIO()
        while block := self.read(_BLOCK_BYTES):
            whole.write(block)
        return whole.getvalue()


@contextmanager
def open_input(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A text file's content as a stream of bytes, decompressed according to its suffix.

    Raises:
        InputError: no such file, or one that begins like a Parquet, zip or .npy file, or like one
            compressed in another way; or its compressed data is damaged, or as :class:`Unpacked`
            (raised while reading).
    """
    with _open_arrow(path) as stream, closing(stream):
        raw = Unpacked(stream, path) if Path(path).suffix in _CODECS else stream
        yield io.BufferedReader(cast(io.RawIOBase, raw), _BLOCK_BYTES)


@contextmanager
def _open_arrow(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A text file's content as a stream of Arrow's own, however long it is; it is left open."""
    import pyarrow as pa

    path = Path(path)
    check_is_file(path)
    codec = _CODECS.get(path.suffix)
    try:
        raw = pa.OSFile(str(path))
        begin = raw.read(16)
        if codec and not begin:
            raise InputError(f"{path}: it is empty, which no {path.suffix} file is; copy it again")
        _check_format(path, begin)
        raw.seek(0)
        yield pa.CompressedInputStream(raw, codec) if codec else raw
    except (OSError, pa.ArrowException) as error:
        # Some errors of decompression have no class of their own; those of tables do.
        from_codec = type(error) in (OSError, pa.ArrowException)
        if codec is None or not from_codec or getattr(error, "errno", None) is not None:
            raise
        raise InputError(
            f"{path}: damaged {path.suffix} file: {error}; copy it again, or unpack it yourself"
        ) from error


def _check_format(path: Path, begin: bytes) -> None:
    """Raise InputError if a file begins like one of another format than its suffix says."""
    expected = _CODECS.get(path.suffix, "text")
    for found, pattern, advice in _FORMATS:
        if found != expected and re.match(pattern, begin):
            if found == "Parquet" and path.suffix == ".parquet":
                text = path.with_suffix(".txt")
                advice = f"to make LETOR text of it: ltr-features convert {path} {text}"
            raise InputError(f"{path} is {found}, not {expected}; {advice}")


def read_buffer(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """A file's content as a read-only uint8 array: memory-mapped, or decompressed into memory.

    Raises:
        InputError: no such file, or damaged compressed data.
    """
    with open_input(path) as stream:
        # An empty file cannot be mapped.
        if Path(path).suffix in _CODECS or Path(path).stat().st_size == 0:
            return np.frombuffer(stream.read(), dtype=np.uint8)
    with open(path, "rb") as raw:
        return np.frombuffer(mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)


def check_encoding(encoding: str) -> None:
    """Raise InputError if there is no such encoding of text."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise InputError(
            f"encoding {encoding!r} is unknown; use 'utf-8', 'cp1252' or 'latin-1', say"
        ) from None


@contextmanager
def open_utf8(path: str | os.PathLike[str], encoding: str = "utf-8") -> Iterator[IO[bytes]]:
    """As :func:`open_input`, of a text in any encoding as UTF-8; of another one all is in memory.

    Args:
        encoding: the encoding of files that are not UTF-8, so that files of both kinds can be read
            together. A file with characters beyond ASCII that is UTF-8 throughout is read as it is,
            and so is one of ASCII where the encoding is UTF-16 or UTF-32.

    Raises:
        InputError: as there; an unknown encoding, or bytes of another one (while reading).
    """
    check_encoding(encoding)
    if codecs.lookup(encoding).name == "utf-8":
        with open_input(path) as stream:
            yield stream  # readers decode it, and know the line
        return
    with open_input(path) as stream:
        content = stream.read()
    marked = codecs.lookup(encoding).name in ("utf-16", "utf-32")  # begins with bytes beyond ASCII
    if is_utf8(content) or (marked and content.isascii() and b"\0" not in content):
        yield io.BytesIO(content)
        return
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.object[error.start]:#04x} is not {encoding}; name another "
            "encoding, 'utf-8', 'cp1252' or 'latin-1', say"
        ) from None
    yield io.BytesIO(text.encode("utf-8"))


def is_utf8(content: bytes) -> bool:
    """Whether a text has characters beyond ASCII and is UTF-8. (UTF-16 has null bytes.)"""
    if content.isascii() or b"\0" in content:
        return False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def open_for_arrow(path: str | os.PathLike[str], encoding: str = "utf-8") -> Iterator[IO[bytes]]:
    """As :func:`open_utf8`, as a stream of Arrow's own for readers of Arrow: their threads, left
    behind by an error, would wait for objects of Python at exit, and for ever. So the content of a
    compressed file is read through once before. And the stream is closed with the last reference
    to it, not at the end of the block: a thread that still reads ahead would go on in the next file
    that is opened, which gets the same descriptor, and take rows from it.

    Raises:
        InputError: as there, before the stream is given.
    """
    import pyarrow as pa

    check_encoding(encoding)
    if codecs.lookup(encoding).name != "utf-8":
        with open_utf8(path, encoding) as stream:
            yield pa.BufferReader(stream.read())
        return
    if Path(path).suffix in _CODECS:
        with open_input(path) as stream:
            while stream.read(_BLOCK_BYTES):
                pass
    with _open_arrow(path) as stream:
        yield stream


def text_lines(
    path: str | os.PathLike[str], encoding: str = "utf-8", errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """(number from 1, text without its line end) of each line of a text file.

    Args:
        errors: what becomes of bytes that are not UTF-8, see ``bytes.decode``.

    Raises:
        InputError: no such file, damaged compressed data, or bytes of another encoding.
    """
    with open_utf8(path, encoding) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, _decoded(path, number, line, errors)


def _decoded(path: str | os.PathLike[str], number: int, line: bytes, errors: str) -> str:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", errors)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: byte {error.object[error.start]:#04x} at position "
            f"{error.start} is not UTF-8; convert the file to UTF-8, or name its encoding where "
            "there is such an option (encoding='cp1252', say)"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


@contextmanager
def open_output(path: str | os.PathLike[str], suffix: str) -> Iterator[IO[bytes]]:
    """Open ``path`` for writing, compressing as ``suffix`` says (the path may be temporary)."""
    codec = _CODECS.get(suffix)
    with open(path, "wb") as raw:
        if codec is None:
            yield raw
        else:
            import pyarrow as pa

            with pa.CompressedOutputStream(raw, codec) as stream:
                yield stream
