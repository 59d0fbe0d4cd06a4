"""TREC's two text formats: qrels (judgements) and runs (rankings).

A qrels line is ``qid iteration docno label``, a run line ``qid Q0 docno rank score tag``, fields
separated by blanks or tabs. Names that end in .gz, .bz2 or .zst are compressed.

Tools disagree on equal scores: trec_eval orders them by document number, ranx as its sort leaves
them, which is not stable, and both ignore the rank column. ``write_run`` therefore writes scores
that strictly decrease within a query, so that every tool sees the same ranking.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from letor.compression import open_input, open_output
from letor.dataset import RankingData, distinct
from letor.document_ids import needed_ids
from letor.errors import InputError
from letor.files import atomic_path
from letor.frames import check_row_order
from letor.judged_runs import checked_frame
from ltr_base.names import counted

QRELS_COLUMNS = ["qid", "docno", "label"]
RUN_COLUMNS = ["qid", "docno", "score", "rank", "tag"]
#: Below it, float32 has two million numbers for equal scores that are lowered.
_LARGEST_SCORE = 3e38
_RUN_FIELDS = ["qid", "Q0", "docno", "rank", "score", "tag"]

# Bytes that are not UTF-8 come back as they were.
_ERRORS = "surrogateescape"
_split = re.compile(r"[^ \t]+").findall


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
    lines = list(qrels_lines(path))
    numbers = [number for number, _ in lines]
    judged = pd.DataFrame([fields for _, fields in lines], columns=QRELS_COLUMNS, dtype=object)
    _refuse_twice(judged, path, numbers.__getitem__)
    line = numbers.__getitem__
    judged["label"] = _parsed(whole_number, np.int64, judged["label"], path, line, "label")
    return judged


def whole_number(text: str) -> int:
    """The integer that a text gives, perhaps with a point or an exponent: "1", "1.0", "1e0".

    Raises:
        ValueError: the text is not a whole number.
    """
    number = plain_number(text)
    try:
        return int(text)
    except ValueError:
        if not number.is_integer():
            raise
        return int(number)


def plain_number(text: str) -> float:
    """The number that a text gives, in ASCII and without what only Python reads, such as 1_000.

    Raises:
        ValueError: the text is not a number.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    return float(text)


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
    ranks_only = len(first_fields(path)) == 3
    run = _table(path, ["qid", "docno", "rank"] if ranks_only else _RUN_FIELDS)
    line = partial(_line_number, path)
    _refuse_twice(run, path, line)
    rank = _parsed(whole_number, np.int64, run["rank"], path, line, "rank")
    if ranks_only:
        _check_ranks(run, rank, path, line)
        run["score"], run["tag"] = 1 / rank, ""
    else:
        score = _parsed(plain_number, np.float64, run["score"], path, line, "score")
        if not np.isfinite(score).all():
            bad = int(np.argmin(np.isfinite(score)))
            raise InputError(f"{path}:{line(bad)}: score {run['score'][bad]!r} is not finite")
        run["score"] = score
    run["rank"] = rank
    return run[RUN_COLUMNS]


