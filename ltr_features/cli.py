"""The command line ``ltr-features``. It may import every package; nothing imports it."""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import warnings
from typing import Annotated

import typer

from letor.errors import InputError, described
from ltr_base.compiled import on_compilation
from ltr_base.machine import address_space
from ltr_base.names import is_unicode, visible
from ltr_base.source_code import is_ours
from ltr_features.commands import (
    clicks,
    collections,
    columns,
    columns_append,
    experiments,
    featuresets,
    letor_files,
    models,
    models_fit,
    pipelines,
    pipelines_rank,
    rank,
)
from ltr_features.commands.options import EXIT_BAD_INPUT, EXIT_INTERRUPTED, Commands
from ltr_features.parameters import plainly

#: In bytes; numpy, scipy and Arrow reserve half of it.
LEAST_ADDRESS_SPACE = 2**30

_FORMAT = warnings.formatwarning
#: What stands for characters that a terminal's encoding lacks (Latin-1, code pages of Windows): as
#: "?", better and worse would look alike.
_PLAIN = {
    "▲": "+", "▼": "-", "−": "-", "–": "-", "─": "-", "…": "...", "→": "->", "≥": ">=", "≈": "~",
    "✓": "+", "✗": "x",
}  # fmt: skip

app = Commands(
    name="ltr-features",
    help="Semantic matching models as LETOR columns, and a report that says whether they help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(collections.index)
app.command()(collections.sample)
app.command()(experiments.compare)
app.command()(experiments.demo)
app.command()(experiments.gallery)
app.command()(experiments.run)
app.command()(letor_files.measure)
app.command()(models.explain)
app.command()(letor_files.validate)
app.command()(letor_files.convert)
app.command()(pipelines.serve)
app.command()(collections.wikipedia)
columns.app.command("append")(columns_append.columns_append)
columns.app.command("export")(featuresets.columns_export)
models.app.command("fit")(models_fit.models_fit)
pipelines.app.command("rank")(pipelines_rank.pipeline_rank)
app.add_typer(clicks.app, name="clicks")
app.add_typer(columns.app, name="columns")
app.add_typer(models.app, name="models")
app.add_typer(pipelines.app, name="pipeline")
app.add_typer(rank.app, name="rank")


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
    """Declare the options of every command; ``main`` reads ``--debug`` itself."""


def main() -> None:
    """Entry point: bad input prints one line and exits with 2, Ctrl-C and SIGTERM exit with 130."""
    debug = "--debug" in sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # remove temporary files, too
    # Read when LightGBM is loaded: its threads wait for each other asleep. Beside other processes
    # that take the cores, they would otherwise train slower than a single one.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if address_space() < LEAST_ADDRESS_SPACE:
        _fail(
            f"the limit of the address space (ulimit -v) is {address_space() / 2**30:.2f} GiB; "
            "with that, libraries fail or hang when they are loaded; allow 1 GiB or more",
            EXIT_BAD_INPUT,
        )
    codecs.register_error("ltr_features.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # work that is done must not fail by its message
            ascii_only = stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968")
            stream.reconfigure(
                encoding="utf-8" if ascii_only else None, errors="ltr_features.plain"
            )
    for argument in sys.argv[1:]:
        if not is_unicode(argument):  # Arrow, which reads most files, takes no other names
            todo = "rename it"
            if sys.getfilesystemencoding() != "utf-8":  # by LC_ALL=C and PYTHONUTF8=0
                todo += ", or set PYTHONUTF8=1 if it is, as the locale is not"
            _fail(f"{argument!a} is not UTF-8, as names of files must be; {todo}", EXIT_BAD_INPUT)
    status, message = None, None
    warnings.formatwarning = _warning_text
    try:
        with on_compilation(_tell_of_compilation):
            status = app([a for a in sys.argv[1:] if a != "--debug"], standalone_mode=False)
    except typer.Abort:
        status = EXIT_INTERRUPTED
    except SystemError as error:
        # Ctrl-C inside numba's C dispatcher, which returns a result with an exception set.
        if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
        status = EXIT_INTERRUPTED
    except Exception as error:
        message = None if debug else _message(error)
        if message is None:
            raise
    # By now the error is released and what its frames held is closed: an Arrow reader that is left
    # half-way may wait for its threads for ever when the program ends.
    if message is not None:
        _fail(message, EXIT_BAD_INPUT)
    if status == EXIT_INTERRUPTED:  # typer's answer to Ctrl-C
        _fail(
            "interrupted; the same command again starts anew, or goes on from parts that it keeps",
            EXIT_INTERRUPTED,
        )
    sys.exit(status if isinstance(status, int) else 0)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs: see :data:`_PLAIN`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end


def _message(error: Exception) -> str | None:
    """The message to print in place of a traceback; None for an unexpected error."""
    describe = getattr(error, "format_message", None)
    if describe is not None:  # wrong options or arguments; empty if help was printed instead
        context = getattr(error, "ctx", None)
        command = getattr(context, "command_path", "ltr-features")
        told = describe()
        for part in getattr(error.__cause__, "errors", list)():  # typer checks values by Pydantic
            told = told.replace(part["msg"], plainly(part))
        told = told.rstrip(".")
        takes_any = any(p.nargs == -1 for p in context.command.params) if context else False
        if takes_any and getattr(error, "option_name", "").startswith("-"):
            told += "; if it is a value, write -- before it"
        return f"{told}; see {command} --help" if told else ""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        return (
            "there is too little memory, or no room for another thread; raise the limit "
            "(ulimit -v, ulimit -u), or use --threads 1 (--debug shows where)"
        )
    notes, what = getattr(error, "__notes__", ()), described(error)  # notes of letor.errors.naming
    if isinstance(error, OSError) and error.filename is not None:
        what = f"{error.filename}: {what}"
    elif not notes:
        if not isinstance(error, (ValueError, OSError)):
            return None
        what = str(error)
    return f"{': '.join(filter(None, [', '.join(notes), what]))} (--debug shows where)"


def _warning_text(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Our own warnings are a line, without the place in the program that issued them."""
    if is_ours(category.__module__):
        return f"{visible(str(message))}\n"
    return _FORMAT(message, category, filename, lineno, line)


def _tell_of_compilation() -> None:
    if sys.stderr.isatty():
        print("compiling kernels (once) ...", file=sys.stderr)


def _fail(message: str, code: int) -> None:
    lines = [" ".join(line.split()) for line in visible(message).splitlines()]
    if message:
        print("ltr-features: " + "\n  ".join(filter(None, lines)), file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
