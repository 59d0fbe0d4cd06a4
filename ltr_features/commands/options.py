"""What several commands share: options, how their values are read, and facts as lines."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from letor.errors import InputError
from ltr_base.names import counted, nearest, repeated, visible
from ltr_features.facts import flat_facts

if TYPE_CHECKING:
    from ltr_features.text.collection import Collection

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


class Commands(typer.Typer):
    """Commands that refuse an option given twice where all but the last would be ignored, and an
    empty path, as of a shell's variable that is not set, which would be the current folder."""

    def command(self, name: str | None = None, **options: Any) -> Any:
        return super().command(name, cls=_Command, **options)


class _Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        values, _, given = self.make_parser(ctx).parse_args(args=list(args))
        hints = get_type_hints(inspect.unwrap(self.callback)) if self.callback else {}
        for option, times in Counter(given).items():
            if times > 1 and not getattr(option, "multiple", False):
                ctx.fail(f"{option.opts[0]} is given {times} times; it takes one value")
            value = values.get(option.name)
            if _names_paths(hints.get(option.name)) and (value == "" or "" in _several(value)):
                ctx.fail(f"{option.opts[0]} is an empty path: name the file or folder")
        return super().parse_args(ctx, args)


def _names_paths(hint: Any) -> bool:
    return hint is Path or any(map(_names_paths, get_args(hint)))


