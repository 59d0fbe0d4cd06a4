"""Readers of published vector files: word2vec text and binary, GloVe, fastText.

- Text: a word, then its numbers, separated by single spaces; one word per line. A header
  ``words dimension`` may come first (word2vec, fastText) or be missing (GloVe). A word may contain
  spaces (some in GloVe 840B do): the numbers are counted from the right.
- Binary (word2vec ``-binary 1``): the header line, then for each word its bytes, a space, and the
  numbers as little-endian float32, with or without a newline after them.
- Either may be compressed by gzip, bzip2 or Zstandard (recognised by its first bytes).
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from letor.compression import Unpacked
from letor.errors import InputError

_CHUNK = 1 << 22
_LONGEST_WORD = 1 << 16
_LONGEST_NUMBER = 1 << 8
_LARGEST_DIMENSION = 1 << 20
_ROWS_PER_PARSE = 512
_CODECS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OF_GENSIM = (
    "a file of Python or NumPy, not of words and vectors in word2vec's format; write that with "
    "gensim: KeyedVectors.load(...).save_word2vec_format(...)"
)
#: How files begin that do not hold words and vectors, and what to do about them.
_OTHERS = {
    b"\x80": _OF_GENSIM,
    b"\x93NUMPY": _OF_GENSIM,
    b"PK\x03\x04": "a zip archive (or of NumPy or PyTorch): unpack it, and name the file of words "
    "and vectors in it",
    b"\xfd7zXZ": "an xz file: decompress it (xz -d)",
    b"\xba\x16\x4f\x2f": "a model of fastText: name the .vec file that comes with it, or write the "
    "vectors with gensim: load_facebook_vectors(...).save_word2vec_format(...)",
}
_HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})\s*")


def read_vectors(
    path: str | os.PathLike[str],
    wanted: Callable[[str], bool] | None = None,
    *,
    layout: Literal["auto", "text", "binary"] = "auto",
    undecodable: Literal["raise", "skip"] = "raise",
) -> tuple[list[str], NDArray[np.float32]]:
    """Read words of a vector file and their vectors, in the order of the file.

    The numbers of unwanted words are skipped and not checked, and so are words that are not UTF-8
    if only some are wanted, which are texts.

    Args:
        path: the file.
        wanted: tells whether to read the vector of a word; None reads all. A repeated word keeps
            its first vector.
        layout: layout of the file; ``"auto"`` detects it from the beginning.
        undecodable: whether a word that is not UTF-8 raises an error or is skipped, if all words
            are read.

    Returns:
        Words, and their vectors as in the file, float32 [n, dimension].

    Raises:
        InputError: the file is not a vector file, is truncated, has rows of another dimension, a
            word that is not UTF-8, or a number that is not finite; with line or record.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such vector file")
    words: list[str] = []
    taken: set[str] = set()
    rows = _Rows(path)
    with _content(path) as stream:
        for place, word, numbers in _records(stream, path, layout, rows):
            try:
                name = word.decode("utf-8")
            except UnicodeDecodeError:
                if undecodable == "skip" or wanted is not None:
                    continue
                raise InputError(
                    f"{path}, {place}: the word {word[:40]!r} is not UTF-8; convert the file, "
                    "or skip such words by undecodable='skip'"
                ) from None
            if name in taken or (wanted is not None and not wanted(name)):
                continue
            taken.add(name)
            words.append(name)
            rows.add(place, numbers)
        return words, rows.matrix()


@contextmanager
def _content(path: Path) -> Iterator[io.BufferedReader]:
    """The decompressed content of a file, whose first bytes tell how it is compressed."""
    with open(path, "rb") as file:
        begin = file.read(6)
        file.seek(0)
        for mark, found in _OTHERS.items():
            if begin.startswith(mark):
                raise InputError(f"{path}: {found}")
        codec = next((codec for mark, codec in _CODECS.items() if begin.startswith(mark)), None)
        if codec is None:
            yield io.BufferedReader(cast(Any, file), _CHUNK)
            return
        # Imported late: most files are not compressed.
        import pyarrow as pa

        try:
            with pa.CompressedInputStream(file, codec) as stream:
                yield io.BufferedReader(Unpacked(stream, path), _CHUNK)
        except OSError as error:
            raise InputError(f"{path}: damaged or truncated {codec} file ({error})") from error


