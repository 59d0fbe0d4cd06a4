"""The JSON side file of a LETOR text file, for what the text cannot hold: names and provenance of
its columns, and judged documents and queries without rows."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet
from numpy.typing import NDArray

from letor.compression import COMPRESSED, text_lines
from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning
from letor.files import atomic_path, check_output, read_json, write_json
from letor.missing import Missing
from letor.name_checks import check_unicode
from letor.parquet import read_parquet, write_parquet
from letor.svmlight import MAX_COLUMNS, check_is_text, names_path, read_letor
from letor.writing import append_columns, write_letor
from ltr_base.names import counted, nearest, repeated
from ltr_base.slices import slices
from ltr_base.user_warning import warn_user

#: Rows looked through at a time.
_BLOCK = 2**16
_OTHER_FORMATS = frozenset(
    {".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".feather", ".arrow", ".npy", ".npz", ".h5"}
    | {".xz", ".zip", ".7z", ".lz4"}
)
_SUFFIXES = _OTHER_FORMATS.union(COMPRESSED, {".parquet", ".qrels", ".run"})


def append_named(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    values: NDArray[np.float32],
    provenance: Mapping[str, Mapping[str, Any]],
    *,
    n_columns: int | None = None,
    non_finite: Literal["raise", "nan"] = "raise",
    threads: int | None = None,
) -> list[int]:
    """Append named columns to the rows of a file; old columns without names are named by number.

    LETOR text is copied unchanged (see :func:`letor.writing.append_columns`), with a side file for
    the target. If source or target is Parquet, all rows are rewritten. What is known of missing
    documents and queries is kept.

    Args:
        provenance: provenance of each new column, keyed by its name, in order.
        n_columns: number of columns of LETOR text without a side file, whose last ones may be
            absent from all rows. Default: the largest id.
        non_finite: see :func:`letor.svmlight.read_letor`; in LETOR text that is copied, such values
            stay as they are.

    Returns:
        The ids of the new columns.

    Raises:
        InputError: as for ``append_columns``; a name is taken; or source and target are one Parquet
            file.
    """
    if ".parquet" in (Path(source).suffix, Path(target).suffix):
        options = {"n_columns": n_columns, "non_finite": non_finite, "threads": threads}
        return _append_anew(source, target, values, provenance, options)
    side_file = names_path(source)
    known, missing = _read_side_file(side_file) if side_file.is_file() else (None, None)
    check_names_free(source, [c["name"] for c in known or []], provenance, f" ({side_file})")
    if known is not None:
        _check_number(n_columns, len(known), side_file)
        n_columns = len(known)
    first = None if n_columns is None else n_columns + 1
    new = [{"name": name, **notes} for name, notes in provenance.items()]
    with atomic_path(names_path(target)) as side_file:
        ids = append_columns(source, target, values, first_id=first, threads=threads)
        old = [{"name": str(j)} for j in range(1, ids[0])] if known is None else known
        _write_side_file([*old, *new], missing, side_file)
    return ids


def _append_anew(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    values: NDArray[np.float32],
    provenance: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, Any],
) -> list[int]:
    data = read_rows(source, **options)
    check_names_free(source, data.column_names, provenance)
    check_output(target, inputs=[source])
    first = data.X.shape[1] + 1
    wider = data.with_columns(list(provenance), values, provenance)
    write_rows(wider, target, threads=options["threads"])
    return list(range(first, first + values.shape[1]))


def check_names_free(
    source: str | os.PathLike[str], known: Iterable[str], new: Iterable[str], where: str = ""
) -> None:
    """Raise InputError if a file has one of the new columns' names, by those that are known."""
    if twice := sorted(set(known) & set(new)):
        raise InputError(
            f"{source} has a column {', '.join(twice)} already{where}; leave out the new one, or "
            "name it otherwise"
        )


def _check_number(n_columns: int | None, n_known: int, where: Path) -> None:
    if n_columns not in (None, n_known):
        raise InputError(
            f"{n_columns} columns were given as the number of columns, but {where} has {n_known}; "
            "leave the number out"
        )


