"""Readers of judgements, queries, titles and rankings, shared by all commands.

A file named .csv, .tsv, .jsonl (also .gz, .bz2, .zst) or .parquet is a table, whose columns are
found by their usual names; the format of other text files is recognised by their lines.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.column_names import is_letor, read_rows
from letor.compression import text_lines
from letor.dataset import RankingData
from letor.errors import InputError, reading
from letor.judged_runs import judged_rows, other_spellings, score_remarks, unjudged_queries
from letor.trec import first_fields, is_run, plain_number, qrels_lines, qrels_of, read_run, run_of
from ltr_base.names import clipped, counted, quoted, written_otherwise
from ltr_features.sources.arrow_tables import column_list
from ltr_features.sources.judging import other_grade, whole_grade
from ltr_features.sources.score_tables import (
    DOCUMENT_NAMES,
    QUERY_NAMES,
    ScoreTable,
    check_unicode,
    is_pair_table,
    read_scores,
)
from ltr_features.sources.table_blocks import (
    ColumnName,
    is_table,
    named_rows,
    rows,
    table_columns,
    table_of,
)
from ltr_features.sources.trec_documents import trec_documents
from ltr_features.sources.trec_topics import read_topics
from ltr_features.sources.usual_names import find_columns
from ltr_features.text.id_rows import examples
from ltr_features.text.records import place

GRADE_NAMES = ("grade", "label", "relevance", "rel", "escilabel", "score", "rating")
#: Usual names of the columns of judgements.
JUDGEMENT_COLUMNS = {"query": QUERY_NAMES, "document": DOCUMENT_NAMES, "grade": GRADE_NAMES}
#: Usual names of columns of query texts, which no other columns have.
QUERY_TEXT_NAMES = ("querytext", "searchterm", "searchquery")
TEXT_NAMES = ("text", "query", *QUERY_TEXT_NAMES, "title")
#: Usual names of the columns of queries.
QUERY_COLUMNS = {"id": ("id", *QUERY_NAMES), "text": TEXT_NAMES}
DOCUMENT_IDS = ("id", *DOCUMENT_NAMES)
#: Usual names of columns of documents; other fields go by their own names.
DOCUMENT_COLUMNS = {
    "id": DOCUMENT_IDS,
    "title": ("title", "name", "headline", "producttitle", "productname"),
    "body": ("text", "body", "abstract", "contents", "productdescription", "description"),
}
#: Characters of a title that a table shows.
_SHOWN = 90


def judgement_rows(
    path: str | os.PathLike[str] | Any,
    columns: Mapping[str, ColumnName] | None = None,
    *,
    encoding: str = "utf-8",
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line, values by key) of each judgement: ``query`` (id), ``document`` (id) and
    ``grade``, all as text.

    Args:
        path: a table (such as BEIR's) or a frame; TREC's lines ``qid iteration docno grade``; or
            labelled rows with document ids (LETOR text or Parquet).
        columns: columns of a table that do not have usual names, by key; None if there is no
            option for them. The key ``text`` adds the query's text; if ``query`` is not given then,
            it replaces the id.
        encoding: encoding of tables that are not UTF-8.

    Raises:
        InputError: the file cannot be read, a column is missing, or an id is empty.
    """
    if not columns and isinstance(path, str | os.PathLike) and is_letor(Path(path)):
        with reading(path):
            rows = read_rows(path)
            judged = run_of(rows, rows.y)  # labels as they are: thresholds may make grades of them
        pairs = zip(judged["qid"], judged["docno"], rows.y, strict=True)
        for number, (query, document, label) in enumerate(pairs, start=1):
            grade = np.format_float_positional(label, trim="-")
            yield number, {"query": query, "document": document, "grade": grade}
        return
    path, usual = table_of(path), dict(JUDGEMENT_COLUMNS)
    if columns and "text" in columns and "query" not in columns:
        del usual["query"]
    found = named_rows(path, columns, usual, "judgement_columns", encoding)
    if found is not None:
        for number, row in found:
            if empty := [key for key in ("query", "document") if not row.get(key, "text")]:
                raise InputError(f"{place(path, number)}: the {empty[0]} id is empty")
            yield number, row
        return
    for number, (query, document, grade) in qrels_lines(str(path)):
        yield number, {"query": query, "document": document, "grade": grade}