def _check_ranks(
    run: pd.DataFrame, rank: NDArray[np.int64], path: Any, line: Callable[[int], int]
) -> None:
    """Raise InputError where a rank is below 1, or a query has it twice."""
    bad = (rank < 1) | run.assign(rank=rank).duplicated(["qid", "rank"]).to_numpy()
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{path}:{line(at)}: {run['rank'][at]!r} is no rank of query {run['qid'][at]!r}: the "
            "third of three fields must be 1, 2, ..., and no two documents of a query may have the "
            "same"
        )


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether the first line of a file is one of a run: six fields, or three whose last is a rank,
    a whole number.

    Raises:
        InputError: no such file, or damaged compressed data.
    """
    fields = first_fields(path)
    return len(fields) == 6 or (len(fields) == 3 and fields[2].isdecimal())


def first_fields(path: str | os.PathLike[str]) -> list[str]:
    """The fields of the first line that is not blank; empty if there is none.

    Raises:
        InputError: no such file, damaged compressed data, or text in UTF-16.
    """
    return next((_split(line) for _, line in _lines(path)), [])


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
            beyond 3e38, or a document occurs twice for a query.
    """
    run = checked_frame(run, "score", "run")
    qids, docnos = _checked_ids(run)
    check_trec_ids([tag], "tag")
    scores = run["score"].to_numpy()
    beyond = ~(np.abs(scores) < _LARGEST_SCORE)
    if beyond.any():
        position = int(np.argmax(beyond))
        raise InputError(
            f"score of query {qids[position]}, document {docnos[position]} is {scores[position]}: "
            f"scores of a run must be within {_LARGEST_SCORE:g}"
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
        InputError: the rows have no document ids, there is not one score per row, or the scores are
            a pandas Series with another index than 0, 1, ..., n - 1.
    """
    check_row_order("scores", scores, len(data))
    scores = np.asarray(scores)
    if scores.shape != (len(data),):
        raise InputError(f"scores have shape {scores.shape} for {len(data)} rows")
    return _ids_of(data).assign(score=scores)


def qrels_of(data: RankingData) -> pd.DataFrame:
    """Columns ``qid``, ``docno`` and ``label`` of labelled rows, for ``write_qrels``.

    Raises:
        InputError: the rows have no document ids, or a label is not a whole number.
    """
    ids = _ids_of(data)
    if (data.y % 1 != 0).any():
        row = int(np.argmax(data.y % 1 != 0))
        raise InputError(
            f"query {ids['qid'][row]!r}, document {ids['docno'][row]!r} has the label "
            f"{data.y[row]:g}; judgements are whole numbers: make grades 0, 1, 2, ... of the labels"
        )
    return ids.assign(label=data.y.astype(np.int64))


def _ids_of(data: RankingData) -> pd.DataFrame:
    ids = needed_ids(data, "which TREC files need")
    qids = np.asarray(data.query_ids, dtype=object)[data.query_index]
    docnos = list(ids)
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
    for start, stop in pairwise([*first.tolist(), len(key)]):
        step = np.arange(stop - start)
        key[start:stop] = np.minimum.accumulate(key[start:stop] + step) - step
    bits = np.where(key < 0, -key | 0x80000000, key)
    return bits.astype(np.uint32).view(np.float32)


def qrels_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Number, and query id, document id and label, of each line ``qid iteration docno label`` of a
    file; or of ``qid docno label``, with tabs.

    Raises:
        InputError: a line that is neither, or has an empty id.
    """
    for number, line in _lines(path):
        fields = _split(line)
        with_tabs = [field.strip(" ") for field in line.split("\t")]
        if len(with_tabs) == 3 and all(with_tabs):
            fields = with_tabs
        elif len(fields) != 4:
            raise _wrong_fields(path, number, line, ["qid", "iteration", "docno", "label"])
        yield number, (fields[0], fields[-2], fields[-1])


def _table(path: str | os.PathLike[str], names: Sequence[str]) -> pd.DataFrame:
    """The fields of every line that is not blank, as texts under their names."""
    table = None
    if len(first_fields(path)) in (0, len(names)):  # pandas cuts all lines to a shorter first one
        with suppress(pd.errors.ParserError), open_input(path) as stream:
            table = pd.read_csv(
                stream, sep=r"\s+", header=None, names=[*names, ""], index_col=False, dtype=object,
                na_filter=False, quoting=csv.QUOTE_NONE, encoding_errors=_ERRORS,
            )  # fmt: skip
        if table is not None:  # blank lines that end in CR alone are rows there
            table = table[table[names[0]] != ""].reset_index(drop=True)
    if table is None or (table[""] != "").any() or (table[names[-1]] == "").any():
        lines = ((number, line) for number, line in _lines(path) if len(_split(line)) != len(names))
        raise _wrong_fields(path, *next(lines), names)
    return table.drop(columns="")


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Number and text of every line that is not blank."""
    with open_input(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors=_ERRORS)
        for number, line in enumerate(text, start=1):
            if "\0" in line:
                raise InputError(f"{path}:{number}: null bytes, as in UTF-16; save it as UTF-8")
            if line.strip(" \t\n"):
                yield number, line.rstrip("\n")


def _line_number(path: str | os.PathLike[str], row: int) -> int:
    """The number of the line that a row of :func:`_table` was read from."""
    return next(islice(_lines(path), row, None))[0]


def _wrong_fields(path: Any, number: int, line: str, names: Sequence[str]) -> InputError:
    found = counted(len(_split(line)), "field")
    return InputError(
        f"{path}:{number}: {found} instead of {len(names)} ({' '.join(names)}): {line[:80]!r}"
    )


def _parsed(
    parse: Callable[[str], float],
    dtype: type[np.int64 | np.float64],
    texts: pd.Series,
    path: Any,
    line: Callable[[int], int],
    what: str,
) -> NDArray[Any]:
    """The numbers that a field has, in the order of the lines."""
    written = "".join(texts)
    if "_" not in written and written.isascii():  # numpy reads what only Python does, too
        with suppress(ValueError, OverflowError):
            return texts.to_numpy().astype(dtype)
    values = np.empty(len(texts), dtype)
    for row, text in enumerate(texts):
        try:
            values[row] = parse(text)
        except (ValueError, OverflowError):
            kind = "whole number; write 0, 1, 2, ..." if parse is whole_number else "number"
            raise InputError(f"{path}:{line(row)}: {what} {text[:40]!r} is not a {kind}") from None
    return values


def _refuse_twice(frame: pd.DataFrame, path: Any, line: Callable[[int], int]) -> None:
    """Raise InputError if two lines have the same query and document."""
    again = frame.duplicated(["qid", "docno"]).to_numpy()
    if again.any():
        row = int(np.argmax(again))
        query, document = frame["qid"][row], frame["docno"][row]
        same = (frame["qid"] == query) & (frame["docno"] == document)
        raise InputError(
            f"{path}:{line(row)}: document {document!r} of query {query!r} is already in line "
            f"{line(int(np.argmax(same)))}"
        )


def _checked_ids(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    qids, docnos = frame["qid"].tolist(), frame["docno"].tolist()
    check_trec_ids(qids, "query id")
    check_trec_ids(docnos, "document id")
    return qids, docnos


def check_trec_ids(ids: Iterable[str], what: str) -> None:
    """Raise InputError for an id that is empty or has blanks, which TREC files cannot hold."""
    for word in dict.fromkeys(ids):
        if len(word.split()) != 1 or word != word.strip():
            raise InputError(
                f"{what} {word!r} is empty or contains blanks: TREC files cannot hold it; rename it"
            )


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