def chosen_columns(
    known: Sequence[str], columns: Sequence[str] = (), without: Sequence[str] = ()
) -> list[str]:
    """The known columns in their order: those named by ``columns``, by default all, but for those
    named by ``without``.

    Raises:
        InputError: a name is not known, or given twice, or left out without being chosen; or none
            is left.
    """
    for name in (*columns, *without):
        if name not in known:
            raise InputError(f"no column {name!r}; {nearest(name, known)}")
    for names in (columns, without):
        if twice := repeated(names):
            raise InputError(f"column {twice[0]!r} is named twice: leave one out")
    if columns and (others := [name for name in without if name not in columns]):
        raise InputError(
            f"column {others[0]!r} is left out, but was not chosen: name it in neither"
        )
    chosen = [name for name in known if name in (columns or known) and name not in without]
    if not chosen:
        raise InputError("no column is left to learn from")
    return chosen


def read_names(path: Path) -> list[dict[str, Any]]:
    """Columns listed in a side file, each with its name and, by further keys, its provenance.

    Raises:
        InputError: the file is damaged.
    """
    return _read_side_file(path)[0]


def _read_side_file(path: Path) -> tuple[list[dict[str, Any]], Missing | None]:
    try:
        content = read_json(path)
        columns, missing = content, None
        if isinstance(content, dict):  # a plain list of columns: missing documents are unknown
            columns, missing = content["columns"], Missing.from_json(content["missing"])
        if not all(isinstance(column["name"], str) for column in columns):
            raise TypeError("a name is not a string")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f'{path}: not a list of columns ({error}); write [{{"name": "bm25"}}, ...], or '
            "remove it to name columns by number"
        ) from None
    if twice := repeated(column["name"] for column in columns):
        raise InputError(
            f"{path}: column names given twice: {', '.join(twice)}; rename them there, or remove "
            "the file to name columns by number"
        )
    return list(columns), missing


def _write_side_file(columns: list[dict[str, Any]], missing: Missing | None, path: Path) -> None:
    content = columns if missing is None else {"columns": columns, "missing": missing.to_json()}
    write_json(path, content)


def is_letor(path: Path) -> bool:
    """Whether :func:`read_rows` reads a file: LETOR text, by its first line, or our own Parquet."""
    if path.suffix == ".parquet":
        try:
            return b"letor" in (pyarrow.parquet.read_metadata(path).metadata or {})
        except (OSError, pyarrow.ArrowInvalid):
            return False  # the reader of tables reports the error
    for _, line in text_lines(path, errors="replace"):
        fields = line.split("#")[0].split()
        if fields:
            return len(fields) > 1 and fields[1].startswith("qid:")
    return False


