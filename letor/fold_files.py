"""Folders of LETOR files: the parts S1.txt, S2.txt, ... or Fold1/{train,vali,test}.txt, ...; or
the same in Parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from letor.column_names import read_rows
from letor.column_settings import changed_settings, settings_of
from letor.dataset import RankingData, distinct
from letor.errors import InputError, reading
from letor.files import LOCK
from letor.folds import Fold, letor_rotation
from letor.mapped import empty_array
from letor.missing import Missing
from letor.string_array import StringArray

_ENDING = r"\.(?:(?:txt|letor|svmlight|svm|dat)(?:\.(?:gz|bz2|zst))?|parquet)"
_S, _FOLD = rf"S(\d+){_ENDING}", r"Fold(\d+)"
# Names used by LETOR 4.0, LETOR 3.0 and MSLR, Yahoo (set1.train.txt) and Istella.
_SET = r"(?:set\d+\.)?"
_PARTS = {"train": f"{_SET}train(?:ing)?(?:set)?",
          "validation": f"{_SET}vali(?:d(?:ation)?)?(?:set)?",
          "test": f"{_SET}test(?:set)?"}  # fmt: skip


class RowsDifferError(InputError):
    """Folds have different rows of a query, such as those with columns of their own models."""


def read_folds(folder: str | os.PathLike[str], **options: Any) -> tuple[RankingData, list[Fold]]:
    """Read all rows of a folder of LETOR files, and the folds over them.

    Two layouts are supported; if both are present, the parts are read, as they hold each row once:

    - ``S1.txt``, ``S2.txt``, ...: parts, in LETOR's official rotation;
    - ``Fold1``, ``Fold2``, ... with ``train.txt``, ``vali.txt`` (or ``valid``, ``validation``) and
      ``test.txt`` in each. A folder that holds these three files itself is one fold.

    Args:
        folder: the folder; files may be compressed (.gz, .bz2, .zst), or .parquet.
        options: for ``letor.svmlight.read_letor``.

    Returns:
        All rows, each query once, and the folds over them. Rows keep the order of the files that
        they were taken from in every fold; rankers that depend on it may differ slightly from ones
        that are trained on files with the same rows in another order.

    Raises:
        InputError: the folder has neither layout, a part or fold is missing between others, files
            differ in their number of columns, a query is in two parts or in the test rows of two
            folds, two files give a query different rows, or the folder is being written.
    """
    with reading(folder, "all files must have the same columns"):
        return _read(Path(folder), options)


def read_fold(
    home: str | os.PathLike[str], **options: Any
) -> tuple[Fold, tuple[RankingData, RankingData, RankingData]]:
    """Read the training, validation and test rows of one fold's folder, and their queries.

    Args:
        options: for ``letor.svmlight.read_letor``.

    Raises:
        InputError: a file is missing, the files differ in their columns or in how these were made,
            or share a query.
    """
    with reading(home, "all files must have the same columns"):
        paths = [_needed_file(Path(home), part) for part in _PARTS]
        train, validation, test = parts = [read_rows(path, **options) for path in paths]
        _check_widths(paths, parts)
        _check_made_alike(paths, parts)
        lists = (part.all_query_ids for part in parts)
        return Fold(Path(home).name, *lists), (train, validation, test)


def read_tested(
    folder: str | os.PathLike[str], **options: Any
) -> list[tuple[Path, Fold, RankingData]]:
    """Read the folders ``Fold1``, ``Fold2``, ..., whose rows of a query may differ: the folder of
    each, for :func:`read_fold`, its queries and its test rows.

    Raises:
        InputError: as :func:`read_fold`; or a fold is missing between others, folds differ in their
            columns, or a query is tested twice.
    """
    found, tested = [], dict[str, Path]()
    for home in _without_gap(_homes(Path(folder))):
        fold, (*_, test) = read_fold(home, **options)
        _check_tested_once(home, fold, tested)
        found.append((home, fold, test))
    with reading(folder, "all files must have the same columns"):
        _check_widths([home for home, _, _ in found], [test for *_, test in found])
    return found


def fold_parts(folder: Path) -> dict[str, dict[str, Path | None]]:
    """The files of ``Fold1``, ``Fold2``, ... in a folder, by the fold's name and by "train",
    "validation" and "test"; None where one is missing. No folds if there is no such folder."""
    homes = _homes(folder)
    return {
        f"Fold{n}": part_files(homes[n]) if n in homes else dict.fromkeys(_PARTS)
        for n in range(1, max(homes, default=0) + 1)
    }


def part_files(home: Path) -> dict[str, Path | None]:
    """The files "train", "validation" and "test" of a fold's folder; None where one is missing.

    Raises:
        InputError: there are several files of a part.
    """
    return {part: _part_file(home, part) for part in _PARTS}


def layout(folder: Path) -> Literal["parts", "folds", "fold", ""]:
    """How a folder holds folds: as parts ``S1.txt``, ..., as folders ``Fold1``, ..., as the files
    of a single fold; or "" if it holds none."""
    if len(_numbered(folder, _S)) >= 3:
        return "parts"
    if _homes(folder):
        return "folds"
    return "fold" if _part_file(folder, "train") is not None else ""


def is_rows_file(path: Path) -> bool:
    """Whether a path names a file of rows, by its ending."""
    return path.is_file() and re.fullmatch(rf".+{_ENDING}", path.name, re.IGNORECASE) is not None


def one_file(folder: Path) -> Path:
    """A file of a folder of folds.

    Raises:
        InputError: the folder has no folds, or the first fold has no training file.
    """
    found = layout(folder)
    if not found:
        raise InputError(_no_folds(folder))
    if found == "parts":
        return next(iter(_numbered(folder, _S).values()))
    return _needed_file(folder if found == "fold" else next(iter(_homes(folder).values())), "train")


def _no_folds(folder: Path) -> str:
    return (
        f"{folder} has no LETOR folds: neither S1.txt, S2.txt, S3.txt, ... nor Fold1, Fold2, ... "
        "with train.txt, vali.txt and test.txt; of tables, `ltr-features convert` makes rows"
    )


def _read(folder: Path, options: dict[str, Any]) -> tuple[RankingData, list[Fold]]:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    if (folder / LOCK).exists():
        raise InputError(
            f"{folder}: a build is going on there, or ended without finishing: wait, or run it "
            f"again; if another program made the folds since, remove {folder / LOCK}"
        )
    found = layout(folder)
    if found == "parts":
        return _read_parts(_without_gap(_numbered(folder, _S)), options)
    if found == "folds":
        return _read_fold_folders(_without_gap(_homes(folder)), options)
    if found == "fold":
        return _read_fold_folders([folder], options)
    raise InputError(_no_folds(folder))


def concatenate(parts: Sequence[RankingData]) -> RankingData:
    """Concatenate parts in order; a query that is in several parts keeps the rows of all of them.

    Document ids and comments are kept if all parts have them, provenance is that of the first.
    ``missing`` is known if it is known of all parts and no query is in two of them.

    Raises:
        InputError: parts differ in their column names.
    """
    names = list(parts[0].column_names)
    for part in parts[1:]:
        if list(part.column_names) != names:
            raise InputError(
                f"rows with {part.X.shape[1]} columns cannot be appended to rows with "
                f"{len(names)}, or their names differ"
            )
    query_ids, first = distinct([q for part in parts for q in part.query_ids])
    starts = np.cumsum([0, *(part.n_queries for part in parts)])
    index = [
        first[start : start + part.n_queries][part.query_index]
        for start, part in zip(starts, parts, strict=False)
    ]
    return RankingData(
        X=_stacked([part.X for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        query_ids=query_ids,
        query_index=np.concatenate(index),
        column_names=names,
        document_ids=_joined(part.document_ids for part in parts),
        comments=_joined(part.comments for part in parts),
        provenance=parts[0].provenance,
        missing=_all_missing(parts),
    )


def _stacked(parts: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The rows of all parts; memory-mapped if those of any part are."""
    if not any(isinstance(X, np.memmap) for X in parts):
        return np.vstack(parts)
    n_rows = [len(X) for X in parts]
    stacked = empty_array((sum(n_rows), parts[0].shape[1]), memory=0)
    for X, end in zip(parts, np.cumsum(n_rows), strict=True):
        stacked[end - len(X) : end] = X
    return stacked


