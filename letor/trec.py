"""TREC's two text formats: qrels (judgements) and runs (rankings).

A qrels line is ``qid iteration docno label``, a run line ``qid Q0 docno rank score tag``, fields
separated by blanks or tabs. Names that end in .gz, .bz2 or .zst are compressed.

Tools disagree on equal scores: trec_eval orders them by document number, ranx by position in the
file, and both ignore the rank column. ``write_run`` therefore writes scores that strictly decrease
within a query, so that every tool sees the same ranking.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from letor.compression import open_output, text_lines
from letor.dataset import RankingData, distinct
from letor.errors import InputError
from letor.files import atomic_path
from letor.judged_runs import checked_frame

QRELS_COLUMNS = ["qid", "docno", "label"]
RUN_COLUMNS = ["qid", "docno", "score", "rank", "tag"]

# Bytes that are not UTF-8 come back as they were.
_ERRORS = "surrogateescape"


def read_qrels(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Judgements of a qrels file, in the order of the file.

    Returns:
        DataFrame with columns ``qid`` (str), ``docno`` (str) and ``label`` (int64; may be
        negative, as some TREC tracks mark spam).

    Raises:
        InputError: a line has neither four fields nor, separated by tabs, three (without the
            iteration), its label is not a whole number, or a document is judged twice for a query;
            the message names file and line.
    """
    numbers, (qids, docnos, labels) = _columns(3, qrels_lines(path))
    _refuse_twice(qids, docnos, path, numbers)
    label = _parsed(np.int64, labels, path, numbers, "label")
    return _frame(QRELS_COLUMNS, qids, docnos, label)


