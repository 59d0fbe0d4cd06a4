"""``pipeline rank``: what a saved pipeline ranks for a file of queries, as a TREC run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from letor.errors import InputError
from ltr_base.names import counted, listed
from ltr_features.commands.options import (
    PipelineThreads,
    Progress,
    check_outputs,
    echo,
    tell_replaced,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ltr_features.scoring import ScoringPipeline


def pipeline_rank(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    queries: Annotated[
        Path,
        typer.Argument(
            help="Ids and texts of queries: a table (.csv, .tsv, .jsonl, .parquet), TREC topics, "
            "or a query per line: id, tab, text."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The ranking, a TREC run.")],
    depth: Annotated[int, typer.Option(min=1, help="Most documents of a query.")] = 1000,
    among: Annotated[
        Path | None,
        typer.Option(
            help="A TREC run, or a table of scores, whose documents to rank anew, in place of "
            "those that the pipeline finds."
        ),
    ] = None,
    on_unknown: Annotated[
        Literal["raise", "skip"],
        typer.Option(help="Documents of --among that the pipeline does not have: stop, or skip."),
    ] = "raise",
    sources: Annotated[
        str | None,
        typer.Option(
            help="Documents that queries were made from, which are not ranked for them: query id, "
            "tab, document id; a table with a column source; or same-id."
        ),
    ] = None,
    threads: PipelineThreads = 1,
    progress: Progress = None,
) -> None:
    """Rank documents for each query of a file, and write a TREC run.

    `compare` tests it against the run of another pipeline, or what an engine returns today. The
    command notes queries that the pipeline may have learned from, which would flatter it there.

    Example: ltr-features pipeline rank service queries.tsv --out service.run"""
    from letor.column_names import check_text
    from letor.trec import check_trec_ids, write_run
    from ltr_features.scoring import ScoringPipeline
    from ltr_features.sources.files import read_queries
    from ltr_features.sources.query_files import SAME_ID
    from ltr_features.studies.progress import Reporter

    if among is None and on_unknown == "skip":
        raise InputError("--on-unknown is for documents of --among: give that, or neither")
    made_from = None if sources in (None, SAME_ID) else Path(sources)
    replaced = check_outputs(out, inputs=[folder, queries, among, made_from])
    check_text(out, "runs")
    texts = read_queries(queries)
    pipeline = ScoringPipeline.load(folder, threads=threads)
    check_trec_ids(texts, "query id")
    check_trec_ids(pipeline.features.document_ids, "document id")
    excluded = {} if sources is None else _made_from(sources, texts, pipeline)
    docnos = None if among is None else _documents_of(among, texts, pipeline, on_unknown)
    reporter = Reporter(shown=progress)
    with reporter.running(["queries"]), reporter.stage("queries"):
        found = pipeline.rank_queries(
            texts, depth, docnos=docnos, excluded=excluded, on_progress=reporter.part
        )
    write_run(found, out)
    tell_replaced(replaced)
    ranked = set(found["qid"])
    if without := [query for query in texts if query not in ranked]:
        several = _several(without, "query")
        echo(f"{several} without candidates: not in the run, so 0 in its measures", err=True)
    if learned := _judged_before(pipeline, texts):
        echo(
            f"{_several(learned, 'query')} judged in the pipeline's collection, from which it may "
            "have learned: leave them out where you measure how good it is",
            err=True,
        )
    echo(f"{counted(len(ranked), 'query')}, {counted(len(found), 'row')}: {out}")


def _several(ids: list[str], noun: str) -> str:
    """How many there are, and the first of them."""
    return f"{counted(len(ids), noun)} (first {ids[0]!r})"


def _documents_of(
    path: Path, texts: Collection[str], pipeline: ScoringPipeline, on_unknown: str
) -> Mapping[str, list[str]]:
    """The documents of each query in a ranking, best first.

    Args:
        path: of the ranking. texts: ids of the queries to rank for.
        on_unknown: "raise" or "skip" documents that the pipeline does not have.
    """
    from ltr_features.sources.files import read_ranking

    ranking = read_ranking(path)
    wanted = ranking["qid"].isin(texts)
    if not wanted.any():
        other, asked = ranking["qid"].unique().tolist(), list(texts)
        raise InputError(
            f"--among: {path} has none of the queries; it ranks for {listed(other, 3)}, and the "
            f"queries are {listed(asked, 3)}"
        )
    ranking = ranking[wanted].sort_values("score", ascending=False, kind="stable")
    unknown = pipeline.features.unknown_documents(ranking["docno"].unique().tolist())
    if unknown:
        several = _several(unknown, "document")
        if len(unknown) == ranking["docno"].nunique():
            raise InputError(
                f"--among: the pipeline has none of the documents of {path}: {several}"
            )
        if on_unknown == "raise":
            raise InputError(
                f"--among: {path} has {several} that the pipeline does not have; `pipeline add` "
                "them, or give --on-unknown skip"
            )
        echo(f"{several} of {path} skipped, which the pipeline does not have", err=True)
    known = ranking[~ranking["docno"].isin(unknown)]
    return known.groupby("qid", sort=False)["docno"].agg(list).to_dict()


def _made_from(
    sources: str, texts: Collection[str], pipeline: ScoringPipeline
) -> dict[str, list[str]]:
    """The documents that queries were made from, by query id, read from ``--sources``."""
    from ltr_features.sources.query_files import SAME_ID, sources_of

    of_query = sources_of(sources, texts)
    made_from = {query: of_query[query] for query in texts if query in of_query}
    unknown = pipeline.features.unknown_documents([*made_from.values()])
    if len(unknown) == len(made_from):
        raise InputError(f"--sources {sources}: no query has a document of the pipeline there")
    if unknown and sources != SAME_ID:
        several = _several([*dict.fromkeys(unknown)], "document")
        echo(f"{several} of {sources} skipped, which the pipeline does not have", err=True)
    return {query: [document] for query, document in made_from.items()}


def _judged_before(pipeline: ScoringPipeline, texts: Mapping[str, str]) -> list[str]:
    """Ids of queries whose text is that of a judged query of the pipeline's collection."""
    from ltr_features.text.query_texts import normalised

    collection = pipeline.features.context_.collection
    judged = {normalised(collection.query_texts[row]) for row in set(collection.judgements.query)}
    return [query for query, text in texts.items() if normalised(text) in judged]
