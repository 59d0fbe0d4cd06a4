"""Compare runs that were made elsewhere: TREC runs, and scores of the rows of a LETOR file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from letor.column_names import read_rows
from letor.errors import InputError
from letor.evaluation import evaluate
from letor.judged_runs import as_frame, unjudged_queries
from letor.measures import run_measure
from letor.trec import read_qrels
from ltr_features.studies.config import Section, nearest, read_config
from ltr_features.studies.kinds.drill_down import query_moves
from ltr_features.studies.kinds.given_files import (
    judgements_of,
    not_found,
    read_query_groups,
    read_query_texts,
    read_ranking,
    read_titles,
)
from ltr_features.studies.page import report as page
from ltr_features.studies.page.report import QueryMoves, Report, SystemResult
from ltr_features.studies.runner import Planned
from ltr_features.studies.stages import versions
from ltr_features.studies.statistics.hard_queries import hard_query_table
from ltr_features.studies.statistics.query_classes import (
    judged_properties,
    query_class_table,
    query_classes,
)
from ltr_features.studies.statistics.significance import CORRECTIONS, TestSettings
from ltr_features.studies.study import Study

DEFAULT_MEASURES = ("NDCG@10", "MAP", "P@10")


class CompareConfig(Section):
    """Runs to compare; paths are relative to the folder of data.

    Attributes:
        runs: files, two or more: TREC runs, or scores of the rows of ``data``: a line per row,
            the score last (LightGBM, XGBoost, LETOR's predictions, RankLib's ``-score``).
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
    """

    kind: Literal["compare"] = "compare"
    title: str = "Comparison of runs"
    runs: tuple[Path, ...]
    qrels: Path | None = None
    data: Path | None = None
    queries: Path | None = None
    documents: Path | None = None
    groups: Path | None = None
    names: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    measures: tuple[str, ...] = Field(DEFAULT_MEASURES, min_length=1)
    hard_measure: str | None = None
    hard_by: str | None = None
    test: TestSettings = TestSettings()

    @property
    def files(self) -> list[Path]:
        """All that are read."""
        given = (self.qrels, self.data, self.queries, self.documents, self.groups)
        return [*self.runs, *(path for path in given if path is not None)]

    @property
    def systems(self) -> list[str]:
        """Names of the runs."""
        return list(self.names) or _names(self.runs)

    @property
    def against(self) -> list[str]:
        """Names of the baselines."""
        return list(self.baselines) or self.systems[:1]


class CompareStudy(Study):
    """Rankings that were made elsewhere: there is nothing to make but the report."""

    config: CompareConfig

    @classmethod
    def read(cls, path: Path, data: Path) -> CompareConfig:
        return read_config(path, CompareConfig)

    @property
    def settings(self) -> dict[str, Any]:
        """Without paths: files are known by their content, and by what they were given as."""
        found = self.config.model_dump(mode="json")
        for name in ("qrels", "data", "queries", "documents", "groups"):
            found[name] = found[name] is not None
        return found | {"runs": self.config.systems}

    @property
    def files(self) -> dict[str, Any]:
        return {"files": [self.identity(self.data / path) for path in self.config.files]}

    @property
    def seeds(self) -> dict[str, int]:
        return {"tests": self.config.test.seed}

    def stages(self) -> list[Planned]:
        _check(self.config, self.data)
        return []

    def report(self) -> Report:
        c = self.config
        rows = None if c.data is None else read_rows(self.data / c.data, threads=self.threads)
        judged = read_qrels(self.data / c.qrels) if c.qrels is not None else judgements_of(rows)
        rankings = {
            name: read_ranking(self.data / path, rows)
            for name, path in zip(c.systems, c.runs, strict=True)
        }
        texts, titles, notes = self._given_texts(rankings, judged)
        if rows is not None and c.qrels is None:
            notes["documents and queries without a row"] = rows.coverage
        groups = None
        if c.groups is not None:
            groups = read_query_groups(self.data / c.groups, judged["qid"].unique())
        return comparison_report(
            rankings,
            judged,
            baselines=c.against,
            measures=c.measures,
            hard_measure=c.hard_measure or c.measures[0],
            hard_by=c.hard_by,
            groups=groups,
            texts=texts,
            titles=titles,
            notes=notes,
            test=c.test,
        )

    def _given_texts(
        self, rankings: Mapping[str, pd.DataFrame], qrels: pd.DataFrame
    ) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        """Texts of the queries, titles of the ranked documents, and how many have none."""
        texts, titles, notes = {}, {}, {}
        if self.config.queries is not None:
            path = self.data / self.config.queries
            texts = read_query_texts(path)
            if missing := not_found(path, "--queries", texts, list(qrels["qid"].unique())):
                notes["judged queries without a text"] = f"{missing:,}, shown by their ids"
        if self.config.documents is not None:
            path = self.data / self.config.documents
            ranked = list(dict.fromkeys(d for run in rankings.values() for d in run["docno"]))
            titles = read_titles(path, set(ranked))
            if missing := not_found(path, "--documents", titles, ranked):
                notes["ranked documents without a title"] = f"{missing:,}, shown by their ids"
        return texts, titles, notes


def compare_files(
    runs: Sequence[Path], out: Path, *, threads: int | None = None, **options: Any
) -> Path:
    """Compare runs and write a report.

    Args:
        runs, options: see :class:`CompareConfig`. out: folder for the report.

    Returns:
        The folder of the report.

    Raises:
        InputError: a file cannot be read or does not fit the others, or a name is unknown.
    """
    return CompareStudy(CompareConfig(runs=tuple(runs), **options), out, threads=threads).run()


def comparison_report(
    rankings: Mapping[str, Any],
    qrels: Any,
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
        rankings, qrels: frames, or what else ``letor.evaluation.evaluate`` takes: objects of ranx.
        hard_by: the ranking that says which queries are hard. groups: of the queries.
        texts: of queries. titles: of documents. notes: further facts, by label.

    Raises:
        InputError: a judged query without a group, or ``hard_by`` is a baseline.
    """
    test = test or TestSettings()
    rankings, qrels = {name: as_frame(run) for name, run in rankings.items()}, as_frame(qrels)
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
    compared = page.Study(
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
        studies=[compared],
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


def _check(config: CompareConfig, data: Path) -> None:
    """Raise InputError for all that is wrong at once."""
    names, against, hard_by = config.systems, config.against, config.hard_by
    problems = [f"there is no file {p}" for p in config.files if not (data / p).is_file()]
    if len(config.runs) < 2:
        problems.append("a comparison needs two runs or more")
    if len(names) != len(config.runs):
        problems.append(f"{len(names)} names for {len(config.runs)} runs")
    if len(set(names)) < len(names):
        problems.append(f"two runs share a name: {', '.join(names)}; give others by --name")
    if len(set(config.baselines)) == len(names):
        problems.append("every run is a baseline: leave one out")
    if config.qrels is None and config.data is None:
        problems.append("give the judgements: --qrels FILE, or --data FILE with labels")
    problems += [f"no run {b!r}; {nearest(b, names)}" for b in config.baselines if b not in names]
    if hard_by is not None and hard_by not in names:
        problems.append(f"--hard-by: no run {hard_by!r}; {nearest(hard_by, names)}")
    if hard_by in against:
        problems.append(f"--hard-by {hard_by}: a baseline cannot say which queries are hard")
    elif hard_by is not None and not {*names} - {*against, hard_by}:
        problems.append(f"--hard-by {hard_by}: besides it and the baselines no run is left")
    if config.test.correction not in CORRECTIONS:
        known = nearest(config.test.correction, CORRECTIONS)
        problems.append(f"--correction: no method {config.test.correction!r}; {known}")
    for measure in dict.fromkeys([*config.measures, config.hard_measure or config.measures[0]]):
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
