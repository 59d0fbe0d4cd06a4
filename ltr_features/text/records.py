"""Read lines of text files as records: JSON objects, and rows of ids."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from letor.compression import COMPRESSED, text_lines
from letor.errors import InputError
from letor.mapped import GrowingArray
from ltr_base.names import counted
from ltr_features.text.id_rows import Finder

_LINES = 2**18  # read at a time
_MOST_LEVELS = 8  # of nested objects; deeper ones are none of a table
_NEXT = re.compile(r"\s*,?\s*")
_END_OF_LIST = re.compile(r"\s*+,?+\s*+\]\s*+\Z")

#: Called with the number of a line that is left out, and the reason.
OnBadLine: TypeAlias = Callable[[int, str], None]


def place(origin: object, number: int) -> str:
    """Where something is, for messages: a file and its line, or the row of Parquet or of a frame,
    which have no lines."""
    has_lines = isinstance(origin, str | os.PathLike) and not str(origin).endswith(".parquet")
    return f"{origin}, {'line' if has_lines else 'row'} {number}"


def find_file(folder: Path, name: str) -> Path:
    """The file of a name, compressed or not.

    Raises:
        InputError: there is no such file.
    """
    for suffix in ("", *COMPRESSED):
        path = folder / (name + suffix)
        if path.is_file():
            return path
    what = "no such file" if folder.is_dir() else "no such folder"
    raise InputError(f"{folder / name}: {what} (also tried .gz, .bz2 and .zst)")


def json_lines(
    path: Path,
    needed: Sequence[str] = (),
    encoding: str = "utf-8",
    *,
    on_bad_line: OnBadLine | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, JSON object with the ``needed`` keys) of each line that is not blank, or
    of each element of a list of objects, for which the file's text is held in memory.

    Args:
        on_bad_line: called with the number of each line that is not such an object, and the reason;
            such lines, but no elements of lists, are left out. None: such a line is an error.

    Raises:
        InputError: as for :func:`~letor.compression.text_lines`; a line or an element of the list
            is not a JSON object, or a key is missing. The line is not quoted, since it may hold a
            user's query.
    """
    lines = text_lines(path, encoding)
    first = next((line for line in lines if line[1].strip()), (0, ""))
    if first[1].lstrip().startswith("["):
        text = "\n" * (first[0] - 1) + "\n".join([first[1], *(line for _, line in lines)])
        yield from _listed(path, text, needed)
        return
    for number, line in chain([first], lines):
        if not line or line.isspace():
            continue
        try:
            record = parse_object(path, number, line, needed)
        except InputError as error:
            if on_bad_line is None:
                raise
            on_bad_line(number, reason_of(error))
            continue
        yield number, record


def reason_of(error: InputError) -> str:
    """What is wrong with a line, without the file, the line and what to do."""
    return re.sub(r"^.*, line \d+: ", "", str(error)).partition(";")[0]


def _listed(path: Path, text: str, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON list, each with the line on which it begins."""
    decoder, line, counted, place = json.JSONDecoder(), 1, 0, text.index("[") + 1
    while not _END_OF_LIST.match(text, place):
        begin = _NEXT.match(text, place).end()  # type: ignore[union-attr]  # matches anything
        line, counted = line + text.count("\n", counted, begin), begin
        try:
            record, place = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            record = None
        yield line, _checked(path, line, record, needed)


def parse_object(path: Path, number: int, text: str, needed: Sequence[str]) -> dict[str, Any]:
    """Parse a JSON object that has the needed keys; see :func:`json_lines`."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    return _checked(path, number, record, needed)


def _checked(path: Path, number: int, record: Any, needed: Sequence[str]) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise InputError(
            f"{path}, line {number}: not a JSON object; "
            "each line must be one, or the file a list of them"
        )
    check_keys(path, number, record, needed)
    return record


def check_keys(path: Path, number: int, record: Mapping[str, Any], needed: Sequence[str]) -> None:
    """Raise InputError if a JSON object lacks a needed key."""
    missing = [key for key in needed if key not in record]
    if missing:
        raise InputError(f"{path}, line {number}: {', '.join(missing)} is missing")


def flat(record: Mapping[str, Any], levels: int = _MOST_LEVELS) -> Mapping[str, Any]:
    """A JSON object without nested ones: ``{"text": {"html": "x"}}`` becomes ``{"text.html":
    "x"}``."""
    if not levels or not any(isinstance(value, dict) for value in record.values()):
        return record
    found: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            found |= {f"{key}.{inner}": v for inner, v in flat(value, levels - 1).items()}
        else:
            found[key] = value
    return found


def text_value(
    path: Path, number: int, record: Mapping[str, Any], key: str, *, lists: bool = False
) -> str:
    """The text under a key; ``""`` if it is absent, null or NaN, and numbers as text. With
    ``lists``, a list of these is joined by a space.

    Raises:
        InputError: the value is a list or object, or has half of a surrogate pair.
    """
    value = record.get(key)
    if lists and isinstance(value, list) and not is_nested(value):
        value = joined(value)
    if isinstance(value, (list, dict)):
        kind = "list" if isinstance(value, list) else "object"
        advice = " or a list of texts; write the texts in it under a key of their own"
        raise InputError(
            f"{path}, line {number}: {key} is a JSON {kind}, expected text{advice if lists else ''}"
        )
    text = "" if value is None or value != value else str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ascii(text[error.start])
        raise InputError(
            f"{path}, line {number}: {key} has {half}, half of a surrogate pair, which is not a "
            "character; the program that wrote the file cut a text in two"
        ) from None
    return text


def is_nested(value: Any) -> bool:
    """Whether a value is an object, or a list that holds objects or lists."""
    inner = value if isinstance(value, list) else ()
    return isinstance(value, dict) or any(isinstance(v, (list, dict)) for v in inner)


def joined(values: Sequence[Any]) -> str:
    """Texts or numbers as one text, with spaces between; missing ones are left out."""
    return " ".join(str(value) for value in values if value is not None)


def id_rows(
    path: Path, finders: Sequence[Finder | None], *, skip: int = 0
) -> list[NDArray[np.int64]]:
    """Columns of a tab-separated file as numbers: rows of ids by their finder, or integers for a
    column without a finder. Long columns are held in temporary files.

    Args:
        skip: number of header lines.

    Raises:
        InputError: as for :func:`text_lines`; the number of fields, an id or an integer is wrong.
    """
    columns = [GrowingArray(np.int64) for _ in finders]
    lines = ((number, line) for number, line in text_lines(path) if number > skip)
    while block := [*islice(lines, _LINES)]:
        fields = []
        for number, line in block:
            fields.append(line.split("\t"))
            if (n := len(fields[-1])) != len(finders):
                raise InputError(
                    f"{path}, line {number}: {counted(n, 'field')}, expected {len(finders)}, "
                    "separated by tabs"
                )
        for column, find, values in zip(columns, finders, zip(*fields, strict=True), strict=True):
            rows = _whole_numbers(values) if find is None else find(values)
            unknown = [at for at, row in enumerate(rows) if row is None or (find and row < 0)]
            if unknown:
                number, value = block[unknown[0]][0], values[unknown[0]]
                what = "integer" if find is None else "known id; leave out such lines"
                raise InputError(f"{path}, line {number}: {value!r} is no {what}")
            column.append(np.asarray(rows, np.int64))
    return [column.taken() for column in columns]


def _whole_numbers(values: Sequence[str]) -> list[int | None]:
    """The values as integers, None for those that are not."""
    numbers: list[int | None] = []
    for value in values:
        try:
            numbers.append(int(value))
        except ValueError:
            numbers.append(None)
    return numbers
