"""Read the files of a stored index, memory-map them, and check them before a kernel uses them."""

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
#: Prefix of the files with the postings of all fields together.
POSTINGS = "postings"


def read_header(folder: Path, version_read: int, fields: Collection[str]) -> dict[str, Any]:
    """Read the header of the index in a folder.

    Args:
        version_read: the version that this program reads. fields: those that an index may hold.

    Raises:
        InputError: there is no index, it has another version, or the header is damaged.
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
    """The name of the first unusable entry of a header; "" if all can be used."""
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
    """Read the vocabulary. Raises InputError if its files do not match the header or each other."""
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
    """Memory-map an array of the index. Raises InputError if it is missing or damaged."""
    path = folder / name
    if not path.is_file():
        raise InputError(f"{folder}: the index is incomplete, {name} is missing; build it again")
    with reading(path, "it is damaged: build the index again"):
        try:
            # Copy-on-write: the kernels are compiled for writable arrays; files are not changed.
            return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
        except ValueError:  # numpy refuses to map an empty array
            return np.asarray(np.load(path, allow_pickle=False))


def check_counts(
    folder: Path, field: str, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]
) -> None:
    """Raise InputError if arrays do not match the header or each other: kernels trust them."""
    n_documents, n_words = header["n_documents"], header["n_words"]
    sizes = n_documents, n_words, header["n_entries"][field]
    _check_rows(folder / field, arrays, "terms", *sizes)
    for name, size, most in (
        ("lengths", n_documents, None),
        ("document_frequency", n_words, n_documents),
        ("collection_frequency", n_words, None),
    ):
        check_array(
            f"{folder / field}.{name}.npy", arrays[name], np.int64, (size,), least=0, most=most
        )


def read_postings(folder: Path, n_entries: int, header: Mapping[str, Any]) -> Postings | None:
    """Memory-map the postings of all fields together; None if an older index has none. Raises
    InputError if they do not match the header or each other."""
    if not (folder / f"{POSTINGS}.ends.npy").exists():
        return None
    arrays = {name: map_array(folder, f"{POSTINGS}.{name}.npy") for name in Postings._fields}
    sizes = header["n_words"], header["n_documents"], n_entries
    _check_rows(folder / POSTINGS, arrays, "documents", *sizes)
    return Postings(**arrays)


def _check_rows(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    columns: str,
    n_rows: int,
    n_columns: int,
    n_entries: int,
) -> None:
    """Raise InputError for invalid compressed rows: arrays ``ends``, ``counts`` and ``columns``.

    Args:
        path: path of the files, without ``.NAME.npy``. columns: name of the array of columns.
    """
    ends, columns_file = arrays["ends"], f"{path}.{columns}.npy"
    check_array(
        f"{path}.ends.npy", ends, np.int64, (n_rows + 1,), least=0, most=n_entries, ascending=True
    )
    check_array(columns_file, arrays[columns], np.int32, (n_entries,), least=0, most=n_columns - 1)
    check_array(f"{path}.counts.npy", arrays["counts"], np.int32, (n_entries,), least=1)
    if (ends[0], ends[-1]) != (0, n_entries):
        raise InputError(
            f"{path}.ends.npy: goes from {ends[0]} to {ends[-1]}, must go from 0 to {n_entries}; "
            "build the index again"
        )
    check_rows_rise(columns_file, arrays[columns], ends)