class _Rows:
    """Collects the numbers of rows and parses many rows at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.binary = False
        self.dimension = 0
        self._waiting: list[tuple[str, bytes]] = []
        self._parsed: list[NDArray[np.float32]] = []

    def add(self, place: str, numbers: bytes) -> None:
        if not self.binary and numbers.count(b" ") + 1 != self.dimension:
            raise InputError(
                f"{self.path}, {place}: {len(numbers.split())} numbers, expected {self.dimension} "
                "(one space between them)"
            )
        self._waiting.append((place, numbers))
        if len(self._waiting) >= _ROWS_PER_PARSE:
            self._parse()

    def matrix(self) -> NDArray[np.float32]:
        self._parse()
        empty = np.zeros((0, self.dimension), dtype=np.float32)
        return np.concatenate([empty, *self._parsed])

    def _parse(self) -> None:
        if not self._waiting:
            return
        if self.binary:
            joined = b"".join(numbers for _, numbers in self._waiting)
            numbers = np.frombuffer(joined, dtype="<f4").astype(np.float32)
        else:
            fields = b" ".join(numbers for _, numbers in self._waiting).split(b" ")
            if max(map(len, fields)) > _LONGEST_NUMBER:  # every field would take as many bytes
                self._name_the_bad_row()
            try:
                with np.errstate(over="ignore"):
                    numbers = np.array(fields, dtype=np.bytes_).astype(np.float32)
            except ValueError:
                self._name_the_bad_row()
        rows = numbers.reshape(-1, self.dimension)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise InputError(
                f"{self.path}, {self._waiting[bad[0]][0]}: a number is not finite in float32"
            )
        self._parsed.append(rows)
        self._waiting.clear()

    def _name_the_bad_row(self) -> None:
        for place, numbers in self._waiting:
            for field in numbers.split(b" "):
                if len(field) > _LONGEST_NUMBER or not _is_number(field):
                    raise InputError(f"{self.path}, {place}: {field[:40]!r} is not a number")


def _records(
    stream: io.BufferedReader, path: Path, layout: str, rows: _Rows
) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield (place, word, numbers) of each record; sets layout and dimension of ``rows`` first."""
    first = stream.readline(_CHUNK).removeprefix(_BYTE_ORDER_MARK)
    header = _HEADER.fullmatch(first)
    if layout == "auto":
        layout = "binary" if header and _looks_binary(stream.peek(_LONGEST_WORD)) else "text"
    if header:
        n_words, rows.dimension = int(header[1]), int(header[2])
        if not 1 <= rows.dimension <= _LARGEST_DIMENSION:
            raise InputError(
                f"{path}, line 1: the header {first[:40]!r} gives a dimension that is not 1 to "
                f"{_LARGEST_DIMENSION}"
            )
    elif layout == "binary":
        raise InputError(
            f"{path}, line 1: a binary vector file begins with 'words dimension', "
            f"found {first[:40]!r}"
        )
    else:
        n_words, rows.dimension = -1, first.rstrip().count(b" ")
        if rows.dimension < 1:
            raise InputError(
                f"{path}, line 1: expected 'words dimension' or a word and its numbers, "
                f"found {first[:40]!r}"
            )
    rows.binary = layout == "binary"
    if rows.binary:
        yield from _binary_records(stream, path, n_words, rows.dimension)
        return
    lines: Iterator[bytes] = stream if header else chain([first], stream)
    yield from _text_records(lines, path, n_words, rows.dimension)


def _looks_binary(begin: bytes) -> bool:
    """Whether the bytes after the first word cannot be text: float32 numbers practically always
    have control bytes or bytes above 126, and a line of text goes on after its word."""
    _, _, after = begin.partition(b" ")
    line = after.split(b"\n")[0][:256]
    return not re.fullmatch(rb"[\t\r -~]+", line)


def _text_records(
    lines: Iterator[bytes], path: Path, n_words: int, dimension: int
) -> Iterator[tuple[str, bytes, bytes]]:
    shift = 1 if n_words < 0 else 2
    found = 0
    for number, raw in enumerate(lines, start=shift):
        line = raw.rstrip()
        if not line:  # most often the last one
            continue
        found += 1
        word, _, numbers = line.partition(b" ")
        if not word:
            raise InputError(f"{path}, line {number}: no word at the start of the line")
        if b" " in numbers and numbers.count(b" ") >= dimension:
            parts = line.rsplit(b" ", dimension)
            if _is_number(parts[0].rpartition(b" ")[2]) and n_words >= 0:
                # The row is too long; the word has no spaces.
                parts = [word, numbers]
            word, numbers = parts[0], b" ".join(parts[1:])
        yield f"line {number}", word, numbers
    if n_words >= 0 and found != n_words:
        raise InputError(
            f"{path}: the header promises {n_words} words, the file has {found}; "
            "it is truncated or was changed"
        )


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _binary_records(
    stream: io.BufferedReader, path: Path, n_words: int, dimension: int
) -> Iterator[tuple[str, bytes, bytes]]:
    size = 4 * dimension
    buffer, at = b"", 0
    for record in range(1, n_words + 1):
        space = buffer.find(b" ", at)
        while space < 0 or len(buffer) < space + 1 + size:
            if space < 0 and len(buffer) - at > _LONGEST_WORD:
                raise InputError(
                    f"{path}, record {record}: no end of the word; the file is damaged"
                )
            more = stream.read(_CHUNK)
            if not more:
                raise InputError(
                    f"{path}, record {record}: the file ends here, its header promises {n_words} "
                    f"words of dimension {dimension}; it is truncated"
                )
            buffer, at = buffer[at:] + more, 0
            space = buffer.find(b" ", at)
        yield (
            f"record {record}",
            buffer[at:space].lstrip(b"\n"),
            buffer[space + 1 : space + 1 + size],
        )
        at = space + 1 + size
    if (buffer[at:] + b"".join(islice(stream, 1))).strip():
        raise InputError(
            f"{path}: data after the {n_words} words of dimension {dimension} that the header "
            "promises; the header is wrong"
        )
