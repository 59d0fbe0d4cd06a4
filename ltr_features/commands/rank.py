"""Rankers: ``rank list``, ``rank train``, ``rank export``, ``rank score``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from letor.errors import InputError
from ltr_base.docstrings import summary
from ltr_base.names import counted, listed
from ltr_features.commands import completion
from ltr_features.commands.options import (
    Columns,
    Commands,
    MaxColumns,
    NonFinite,
    Progress,
    Threads,
    check_outputs,
    echo,
    settings_of,
    tell_replaced,
)
from ltr_features.parameters import check_call

if TYPE_CHECKING:
    from letor.dataset import RankingData
    from letor.rankers.base import Ranker
    from ltr_features.studies.progress import Reporter

app = Commands(help="Train rankers on LETOR files and score with them.", no_args_is_help=True)


@app.command("list")
def rank_list(
    ranker: Annotated[
        str | None,
        typer.Argument(
            help="A ranker, to see its description; all by default.",
            autocompletion=completion.rankers,
        ),
    ] = None,
) -> None:
    """List the rankers and their parameters, or describe one.

    Example: ltr-features rank list lambdamart"""
    from letor.rankers.registry import get_ranker, ranker_names

    for name in ranker_names() if ranker is None else [ranker]:
        try:
            kind = get_ranker(name)
        except InputError as error:
            if ranker is not None:
                raise
            echo(error, err=True)
            continue
        if ranker is None:
            echo(f"{name}: {summary(kind)}")
        else:
            echo(f"{inspect.getdoc(kind)}\n\nAll parameters and their defaults:")
        for parameter in inspect.signature(kind).parameters.values():
            echo(f"    {parameter.name} = {parameter.default!r}")


@app.command("train")
def rank_train(
    train: Annotated[
        Path,
        typer.Argument(
            help="LETOR text or Parquet with the training rows; for folds in Parquet, "
            "folds/Fold1/train.parquet."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the trained ranker.")],
    vali: Annotated[
        Path | None, typer.Option(help="Validation rows, for rankers that stop early on them.")
    ] = None,
    ranker: Annotated[
        str, typer.Option(help="A name of `rank list`.", autocompletion=completion.rankers)
    ] = "lambdamart",
    param: Annotated[list[str] | None, typer.Option(help="Ranker parameter, KEY=VALUE.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to learn from, by its name (or number, of files without names); may be "
            "repeated. By default all."
        ),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be repeated.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Values of a .parquet that take more (2GiB) are held in a temporary file: "
            "lambdamart copies them there, with the same result; xgboost reads them in blocks, "
            "which may move its bins a little; other rankers copy them into memory."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Train one xgboost model on all workers of a Dask cluster, for a .parquet too "
            "large for one machine: its address, tcp://host:8786, or local:N. Unlike elsewhere, "
            "the model depends on the number of workers."
        ),
    ] = None,
    columns: Columns = None,
    max_columns: MaxColumns = 10_000,
    non_finite: NonFinite = "raise",
    threads: Threads = None,
    progress: Progress = None,
) -> None:
    """Train a ranker and save it in a folder, which contains no code.

    Example: ltr-features rank train train.txt --vali vali.txt --param n_estimators=50 --out r"""
    from letor.column_settings import zero_for_missing
    from letor.errors import LetorWarning
    from letor.files import check_replaced
    from letor.rankers.registry import get_ranker
    from letor.svmlight import MAX_COLUMNS
    from ltr_features.blocks import memory_size
    from ltr_features.studies.progress import Reporter

    kind, params = get_ranker(ranker), settings_of(param or [], "param", ranker)
    check_call(kind, params, f"ranker {ranker!r}", "parameter")
    check_replaced(out, "ranker.json", "ranker")
    replaced = check_outputs(out, inputs=[train, vali], kind="folder")
    model, n_bytes = kind(**params), None if memory is None else memory_size(memory)
    model.check()
    if vali is None and (unused := [name for name in params if name in kind.stopping]):
        raise InputError(
            f"--param {unused[0]}: it says when to stop on validation rows; give --vali, or leave "
            "it out"
        )
    for path in filter(None, (train, vali)):
        if memory is not None and path.suffix != ".parquet":
            raise InputError(f"--memory: {path} is text, which is read into memory; `convert` it")
    reporter, measure = Reporter(shown=progress), model.get_params().get("measure")
    if scheduler is not None:
        of_text = columns is not None or non_finite != "raise" or max_columns != MAX_COLUMNS
        _check_for_workers(chosen=bool(only or without), of_text=of_text)
        _train_on_workers(scheduler, train, vali, model, out, n_bytes, threads, reporter)
        tell_replaced(replaced)
        return
    with reporter.running(["rows", ranker]), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LetorWarning)
        with reporter.stage("rows"):
            options: dict[str, Any] = {
                "n_columns": columns,
                "max_columns": max_columns,
                "non_finite": non_finite,
                "threads": threads,
                "memory": n_bytes,
            }
            rows, stop, remark = _rows(train, vali, only or (), without or (), options)
        with reporter.stage(ranker):
            if threads is not None and model.get_params().get("num_threads", 1) is None:
                model.set_params(num_threads=threads)

            def finished(number: int, value: float | None) -> None:
                reached = "" if value is None else f", {measure} {value:.4f}"
                reporter.step(f"round {number:,}{reached}")
                reporter.tick("rounds")

            model.fit(rows, stop, callback=finished).save(out)
    told: list[str | None] = [str(warning.message) for warning in caught]
    if stop is not None:
        told += [remark, _shared_queries(train, rows, vali, stop)]
        if vali is not None and vali.suffix != ".parquet":
            told.append(zero_for_missing(model.column_settings_, stop, str(vali)))
    if measure is not None and (stop is not None or "measure" not in kind.stopping):
        told.append(f"{measure}: {(rows if stop is None else stop).coverage}")
    for line in filter(None, told):
        echo(line, err=True)
    _show(model)
    tell_replaced(replaced)
    sizes = f"{counted(len(rows), 'row')}, {counted(rows.n_queries, 'query')}"
    echo(f"{ranker}, {sizes}: {out}")


def _check_for_workers(*, chosen: bool, of_text: bool) -> None:
    """Raise InputError if columns were chosen, or options given that are for text."""
    if chosen:
        raise InputError("--only, --without: workers train on all columns of the .parquet")
    if of_text:
        raise InputError(
            "--columns, --max-columns, --non-finite: for LETOR text; workers read a .parquet: "
            "leave them out"
        )


def _rows(
    train: Path,
    vali: Path | None,
    only: Sequence[str],
    without: Sequence[str],
    options: Mapping[str, Any],
) -> tuple[RankingData, RankingData | None, str | None]:
    """The training rows, the validation rows, and a remark on columns that these lack."""
    from letor.column_names import chosen_columns, read_rows
    from letor.rankers.rows import filled

    rows, stop, remark = read_rows(train, **options), None, None
    if vali is not None:
        stop, remark = filled(read_rows(vali, **options), rows.column_names, str(vali))
    if only or without:
        chosen = chosen_columns(rows.column_names, only, without)
        rows = rows.select_columns(chosen)
        stop = None if stop is None else stop.select_columns(chosen)
    return rows, stop, remark


def _show(ranker: Ranker) -> None:
    """Print the round that is best on the validation rows, and the most important columns."""
    if (best := _best_round(ranker)) is not None:
        echo(best)
    importance = ranker.feature_importance()
    echo(importance.head(10).to_string(index=False))
    if len(importance) > 10:
        echo(f"... {counted(len(importance), 'column')} in all")


def _best_round(ranker: Ranker) -> str | None:
    """A line on the round that is best on the validation rows; None without them, and for several
    networks, each of which has one."""
    params, curve = ranker.get_params(), getattr(ranker, "validation_curve_", [])
    if not curve or params.get("n_networks", 1) > 1:
        return None
    best = max(range(len(curve)), key=curve.__getitem__)
    return (
        f"best on the validation rows: {params['measure']} {curve[best]:.4f}, "
        f"in round {best + 1} of {len(curve)}"
    )


def _shared_queries(
    train: Path, rows: RankingData, vali: Path | None, stop: RankingData
) -> str | None:
    """A remark on validation queries that are training queries, too; None if there are none."""
    known = set(rows.query_ids)
    shared = [query for query in stop.query_ids if query in known]
    if not shared:
        return None
    seen, again = (_contents(data.select_queries(shared)) for data in (rows, stop))
    n_same = sum(map(set(seen).__contains__, again))
    return (
        f"{vali}: {len(shared):,} of {counted(stop.n_queries, 'query')} are in {train}, too (the "
        f"first is {shared[0]!r}), with {n_same:,} of their {counted(len(again), 'row')} unchanged:"
        " validation rows that a ranker learned from do not show when to stop; give other queries"
    )


def _contents(data: RankingData) -> list[int]:
    """A digest of the label and values of each row."""
    return [hash((y, x.tobytes())) for y, x in zip(data.y.tolist(), data.X, strict=True)]


def _train_on_workers(
    scheduler: str,
    train: Path,
    vali: Path | None,
    model: Ranker,
    out: Path,
    memory: int | None,
    threads: int | None,
    reporter: Reporter,
) -> None:
    from letor.rankers.registry import load_ranker
    from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART
    from ltr_features.rank_workers import train_on

    if not isinstance(model, XGBoostLambdaMART) or train.suffix != ".parquet":
        raise InputError("--scheduler: only --ranker xgboost trains on workers, from a .parquet")
    if vali is not None:
        raise InputError("--vali: workers do not stop early; leave it out and set n_estimators")
    with reporter.running([model.name]), reporter.stage(model.name):
        train_on(scheduler, train, model, out, memory=memory, threads=threads)
    trained = load_ranker(out)
    for remark in trained.remarks:
        echo(f"{model.name}: {remark}", err=True)
    _show(trained)
    echo(f"{model.name}, on workers: {out}")


@app.command("export")
def rank_export(
    ranker: Annotated[Path, typer.Argument(help="Folder of a trained lambdamart or xgboost.")],
    target: Annotated[str, typer.Option(help="opensearch, elasticsearch, solr, vespa or onnx.")],
    out: Annotated[Path, typer.Option(help="The model file for the engine.")],
    name: Annotated[str, typer.Option(help="The model's name there.")] = "ltr-features",
) -> None:
    """Write a ranker as the model file of a search engine, or as an ONNX model; features keep the
    columns' names. Columns that trees test and that `columns export` does not define are named.

    Example: ltr-features rank export ranker --target opensearch --out model.json"""
    from letor.files import atomic_path
    from letor.rankers.export import export, of_plain_trees, used_columns
    from letor.rankers.onnx_model import to_onnx
    from letor.rankers.registry import load_ranker
    from ltr_features.featuresets import TARGETS, remark_on

    replaced = check_outputs(out, inputs=[ranker])
    trained = load_ranker(ranker)
    if target == "onnx":
        model = to_onnx(trained, name=name)
    else:
        model = (export(trained, target, name=name) + "\n").encode()
    with atomic_path(out) as partial:
        partial.write_bytes(model)
    tell_replaced(replaced)
    echo(f"{target}: {out}")
    if target in TARGETS and (remark := remark_on(used_columns(of_plain_trees(trained)), target)):
        echo(remark, err=True)


@app.command("score")
def rank_score(
    ranker: Annotated[Path, typer.Argument(help="Folder of a trained ranker.")],
    data: Annotated[Path, typer.Argument(help="LETOR text or Parquet with the rows to score.")],
    out: Annotated[
        Path | None, typer.Option(help="File for a score per line, in row order; else printed.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Also write a TREC run; rows need document ids.")
    ] = None,
    max_columns: MaxColumns = 10_000,
    non_finite: NonFinite = "raise",
    threads: Threads = None,
) -> None:
    """Score rows with a trained ranker.

    Example: ltr-features rank score ranker test.txt --out scores.txt"""
    from letor.column_names import check_text, read_rows
    from letor.column_settings import zero_for_missing
    from letor.compression import open_output
    from letor.document_ids import needed_ids
    from letor.files import atomic_path
    from letor.rankers.registry import load_ranker
    from letor.rankers.rows import filled
    from letor.trec import run_of, write_run
    from ltr_features.blocks import MEMORY

    replaced = check_outputs(out, run, inputs=[data, ranker])
    for path, what in ((out, "scores"), (run, "runs")):
        if path is not None:
            check_text(path, what)
    model = load_ranker(ranker)
    rows = read_rows(
        data, memory=MEMORY, max_columns=max_columns, non_finite=non_finite, threads=threads
    )
    rows, remark = filled(rows, model.feature_names_, str(data))
    if remark is not None:
        echo(remark, err=True)
    unused = [name for name in rows.column_names if name not in model.feature_names_]
    if unused and len(rows.column_names) == len(model.feature_names_) + len(unused):
        rows = rows.select_columns(model.feature_names_)
        echo(
            f"{data}: the ranker was trained without {counted(len(unused), 'column')} of these "
            f"rows, which are left out: {listed(unused, 10)}",
            err=True,
        )
    if data.suffix != ".parquet":
        remark = zero_for_missing(model.column_settings_, rows, str(data))
        if remark is not None:
            echo(remark, err=True)
    if run is not None:
        needed_ids(rows, "which a TREC run needs", data)
    scores = model.predict(rows)
    if run is not None:
        write_run(run_of(rows, scores), run)
    text = "".join(f"{score:.9g}\n" for score in scores.tolist())
    if out is None:
        echo(text, nl=False)
    else:
        with atomic_path(out) as partial, open_output(partial, out.suffix) as file:
            file.write(text.encode())
    for path in (out, run):
        if path is not None:
            echo(f"{counted(len(rows), 'row')}: {path}", err=out is None)
    tell_replaced(replaced)
