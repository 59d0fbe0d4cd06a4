"""The command line: ``ltr-features``. It may import every package; nothing imports it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="ltr-features",
    help="Semantic matching models as LETOR columns, and a report that says whether they help.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error.")
    ] = False,
) -> None:
    """Options of every command."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for all outputs; finished stages there are reused.")
    ] = Path("ltr-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of queries, folds and models.")] = 0,
    dump: Annotated[
        Path | None,
        typer.Option(help="A MediaWiki XML dump (.xml, .bz2) instead of the built-in excerpt."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Worker threads; results do not depend on it.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List the stages even where output is no terminal.")
    ] = False,
) -> None:
    """Do the whole job on Wikipedia text: train SSI, add its score to LETOR columns, train
    rankers with and without it, test the difference, write a report."""
    from reports.config import demo_config
    from reports.experiment import Experiment
    from reports.progress import Reporter

    config = demo_config()
    collection = config.collection.model_copy(update={"dump": None if dump is None else str(dump)})
    config = config.model_copy(update={"seed": seed, "collection": collection})
    experiment = Experiment(config, out, reporter=Reporter(verbose=verbose), threads=threads)
    report = experiment.run()
    typer.echo((report / "summary.txt").read_text(encoding="utf-8"))
    typer.echo(f"Report: {report / 'report.html'}")


def main() -> None:
    """Entry point: bad input gives one line and exit code 2, Ctrl-C exit code 130."""
    debug = "--debug" in sys.argv[1:]
    try:
        app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted; run the same command again to go on", EXIT_INTERRUPTED)
    except typer.Exit as finished:
        sys.exit(finished.exit_code)
    except Exception as error:
        if debug:
            raise
        usage = getattr(error, "format_message", None)
        if usage is not None:  # wrong options or arguments
            _fail(f"{usage()}; see ltr-features --help", EXIT_BAD_INPUT)
        if isinstance(error, (ValueError, OSError)):
            _fail(f"{error} (--debug shows where)", EXIT_BAD_INPUT)
        raise


def _fail(message: str, code: int) -> None:
    sys.stdout.flush()
    print(f"ltr-features: {' '.join(message.split())}", file=sys.stderr)
    sys.stderr.flush()
    # Not sys.exit: worker threads and pools of an interrupted run must not delay the end.
    os._exit(code) if code == EXIT_INTERRUPTED else sys.exit(code)


if __name__ == "__main__":
    main()
