"""Compare runs that were made elsewhere: TREC runs, and scores of the rows of a LETOR file."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.column_names import read_rows
from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import evaluate
from letor.judged_runs import unjudged_queries
from letor.measures import run_measure
from letor.trec import qrels_of, read_qrels, read_run, run_of
from ltr_features.studies.config import nearest
from ltr_features.studies.kinds.drill_down import query_moves
from ltr_features.studies.kinds.given_texts import (
    not_found,
    read_query_groups,
    read_query_texts,
    read_titles,
)
from ltr_features.studies.page.outputs import write_outputs
from ltr_features.studies.page.report import QueryMoves, Report, Study, SystemResult
from ltr_features.studies.stages import Stages, versions
from ltr_features.studies.statistics.hard_queries import hard_query_table
from ltr_features.studies.statistics.query_classes import (
    judged_properties,
    query_class_table,
    query_classes,
)
from ltr_features.studies.statistics.significance import CORRECTIONS, TestSettings

DEFAULT_MEASURES = ("NDCG@10", "MAP", "P@10")


def compare_files(
    runs: Sequence[Path],
    out: Path,
    *,
    qrels: Path | None = None,
    data: Path | None = None,
    queries: Path | None = None,
    documents: Path | None = None,
    groups: Path | None = None,
    names: Sequence[str] = (),
    baselines: Sequence[str] = (),
    measures: Sequence[str] = DEFAULT_MEASURES,
    hard_measure: str | None = None,
    hard_by: str | None = None,
    test: TestSettings | None = None,
    threads: int | None = None,
) -> Path:
    """Compare runs and write a report.

    Args:
        runs: files, two or more: TREC runs, or scores of the rows of ``data``: a line per row,
            the score last (LightGBM, XGBoost, LETOR's predictions, RankLib's ``-score``).
        out: folder for the report.
        qrels: TREC judgements. data: LETOR file, whose labels judge if ``qrels`` is not given.
        queries: texts of the queries: JSON lines with ``_id`` and ``text``, or id, tab, text.
        documents: their titles: JSON lines with ``_id``, ``title``, ``text``.
        groups: of the queries (id, tab, group); queries of one group are tested together.
        names: of the systems, in the order of the runs; by default those of the files.
        baselines: names of the systems that all others are compared with; the first by default.
        measures: names as in :func:`letor.measures.run_measure`; the first is the primary one.
        hard_measure: measure that says which queries are hard; the primary one by default.
        hard_by: name of the run that says it; it is no baseline, and its own gain on hard queries
            is not estimated.
        test: settings of the statistical tests.

    Returns:
        The folder of the report.

    Raises:
        InputError: a file cannot be read or does not fit the others, or a name is unknown.
    """
    test = test or TestSettings()
    names = list(names) or _names(runs)
    given = (qrels, data, queries, documents, groups)
    files = [*runs, *(p for p in given if p is not None)]
    every = list(dict.fromkeys([*measures, hard_measure or measures[0]]))
    judging = qrels is not None or data is not None
    _check(files, len(runs), names, baselines, every, test, hard_by, judging=judging)
    stages = Stages(out)
    with stages.claimed():
        stages.check(["report"])
        rows = None if data is None else read_rows(data, threads=threads)
        judged = read_qrels(qrels) if qrels is not None else judgements_of(_needed(rows))
        rankings = {n: read_ranking(p, rows) for n, p in zip(names, runs, strict=True)}
        texts, titles, notes = _given_texts(rankings, judged, queries, documents)
        if rows is not None and qrels is None:
            notes["documents and queries without a row"] = rows.coverage
        report = comparison_report(
            rankings,
            judged,
            baselines=list(baselines) or names[:1],
            measures=measures,
            hard_measure=hard_measure or measures[0],
            hard_by=hard_by,
            groups=None if groups is None else read_query_groups(groups, judged["qid"].unique()),
            texts=texts,
            titles=titles,
            notes=notes,
            test=test,
        )
        inputs = {
            "files": [stages.digests.identity(path) for path in files],
            "names": names,
            "baselines": list(baselines),
            "measures": list(measures),
            "hard measure": hard_measure,
            "hard by": hard_by,
            "test": vars(test),
            "texts": [queries is not None, documents is not None, groups is not None],
        }
        return stages.run(
            "report", inputs, lambda path: write_outputs(report, path, inputs=inputs)
        ).path


def comparison_report(
    rankings: Mapping[str, pd.DataFrame],
    qrels: pd.DataFrame,
    *,
    baselines: Sequence[str],
    measures: Sequence[str] = DEFAULT_MEASURES,
    hard_measure: str = DEFAULT_MEASURES[0],
    hard_by: str | None = None,
    groups: Mapping[str, Hashable] | None = None,
    texts: Mapping[str, str] | None = None,
    titles: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    test: TestSettings | None = None,
) -> Report:
    """The report on rankings (columns ``qid``, ``docno``, ``score``) of the same queries.

    Args:
        hard_by: the ranking that says which queries are hard. groups: of the queries.
        texts: of queries. titles: of documents. notes: further facts, by label.

    Raises:
        InputError: a judged query without a group, or ``hard_by`` is a baseline.
    """
    test = test or TestSettings()
    every = list(dict.fromkeys([*measures, hard_measure]))
    values = {name: evaluate(qrels, run, every) for name, run in rankings.items()}
    others = [name for name in rankings if name not in baselines]
    pairs = [(name, baseline) for name in others for baseline in baselines]
    pairs += [
        (later, baseline) for i, baseline in enumerate(baselines) for later in baselines[i + 1 :]
    ]
    judged = next(iter(values.values())).index
    hard = {name: frame[hard_measure] for name, frame in values.items()}
    properties = judged_properties(qrels, texts or {})
    kinds = query_classes(properties.loc[judged.intersection(properties.index)])
    headline = (values[pairs[0][0]][measures[0]], values[pairs[0][1]][measures[0]])
    study = Study(
        name="Comparison",
        description="Runs made elsewhere, evaluated on the same judgements.",
        split_rule="How the systems were trained is not known here: whether a system has seen the "
        "judgements of these queries cannot be checked.",
        systems=[
            SystemResult(name=name, description=_covered(rankings[name], judged), per_query=frame)
            for name, frame in values.items()
        ],
        pairs=pairs,
        measures=list(measures),
        groups=groups,
        query_texts=dict(texts or {}),
        facts=_facts(rankings, qrels) | dict(notes or {}),
        hard_queries=hard_query_table(
            hard[baselines[0]],
            {name: hard[name] for name in others if name != hard_by},
            selectors={} if hard_by is None else {hard_by: hard[hard_by]},
            settings=test,
            groups=groups,
        )
        if set(others) - {hard_by}
        else None,
        query_classes=query_class_table(
            kinds, {" - ".join(pairs[0]): headline}, settings=test, groups=groups
        ),
        query_kinds=kinds,
        drill_down=_moves(
            headline[0] - headline[1], [rankings[name] for name in pairs[0]], qrels, titles or {}
        ),
        query_kinds_note="Classes by shared words and by entities are left out: they need the "
        "documents and a linker; classes by words need the texts of all queries.",
        hard_measure=hard_measure,
        hard_baseline=baselines[0],
        test=test,
    )
    return Report(
        title="Comparison of runs",
        introduction=f"{len(rankings)} runs on {len(judged):,} judged queries.",
        studies=[study],
        versions=versions(),
    )


def _moves(
    differences: pd.Series,
    runs: Sequence[pd.DataFrame],
    qrels: pd.DataFrame,
    titles: Mapping[str, str],
) -> list[QueryMoves]:
    """What moved; no columns, as no ranker is known here."""
    labels = {str(q): r.set_index("docno")["label"].to_dict() for q, r in qrels.groupby("qid")}
    return query_moves(
        differences, runs, lambda query: labels[query], lambda document: titles.get(document, "")
    )


def _given_texts(
    rankings: Mapping[str, pd.DataFrame],
    qrels: pd.DataFrame,
    queries: Path | None,
    documents: Path | None,
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Texts of the queries, titles of the ranked documents, and how many have none."""
    texts, titles, notes = {}, {}, {}
    if queries is not None:
        texts = read_query_texts(queries)
        if missing := not_found(queries, "--queries", texts, list(qrels["qid"].unique())):
            notes["judged queries without a text"] = f"{missing:,}, shown by their ids"
    if documents is not None:
        ranked = list(dict.fromkeys(d for run in rankings.values() for d in run["docno"]))
        titles = read_titles(documents, set(ranked))
        if missing := not_found(documents, "--documents", titles, ranked):
            notes["ranked documents without a title"] = f"{missing:,}, shown by their ids"
    return texts, titles, notes