def read_rows(
    path: str | os.PathLike[str],
    *,
    values: bool = True,
    memory: int | None = None,
    **options: Any,
) -> RankingData:
    """Read Parquet (by suffix) or LETOR text, with column names and missing documents and queries
    if they are known.

    Args:
        values: False leaves the columns of Parquet out, where they are not needed; text is read as
            a whole in any case.
        memory: for Parquet only, see :func:`letor.parquet.read_parquet`.
        options: of :func:`letor.svmlight.read_letor`, for text.

    Warns:
        LetorWarning: the side file names more columns than any row has values in.

    Raises:
        InputError: the file cannot be read, its side file is damaged or names too few columns, or
            ``n_columns`` differs from the number that Parquet or a side file gives; or
            ``non_finite="nan"``, ``on_error="skip"`` or ``max_columns`` is given for Parquet.
        TypeError: an unknown option.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        inspect.signature(read_letor).bind(path, **options)  # raises for unknown options
        if options.get("on_error", "raise") != "raise":
            raise InputError(
                f"{path}: on_error (--on-error) is for lines of LETOR text: leave it out"
            )
        if options.get("non_finite", "raise") != "raise":
            raise InputError(
                f"{path}: non_finite (--non-finite) is for LETOR text; in Parquet NaN is a missing "
                "value already, and infinite values are kept: leave it out, or write NaN for them"
            )
        check_is_text(path, options.get("max_columns", MAX_COLUMNS))
        wanted: list[str] | None = None if values else []
        rows = read_parquet(path, features=wanted, threads=options.get("threads"), memory=memory)
        if values:
            _check_number(options.get("n_columns"), rows.X.shape[1], path)
        return rows
    side_file = names_path(path)
    if not side_file.is_file():
        return read_letor(path, **options)
    columns, missing = _read_side_file(side_file)
    _check_number(options.get("n_columns"), len(columns), side_file)
    rows = read_letor(path, side_file=True, **options)
    named, X, found = counted(len(columns), "column"), rows.X, rows.X.shape[1]
    if len(columns) < found:
        raise InputError(
            f"{side_file} names {named}, the rows have {found}: it belongs to another file; remove "
            "it to name columns by number"
        )
    if len(columns) > found:
        warn_user(
            f"{side_file} names {named}, the rows of {path} have {found}: the rest, from "
            f"{columns[found]['name']!r} on, count as 0, which is what absent values of LETOR text "
            "stand for; if the names belong to another file, remove them",
            LetorWarning,
        )
        absent = ((0, 0), (0, len(columns) - found))
        X = np.pad(X, absent, constant_values=options.get("missing", 0.0))
    provenance = {c["name"]: {k: v for k, v in c.items() if k != "name"} for c in columns}
    return replace(rows, X=X, column_names=[*provenance], provenance=provenance, missing=missing)


def check_format(path: str | os.PathLike[str]) -> None:
    """Raise InputError if the suffix of a path is that of another format than Parquet and LETOR
    text, whose files may have any unknown suffix."""
    suffix, packed = _suffixes(path)
    if suffix in _OTHER_FORMATS or (packed and suffix == ".parquet"):
        raise InputError(
            f"{path}: rows are written as .parquet, which other programs read, or as LETOR text "
            f"(.txt, .txt.gz, .txt.zst, ...), not as {suffix}{packed}; change the suffix"
        )


def check_text(path: str | os.PathLike[str], what: str) -> None:
    """Raise InputError if the suffix of a path is that of a format other than text.

    Args:
        what: what is written, "scores".
    """
    suffix, packed = _suffixes(path)
    if suffix in _OTHER_FORMATS or suffix == ".parquet":
        raise InputError(
            f"{path}: {what} are written as text, a line each, not as {suffix}{packed}; change "
            "the suffix to .txt, or .txt.gz"
        )


def _suffixes(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The suffixes of a path's format, and of its compression ("" if there is none)."""
    path = Path(path)
    for suffix in path.suffixes:
        if suffix not in _SUFFIXES and suffix.lower() in _SUFFIXES:
            raise InputError(f"{path}: write the suffix in lower case: {suffix.lower()}")
    packed = path.suffix if path.suffix in COMPRESSED else ""
    return Path(path.stem).suffix if packed else path.suffix, packed


def write_rows(
    data: RankingData, path: str | os.PathLike[str], *, threads: int | None = None
) -> None:
    """Write rows as Parquet (by suffix), or as LETOR text with a side file that lists columns in
    the order of their ids and, if known, missing documents and queries. Text has no place for NaN,
    of which a LetorWarning tells.

    Raises:
        InputError: as for :func:`check_format`; or the format cannot hold the rows.
    """
    path = Path(path)
    check_format(path)
    if path.suffix == ".parquet":
        write_parquet(data, path)
        return
    columns = [{"name": name, **data.provenance.get(name, {})} for name in data.column_names]
    check_unicode(data.column_names)
    # Text that cannot be written leaves the former text with its own names.
    with atomic_path(names_path(path)) as side_file:
        _write_side_file(columns, data.missing, side_file)
        write_letor(data, path, threads=threads)
    if n := sum(int(np.isnan(data.X[rows]).sum()) for rows in slices(len(data), _BLOCK)):
        warn_user(
            f"{path}: {counted(n, 'missing value')} will be read as 0 from LETOR text; .parquet "
            "keeps them",
            LetorWarning,
        )
