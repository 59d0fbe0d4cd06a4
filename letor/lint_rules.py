"""Rules for the validation of LETOR files: levels, messages and advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ltr_base.names import WRITE_AS_TEXT

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


class Rule(NamedTuple):
    """A validation rule: its level, the message as a template, and what to do about it."""

    level: Level
    message: str
    advice: str


_VALUES = "values that are "
_AS_MISSING = 'non_finite="nan" (--non-finite nan) reads them as missing'
RULES = {
    "malformed-lines": Rule(
        "error", "malformed lines: {n:,}",
        'correct them, or leave them out with on_error="skip" (measure --on-error skip)',
    ),
    "cut-off": Rule(
        "warning", "the last line has no line end, and lacks columns or the comment of all others",
        "the file may be cut off: copy or unpack it again",
    ),
    "null": Rule(
        "warning", _VALUES + "NULL: {n:,}, in {columns}",
        "read as the least value of the column within the query (LETOR's MIN rule); "
        'in Python, read_letor(..., null="nan") keeps them missing',
    ),
    "nan": Rule("error", _VALUES + "nan: {n:,}, in {columns}", _AS_MISSING),
    "infinite": Rule("error", _VALUES + "infinite: {n:,}, in {columns}", _AS_MISSING),
    "huge": Rule(
        "error", _VALUES + "beyond float32 (3.4e38): {n:,}, in {columns}",
        "Istella marks missing values by 1.797e308: " + _AS_MISSING,
    ),
    "gaps": Rule(
        "warning", "ids that no line gives: {columns}",
        "if columns were left out on purpose, renumber the rest; readers allocate the gaps",
    ),
    "sparse": Rule(
        "note", "sparse: {share:.1%} of the values are not given",
        "they are read as 0; in Python, read_letor(..., missing=nan) keeps them missing",
    ),
    "no-values": Rule(
        "warning", "without a single value: {columns}",
        "they carry no information: drop them",
    ),
    "missing-values": Rule(
        "note", "missing values: {n:,}, in {columns}",
        "lambdamart and xgboost learn from them as such; LETOR text would give them 0",
    ),
    "infinite-values": Rule(
        "warning", "infinite values: {n:,}, in {columns}",
        "z-scores take them as missing, other scales as the largest or least value: write NaN for "
        "what is unknown",
    ),
    "fractional-labels": Rule(
        "warning", "labels that are not whole numbers: {n:,}",
        "lambdamart, xgboost, trained columns and judgements need grades 0, 1, 2, ..., and MAP, P, "
        "Recall and MRR take a label below 1 as not relevant: make grades of them",
    ),
    "negative-labels": Rule(
        "warning", "negative labels: {n:,}",
        "-1 means unjudged in LETOR's semi-supervised sets: leave these rows out of training "
        "and evaluation",
    ),
    "list-labels": Rule(
        "warning",
        "the labels of each query are a permutation: this is a listwise (-list) file, whose "
        "labels are ranks, not grades",
        "use the file with graded labels, or bin the ranks into a few grades",
    ),
    "large-labels": Rule(
        "warning",
        "labels up to {largest:g}: the exponential gain 2^label - 1 leaves all others without "
        "weight, and lambdamart refuses labels above 30",
        "bin the labels into a few grades, or train with gain='linear' (rank train --param "
        "gain=linear)",
    ),
    "no-label-0": Rule(
        "warning",
        "no row has label 0, the least is {least:g}: every document counts as relevant in MAP, MRR "
        "and P",
        "if the least label means not relevant, subtract it from all labels",
    ),
    "one-label": Rule(
        "warning", "all labels are {label:g}",
        "nothing can be learned or measured: check that labels were joined to the rows",
    ),
    "equal-labels": Rule(
        "warning", "no query has documents of different labels",
        "there is nothing to rank: check the query ids, and that all judged documents have rows",
    ),
    "descending-labels": Rule(
        "warning",
        "the rows of {n:,} of {mixed:,} queries are in descending order of their labels",
        "where scores tie, rows keep the order of the file, which flatters every ranker: shuffle "
        "the rows of each query, or sort them by document id",
    ),
    "label-order": Rule(
        "warning", "{columns}: values order the rows of every query exactly as the labels do",
        "were they made from the labels? Leave out what is unknown before a document is judged",
    ),
    "split-groups": Rule(
        "warning", "queries whose rows are not adjacent: {n:,}",
        "if files were joined that use the same ids for different queries, make the ids distinct; "
        "otherwise sort the file by query for LightGBM, RankLib and XGBoost (this package takes it "
        "as it is)",
    ),
    "single-document-queries": Rule(
        "note", "queries with one document only: {n:,}",
        "they count the same for every ranker; consider leaving them out",
    ),
    "zero-columns": Rule(
        "warning", "{columns}: 0 in all rows", "the field or resource behind these values was empty"
    ),
    "constant-columns": Rule(
        "warning", "{columns}: constant", "such values carry no information: drop them"
    ),
    "large-values": Rule(
        "note", "{columns}: values beyond 2^24 (16,777,216), where float32 rounds whole numbers",
        "different ones may become equal: leave out ids; subtract the least of times, take "
        "logarithms of counts",
    ),
    "query-columns": Rule(
        "note", "{columns}: constant within every query",
        "alone such values cannot rank; they help only in combination with others",
    ),
    "too-few-names": Rule(
        "error", "{side_file} names {n_names:,} columns, the rows have {n_columns:,}",
        "it belongs to another file: remove it to name columns by number",
    ),
    "too-many-names": Rule(
        "warning", "{side_file} names {n_names:,} columns, the rows have {n_columns:,}",
        "the last ones are read as 0; if they are not absent from all rows, it belongs to another "
        "file: remove it",
    ),
    "column-remarks": Rule(
        "warning", "{columns}{name}: {remark}",
        "measure a ranker with and without the column before you rely on it",
    ),
    "duplicate-documents": Rule(
        "warning", "rows that repeat a document of their query: {n:,}",
        "keep one row per query and document: repeated ones count twice in every measure",
    ),
    "rounded-ids": Rule("warning", "{remark}", WRITE_AS_TEXT),
    "unnamed-documents": Rule(
        "warning", "rows that name no document, although others do: {n:,}",
        "joins by document id will miss them: complete the comments",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A finding of the validation of a file.

    Attributes:
        level: ``"error"`` (readers fail or drop rows), ``"warning"`` (results may be wrong),
            ``"note"`` (good to know).
        code: a stable short name, such as ``"constant-columns"``.
        message: what was found and where.
        advice: what to do about it.
        columns: ids of the columns concerned.
        lines: 1-based numbers of the lines concerned (of Parquet, rows), at most 20.
    """

    level: Level
    code: str
    message: str
    advice: str
    columns: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
