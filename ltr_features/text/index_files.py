"""Files of a stored index: read, mapped, and checked before a kernel trusts them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.checked_arrays import check_array, check_rows_rise
from letor.errors import InputError, reading
from letor.files import read_json
from ltr_features.text.field_counts import Postings

HEADER = "index.json"
#: Files of the postings of all fields together.
POSTINGS = "postings"


def read_header(folder: Path, version_read: int, fields: Collection[str]) -> dict[str, Any]:
    """The description of the index in a folder.

    Args:
        version_read: that this program reads. fields: that an index may hold.

    Raises:
        InputError: no index there, one of another version, or a damaged description.
    """
    path = folder / HEADER
    if not path.exists():
        raise InputError(f"{folder}: no index here ({HEADER} is missing); build it first")
    with reading(path, "not the header of an index; build it again"):
        header = read_json(path)
        version = header["version"]
    if version != version_read:
        raise InputError(
            f"{folder}: index of version {version!r}; this program reads version "
            f"{version_read}: build it again"
        )
    if wrong := _damaged_entry(header, fields):
        raise InputError(f"{path}: {wrong} is missing or damaged; build the index again")
    return dict(header)


def _damaged_entry(header: Mapping[str, Any], known: Collection[str]) -> str:
    """The entry of a header that cannot be used; "" if all can."""
    fields, entries = header.get("stored_streams"), header.get("n_entries")
    if not isinstance(fields, list) or not fields or any(str(s) not in known for s in fields):
        return "stored_streams"
    if not isinstance(entries, dict) or not all(_is_size(entries.get(s)) for s in fields):
        return "n_entries"
    sizes = [name for name in ("n_documents", "n_words") if not _is_size(header.get(name))]
    return "analyzer" if "analyzer" not in header else "".join(sizes[:1])


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 2**62


def read_words(folder: Path, header: Mapping[str, Any]) -> list[str]:
    """The vocabulary. Raises InputError where its files do not fit the header or each other."""
    lengths, letters = map_array(folder, "word_lengths.npy"), map_array(folder, "words.npy")
    check_array(f"{folder / 'words.npy'}", letters, np.uint8, (None,))
    check_array(
        f"{folder / 'word_lengths.npy'}", lengths, np.int64, (None,), least=0, most=len(letters)
    )
    ends, text = np.concatenate([[0], np.cumsum(lengths)]).tolist(), letters.tobytes()
    if len(ends) != header["n_words"] + 1 or ends[-1] != len(text):
        raise InputError(f"{folder}: the words do not match {HEADER}; build the index again")
    with reading(folder / "words.npy", "it is damaged: build the index again"):
        return [text[a:b].decode("utf-8") for a, b in pairwise(ends)]


def map_array(folder: Path, name: str) -> NDArray[Any]:
    """An array of the index, memory-mapped. Raises InputError where it is missing or damaged."""
    path = folder / name
    if not path.is_file():
        raise InputError(f"{folder}: the index is incomplete, {name} is missing; build it again")
    with reading(path, "it is damaged: build the index again"):
        try:
            # Copy-on-write: writable arrays, for which the kernels are compiled, over untouched
            # files.
            return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
        except ValueError:  # numpy refuses to map an empty array
            return np.asarray(np.load(path, allow_pickle=False))


def check_counts(
    folder: Path, field: str, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]
) -> None:
    """Refuse arrays that do not fit the header or each other: kernels trust them."""
    n_documents, n_words = header["n_documents"], header["n_words"]
    n_entries = header["n_entries"][field]
    most = np.iinfo(np.int64).max
    expected: dict[str, tuple[type, int, int, int, bool]] = {
        "ends": (np.int64, n_documents + 1, 0, n_entries, True),
        "terms": (np.int32, n_entries, 0, n_words - 1, False),
        "counts": (np.int32, n_entries, 1, np.iinfo(np.int32).max, False),
        "lengths": (np.int64, n_documents, 0, most, False),
        "document_frequency": (np.int64, n_words, 0, n_documents, False),
        "collection_frequency": (np.int64, n_words, 0, most, False),
    }
    _check({name: str(folder / f"{field}.{name}.npy") for name in expected}, arrays, expected)
    first, last = arrays["ends"][[0, -1]]
    if (first, last) != (0, n_entries):
        raise InputError(
            f"{folder}: {field}.ends.npy goes from {first} to {last}, must go from 0 to "
            f"{n_entries}; build the index again"
        )
    check_rows_rise(str(folder / f"{field}.terms.npy"), arrays["terms"], arrays["ends"])


def _check(
    paths: Mapping[str, str],
    arrays: Mapping[str, NDArray[Any]],
    expected: Mapping[str, tuple[type, int, int, int, bool]],
) -> None:
    """Refuse arrays that are not as expected: type, size, least and greatest value, ascending."""
    for name, (dtype, size, least, greatest, ascending) in expected.items():
        limits: dict[str, Any] = {"least": least, "most": greatest, "ascending": ascending}
        check_array(paths[name], arrays[name], dtype, (size,), **limits)


def read_postings(folder: Path, n_entries: int, header: Mapping[str, Any]) -> Postings | None:
    """The postings of all fields together, mapped; None where an index of an earlier version has
    none. Raises InputError where they do not fit the header or each other."""
    if not (folder / f"{POSTINGS}.ends.npy").exists():
        return None
    arrays = {name: map_array(folder, f"{POSTINGS}.{name}.npy") for name in Postings._fields}
    paths = {name: str(folder / f"{POSTINGS}.{name}.npy") for name in arrays}
    ends, n_words = arrays["ends"], header["n_words"]
    expected: dict[str, tuple[type, int, int, int, bool]] = {
        "ends": (np.int64, n_words + 1, 0, n_entries, True),
        "documents": (np.int32, n_entries, 0, header["n_documents"] - 1, False),
        "counts": (np.int32, n_entries, 1, np.iinfo(np.int32).max, False),
    }
    _check(paths, arrays, expected)
    if (ends[0], ends[-1]) != (0, n_entries):
        raise InputError(f"{paths['ends']}: must go from 0 to {n_entries}; build the index again")
    check_rows_rise(paths["documents"], arrays["documents"], ends)
    return Postings(**arrays)
