"""Pipelines: ``pipeline build``, ``add``, ``remove`` and ``explain``, and ``serve`` for HTTP."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from letor.errors import InputError
from ltr_base.names import OTHERWISE, counted, listed, written_alike
from ltr_features.commands.options import (
    Commands,
    PipelineThreads,
    Threads,
    check_outputs,
    echo,
    print_facts,
    settings,
    tell_replaced,
)

if TYPE_CHECKING:
    from letor.rankers.base import Ranker

app = Commands(
    help="Pipelines that rank: build and explain them, add and remove documents, write rankings.",
    no_args_is_help=True,
)

#: On a folder of models that has not all of a pipeline.
_TRAINED_ANEW = (
    "note: models that {} did not have were trained anew; if an earlier version built these folds, "
    "its models may have scored in another way: build the folds again, and train the ranker on them"
)

#: On ids of added documents that others have but for the way of writing.
_BESIDE = (
    "{} beside one whose id differs in {}, such as {!r} beside {!r}: if it is to replace that, "
    "`pipeline remove` it and add it under that id"
)


@app.command("build")
def pipeline_build(
    folds: Annotated[Path, typer.Argument(help="Folder of folds that `columns build` wrote.")],
    ranker: Annotated[
        Path, typer.Option(help="Folder of the ranker that was trained on a fold's rows.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the pipeline.")],
    fold: Annotated[
        str | None,
        typer.Option(
            help="The fold whose rows the ranker was trained on; by default the one that its "
            "columns name, else Fold1."
        ),
    ] = None,
    threads: Threads = None,
) -> None:
    """Put a ranker and what computes its columns into one folder, which ranks documents for any
    query: `serve` answers with it, `pipeline add` adds documents, `ScoringPipeline.load` reads it.

    The columns are those of the fold's test rows: the same candidates, and the same families and
    trained models, but those of which the ranker takes no column. Models that `columns build` kept
    in the folder are not trained again.

    Example: ltr-features pipeline build folds --ranker ranker --out service"""
    from letor.rankers.registry import load_ranker
    from ltr_features.commands.columns_files import read_settings
    from ltr_features.feature_builder import FeatureBuilder
    from ltr_features.feature_files import given_files
    from ltr_features.remarks import ColumnWarning
    from ltr_features.scoring import ScoringPipeline

    replaced = check_outputs(out, inputs=[folds, ranker], kind="folder")
    trained = load_ranker(ranker)
    build = read_settings(folds, threads)
    by_name = {one.name: one for one in build.split}
    fold = _checked_fold(fold, trained, ranker, folds, by_name)
    kept = set((models := folds / "models").glob("*.safetensors"))
    builder = FeatureBuilder(
        build.families,
        build.recipes,
        candidates=build.candidates,
        models_folder=models,
        threads=threads,
    )
    builder = ScoringPipeline.check(builder, trained)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # `columns build` has told them
        builder.fit(build.context, by_name[fold].train, folds=build.split)
    ScoringPipeline(builder, trained).save(out)
    tell_replaced(replaced)
    if set(models.glob("*.safetensors")) - kept:
        echo(_TRAINED_ANEW.format(models), err=True)
    if files := given_files(out / "features"):
        echo(f"note: it reads {listed(files, 5)}: keep this there as it is", err=True)
    columns = counted(len(builder.column_names), "column")
    echo(f"{trained.name}, {counted(builder.n_documents, 'document')}, {columns}: {out}")


def _checked_fold(
    fold: str | None, trained: Ranker, ranker: Path, folds: Path, known: Collection[str]
) -> str:
    """The fold whose rows a ranker was trained on, given or as its columns name it."""
    from ltr_base.names import nearest

    named = {of["fold"] for of in trained.column_settings_.values() if "fold" in of}
    fold = next(iter(named), "Fold1") if fold is None else fold
    if fold not in known:
        raise InputError(f"--fold: {folds} has no fold {fold!r}; {nearest(fold, known)}")
    if named - {fold}:
        raise InputError(
            f"--fold: {ranker} was trained on rows of {listed(sorted(named), 5)}, not of {fold}; "
            "leave the option out"
        )
    return fold


@app.command("add")
def pipeline_add(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    documents: Annotated[
        Path, typer.Argument(help="A table: .csv, .tsv, .jsonl (BEIR's corpus), .parquet.")
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="OURS=THEIRS: the table's column for id, body, title, ...; by default those with "
            "these names, or with usual ones: docno, name, text."
        ),
    ] = None,
    on_other_text: Annotated[
        Literal["raise", "first", "last"],
        typer.Option(
            help="Where a document id comes again with other texts: stop, or take those of its "
            "first or last row."
        ),
    ] = "raise",
    markup: Annotated[
        Literal["keep", "strip"] | None,
        typer.Option(help="HTML in texts: keep it, or strip it; by default as in the build."),
    ] = None,
    encoding: Annotated[
        str, typer.Option(help="Encoding of a text file that is not UTF-8: cp1252, latin-1, ...")
    ] = "utf-8",
    threads: PipelineThreads = 1,
) -> None:
    """Add documents to a saved pipeline, or replace those with the same ids, without rebuilding it:
    statistics, vectors, models and ranker stay as they are, and so do all other scores.

    The command reports which columns it read, and how far the documents have moved away from those
    of the build.

    Example: ltr-features pipeline add service new.csv --column body=description"""
    from ltr_features.scoring import ScoringPipeline
    from ltr_features.sources.document_table import HTML, STRIPPED, read_documents

    pipeline = ScoringPipeline.load(folder, threads=threads)
    collection = pipeline.features.context_.collection
    fields = list(collection.fields)
    table = read_documents(
        [documents],
        settings(column or [], "column"),
        fields=fields,
        option="--column ",
        on_other_text=on_other_text,
        encoding=encoding,
        markup=markup or ("strip" if collection.description.get(HTML) == STRIPPED else "keep"),
    )
    new = pipeline.features.unknown_documents(table.ids)
    alike = written_alike(new, pipeline.features.document_ids if new else ())
    pipeline = pipeline.with_documents(table.ids, table.fields)
    pipeline.save_added(folder)
    echo(f"{counted(len(table.ids), 'document')} of {documents}: {folder}")
    print_facts(table.facts)
    if alike:
        first = next(iter(alike.items()))
        n_new = counted(len(alike), "new document")
        echo(_BESIDE.format(n_new, OTHERWISE, *first), err=True)
    if absent := [field for field in fields if field not in table.fields]:
        echo(
            f"{documents} has no column for {', '.join(absent)}, empty in its documents: name one "
            f"by --column {absent[0]}=...",
            err=True,
        )
    if (added := pipeline.features.added_) is not None:
        echo(str(added.drift()))


@app.command("remove")
def pipeline_remove(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    ids: Annotated[
        Path, typer.Argument(help="A text file with the id of a document on each line.")
    ],
    threads: PipelineThreads = 1,
) -> None:
    """Remove documents from a saved pipeline, without rebuilding it: statistics, vectors, models
    and ranker stay as they are, and so do the columns of all other documents. The command reports
    ids that no document has.

    Example: ltr-features pipeline remove service sold-out.txt"""
    from letor.compression import text_lines
    from ltr_features.scoring import ScoringPipeline

    lines = [line for _, line in text_lines(ids) if line.strip()]
    pipeline = ScoringPipeline.load(folder, threads=threads)
    other = {*pipeline.features.unknown_documents(lines)}  # perhaps by blanks around an id alone
    named = list(dict.fromkeys(line.strip() if line in other else line for line in lines))
    unknown = pipeline.features.unknown_documents(named)
    known = sorted(set(named) - set(unknown))
    added = pipeline.features.added_
    if not known and added is not None and (gone := added.removed.intersection(named)):
        many = counted(len(gone), "document")
        echo(f"{many} of {ids} had been removed before: {folder} stays as it is")
        return
    if not known:
        raise InputError(f"{ids} names no document of {folder}; write an id on each line")
    pipeline = pipeline.without_documents(known)
    pipeline.save_added(folder)
    echo(f"{counted(len(known), 'document')} of {ids} removed: {folder}")
    if unknown:
        which = listed([repr(one) for one in unknown], 5)
        alike = written_alike(unknown, pipeline.features.document_ids)
        near = [f"; for {name!r} there is {other!r}" for name, other in alike.items()]
        echo(f"{folder} has no document {which}{''.join(near[:1])}", err=True)
    if (added := pipeline.features.added_) is not None:
        echo(str(added.drift()))


@app.command("explain")
def pipeline_explain(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    query: Annotated[str, typer.Argument(help="The text of the query.")],
    document: Annotated[
        list[str] | None,
        typer.Option(help="Id of a candidate to explain, in place of the best ones; repeatable."),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(min=1, help="Number of documents, the best ones.", show_default="3"),
    ] = None,
    columns: Annotated[int, typer.Option(min=1, help="Columns to show of each document.")] = 6,
    threads: PipelineThreads = 1,
) -> None:
    """Show why documents are where they are in the ranking for a query: each with the columns that
    moved its score most, their values in it and what they add.

    What all columns add is the document's score minus the mean score of the query's candidates: by
    TreeSHAP for rankers of trees, by Shapley values against the candidates' median for others.

    Example: ltr-features pipeline explain service "greek philosophy" --count 2"""
    from ltr_features.scoring import ScoringPipeline

    if document and count is not None:
        raise InputError("--count is for the best documents, and --document names others: give one")
    pipeline = ScoringPipeline.load(folder, threads=threads)
    found = pipeline.explain(query, pipeline.features.n_documents)
    candidates = found.drop_duplicates("rank").set_index("docno")
    many = counted(len(candidates), "candidate")
    shown = dict.fromkeys(document or candidates.index[: count or 3])
    if others := [one for one in shown if one not in candidates.index]:
        gone = pipeline.features.unknown_documents(others)
        raise InputError(
            f"--document: {folder} has no document {gone[0]!r}"
            if gone
            else f"--document: {others[0]!r} is not among the query's {many}"
        )
    if candidates.empty:
        sources = listed([*pipeline.features.searches_] or ["bm25"], 5)
        echo(f"no candidates for {query!r}: no document is found by {sources}")
        return
    width = max(found["column"].str.len().max(), len("100 other columns"))
    for docno, columns_of in found[found["docno"].isin(shown)].groupby("docno", sort=False):
        rows = list(columns_of.itertuples())
        title = pipeline.features.title(docno)
        named = f"{docno}, {title!r}" if title else docno
        echo(f"{rows[0].rank}. {named}, score {rows[0].score:.4f}")
        for row in rows[:columns]:
            echo(f"   {row.column:{width}} {row.value:10.4g} {row.contribution:+10.4f}")
        rest = [row.contribution for row in rows[columns:]]
        if rest:
            echo(f"   {counted(len(rest), 'other column'):{width + 11}} {sum(rest):+10.4f}")
    echo(f"Sums are scores minus {candidates['score'].mean():.4f}, the mean of {many}.")


def serve(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8080,
    threads: PipelineThreads = 1,
) -> None:
    """Answer queries with a saved pipeline over HTTP, JSON in and out.

    POST /rank takes {"query": "...", "k": 10}, or {"query": "...", "documents": ["id", ...]} to
    rank these; GET /health says whether it is up. SIGTERM and Ctrl-C end it after requests in
    progress.

    Example: ltr-features serve service --port 8080"""
    from ltr_features.scoring import ScoringPipeline
    from ltr_features.serving import ScoringServer

    if not host:  # Python would listen on all addresses
        raise InputError("--host is empty; name an address: 127.0.0.1, or 0.0.0.0 for all")
    pipeline = ScoringPipeline.load(folder, threads=threads)
    try:
        bound = ScoringServer(pipeline, host, port)
    except OSError as error:
        raise InputError(f"{host}, port {port}: {error.strerror}; name another") from None
    with bound as server:
        # Warm up: what is computed at the first query is computed now.
        pipeline.rank("", 1)
        pipeline.score("", pipeline.features.document_ids[:1])
        address = f"[{host}]" if ":" in host else host
        url = f"http://{address}:{server.server_address[1]}/rank"
        echo(f"{counted(server.n_documents, 'document')}: {url}")
        server.serve()
