"""Lines of text files as records: JSON objects, and rows of ids."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.compression import text_lines
from letor.errors import InputError
from letor.mapped import GrowingArray
from ltr_features.text.collection import Finder

_LINES = 2**18  # that are read at a time

#: Suffixes that a file may have beyond its plain name.
COMPRESSED = ("", ".gz", ".bz2", ".zst")


def find_file(folder: Path, name: str) -> Path:
    """The file of that name, compressed or not.

    Raises:
        InputError: it is not there.
    """
    for suffix in COMPRESSED:
        path = folder / (name + suffix)
        if path.is_file():
            return path
    what = "no such file" if folder.is_dir() else "no such folder"
    raise InputError(f"{folder / name}: {what} (.gz, .bz2 and .zst were looked for too)")


def json_lines(
    path: Path, needed: Sequence[str] = (), encoding: str = "utf-8"
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, JSON object) of each line that is not blank; ``needed`` keys are there.

    Raises:
        InputError: as :func:`~letor.compression.text_lines`; not a JSON object, or a key is
            missing. The line is not quoted, as it may hold a user's query.
    """
    for number, line in text_lines(path, encoding):
        if line and not line.isspace():
            yield number, parse_object(path, number, line, needed)


def parse_object(path: Path, number: int, text: str, needed: Sequence[str]) -> dict[str, Any]:
    """A JSON object that has the needed keys; see :func:`json_lines`."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InputError(f"{path}, line {number}: not a JSON object")
    missing = [key for key in needed if key not in record]
    if missing:
        raise InputError(f"{path}, line {number}: {', '.join(missing)} is missing")
    return record


def text_value(path: Path, number: int, record: Mapping[str, Any], key: str) -> str:
    """The text under a key; ``""`` where it is absent or null, a number as it is written.

    Raises:
        InputError: a list or object, or half of a surrogate pair, which is no text.
    """
    value = record.get(key)
    if isinstance(value, (list, dict)):
        raise InputError(
            f"{path}, line {number}: {key} is a JSON {type(value).__name__}, expected text"
        )
    text = "" if value is None else str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ascii(text[error.start])
        raise InputError(
            f"{path}, line {number}: {key} has {half}, half of a surrogate pair, which stands for "
            "no character; whatever wrote the file cut a text in two"
        ) from None
    return text


def id_rows(
    path: Path, finders: Sequence[Finder | None], *, skip: int = 0
) -> list[NDArray[np.int64]]:
    """Columns of a tab-separated file as numbers: the places of ids, integers where there is no
    finder; in temporary files where they are many.

    Args:
        skip: lines of the header.

    Raises:
        InputError: as :func:`text_lines`; another number of fields, an unknown id, no integer.
    """
    columns = [GrowingArray(np.int64) for _ in finders]
    lines = ((number, line) for number, line in text_lines(path) if number > skip)
    while some := [*islice(lines, _LINES)]:
        fields = []
        for number, line in some:
            fields.append(line.split("\t"))
            if (n := len(fields[-1])) != len(finders):
                raise InputError(f"{path}, line {number}: {n} fields, expected {len(finders)}")
        for column, find, values in zip(columns, finders, zip(*fields, strict=True), strict=True):
            rows = _whole_numbers(values) if find is None else find(values)
            unknown = [at for at, row in enumerate(rows) if row is None or (find and row < 0)]
            if unknown:
                number, value = some[unknown[0]][0], values[unknown[0]]
                raise InputError(f"{path}, line {number}: unknown value {value!r}")
            column.append(np.asarray(rows, np.int64))
    return [column.taken() for column in columns]


def _whole_numbers(values: Sequence[str]) -> list[int | None]:
    """None where a value is no whole number."""
    found: list[int | None] = []
    for value in values:
        try:
            found.append(int(value))
        except ValueError:
            found.append(None)
    return found