def read_judgements(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read judgements, columns ``qid``, ``docno`` (str) and ``label`` (int64), from any file that
    :func:`judgement_rows` reads, or from labelled rows (LETOR text or Parquet).

    A pair that is judged again with the same label counts once.

    Raises:
        InputError: see there; a label that is not a whole number, or two labels of a pair.
    """
    path = Path(path)
    if is_letor(path):
        with reading(path):
            return judgements_of(read_rows(path))
    labels: dict[tuple[str, str], int] = {}
    for number, row in judgement_rows(path):
        where, pair = place(path, number), (row["query"], row["document"])
        label = whole_grade(where, row["grade"])
        if labels.setdefault(pair, label) != label:
            raise InputError(other_grade(where, repr(pair[0]), repr(pair[1]), labels[pair], label))
    ids = pd.DataFrame(list(labels), columns=["qid", "docno"], dtype=object)
    return check_unicode(path, ids).assign(label=np.array(list(labels.values()), dtype=np.int64))


def judgements_of(data: RankingData) -> pd.DataFrame:
    """The labels as judgements, including those of documents known to have no row, which get
    made-up ids, as no ranking contains them."""
    judged = qrels_of(_with_documents(data))
    if data.missing is None:
        return judged
    judged = judged[~judged["qid"].isin(data.missing.unjudged)]
    lost = [
        (query, f"(without a row, {label}, {number})", label)
        for query, counts in data.missing.relevant.items()
        for label, count in {0: 1, **counts}.items()  # the query counts, whatever it lacks
        for number in range(count)
    ]
    return pd.concat([judged, pd.DataFrame(lost, columns=judged.columns)], ignore_index=True)


def read_queries(
    path: str | os.PathLike[str] | Any,
    *,
    fields: Sequence[str] = ("title",),
    columns: Mapping[str, ColumnName] | None = None,
    encoding: str = "utf-8",
) -> dict[str, str]:
    """Read query texts by id.

    Args:
        path: a table (such as BEIR's ``queries.jsonl``) or a frame; TREC topics (``<top>``, or in
            XML); or a query per line: id, colon or tab, text.
        fields: parts of a topic that make up the query: "title", "desc", "narr".
        columns: the columns ``id`` and ``text`` of a table, if they do not have usual names; None
            if there is no option for them.
        encoding: encoding of files that are not UTF-8.

    Raises:
        InputError: the file cannot be read, a column is missing, or an id is empty or has two
            texts.
    """
    path = table_of(path)
    found = named_rows(path, columns, QUERY_COLUMNS, "query_columns", encoding)
    if found is None:
        return dict(read_topics(str(path), fields, encoding))
    texts: dict[str, str] = {}
    for number, row in found:
        query = row["id"]
        if not query:
            raise InputError(f"{place(path, number)}: the query id is empty")
        if texts.setdefault(query, row["text"]) != row["text"]:  # a table of judgements repeats it
            raise InputError(
                f"{place(path, number)}: query {query!r} has another text here than before"
            )
    return texts


def read_titles(path: str | os.PathLike[str], wanted: Collection[str]) -> dict[str, str]:
    """Read the titles of the wanted documents by id; the beginning of the text if a title is empty.

    Args:
        path: a table with titles or texts (such as BEIR's ``corpus.jsonl``), or TREC documents.
        wanted: document ids.

    Raises:
        InputError: the file cannot be read, or has neither titles nor texts.
    """
    path = Path(path)
    if not is_table(path):
        return {
            document.docno: shown_title(document.fields.get("title", ""), document.fields["body"])
            for document in trec_documents(path)
            if document.docno in wanted
        }
    names = table_columns(path)
    first = [find_columns(names, usual) for usual in DOCUMENT_COLUMNS.values()]
    chosen = [found[0] for found in first if found]
    if first[0] is None or len(chosen) < 2:
        raise InputError(
            f"{path}: the columns are {', '.join(map(repr, names))}; titles need one called 'id' "
            "and one called 'title' or 'text'"
        )
    return {
        document: shown_title(*texts)
        for _, (document, *texts) in rows(path, chosen, optional=chosen[1:])
        if document in wanted
    }


def shown_title(*texts: str) -> str:
    """The first text that has a word, its beginning if it is long; "" if none has."""
    plain = (" ".join(text[:400].split()) for text in texts)
    return clipped(next((text for text in plain if text), ""), _SHOWN)


def title_in(fields: Mapping[str, Sequence[str]], row: int) -> str:
    """What :func:`shown_title` takes of a collection's document: its title, or else its body."""
    return shown_title(*(fields[name][row] for name in ("title", "body") if name in fields))


def is_ranking(path: Path) -> bool:
    """Whether a file names its queries and documents: a table, or a TREC run."""
    return is_pair_table(path) or is_run(path)


def read_ranking(path: str | os.PathLike[str], data: RankingData | None = None) -> pd.DataFrame:
    """Read a ranking, columns ``qid``, ``docno``, ``score``: a run in TREC's or MS MARCO's format
    (see :func:`~letor.trec.read_run`), a table with a column of scores (called ``score`` if there
    are several), or scores of the rows of ``data``, see :func:`read_row_scores`.

    Raises:
        InputError: the file is none of these, or does not fit the rows.
    """
    path = Path(path)
    if is_pair_table(path):
        named = ["score"] if "score" in table_columns(path) else []
        return _table_ranking(read_scores(path, scores=named))
    if is_run(path):
        return check_unicode(path, read_run(path))
    if data is None:
        if not (fields := first_fields(path)):
            raise InputError(f"{path} is empty")
        has = f"its first line has {counted(len(fields), 'field')} ({' '.join(fields)[:80]!r})"
        if is_table(path):
            has = f"its columns are {column_list(table_columns(path))}"
        raise InputError(
            f"{path} is neither a run (qid Q0 docno rank score tag, or qid docno rank) nor a table "
            f"of scores (.csv, .tsv, .jsonl, .parquet, with columns such as qid and docno): {has}; "
            "if it holds the scores of the rows of a LETOR file, give that by --data"
        )
    return run_of(_with_documents(data), read_row_scores(path, data))


def judged_ranking(
    path: str | os.PathLike[str], qrels: pd.DataFrame
) -> tuple[RankingData, NDArray[np.float64], list[str]]:
    """The labelled rows of a ranking and their scores, see :func:`letor.judged_runs.judged_rows`,
    and remarks on its scores, and on queries that are left out because they have no judgement.

    Raises:
        InputError: see :func:`read_ranking`; or no query, or no document, is in the qrels.
    """
    run = read_ranking(path)
    check_same_ids(path, run, qrels)
    data, scores, _ = judged_rows(qrels, run)
    remarks = [*other_spellings(qrels, run), *score_remarks(run)]
    if unjudged := unjudged_queries(qrels, run):
        told = f"{counted(len(unjudged), 'query')} without any judgement left out"
        near = written_otherwise(unjudged[0], qrels["qid"].unique())
        remarks.append(f"{told}; for {unjudged[0]!r} {near}" if near else told)
    return data, scores, remarks


def check_same_ids(path: str | os.PathLike[str], pairs: pd.DataFrame, qrels: pd.DataFrame) -> None:
    """Raise InputError if none of a file's queries or documents is judged: their ids differ."""
    for column, what in (("qid", "queries"), ("docno", "documents")):
        found, judged = (list(dict.fromkeys(table[column])) for table in (pairs, qrels))
        if found and judged and set(found).isdisjoint(judged):
            near = written_otherwise(found[0], judged) or "do both use the same ids?"
            raise InputError(
                f"{path}: none of its {len(found):,} {what} ({examples(found)}) is among the "
                f"{len(judged):,} that are judged ({examples(judged)}); {near}"
            )


def _table_ranking(table: ScoreTable) -> pd.DataFrame:
    names = list(table.scores)
    name = names[0] if len(names) == 1 else "score"
    if name not in names:
        raise InputError(
            f"{table.path}: {', '.join(map(repr, names))} may be scores; keep one, or call it "
            "'score'"
        )
    queries, documents = (
        np.array(ids, dtype=object) for ids in (table.query_ids, table.document_ids)
    )
    return pd.DataFrame(
        {
            "qid": pd.Series(queries[table.query], dtype=object),
            "docno": pd.Series(documents[table.document], dtype=object),
            "score": table.scores[name],
        }
    )


def read_row_scores(path: str | os.PathLike[str], data: RankingData) -> NDArray[np.float64]:
    """float64 [n]: the last field of each non-blank line. Lines of three fields are RankLib's (qid,
    number, score); their qid must be that of the row.

    Raises:
        InputError: a score that is not a finite number, another query than the row's, or not as
            many scores as rows.
    """
    scores: list[float] = []
    for number, line in text_lines(path, errors="replace"):
        if not (fields := line.split()):
            continue
        try:
            score = plain_number(fields[-1])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{place(path, number)}: {quoted(fields[-1])} is not a finite number")
        at = len(scores)
        if len(fields) == 3 and at < len(data):
            query = data.query_ids[data.query_index[at]]
            if fields[0] != query:
                raise InputError(
                    f"{place(path, number)}: query {fields[0]!r}, but row {at + 1} of the data is "
                    f"of query {query!r}; both must have the same order"
                )
        scores.append(score)
    if len(scores) != len(data):
        raise InputError(f"{path} has {len(scores)} scores, the data has {len(data)} rows")
    return np.array(scores)


def _with_documents(data: RankingData) -> RankingData:
    """Number the rows as document ids if they have none, so that ties are ranked in row order."""
    if data.document_ids is not None:
        return data
    width = len(str(len(data)))
    numbers = np.array([f"row{i:0{width}d}" for i in range(len(data))], dtype=object)
    return replace(data, document_ids=numbers)
