"""The command line: ``ltr-features``. It may import every package; nothing imports it.

Imports are inside the commands, so that ``--help`` and the small commands start at once.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    name="ltr-features",
    help="Semantic matching models as LETOR columns, and a report that says whether they help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
columns_app = typer.Typer(help="Feature columns: what there is.", no_args_is_help=True)
app.add_typer(columns_app, name="columns")

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Worker threads (default: all cores); results do not depend on it."),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"ltr-features {version('ltr-features')}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Version.")
    ] = False,
) -> None:
    """Options of every command; ``main`` reads ``--debug`` itself."""


@app.command()
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


@app.command()
def measure(
    data: Annotated[Path, typer.Argument(help="LETOR file with the labels (.gz, .bz2, .zst too).")],
    scores: Annotated[
        Path | None,
        typer.Option(help="Scores of the rows: a line each, the score last on the line."),
    ] = None,
    column: Annotated[
        int,
        typer.Option(min=0, show_default=False, help="Rank by this column of the file instead."),
    ] = 0,
    on_error: Annotated[
        Literal["raise", "skip"],
        typer.Option(help="At a bad line: stop, or leave it out and list it on stderr."),
    ] = "raise",
    non_finite: Annotated[
        Literal["raise", "nan"],
        typer.Option(help="nan, inf and numbers beyond float32: an error, or a missing value."),
    ] = "raise",
    max_columns: Annotated[
        int, typer.Option(min=1, help="Larger feature ids are errors.")
    ] = 10_000,
    cutoff: Annotated[int, typer.Option(min=1, help="Cut-off k of the measures.")] = 10,
    official: Annotated[
        Literal["letor4", "mslr"] | None,
        typer.Option(help="All measures of that official script instead."),
    ] = None,
    threads: Threads = None,
) -> None:
    """One ranking under all definitions in use, side by side.

    The same ranking of MQ2008 is an NDCG@10 of 0.23, 0.50 or 0.78: definitions differ in gain,
    discount, ties, and in what a query without relevant documents counts."""
    from letor.errors import InputError
    from letor.measures import conventions, evaluate, official_measures
    from letor.svmlight import BadLine, read_letor

    if (scores is None) == (column == 0):
        raise InputError("give either --scores FILE or --column N: what to rank by")
    rejected: list[BadLine] = []
    rows = read_letor(
        data,
        on_error=on_error,
        non_finite=non_finite,
        max_columns=max_columns,
        rejected=rejected,
        threads=threads,
    )
    for line in rejected:
        typer.echo(f"left out: {data}, {line}", err=True)
    if scores is not None:
        values = _read_scores(scores, len(rows))
    else:
        if column > rows.X.shape[1]:
            raise InputError(f"{data} has {rows.X.shape[1]} columns; there is no column {column}")
        values = rows.X[:, column - 1].tolist()
    definitions = official_measures(official) if official else conventions(cutoff)
    _print_measures(evaluate(rows, values, definitions))


def _print_measures(table: pd.DataFrame) -> None:
    """A numbered line per definition with its value, then the definitions by number."""
    from reports.tables import aligned

    header = ["", "measure", "known as", "value", "queries", "without relevant"]
    lines = [
        [f"{i}", r.measure, r.known_as, f"{r.value:.4f}", f"{r.queries:,}", f"{r.empty:,}"]
        for i, r in enumerate(table.itertuples(), start=1)
    ]
    typer.echo(aligned(header, lines, left=3) + "\n")
    for i, definition in enumerate(table["definition"], start=1):
        typer.echo(f"{i}: {definition}")


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(help="LETOR file (.gz, .bz2, .zst too).")],
    threads: Threads = None,
) -> None:
    """Look through a LETOR file and say what to do about each finding.

    Counts, labels, bad lines, groups out of order, constant columns, duplicate documents. The
    exit code is 2 if the file has lines that cannot be read."""
    from letor.validation import render
    from letor.validation import validate as look_through

    result = look_through(file, threads=threads)
    typer.echo(render(result))
    if not result.is_readable:
        raise typer.Exit(EXIT_BAD_INPUT)


@columns_app.command("list")
def columns_list(
    family: Annotated[
        list[str] | None, typer.Argument(help="Families to list; all by default.")
    ] = None,
) -> None:
    """All columns of the registered families, with unit, range and definition."""
    from ltr_features.columns.registry import column_table, families, get_family
    from reports.tables import aligned

    for name in family or families():
        chosen = get_family(name)
        header = ["id", "name", "stream", "unit", "range", "definition"]
        lines = [
            [row["letor_id"], row["name"], row["stream"], row["unit"], row["range"],
             row["description"]]
            for row in column_table(chosen)
        ]  # fmt: skip
        typer.echo(f"{name}: {chosen.description} ({chosen.reference})\n")
        typer.echo(aligned(header, lines, left=len(header)))
        typer.echo("")


def _read_scores(path: Path, n: int) -> list[float]:
    """The last field of each line that is not blank; one per row."""
    from letor.errors import InputError

    values = []
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if not fields:
                continue
            try:
                values.append(float(fields[-1]))
            except ValueError:
                values.append(math.nan)
            if not math.isfinite(values[-1]):
                raise InputError(
                    f"{path}, line {number}: {fields[-1]!r} is not a finite number; each line ends "
                    "with the score of a row"
                )
    if len(values) != n:
        raise InputError(f"{path} has {len(values)} scores, the data has {n} rows")
    return values


def main() -> None:
    """Entry point: bad input gives one line and exit code 2, Ctrl-C exit code 130."""
    debug = "--debug" in sys.argv[1:]
    try:
        status = app([a for a in sys.argv[1:] if a != "--debug"], standalone_mode=False)
    except typer.Abort:
        status = EXIT_INTERRUPTED
    except Exception as error:
        if debug:
            raise
        describe = getattr(error, "format_message", None)
        if describe is not None:  # wrong options or arguments; no message after the mere help
            if not describe():
                sys.exit(EXIT_BAD_INPUT)
            _fail(f"{describe()}; see ltr-features --help", EXIT_BAD_INPUT)
        if isinstance(error, (ValueError, OSError)):
            _fail(f"{error} (--debug shows where)", EXIT_BAD_INPUT)
        raise
    if status == EXIT_INTERRUPTED:  # typer's answer to Ctrl-C
        _fail("interrupted; run the same command again to go on", EXIT_INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"ltr-features: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
