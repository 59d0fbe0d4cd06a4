"""Experiments: ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltr_features.commands.options import Threads


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for all outputs; finished stages there are reused.")
    ] = Path("ltr-demo"),
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of queries, folds, SSI models and tests.")
    ] = 0,
    dump: Annotated[
        Path | None,
        typer.Option(help="A MediaWiki XML dump (.xml, .bz2, .gz) instead of the excerpt."),
    ] = None,
    threads: Threads = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List the stages even where output is no terminal.")
    ] = False,
) -> None:
    """The whole job on Wikipedia text, from the dump to the report.

    Makes a search task from the excerpt of Wikipedia that is installed with gensim, trains SSI,
    adds its score to the 46 LETOR columns, trains rankers with and without it, tests whether the
    difference is real, and writes a report. A second run into the same folder reuses what is
    finished."""
    from reports.assemble import run_experiment
    from reports.config import demo_config
    from reports.experiment import Experiment
    from reports.progress import Reporter

    config = demo_config()
    collection = config.collection.model_copy(update={"dump": None if dump is None else str(dump)})
    config = config.model_copy(update={"seed": seed, "collection": collection})
    experiment = Experiment(config, out, reporter=Reporter(verbose=verbose), threads=threads)
    report = run_experiment(experiment)
    typer.echo((report / "summary.txt").read_text(encoding="utf-8"))
    typer.echo(f"Report: {report / 'report.html'}")