def read_ranking(path: Path, rows: RankingData | None) -> pd.DataFrame:
    """A ranking, columns ``qid``, ``docno``, ``score``: of a TREC run, or of the scores of rows.

    Raises:
        InputError: it is neither, or does not fit the rows.
    """
    if _is_run(path):
        return read_run(path)
    if rows is None:
        raise InputError(
            f"{path} is no TREC run (qid Q0 docno rank score tag); if it holds the scores of the "
            "rows of a LETOR file, give that by --data"
        )
    return run_of(_with_documents(rows), read_scores(path, rows))


def read_scores(path: Path, rows: RankingData) -> NDArray[np.float64]:
    """float64 [n]: the last field of each line that is not blank. Lines of three fields are
    RankLib's (qid, number, score); their qid must be the row's.

    Raises:
        InputError: not a number, another query than the row's, or not as many as rows.
    """
    scores: list[float] = []
    for number, fields in _lines(path):
        try:
            score = float(fields[-1])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{path}, line {number}: {fields[-1]!r} is not a finite number")
        at = len(scores)
        if len(fields) == 3 and at < len(rows):
            query = rows.query_ids[rows.query_index[at]]
            if fields[0] != query:
                raise InputError(
                    f"{path}, line {number}: query {fields[0]!r}, but row {at + 1} of the data is "
                    f"of query {query!r}; both must have the same order"
                )
        scores.append(score)
    if len(scores) != len(rows):
        raise InputError(f"{path} has {len(scores)} scores, the data has {len(rows)} rows")
    return np.array(scores)


