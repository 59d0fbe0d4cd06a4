"""Experiments: ``run``, ``demo``, ``compare`` and ``gallery``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ltr_base.names import counted, visible
from ltr_features.commands import completion
from ltr_features.commands.options import (
    Candidates,
    Progress,
    Threads,
    candidate_settings,
    echo,
    on_workers,
)


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            help="A TOML file, the name of an installed experiment, or a workspace, LETOR folds or "
            "a file of rows, for the standard experiment.",
            autocompletion=completion.experiments,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for all outputs; finished stages there are reused.")
    ] = Path("ltr-experiment"),
    data: Annotated[
        Path | None,
        typer.Option(help="Folder that paths in the file are relative to (default: LTR_DATA)."),
    ] = None,
    candidates: Candidates = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the file, print the stages, run nothing.")
    ] = False,
    scheduler: Annotated[str | None, on_workers("Make its stages", "Results are the same.")] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Values of the feature table that take more (2GiB) are held in temporary files; "
            "by default all are in memory. Results are the same."
        ),
    ] = None,
    threads: Threads = None,
    progress: Progress = None,
) -> None:
    """Run an experiment and write its report.

    The standard experiment on a workspace tells whether columns of matching models help on its
    collection; that on LETOR folds, or on a file of rows, which it deals into folds, whether the
    columns there that were learned help, or, if there are none, which ranker is best. It is written
    to the output folder, as experiment.toml. On a workspace it ranks BM25's best 100 documents of
    each query, or those of --candidates: judged where only judged documents are to be ranked.

    The whole file is checked before anything runs. A killed run continues where it stopped.

    Example: ltr-features run workspace --out out --dry-run"""
    from ltr_features.blocks import memory_size
    from ltr_features.studies.progress import Reporter
    from ltr_features.studies.run import run_file
    from ltr_features.studies.standard_experiment import FILE, has_standard

    reporter = Reporter(shown=progress)
    report = run_file(
        experiment,
        out=out,
        data=data,
        candidates=candidate_settings(candidates or []),
        threads=threads,
        memory=None if memory is None else memory_size(memory),
        reporter=reporter,
        dry_run=dry_run,
        scheduler=scheduler,
    )
    if dry_run and scheduler is not None:
        echo(f"note: a dry run does not connect to --scheduler {scheduler}", err=True)
    if not dry_run:
        _tell_verdict(report)
        if has_standard(Path(experiment)):
            echo(f"The experiment, to be changed in a copy and run again: {out / FILE}")


def _tell_verdict(report: Path) -> None:
    """Print the findings of a run, and where its report is."""
    from rich.console import Console

    from ltr_features.studies.page.ending import ENDING

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    console.print(visible((report / ENDING).read_text(encoding="utf-8")), markup=False)
    page = report / "report.html"
    console.print("Report:", f"[link={page.resolve().as_uri()}]{escape(visible(str(page)))}[/link]")
    for name in ("summary.txt", "tables.txt"):
        if (report / name).is_file():
            console.print("All numbers and tests:", escape(visible(str(report / name))))


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for all outputs; finished stages there are reused.")
    ] = Path("ltr-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of queries, folds, models and tests.")] = 0,
    dump: Annotated[
        Path | None,
        typer.Option(help="A MediaWiki XML dump (.xml, .bz2, .gz) instead of the excerpt."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Fit each system three times, with other seeds and folds; intervals and tests "
            "then count what these change. Takes about twice as long.",
        ),
    ] = False,
    threads: Threads = None,
    progress: Progress = None,
) -> None:
    """Run the whole workflow on Wikipedia text, from the dump to the report.

    Makes a search task from the excerpt of Wikipedia that is installed with gensim, trains word,
    document and matching models, adds their columns to the 46 of LETOR, trains rankers with and
    without them, tests whether the difference is significant, and writes a report. A second run
    into the same folder reuses finished stages; --full adds the other fits there.

    Example: ltr-features demo --out ltr-demo"""
    from ltr_features.studies.kinds.ranking import RankingStudy
    from ltr_features.studies.kinds.ranking_checks import demo_config
    from ltr_features.studies.progress import Reporter

    reporter = Reporter(shown=progress)
    config = demo_config(dump, seed, repeats=3 if full else 1)
    report = RankingStudy(config, out, reporter=reporter, threads=threads).run()
    _tell_verdict(report)
    if not full:
        echo("Each system was fitted once; with --full the report tells what seeds change.")


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(help="TREC runs, tables, or scores of the rows of --data (a line each)."),
    ],
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements: TREC, BEIR, a table, LETOR.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="LETOR file whose rows were scored; without --qrels its labels judge."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(help="Query texts: TREC's topics, a table (.jsonl, ...), lines id:text."),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(help="Document titles: a table (.jsonl, ...) or TREC's documents."),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(help="Queries that belong together, tested as one: query id, tab, group."),
    ] = None,
    query_classes: Annotated[
        Path | None,
        typer.Option(help="Further kinds of queries: a table of qid and columns of classes."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="Name of each run, in order; repeat the option.")
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(help="Name of a run to compare with (default: the first); may be repeated."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="e.g. NDCG@10, the first is primary (default: NDCG@10, MAP, P@10)."),
    ] = None,
    hard_measure: Annotated[
        str | None, typer.Option(help="Defines the hard queries (default: the primary measure).")
    ] = None,
    hard_by: Annotated[
        str | None,
        typer.Option(help="Name of the run that defines them: no baseline, not judged on them."),
    ] = None,
    permutations: Annotated[int, typer.Option(min=1, help="For randomisation tests.")] = 10_000,
    correction: Annotated[
        str, typer.Option(help="Correction for multiple tests, e.g. bonferroni or fdr_bh.")
    ] = "holm",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tests.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("ltr-comparison"),
    threads: Threads = None,
) -> None:
    """Compare existing rankings, with significance tests and a report.

    Example: ltr-features compare bm25.run mine.run --qrels qrels.txt --out compared"""
    from ltr_features.studies.kinds.compare import DEFAULT_MEASURES, CompareConfig, CompareStudy
    from ltr_features.studies.statistics.significance import TestSettings

    config = CompareConfig(
        runs=tuple(runs),
        qrels=qrels,
        data=data,
        queries=queries,
        documents=documents,
        groups=groups,
        query_classes=query_classes,
        names=tuple(name or ()),
        baselines=tuple(baseline or ()),
        measures=tuple(measure or DEFAULT_MEASURES),
        hard_measure=hard_measure,
        hard_by=hard_by,
        test=TestSettings(n_permutations=permutations, correction=correction, seed=seed),
    )
    _tell_verdict(CompareStudy(config, out, threads=threads).run())


def gallery(
    folders: Annotated[
        list[Path], typer.Argument(help="Output folders of finished runs, in order.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the gallery.")] = Path("reports"),
) -> None:
    """Write a gallery of finished experiments: an index page with the chart, answer and command of
    each. An existing gallery keeps its other experiments.

    Texts and ids of queries and documents are left out, so that the gallery can be published.

    Example: ltr-features gallery out/demo out/mq2008 --out reports"""
    from ltr_features.studies.gallery import INDEX, write_gallery

    names = write_gallery(folders, out)
    echo(f"{counted(len(names), 'experiment')}: {out / INDEX}")
