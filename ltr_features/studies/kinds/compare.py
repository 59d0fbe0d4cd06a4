"""Compare runs that were made elsewhere: TREC runs, and scores of the rows of a LETOR file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from letor.column_names import names_path, read_rows
from letor.errors import InputError
from letor.evaluation import evaluate
from letor.files import check_is_file
from letor.judged_runs import unjudged_queries
from letor.measures import measure_problems
from ltr_base.names import counted, repeated
from ltr_features.sources.files import (
    check_same_ids,
    is_ranking,
    judgements_of,
    read_judgements,
    read_queries,
    read_ranking,
    read_titles,
)
from ltr_features.sources.query_files import read_query_groups
from ltr_features.studies.config import Section, no_such
from ltr_features.studies.kinds.given_files import not_found, read_classes
from ltr_features.studies.kinds.given_rankings import (
    Given,
    check_comparable,
    run_remarks,
    same_values,
)
from ltr_features.studies.page import report as page
from ltr_features.studies.page.query_rankings import query_rankings
from ltr_features.studies.page.report import Report, SystemResult
from ltr_features.studies.stages import Planned, versions
from ltr_features.studies.statistics.precision_recall import (
    interpolated_precision,
    precision_recall,
)
from ltr_features.studies.statistics.query_classes import (
    judged_properties,
    query_classes,
    with_given,
)
from ltr_features.studies.statistics.significance import CORRECTIONS, TestSettings
from ltr_features.studies.study import Study

DEFAULT_MEASURES = ("NDCG@10", "MAP", "P@10")
RECALL_SYSTEMS = 5
"""Maximum number of systems in the precision-recall chart; those of the headline come first."""
#: Options that name a file.
_GIVEN = ("qrels", "data", "queries", "documents", "groups", "query_classes")


class CompareConfig(Section):
    """Runs to compare; paths are relative to the data folder.

    Attributes:
        runs: two or more files: TREC runs, tables, or scores of the rows of ``data`` (a line per
            row, the score last: LightGBM, XGBoost, LETOR's predictions, RankLib's ``-score``).
        qrels: judgements, see :func:`~ltr_features.sources.files.read_judgements`.
        data: LETOR file whose rows runs score; its labels judge if ``qrels`` is not given.
        queries: texts of the queries, see :func:`~ltr_features.sources.files.read_queries`.
        documents: titles of documents, see :func:`~ltr_features.sources.files.read_titles`.
        groups: of the queries (id, tab, group); queries of one group are tested together. By
            default, queries of the same text are a group.
        query_classes: further kinds of queries, see
            :func:`~ltr_features.sources.query_files.read_query_classes`.
        names: of the systems, in the order of the runs; by default those of the files.
        baselines: names of the systems that all others are compared with; the first by default.
        measures: names as in :func:`letor.measures.run_measure`; the first is the primary one.
        hard_measure: measure that decides which queries are hard; the primary one by default.
        hard_by: name of the run that chooses hard queries; it must not be a baseline, and its own
            gain on hard queries is not estimated.
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
    query_classes: Path | None = None
    names: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    measures: tuple[str, ...] = Field(DEFAULT_MEASURES, min_length=1)
    hard_measure: str | None = None
    hard_by: str | None = None
    test: TestSettings = TestSettings()

    @property
    def files(self) -> list[Path]:
        """All input files."""
        given = (getattr(self, name) for name in _GIVEN)
        return [*self.runs, *(path for path in given if path is not None)]

    @property
    def systems(self) -> list[str]:
        """Names of the runs."""
        return list(self.names) or _names(self.runs)

    @property
    def against(self) -> list[str]:
        """Names of the baselines."""
        return list(self.baselines) or self.systems[:1]

    @property
    def others(self) -> list[str]:
        """Names of the systems that are not baselines."""
        return [name for name in self.systems if name not in self.against]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All others against each baseline, and later baselines against earlier ones."""
        pairs = [(name, baseline) for name in self.others for baseline in self.against]
        return pairs + [(later, earlier) for earlier, later in combinations(self.against, 2)]

    @property
    def hard(self) -> str:
        """The measure that decides which queries are hard."""
        return self.hard_measure or self.measures[0]


class CompareStudy(Study):
    """A study of rankings made elsewhere, which makes nothing but the report."""

    described = CompareConfig
    config: CompareConfig

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration without paths, as ``files`` identifies files by their content."""
        found = self.config.model_dump(mode="json")
        for name in _GIVEN:
            found[name] = found[name] is not None
        return found | {"runs": self.config.systems}

    @property
    def files(self) -> dict[str, Any]:
        paths = [self.data / path for path in self.config.files]
        if self.config.data is not None:  # what is missing of the rows counts in measures
            beside = names_path(self.data / self.config.data)
            paths += [beside] if beside.is_file() else []
        return {"files": [self.identity(path) for path in paths]}

    @property
    def seeds(self) -> dict[str, int]:
        return {"tests": self.config.test.seed}

    def stages(self) -> list[Planned]:
        _check(self.config, self.data)
        return []

    def report(self) -> Report:
        return comparison_report(self.config, self._given())

    def _given(self) -> Given:
        """Read the input files, and count the queries and documents without text."""
        c, notes = self.config, {}
        rows = None if c.data is None else read_rows(self.data / c.data, threads=self.threads)
        # ``_check`` ensures that one of the two is given.
        qrels = judgements_of(rows) if c.qrels is None else read_judgements(self.data / c.qrels)  # type: ignore[arg-type]
        rankings = {
            name: read_ranking(self.data / path, rows)
            for name, path in zip(c.systems, c.runs, strict=True)
        }
        for path, run in zip(c.runs, rankings.values(), strict=True):
            check_same_ids(self.data / path, run, qrels)
        queries = list(qrels["qid"].unique())
        texts, titles, groups, classes = {}, {}, None, None
        if c.queries is not None:
            texts = read_queries(self.data / c.queries)
            if missing := not_found(self.data / c.queries, "--queries", texts, queries):
                notes["judged queries without a text"] = f"{missing:,}, shown by their ids"
        if c.documents is not None:
            ranked = list(dict.fromkeys(d for run in rankings.values() for d in run["docno"]))
            titles = read_titles(self.data / c.documents, set(ranked))
            if missing := not_found(self.data / c.documents, "--documents", titles, ranked):
                notes["ranked documents without a title"] = f"{missing:,}, shown by their ids"
        if rows is not None and c.qrels is None:
            notes["documents and queries without a row"] = rows.coverage
        if c.groups is not None:
            groups = read_query_groups(self.data / c.groups, queries)
        if c.query_classes is not None:
            classes = read_classes(self.data / c.query_classes, queries, "--query-classes")
        return Given(rankings, qrels, texts, titles, groups, classes, notes)


