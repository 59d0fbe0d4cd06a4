"""Rankers: ``rank list``, ``rank train``, ``rank export``, ``rank score``."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from letor.errors import InputError
from ltr_base.docstrings import summary
from ltr_base.names import counted
from ltr_features.commands import completion
from ltr_features.commands.options import (
    Columns,
    NonFinite,
    Progress,
    Threads,
    check_outputs,
    settings_of,
    tell_replaced,
)
from ltr_features.parameters import check_call

if TYPE_CHECKING:
    from letor.rankers.base import Ranker
    from ltr_features.studies.progress import Reporter

app = typer.Typer(help="Train rankers on LETOR files and score with them.", no_args_is_help=True)


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
        kind = get_ranker(name)
        if ranker is None:
            typer.echo(f"{name}: {summary(kind)}")
        else:
            typer.echo(f"{inspect.getdoc(kind)}\n\nAll parameters and their defaults:")
        for parameter in inspect.signature(kind).parameters.values():
            typer.echo(f"    {parameter.name} = {parameter.default!r}")


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
    non_finite: NonFinite = "raise",
    threads: Threads = None,
    progress: Progress = None,
) -> None:
    """Train a ranker and save it in a folder, which contains no code.

    Example: ltr-features rank train train.txt --vali vali.txt --param n_estimators=50 --out r"""
    from letor.column_names import read_rows
    from letor.errors import LetorWarning
    from letor.rankers.registry import get_ranker
    from letor.rankers.rows import filled
    from ltr_features.blocks import memory_size
    from ltr_features.studies.progress import Reporter

    kind, params = get_ranker(ranker), settings_of(param or [], "param", ranker)
    check_call(kind, params, f"ranker {ranker!r}", "parameter")
    if (
        out.exists()
        and not (out / "ranker.json").is_file()
        and (out.is_file() or any(out.iterdir()))
    ):
        raise InputError(f"{out} exists and is not a ranker; name another folder")
    replaced = check_outputs(out, inputs=[train, vali], kind="folder")
    remark = None
    model, n_bytes = kind(**params), None if memory is None else memory_size(memory)
    for path in (train, vali):
        if memory is not None and path is not None and path.suffix != ".parquet":
            raise InputError(f"--memory: {path} is text, which is read into memory; `convert` it")
    reporter = Reporter(shown=progress)
    if scheduler is not None:
        _train_on_workers(scheduler, train, vali, model, out, n_bytes, threads, reporter)
        tell_replaced(replaced)
        return
    with reporter.running(["rows", ranker]):
        with reporter.stage("rows"):
            options = {
                "n_columns": columns,
                "non_finite": non_finite,
                "threads": threads,
                "memory": n_bytes,
            }
            rows = read_rows(train, **options)
            stop = None
            if vali is not None:
                stop, remark = filled(read_rows(vali, **options), rows.column_names, str(vali))
        with reporter.stage(ranker), warnings.catch_warnings():
            warnings.simplefilter("ignore", LetorWarning)  # told below
            model.fit(rows, stop).save(out)
    if remark is not None:
        typer.echo(remark, err=True)
    _tell_remarks(model)
    measure = model.get_params().get("measure")
    if measure is not None:  # used for early stopping, or optimised directly
        typer.echo(f"{measure}: {(rows if stop is None else stop).coverage}", err=True)
    importance = model.feature_importance()
    typer.echo(importance.head(10).to_string(index=False))
    if len(importance) > 10:
        typer.echo(f"... {len(importance):,} columns in all")
    tell_replaced(replaced)
    sizes = f"{counted(len(rows), 'row')}, {counted(rows.n_queries, 'query')}"
    typer.echo(f"{ranker}, {sizes}: {out}")


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
    _tell_remarks(trained)
    typer.echo(trained.feature_importance().head(10).to_string(index=False))
    typer.echo(f"{model.name}, on workers: {out}")


def _tell_remarks(ranker: Ranker) -> None:
    for remark in ranker.remarks:
        typer.echo(f"{ranker.name}: {remark}", err=True)


@app.command("export")
def rank_export(
    ranker: Annotated[Path, typer.Argument(help="Folder of a trained LambdaMART.")],
    target: Annotated[str, typer.Option(help="opensearch, elasticsearch, solr, vespa or onnx.")],
    out: Annotated[Path, typer.Option(help="The model file for the engine.")],
    name: Annotated[str, typer.Option(help="The model's name there.")] = "ltr-features",
) -> None:
    """Write a ranker as the model file of a search engine, or as an ONNX model; features keep the
    columns' names. Columns that the engine cannot compute are named.

    Example: ltr-features rank export ranker --target opensearch --out model.json"""
    from letor.files import atomic_path
    from letor.rankers.export import export
    from letor.rankers.onnx_model import to_onnx
    from letor.rankers.registry import load_ranker
    from ltr_features.featuresets import TARGETS, remark_on

    replaced = check_outputs(out)
    trained = load_ranker(ranker)
    if target == "onnx":
        model = to_onnx(trained, name=name)
    else:
        model = (export(trained, target, name=name) + "\n").encode()
    with atomic_path(out) as partial:
        partial.write_bytes(model)
    tell_replaced(replaced)
    typer.echo(f"{target}: {out}")
    if target in TARGETS and (remark := remark_on(trained.feature_names_, target)):
        typer.echo(remark, err=True)


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
    non_finite: NonFinite = "raise",
    threads: Threads = None,
) -> None:
    """Score rows with a trained ranker.

    Example: ltr-features rank score ranker test.txt --out scores.txt"""
    from letor.column_names import read_rows
    from letor.files import atomic_path
    from letor.rankers.registry import load_ranker
    from letor.rankers.rows import filled
    from letor.trec import run_of, write_run

    replaced = check_outputs(out, run, inputs=[data])
    model = load_ranker(ranker)
    rows = read_rows(data, non_finite=non_finite, threads=threads)
    rows, remark = filled(rows, model.feature_names_, str(data))
    if remark is not None:
        typer.echo(remark, err=True)
    if run is not None and rows.document_ids is None:
        raise InputError(f"{data}: rows have no document ids, which a TREC run needs")
    scores = model.predict(rows)
    if run is not None:
        write_run(run_of(rows, scores), run)
    text = "".join(f"{score:.9g}\n" for score in scores.tolist())
    if out is None:
        typer.echo(text, nl=False)
    else:
        with atomic_path(out) as partial:
            partial.write_text(text, encoding="utf-8")
    tell_replaced(replaced)