def _all_missing(parts: Sequence[RankingData]) -> Missing | None:
    known = [part.missing for part in parts if part.missing is not None]
    queries = [query for part in parts for query in part.all_query_ids]
    if len(known) < len(parts) or len(set(queries)) < len(queries):
        return None
    relevant = {query: counts for missing in known for query, counts in missing.relevant.items()}
    return Missing(relevant, frozenset().union(*(missing.unjudged for missing in known)))


def _joined(values: Iterable[Any]) -> Any:
    values = list(values)
    if any(v is None for v in values):
        return None
    return StringArray.from_values(text for v in values for text in v)


def _read_parts(paths: list[Path], options: dict[str, Any]) -> tuple[RankingData, list[Fold]]:
    parts = [read_rows(path, **options) for path in paths]
    _check_widths(paths, parts)
    _check_made_alike(paths, parts)
    seen: dict[str, Path] = {}
    for path, part in zip(paths, parts, strict=True):
        for query in part.all_query_ids:
            if seen.setdefault(query, path) != path:
                raise InputError(
                    f"{path}: query {query!r} is in {seen[query]}, too; put all rows of a query "
                    "into one part, or, if these are different queries, make their ids distinct"
                )
    return concatenate(parts), letor_rotation([part.all_query_ids for part in parts])