def comparison_report(config: CompareConfig, given: Given) -> Report:
    """The report on rankings of the same queries.

    Raises:
        InputError: a judged query has no group, nothing is judged relevant, or two compared runs
            have no query in common.
    """
    check_comparable(given, config.pairs)
    every = list(dict.fromkeys([*config.measures, config.hard]))
    values = {name: evaluate(given.qrels, run, every) for name, run in given.rankings.items()}
    judged = next(iter(values.values())).index
    properties = judged_properties(given.qrels, given.texts)
    classes = query_classes(properties.loc[judged.intersection(properties.index)])
    kinds, kinds_note = with_given(classes, given.classes)
    pair = config.pairs[0]
    system, baseline = (values[name][config.measures[0]] for name in pair)
    shown = dict.fromkeys([pair[1], pair[0], *given.rankings])
    drawn = {name: given.rankings[name] for name in list(shown)[:RECALL_SYSTEMS]}
    curves = {name: [interpolated_precision(given.qrels, run)] for name, run in drawn.items()}
    recall_table, recall_note = precision_recall(given.qrels, curves, drawn)
    covered = {
        name: f"{counted(len(run), 'row')} for {counted(run['qid'].nunique(), 'query')}"
        for name, run in given.rankings.items()
    }
    compared = page.Study(
        name="Comparison",
        description="Runs made elsewhere, evaluated on the same judgements.",
        split_rule="How the systems were trained is unknown, so whether a system has seen the "
        "judgements of these queries cannot be checked.",
        systems=[SystemResult(name, covered[name], frame) for name, frame in values.items()],
        pairs=config.pairs,
        measures=list(config.measures),
        groups=given.groups,
        query_texts=given.texts,
        facts=_facts(given) | given.notes,
        precision_recall=recall_table,
        precision_recall_note=recall_note,
        drill_down=query_rankings(
            system - baseline,
            [given.rankings[name] for name in pair],
            given.qrels,
            lambda document: given.titles.get(document, ""),
        ),
        query_kinds=kinds,
        query_kinds_note="There are no classes by overlap or entities, which need the documents "
        f"and an entity linker; classes by words need the texts of all queries. {kinds_note}",
        hard_measure=config.hard,
        hard_baseline=config.against[0],
        test=config.test,
        remarks=[*same_values(values), *run_remarks(given, judged, config.measures)],
    )
    others = [name for name in config.others if name != config.hard_by]
    if others:
        choosers = [] if config.hard_by is None else [config.hard_by]
        compared = compared.with_hard_queries(others, choosers)
    return Report(
        title=config.title,
        introduction=f"{len(given.rankings)} runs on {len(judged):,} judged queries.",
        studies=[compared],
        versions=versions(),
    )