def judgements_of(rows: RankingData) -> pd.DataFrame:
    """The rows' labels as judgements, and those of documents that are known to have no row: any
    names do, as no ranking has them."""
    judged = qrels_of(_with_documents(rows))
    if rows.missing is None:
        return judged
    judged = judged[~judged["qid"].isin(rows.missing.unjudged)]
    lost = [
        (query, f"(without a row, {label}, {number})", label)
        for query, counts in rows.missing.relevant.items()
        for label, count in {0: 1, **counts}.items()  # the query counts, whatever it lacks
        for number in range(count)
    ]
    return pd.concat([judged, pd.DataFrame(lost, columns=judged.columns)], ignore_index=True)


def _with_documents(rows: RankingData) -> RankingData:
    """Rows without document ids get their number: of equal scores the earlier row is first."""
    if rows.document_ids is not None:
        return rows
    width = len(str(len(rows)))
    numbers = np.array([f"row{i:0{width}d}" for i in range(len(rows))], dtype=object)
    return replace(rows, document_ids=numbers)


def _needed(rows: RankingData | None) -> RankingData:
    if rows is None:
        raise InputError("give the judgements: --qrels FILE, or --data FILE with labels")
    return rows


def _check(
    files: Sequence[Path],
    runs: int,
    names: Sequence[str],
    baselines: Sequence[str],
    measures: Sequence[str],
    test: TestSettings,
    hard_by: str | None,
    *,
    judging: bool,
) -> None:
    problems = [f"there is no file {p}" for p in files if not p.is_file()]
    if runs < 2:
        problems.append("a comparison needs two runs or more")
    if len(names) != runs:
        problems.append(f"{len(names)} names for {runs} runs")
    if len(set(names)) < len(names):
        problems.append(f"two runs share a name: {', '.join(names)}; give others by --name")
    if len(set(baselines)) == len(names):
        problems.append("every run is a baseline: leave one out")
    if not judging:
        problems.append("give the judgements: --qrels FILE, or --data FILE with labels")
    problems += [f"no run {b!r}; {nearest(b, names)}" for b in baselines if b not in names]
    if hard_by is not None and hard_by not in names:
        problems.append(f"--hard-by: no run {hard_by!r}; {nearest(hard_by, names)}")
    if hard_by in (list(baselines) or names[:1]):
        problems.append(f"--hard-by {hard_by}: a baseline cannot say which queries are hard")
    elif hard_by is not None and not {*names} - {*(baselines or names[:1]), hard_by}:
        problems.append(f"--hard-by {hard_by}: besides it and the baselines no run is left")
    if test.correction not in CORRECTIONS:
        known = nearest(test.correction, CORRECTIONS)
        problems.append(f"--correction: no method {test.correction!r}; {known}")
    for measure in measures:
        try:
            run_measure(measure)
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("; ".join(problems))


def _names(runs: Sequence[Path]) -> list[str]:
    """The files' names without suffixes, with the folders' where those are the same."""
    short = [path.name.split(".")[0] or path.name for path in runs]
    if len(set(short)) == len(short):
        return short
    return [f"{path.parent.name}/{name}" for path, name in zip(runs, short, strict=True)]


def _is_run(path: Path) -> bool:
    if path.suffix == ".gz":
        return True
    first = next(_lines(path), None)
    return first is not None and len(first[1]) == 6


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line that is not blank."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                if fields := line.split():
                    yield number, fields
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _covered(run: pd.DataFrame, judged: pd.Index) -> str:
    found = run["qid"].nunique()
    missing = len(judged.difference(pd.Index(run["qid"].unique())))
    text = f"{len(run):,} rows for {found:,} queries"
    return f"{text}; {missing:,} judged queries are missing and count 0" if missing else text


def _facts(rankings: Mapping[str, pd.DataFrame], qrels: pd.DataFrame) -> dict[str, str]:
    relevant = qrels[qrels["label"] >= 1]
    facts = {
        "judged queries": f"{qrels['qid'].nunique():,}",
        "of them with a relevant document": f"{relevant['qid'].nunique():,}",
    }
    unjudged = {q for run in rankings.values() for q in unjudged_queries(qrels, run)}
    if unjudged:
        facts["queries without any judgement"] = f"{len(unjudged):,}, left out of every mean"
    return facts