def _several(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print to stdout or stderr what may have names and texts of files in it."""
    typer.echo(visible(str(message)), err=err, nl=nl)


Workspace = Annotated[Path, typer.Option(help="Folder that `ltr-features index` made.")]

Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Worker threads (default: all cores); results do not depend on it."),
]

PipelineThreads = Annotated[
    int, typer.Option(min=1, help="Worker threads; results do not depend on it.")
]

NonFinite = Annotated[
    Literal["raise", "nan"],
    typer.Option(help="nan, inf and numbers beyond float32 in text: an error, or a missing value."),
]

Candidates = Annotated[
    list[str] | None,
    typer.Option(
        "--candidates",
        help="A source of candidates in place of BM25, with its options: judged, lsi.depth=50, "
        "run.path=engine.run, letor.files=[...], bm25.depth=100; repeat the option for the union "
        "of several sources.",
    ),
]

Columns = Annotated[
    int | None,
    typer.Option(
        "--columns",
        min=1,
        help="Number of columns of LETOR text, where its last ones are absent in all rows.",
        show_default="the largest id in the file",
    ),
]

MaxColumns = Annotated[
    int, typer.Option(min=1, help="Larger feature ids in LETOR text are errors.")
]

Progress = Annotated[
    bool | None,
    typer.Option(
        "--verbose/--quiet",
        help="Show progress in logs, too, from the start; or never.",
        show_default="on terminals, and in logs after a minute",
    ),
]


def on_workers(work: str, result: str) -> Any:
    """The option ``--scheduler``; its help states what workers do (``work``) and ``result``."""
    return typer.Option(
        help=f"{work} on the workers of a Dask cluster: its address, tcp://host:8786, or local:N "
        f"for N processes. {result}"
    )


def check_text_ids(collection: Collection) -> None:
    """Raise InputError for ids that LETOR text cannot hold."""
    from letor.writing import check_ids

    try:
        check_ids(collection.query_ids, "query id")
        check_ids(collection.document_ids, "document id")
    except InputError as error:
        raise InputError(
            f"{error}, unless you build Parquet only (--format parquet, or --out NAME.parquet)"
        ) from None


def check_groups(collection: Collection) -> None:
    """Raise InputError if ``--by-group`` finds no groups."""
    if collection.query_groups is None:
        raise InputError(
            f"--by-group: collection {collection.name!r} has no groups of queries; `index "
            "--groups` reads them"
        )


def check_outputs(
    *outs: Path | None,
    inputs: Iterable[Path | None] = (),
    kind: Literal["file", "folder"] = "file",
) -> list[Path]:
    """Check the outputs of a command before its work, see :func:`letor.files.check_output`; returns
    those that will replace something, for :func:`tell_replaced`. None may be a file of a ranker,
    pipeline or index among the inputs."""
    from letor.digests import DIGESTS, written_digests
    from letor.files import check_output

    given, read = [*filter(None, outs)], [*filter(None, inputs)]
    if twice := repeated(str(out.resolve()) for out in given):
        raise InputError(f"{twice[0]} is to be written twice; give each output its own name")
    for out in given:
        check_output(out, inputs=read, kind=kind)
    for folder in filter(Path.is_dir, read):
        own = {folder.resolve() / name for name in (DIGESTS, *written_digests(folder))}
        if lost := [out for out in given if out.resolve() in own]:
            raise InputError(f"{lost[0]} is a file of {folder}, which is read: name another file")
    return [out for out in given if out.is_file() or (out.is_dir() and any(out.iterdir()))]


def tell_replaced(outs: Iterable[Path]) -> None:
    """Print a note for each output that replaced something."""
    for out in outs:
        echo(f"note: the former {out} is replaced", err=True)


def tell_models(folder: Path) -> None:
    """Print what the models kept beside folds take; nothing if there are none."""
    from ltr_features.studies.identity import size_of, size_text

    if n := len(list(folder.glob("*.safetensors"))):
        size = size_text(size_of(folder))
        use = "taken again by a further build there, and needed by nothing else"
        echo(f"{counted(n, 'model')}, {size}: {folder}; {use}", err=True)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print facts, a line each; see :func:`ltr_features.facts.flat_facts`."""
    for name, value in flat_facts(facts).items():
        echo(f"  {name}: {value}")


def settings(given: Sequence[str], what: str) -> dict[str, Any]:
    """Parse ``KEY=VALUE`` arguments into a dictionary; a value is TOML, or an object of JSON, or
    else text.

    ``rank=50`` is a number, ``splits=["test"]`` a list, ``folder=data/x`` text; ``a.b=1`` sets the
    key b of the table a.

    Raises:
        InputError: an argument without ``=``, or a key twice.
    """
    found: dict[str, Any] = {}
    for key, text in _keys_and_values(given, what):
        value = _value(text)
        *tables, name = key.split(".")
        place: Any = found
        for table in tables:
            place = place.setdefault(table, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or name in place:
            raise InputError(f"{what} {key!r} is given twice")
        place[name] = value
    return found


def names_by_name(given: Sequence[str], what: str) -> dict[str, str]:
    """Parse ``NAME=NAME`` arguments, whose names are texts as written: dots and all.

    Raises:
        InputError: an argument without ``=``, or a name twice.
    """
    found: dict[str, str] = {}
    for name, other in _keys_and_values(given, what):
        if name in found:
            raise InputError(f"{what} {name!r} is given twice")
        found[name] = other
    return found


def _keys_and_values(given: Sequence[str], what: str) -> Iterator[tuple[str, str]]:
    for argument in given:
        key, equals, text = argument.partition("=")
        if not equals or not key:
            path = f"; for a path, say whose: folder={argument}" if Path(argument).exists() else ""
            raise InputError(f"{what} {argument!r} is not of the form KEY=VALUE{path}")
        yield key, text


def _value(text: str) -> Any:
    """A value of an option as TOML, whose tables JSON writes in another way, or as text."""
    with suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(f"value = {text}")["value"]
    if text.startswith("{"):
        with suppress(json.JSONDecodeError):
            return json.loads(text)
    if re.fullmatch(r"[+-]?\.[0-9]+", text):  # TOML wants the zero before the point
        return float(text)
    return text


def candidate_settings(given: Sequence[str]) -> dict[str, Any]:
    """Settings of candidate sources by name, of :data:`Candidates`.

    Raises:
        InputError: see :func:`settings`.
    """
    return settings([c if "=" in c else f"{c}={{}}" for c in given], "candidates")


def settings_of(given: Sequence[str], option: str, owner: str) -> dict[str, Any]:
    """Like :func:`settings`, for arguments that all belong to one model or ranker.

    Raises:
        InputError: see :func:`settings`; or a key begins with the owner's name.
    """
    for argument in given:
        if argument.startswith(f"{owner}."):
            raise InputError(f"--{option} {argument}: write {argument.removeprefix(f'{owner}.')}")
    return settings(given, option)


def settings_by_owner(
    given: Sequence[str], option: str, owners: Sequence[str], owner_option: str
) -> dict[str, dict[str, Any]]:
    """Parse ``OWNER.KEY=VALUE`` arguments into the settings of each owner; a single one need not be
    named.

    Raises:
        InputError: see :func:`settings`; or an argument names no owner, or an unknown one.
    """
    if len(owners) == 1:
        given = [a if "." in a.partition("=")[0] else f"{owners[0]}.{a}" for a in given]
    found = settings(given, option)
    for argument in given:
        owner, dot, _ = argument.partition("=")[0].partition(".")
        if not dot and owners:
            meant = " or ".join(f"{name}.{argument}" for name in owners)
            raise InputError(f"--{option} {argument}: write {meant}")
        if owner not in owners:
            raise InputError(
                f"--{option} {argument}: no {owner_option} {owner} is given; "
                f"{nearest(owner, owners)} (--option is for families, --param for models)"
            )
    return found