def _check(config: CompareConfig, data: Path) -> None:
    """Raise InputError with all mistakes at once."""
    names, against, hard_by = config.systems, config.against, config.hard_by
    problems: list[str] = []
    for path in config.files:
        try:
            check_is_file(data / path)
        except InputError as error:
            problems.append(str(error))
    if len(config.runs) < 2:
        problems.append("a comparison needs two runs or more")
    if len(names) != len(config.runs):
        problems.append(f"{counted(len(names), 'name')} for {counted(len(config.runs), 'run')}")
    if shared := repeated(names):
        problems.append(f"two runs share a name: {', '.join(shared)}; give other names by --name")
    if twice := repeated(config.baselines):  # each would be tested, and corrected for, twice
        problems.append(f"--baseline {', '.join(twice)} is given twice: leave one out")
    elif len(config.baselines) == len(names):
        problems.append("every run is a baseline: leave one out")
    judged_twice = config.qrels is not None and config.data is not None
    if judged_twice and not problems and all(is_ranking(data / run) for run in config.runs):
        problems.append(
            "--data: no run has scores of its rows, and --qrels has the judgements: leave out one"
        )
    if config.qrels is None and config.data is None:
        problems.append("give the judgements: --qrels FILE, or --data FILE with labels")
    problems += no_such("--baseline", "run", config.baselines, names)
    problems += no_such("--hard-by", "run", [hard_by], names)
    if hard_by in against:
        problems.append(f"--hard-by {hard_by}: a baseline cannot choose the hard queries")
    elif hard_by is not None and not {*names} - {*against, hard_by}:
        problems.append(f"--hard-by {hard_by}: besides it and the baselines no run is left")
    problems += no_such("--correction", "method", [config.test.correction], CORRECTIONS)
    further = [] if config.hard_measure is None else [config.hard_measure]
    problems += measure_problems(config.measures, further)
    if problems:
        raise InputError("; ".join(problems))


def _names(runs: Sequence[Path]) -> list[str]:
    """File names without suffixes, prefixed by the folder names if they are not unique."""
    short = [path.name.split(".")[0] or path.name for path in runs]
    if len(set(short)) == len(short):
        return short
    folders = [Path(path.parent.name) for path in runs]  # "." for one that is not named
    return [(folder / name).as_posix() for folder, name in zip(folders, short, strict=True)]


def _facts(given: Given) -> dict[str, str]:
    qrels = given.qrels
    relevant = qrels[qrels["label"] >= 1]
    facts = {
        "judged queries": f"{qrels['qid'].nunique():,}",
        "of them with a relevant document": f"{relevant['qid'].nunique():,}",
    }
    unjudged = {q for run in given.rankings.values() for q in unjudged_queries(qrels, run)}
    if unjudged:
        facts["queries without any judgement"] = f"{len(unjudged):,}, left out of every mean"
    return facts
