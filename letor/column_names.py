"""Names and provenance of a LETOR file's columns, kept in a JSON file beside it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from letor.dataset import RankingData
from letor.errors import InputError
from letor.files import atomic_path
from letor.parquet import read_parquet, write_parquet
from letor.svmlight import read_letor
from letor.writing import write_letor

_TEXT_SUFFIXES = (".gz", ".bz2", ".zst")


def names_path(path: str | os.PathLike[str]) -> Path:
    """The file of names beside a LETOR file: ``train.txt.zst`` has ``train.columns.json``."""
    path = Path(path)
    stem = path.name
    for suffix in _TEXT_SUFFIXES:
        stem = stem.removesuffix(suffix)
    return path.with_name(stem.removesuffix(".txt") + ".columns.json")


def write_names(data: RankingData, path: Path) -> None:
    """Write names and provenance, in the order of the feature ids."""
    columns = [{"name": name, **data.provenance.get(name, {})} for name in data.column_names]
    with atomic_path(path) as partial:
        partial.write_text(json.dumps(columns, indent=1, ensure_ascii=False), encoding="utf-8")


def named(data: RankingData, path: Path) -> RankingData:
    """The rows with the names and provenance that ``write_names`` wrote.

    Raises:
        InputError: the file is damaged, or names fewer columns than the rows have.
    """
    try:
        columns = json.loads(path.read_text(encoding="utf-8"))
        provenance = {c["name"]: {k: v for k, v in c.items() if k != "name"} for c in columns}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a list of columns ({error})") from None
    if len(provenance) < data.X.shape[1]:
        raise InputError(f"{path} names {len(provenance)} columns, the rows have {data.X.shape[1]}")
    return replace(data, column_names=list(provenance), provenance=provenance)


def read_rows(path: str | os.PathLike[str], **options: Any) -> RankingData:
    """Read Parquet (by its suffix) or LETOR text, with column names where they are known.

    Args:
        options: of :func:`letor.svmlight.read_letor`, for text.

    Raises:
        InputError: the file cannot be read.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        return read_parquet(path)
    beside = names_path(path)
    if not beside.is_file():
        return read_letor(path, **options)
    n = len(json.loads(beside.read_text(encoding="utf-8")))
    return named(read_letor(path, **{"n_columns": n, **options}), beside)


def write_rows(
    data: RankingData, path: str | os.PathLike[str], *, threads: int | None = None
) -> None:
    """Write Parquet (by its suffix), or LETOR text and the names of its columns beside it."""
    path = Path(path)
    if path.suffix == ".parquet":
        write_parquet(data, path)
        return
    write_letor(data, path, threads=threads)
    write_names(data, names_path(path))
