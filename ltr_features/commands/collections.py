"""Collections and knowledge bases: ``index``, ``sample``, ``wikipedia``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from letor.errors import InputError
from ltr_base.names import OTHERWISE, WRITE_AS_TEXT, counted, rounded
from ltr_features.commands import completion
from ltr_features.commands.options import (
    check_outputs,
    check_text_ids,
    echo,
    on_workers,
    print_facts,
    settings,
    tell_replaced,
)

if TYPE_CHECKING:
    from ltr_features.columns.context import ColumnContext
    from ltr_features.text.collection import Collection


def index(
    source: Annotated[
        str,
        typer.Argument(
            help="beir, trec, table, ir-datasets, clicks, collection, wikipedia-sections, or a "
            "source of a plug-in.",
            autocompletion=completion.sources,
        ),
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(help="KEY=VALUE options of the source, for example folder=data/nfcorpus."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The new workspace.")] = Path("workspace"),
    stopwords: Annotated[
        str, typer.Option(help="Stop words to leave out: english, or a file of words.")
    ] = "",
    stemmer: Annotated[
        str | None, typer.Option(help="Snowball stemmer, for example english.")
    ] = None,
    min_length: Annotated[
        int,
        typer.Option(
            min=1,
            help="Least number of letters or digits of a word (one ideograph or kana is enough).",
        ),
    ] = 2,
    cjk_bigrams: Annotated[
        bool,
        typer.Option(
            "--cjk-bigrams",
            help="Take pairs of neighbouring characters as the words of Chinese and Japanese, "
            "which have no spaces between words.",
        ),
    ] = False,
    groups: Annotated[
        Path | None,
        typer.Option(
            help="Queries that belong together, for --by-group and tests: query id, tab, group; or "
            "a table with a column group."
        ),
    ] = None,
    times: Annotated[
        Path | None,
        typer.Option(
            help="When queries were asked, for --by-time: query id, tab, number or ISO 8601; or a "
            "table with a column time."
        ),
    ] = None,
    sources: Annotated[
        str | None,
        typer.Option(
            help="Documents that queries were made from, which are not ranked for them: query id, "
            "tab, document id; a table with a column source, empty for others; or same-id, where "
            "each has the id of its query."
        ),
    ] = None,
    scheduler: Annotated[
        str | None, on_workers("Count and write the documents", "The workspace is the same.")
    ] = None,
) -> None:
    """Read a collection, index it, and keep both in a workspace for the other commands.

    The options of a source are the parameters of its function; the error for an unknown one lists
    them. Values are TOML, objects of JSON, or text: splits=["test"], document_columns.id=sku.

    Example: ltr-features index beir folder=data/nfcorpus --stopwords english --out workspace"""
    from letor.files import check_is_file
    from ltr_features.columns.context import check_target, make_workspace, open_workspace
    from ltr_features.sources.query_files import (
        SAME_ID,
        groups_and_times_facts,
        with_groups_and_times,
        with_sources,
    )
    from ltr_features.sources.registry import read_collection
    from ltr_features.text.analyzer import Analyzer, stopwords_named
    from ltr_features.text.document_workers import documents_on

    check_target(out)
    replaced = check_outputs(out, kind="folder")
    given = None if sources in (None, SAME_ID) else Path(sources)
    for file in filter(None, (groups, times, given)):  # reading the collection may take long
        check_is_file(file)
    analyzer = Analyzer(
        stopwords=stopwords_named(stopwords) if stopwords else (),
        stemmer=stemmer,
        min_length=min_length,
        cjk_bigrams=cjk_bigrams,
    )
    parts = out.with_name(f"{out.name}.parts")
    with nullcontext() if scheduler is None else documents_on(scheduler, parts) as workers:
        collection = read_collection(source, **settings(options or [], "option"))
        collection = with_groups_and_times(collection, groups, times, collection.query_ids)
        if sources is not None:
            collection = with_sources(collection, sources)
        make_workspace(collection, out, analyzer=analyzer, workers=workers)
    echo(f"{collection.name}: fields {', '.join(collection.fields)}")
    print_facts({**collection.description, **groups_and_times_facts(collection)})
    context = open_workspace(out)
    for remark in (*context.remarks, *_doubtful_ids(context.collection), *_alike_texts(context)):
        echo(f"note: {remark}", err=True)
    try:
        check_text_ids(context.collection)
    except InputError as error:
        echo(f"note: {error}", err=True)
    tell_replaced(replaced)
    echo(f"Workspace: {out}")


def _doubtful_ids(collection: Collection) -> Iterator[str]:
    """Remarks on ids that may be those of one document or query in two files, or of several."""
    from ltr_features.text.id_rows import alike_within

    for what, ids in (("document", collection.document_ids), ("query", collection.query_ids)):
        if alike := alike_within(ids):
            name, first = next(iter(alike.items()))
            yield (
                f"{len(alike):,} of {len(ids):,} {what} ids differ from another one only in "
                f"{OTHERWISE}, such as {name!r} from {first!r}: if both are one {what}, write its "
                "id alike everywhere"
            )
    for remark in rounded(document=collection.document_ids, query=collection.query_ids):
        yield f"{remark}: {WRITE_AS_TEXT}"


def _alike_texts(context: ColumnContext) -> Iterator[str]:
    """Remarks on documents without a word, and on those that have the same words."""
    import numpy as np

    codes, ids = context.index.word_codes, context.collection.document_ids
    documents = counted(len(codes), "document")
    if n := int((codes == 0).sum()):
        yield (
            f"{n:,} of {documents} have no word but those of the url, if there is one, such as "
            f"{ids[int(np.argmin(codes))]!r}: columns of words find them by that at most"
        )
    rows = np.flatnonzero(codes)
    _, first, code, sizes = np.unique(
        codes[rows], return_index=True, return_inverse=True, return_counts=True
    )
    if n := int((sizes[code] > 1).sum()):
        again = int(np.flatnonzero(first[code] < np.arange(len(rows)))[0])
        shown = [repr(ids[int(rows[place])]) for place in (first[code[again]], again)]
        yield (
            f"{n:,} of {documents} have the same words as another one, such as {shown[1]} and "
            f"{shown[0]}: columns of words cannot tell them apart, and a judgement of one does not "
            "count for the other; if they are copies, keep one"
        )


def sample(
    folder: Annotated[Path, typer.Argument(help="A new folder.")] = Path("sample"),
) -> None:
    """Write a small collection in every format that the commands read, to try them out.

    Articles of the Wikipedia as tables, BEIR and TREC folders, rankings, a LETOR fold and vectors;
    the tutorials use it.

    Example: ltr-features sample sample"""
    from ltr_features.sample import write_sample

    collection = write_sample(folder)
    n_documents, n_queries = len(collection.document_ids), len(collection.query_ids)
    echo(f"{n_documents} documents, {n_queries} queries: see {folder / 'README.txt'}")


def wikipedia(
    dump: Annotated[Path, typer.Argument(help="Dump of a MediaWiki: .xml, .xml.bz2 or .xml.gz.")],
    out: Annotated[Path, typer.Option(help="Folder of the knowledge base.")] = Path("kb"),
    processes: Annotated[
        int, typer.Option(min=1, help="Processes that parse; results do not depend on it.")
    ] = 1,
    scheduler: Annotated[
        str | None, on_workers("Instead of by --processes, make it", "The files are the same.")
    ] = None,
    withhold_query_sections: Annotated[
        bool,
        typer.Option(
            "--no-query-sections",
            help="Leave out every second section of each article, for the source "
            "wikipedia-sections, which draws queries from them.",
        ),
    ] = False,
) -> None:
    """Make the knowledge base of a Wikipedia dump: entities, abstracts, anchors, redirects, links.

    Entities are the pages of the main namespace, of Wikipedia or any other MediaWiki. The dump is
    read once, as a stream; if interrupted, the command leaves nothing behind. With --scheduler,
    finished parts are kept in OUT.parts until all is done, and after an interrupt the same command
    continues from them. Workers read an .xml or a multistream .xml.bz2 themselves; other files are
    decompressed by this process, which keeps only two or three workers busy.

    Example: ltr-features wikipedia pages-articles.xml.bz2 --processes 4 --out kb"""
    from ltr_features.entities.build import build_knowledge_base
    from ltr_features.sources.wikipedia import progress_bar

    replaced = check_outputs(out, inputs=[dump], kind="folder")
    with progress_bar(f"Reading {dump.name}") as show:
        facts = build_knowledge_base(
            dump,
            out,
            processes=processes,
            scheduler=scheduler,
            withhold_query_sections=withhold_query_sections,
            on_progress=show,
        )
    print_facts(facts)
    tell_replaced(replaced)
    echo(f"Knowledge base: {out}")