def _read_fold_folders(
    homes: list[Path], options: dict[str, Any]
) -> tuple[RankingData, list[Fold]]:
    """Every query is taken from the first file that has it; the others must agree."""
    kept: list[RankingData] = []
    paths: list[Path] = []
    seen: dict[str, tuple[bytes, Path]] = {}
    tested: dict[str, Path] = {}
    folds: list[Fold] = []
    for home in homes:
        lists = {}
        for part in _PARTS:
            path = _needed_file(home, part)
            data = read_rows(path, **options)
            _check_widths([*paths[:1], path], [*kept[:1], data])
            new = []
            digests = [*_digests(data), *([b""] * len(data.queries_without_rows))]
            for query_id, digest in zip(data.all_query_ids, digests, strict=True):
                earlier, where = seen.setdefault(query_id, (digest, path))
                if earlier != digest:
                    raise RowsDifferError(
                        f"{path}: query {query_id} has other rows than in {where}; read the "
                        "folds one by one"
                    )
                if where == path:
                    new.append(query_id)
            if new:
                kept.append(data.select_queries(new))
                paths.append(path)
            lists[part] = data.all_query_ids
        folds.append(Fold(home.name, **lists))
        _check_tested_once(home, folds[-1], tested)
    return concatenate(kept), folds


def _check_tested_once(home: Path, fold: Fold, tested: dict[str, Path]) -> None:
    for query_id in fold.test:
        if query_id in tested:
            raise InputError(
                f"{home}: its test query {query_id} is a test query of {tested[query_id]} too, "
                "but a query is tested once: make the ids of different queries distinct, or read "
                "the folds one by one"
            )
        tested[query_id] = home


def _needed_file(home: Path, part: str) -> Path:
    path = _part_file(home, part)
    if path is None:
        usual = {"validation": "vali"}.get(part, part)
        raise InputError(
            f"{home} has no {part} file ({usual}.txt or the like), and a fold needs training, "
            "validation and test rows: move some queries of another file there, or name one file "
            "with all rows, whose queries `ltr-features run` deals into folds"
        )
    return path


def _digests(data: RankingData) -> list[bytes]:
    """For each query, a digest of its labels and columns in the order of the rows."""
    X, y = data.X[data.order], data.y[data.order]
    result = []
    for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        digest = blake2b(X[start:stop].tobytes(), digest_size=16)
        digest.update(y[start:stop].tobytes())
        result.append(digest.digest())
    return result


def _check_widths(paths: list[Path], parts: list[RankingData]) -> None:
    for path, part in zip(paths, parts, strict=True):
        if part.X.shape[1] != parts[0].X.shape[1]:
            widths = sorted({part.X.shape[1], parts[0].X.shape[1]})
            raise InputError(
                f"{path} has {part.X.shape[1]} columns, {paths[0]} has {parts[0].X.shape[1]}; if "
                f"trailing columns are left out where they are 0, give n_columns={widths[-1]} "
                f"(--columns {widths[-1]}; of an experiment, n_columns in its file)"
            )


def _check_made_alike(paths: list[Path], parts: Sequence[RankingData]) -> None:
    """Raise InputError if columns of a part have other settings than those of the first."""
    for path, part in zip(paths, parts, strict=True):
        remark = changed_settings(settings_of(parts[0]), settings_of(part))
        if remark is not None:
            raise InputError(f"{path}, against {paths[0]}: {remark}")


def _homes(folder: Path) -> dict[int, Path]:
    """The folders of folds, by number."""
    return {n: home for n, home in _numbered(folder, _FOLD).items() if home.is_dir()}


def _numbered(folder: Path, pattern: str) -> dict[int, Path]:
    """Entries of a folder whose names match, by number, in its order."""
    found = [(re.fullmatch(pattern, p.name, re.IGNORECASE), p) for p in folder.iterdir()]
    numbered: dict[int, Path] = {}
    for number, path in sorted((int(match[1]), p) for match, p in found if match):
        if (other := numbered.setdefault(number, path)) != path:
            raise InputError(
                f"{folder} has both {other.name} and {path.name}; give each data set a folder of "
                "its own"
            )
    return numbered


def _without_gap(numbered: dict[int, Path]) -> list[Path]:
    """The entries in their order.

    Raises:
        InputError: a number from 1 to the last is missing: folds would be renumbered, and parts
            make other folds than the official ones.
    """
    paths = list(numbered.values())
    missing = [n for n in range(1, max(numbered)) if n not in numbered]
    if missing:
        names = ", ".join(re.sub(r"\d+", str(n), paths[0].name, count=1) for n in missing)
        raise InputError(
            f"{paths[0].parent}: {names} is missing, while {paths[-1].name} is there: add it, or "
            "number the others from 1 without a gap"
        )
    return paths


def _part_file(home: Path, part: str) -> Path | None:
    pattern = _PARTS[part] + _ENDING
    found = [p for p in sorted(home.iterdir()) if re.fullmatch(pattern, p.name, re.IGNORECASE)]
    if len(found) > 1:
        raise InputError(
            f"{home} has several {part} files: {', '.join(p.name for p in found)}; give each data "
            "set a folder of its own"
        )
    return found[0] if found else None