def read_run(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Rankings of a run file, in the order of the file.

    Lines are TREC's ``qid Q0 docno rank score tag``; or, where the first has three fields,
    ``qid docno rank`` as of MS MARCO, whose score is 1 / rank.

    Returns:
        DataFrame with columns ``qid`` (str), ``docno`` (str), ``score`` (float64), ``rank`` (int64,
        as written in the file) and ``tag`` (str).

    Raises:
        InputError: a line does not have six fields (or three, as the first), its rank or score is
            not a number, a rank without a score is below 1 or occurs twice for a query, or a
            document does; the message names file and line.
    """
    if len(_first_fields(path)) == 3:
        return _read_ranks(path)
    lines = _fields(path, 6, "qid Q0 docno rank score tag")
    numbers, (qids, _, docnos, ranks, scores, tags) = _columns(6, lines)
    _refuse_twice(qids, docnos, path, numbers)
    score = _parsed(np.float64, scores, path, numbers, "score")
    if not np.isfinite(score).all():
        bad = int(np.argmin(np.isfinite(score)))
        raise InputError(f"{path}:{numbers[bad]}: score {scores[bad]!r} is not finite")
    rank = _parsed(np.int64, ranks, path, numbers, "rank")
    return _frame(RUN_COLUMNS, qids, docnos, score, rank, tags)


def _read_ranks(path: str | os.PathLike[str]) -> pd.DataFrame:
    numbers, (qids, docnos, ranks) = _columns(3, _fields(path, 3, "qid docno rank"))
    _refuse_twice(qids, docnos, path, numbers)
    rank = _parsed(np.int64, ranks, path, numbers, "rank")
    run = _frame(RUN_COLUMNS, qids, docnos, 1 / np.maximum(rank, 1), rank, [""] * len(qids))
    bad = (rank < 1) | run.duplicated(["qid", "rank"]).to_numpy()
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{path}:{numbers[at]}: {ranks[at]!r} is no rank of query {qids[at]!r}: the third of "
            "three fields must be 1, 2, ..., and no two documents of a query may have the same"
        )
    return run


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether the first line of a file is one of a run: six fields, or three whose last is a rank,
    a whole number.

    Raises:
        InputError: no such file, or damaged compressed data.
    """
    fields = _first_fields(path)
    return len(fields) == 6 or (len(fields) == 3 and fields[2].isdecimal())


def _first_fields(path: str | os.PathLike[str]) -> list[str]:
    """The fields of the first line that is not blank."""
    return next((line.split() for _, line in text_lines(path, errors=_ERRORS) if line.strip()), [])


def write_qrels(qrels: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write judgements (columns ``qid``, ``docno``, ``label``) in the order of the rows.

    Raises:
        InputError: a column is missing, an id is empty or contains blanks, a label is not a whole
            number, or a document is judged twice for a query.
    """
    qrels = checked_frame(qrels, "label", "qrels")
    qids, docnos = _checked_ids(qrels)
    whole = qrels["label"].astype(np.int64).tolist()
    lines = (f"{q} 0 {d} {y}\n" for q, d, y in zip(qids, docnos, whole, strict=True))
    _write(path, lines)


def write_run(run: pd.DataFrame, path: str | os.PathLike[str], tag: str = "ltr-features") -> None:
    """Write rankings (columns ``qid``, ``docno``, ``score``; others are ignored).

    Queries come in order of first appearance, documents by descending score; equal scores keep
    the order of the rows. Scores are written as float32, the precision of trec_eval, and where
    that would leave two equal, the later one is lowered to the next float32: they strictly
    decrease.

    Raises:
        InputError: a column is missing, an id or the tag is empty or contains blanks, a score is
            not finite in float32, or a document occurs twice for a query.
    """
    run = checked_frame(run, "score", "run")
    qids, docnos = _checked_ids(run)
    _check_words([tag], "tag")
    scores = run["score"].to_numpy()
    if not (np.abs(scores) < np.finfo(np.float32).max).all():
        position = int(np.argmax(~(np.abs(scores) < np.finfo(np.float32).max)))
        raise InputError(
            f"score of query {qids[position]}, document {docnos[position]} is {scores[position]}: "
            "scores of a run must be finite in float32"
        )
    query = distinct(qids)[1]
    order = np.lexsort((-scores, query))
    query = query[order]
    first = np.flatnonzero(np.diff(query, prepend=-1))
    sizes = np.diff(np.append(first, len(query)))
    ranks = np.arange(len(query)) - np.repeat(first, sizes) + 1
    written = _strictly_decreasing(scores[order].astype(np.float32), first)
    _write(
        path,
        (
            f"{qids[row]} Q0 {docnos[row]} {rank} {score} {tag}\n"
            for row, rank, score in zip(
                order.tolist(), ranks.tolist(), written.astype(str), strict=True
            )
        ),
    )


def run_of(data: RankingData, scores: ArrayLike) -> pd.DataFrame:
    """Columns ``qid``, ``docno`` and ``score`` of scored rows, for ``write_run``.

    Raises:
        InputError: the rows have no document ids, or there is not one score per row.
    """
    scores = np.asarray(scores)
    if scores.shape != (len(data),):
        raise InputError(f"scores have shape {scores.shape} for {len(data)} rows")
    return _ids_of(data).assign(score=scores)


def qrels_of(data: RankingData) -> pd.DataFrame:
    """Columns ``qid``, ``docno`` and ``label`` of labelled rows, for ``write_qrels``.

    Raises:
        InputError: the rows have no document ids.
    """
    return _ids_of(data).assign(label=data.y.astype(np.int64))


def _ids_of(data: RankingData) -> pd.DataFrame:
    if data.document_ids is None:
        raise InputError("TREC files need document ids, but the rows have none")
    qids = np.asarray(data.query_ids, dtype=object)[data.query_index]
    docnos = list(data.document_ids)
    return pd.DataFrame(
        {"qid": pd.Series(qids, dtype=object), "docno": pd.Series(docnos, dtype=object)}
    )


def _strictly_decreasing(
    scores: NDArray[np.float32], first: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The float32 scores of each query (starting at positions ``first``, not increasing), lowered
    as little as makes them strictly decrease."""
    # As integers, neighbouring float32 values differ by 1 (negative ones run backwards). There,
    # k'[i] = min(k[i], k'[i - 1] - 1) is a running minimum of k[i] + i.
    bits = scores.view(np.int32).astype(np.int64)
    key = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    for start, stop in zip(first, np.append(first[1:], len(key)), strict=True):
        step = np.arange(stop - start)
        key[start:stop] = np.minimum.accumulate(key[start:stop] + step) - step
    bits = np.where(key < 0, -key | 0x80000000, key)
    return bits.astype(np.uint32).view(np.float32)


def qrels_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Number, and query id, document id and label, of each line ``qid iteration docno label`` of a
    file; or of ``qid docno label``, with tabs.

    Raises:
        InputError: a line that is neither.
    """
    for number, fields in _fields(path, 4, "qid iteration docno label", shorter=True):
        yield number, (fields[0], fields[-2], fields[-1])


def _fields(
    path: str | os.PathLike[str], n_fields: int, form: str, *, shorter: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line that is not blank; ``shorter``: one field less will do,
    where they are separated by tabs."""
    for number, line in text_lines(path, errors=_ERRORS):
        fields = line.split()
        if not fields:
            continue
        if shorter and line.count("\t") == n_fields - 2:
            fields = line.split("\t")
        elif len(fields) != n_fields:
            raise InputError(
                f"{path}:{number}: {len(fields)} fields instead of {n_fields} ({form}): "
                f"{line.strip()[:80]!r}"
            )
        yield number, fields


def _columns(
    n_fields: int, lines: Iterable[tuple[int, Sequence[str]]]
) -> tuple[list[int], list[list[str]]]:
    """The numbers of the lines, and each of their fields line by line."""
    numbers: list[int] = []
    flat: list[str] = []  # a list for each line would keep the garbage collector busy
    for number, fields in lines:
        numbers.append(number)
        flat += fields
    return numbers, [flat[field::n_fields] for field in range(n_fields)]


def _parsed(
    dtype: type[np.int64 | np.float64], texts: list[str], path: Any, numbers: list[int], what: str
) -> NDArray[Any]:
    """The numbers that a field has, in the order of the lines."""
    kind = int if dtype is np.int64 else float
    values = np.empty(len(texts), dtype)
    for position, text in enumerate(texts):
        try:
            values[position] = kind(text)
        except (ValueError, OverflowError):
            raise InputError(
                f"{path}:{numbers[position]}: {what} {text[:40]!r} is not a number"
            ) from None
    return values


def _refuse_twice(
    qids: list[str], docnos: list[str], path: str | os.PathLike[str], numbers: list[int]
) -> None:
    """Raise InputError if two lines have the same query and document."""
    seen: dict[str, int] = {}  # by one text for each pair, which the garbage collector leaves alone
    for query, document, number in zip(qids, docnos, numbers, strict=True):
        if (earlier := seen.setdefault(f"{query}\t{document}", number)) != number:
            raise InputError(
                f"{path}:{number}: document {document!r} of query {query!r} is already in line "
                f"{earlier}"
            )


def _frame(names: list[str], *columns: list[str] | NDArray[Any]) -> pd.DataFrame:
    """A frame whose texts are objects."""
    return pd.DataFrame(
        {
            name: pd.Series(column, dtype=object if isinstance(column, list) else column.dtype)
            for name, column in zip(names, columns, strict=True)
        }
    )


def _checked_ids(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    qids, docnos = frame["qid"].tolist(), frame["docno"].tolist()
    _check_words(qids, "query id")
    _check_words(docnos, "document id")
    return qids, docnos


def _check_words(words: list[str], what: str) -> None:
    for word in dict.fromkeys(words):
        if len(word.split()) != 1 or word != word.strip():
            raise InputError(f"{what} {word!r} is empty or contains blanks: TREC files cannot "
                             "hold it")  # fmt: skip


def _write(path: str | os.PathLike[str], lines: Iterator[str]) -> None:
    with atomic_path(path) as temporary, _output(temporary, Path(path).suffix) as file:
        while block := "".join(islice(lines, 10_000)):
            file.write(block.encode("utf-8", _ERRORS))


@contextmanager
def _output(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    if suffix != ".gz":
        with open_output(path, suffix) as file:
            yield file
        return
    # Arrow's gzip takes several times as long. No name and no time in the header: equal content
    # gives equal bytes.
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=4) as packed,
    ):
        yield cast(IO[bytes], packed)
