"""Articles and redirects of a Wikipedia dump (any MediaWiki XML dump), as a stream."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import re
import signal
import xml.etree.ElementTree as ET
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import TypeVar

from letor.errors import InputError
from ltr_features.parameters import check_range
from ltr_features.sources.dump_stream import Block, DumpStream
from ltr_features.sources.wiki_links import Site, normalise_title
from ltr_features.sources.wikitext import Section, parse_wikitext

#: Dump excerpt shipped with gensim: 106 articles and 99 redirects of the article namespace.
EXCERPT = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


@dataclass(frozen=True, slots=True)
class Article:
    """A page of the article namespace.

    Attributes:
        page_id: the wiki's number of the page.
        title: title in its normal form (spaces, not underscores).
        sections: sections in order; the first is the lead.
    """

    page_id: int
    title: str
    sections: tuple[Section, ...]


#: The part of articles that the search task keeps out of its documents, to draw queries from it.
WITHHELD = "every second section of the articles"


def document_sections(article: Article) -> Article:
    """The article with only its lead and every second section after it, whatever they hold; queries
    are drawn from the others."""
    return replace(article, sections=article.sections[::2])


def query_sections(article: Article) -> tuple[Section, ...]:
    """The sections that :func:`document_sections` leaves out."""
    return article.sections[1::2]


@dataclass(frozen=True, slots=True)
class Redirect:
    """A page of the article namespace that only points to another title.

    Attributes:
        page_id: the wiki's number of the page.
        title: title in its normal form.
        target: title that it points to, in its normal form, without a fragment.
    """

    page_id: int
    title: str
    target: str


def read_dump(
    path: str | os.PathLike[str],
    *,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[Article | Redirect]:
    """Yield articles and redirects of the article namespace in file order, with bounded memory.

    The file is checked and its header read at once; pages are read as they are needed. Records and
    their order do not depend on ``processes``.

    Args:
        path: ``.xml``, ``.xml.bz2`` (multi-stream too) or ``.xml.gz``, recognised by content.
        processes: 1 reads within this process; n > 1 starts n processes that parse pages while
            this one decompresses (a script then needs the ``__main__`` guard of multiprocessing).
        on_progress: called as ``on_progress(bytes_done, bytes_in_all)``, in bytes of the stored
            file, about once per MiB of XML; see :func:`progress_bar`.

    Raises:
        InputError: the file is missing, a folder or not a MediaWiki dump (at once); or it is
            truncated, damaged or malformed (when that place is reached). The message names the
            file, the cause, the byte offset and the last page.
    """
    blocks = map_dump(path, list, processes=processes, on_progress=on_progress)
    return (record for records in blocks for record in records)


def map_dump(
    path: str | os.PathLike[str],
    function: Callable[[_Records], Result],
    *,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[Result]:
    """Yield ``function(records)`` for each block of pages (about 1 MiB of XML), in file order.

    The function is called in the process that parsed the block, so that only its result is sent
    back; with several processes, the function and its results must be picklable. Otherwise as
    :func:`read_dump`; the blocks do not depend on ``processes``.
    """
    check_range("processes", processes, 1)
    on_progress = on_progress or (lambda done, total: None)
    return _results(DumpStream(path), function, processes, on_progress)


_Records = list[Article | Redirect]
Result = TypeVar("Result")


def _results(
    stream: DumpStream,
    function: Callable[[_Records], Result],
    processes: int,
    on_progress: Callable[[int, int], None],
) -> Iterator[Result]:
    with closing(stream):
        if processes == 1:
            for block in stream.blocks():
                yield _result(function, block, stream.site, stream.path)
                on_progress(stream.position, stream.size)
            return
        # Spawned, because a fork would copy the locks of threads that run in this process.
        pool = ProcessPoolExecutor(
            processes, multiprocessing.get_context("spawn"), initializer=_belong_to_parent
        )
        pending: deque[Future[Result]] = deque()
        try:
            for future in _submitted(stream, function, pool):
                pending.append(future)
                if len(pending) > 2 * processes:
                    yield pending.popleft().result()
                on_progress(stream.position, stream.size)
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool:
            raise InputError(
                f"{stream.path}: a process that read it was ended from outside; in a script of "
                "your own, begin under if __name__ == '__main__'; if it was for lack of memory, "
                "take fewer processes"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _result(function: Callable[[_Records], Result], block: Block, site: Site, path: Path) -> Result:
    return function(parse_block(block, site, path))


def _submitted(
    stream: DumpStream, function: Callable[[_Records], Result], pool: ProcessPoolExecutor
) -> Iterator[Future[Result]]:
    """A future per block; for a damaged file, the last one fails with the error."""
    try:
        for block in stream.blocks():
            yield pool.submit(_result, function, block, stream.site, stream.path)
    except InputError as error:
        failed: Future[Result] = Future()
        failed.set_exception(error)
        yield failed


def _belong_to_parent() -> None:
    """Ignore Ctrl-C, which reaches the whole process group, as the parent handles it; but end with
    the parent, even if it is killed, instead of waiting for its next block for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# --- one block ------------------------------------------------------------------------------------

# Dumps before export version 0.4 have no <redirect> element.
_REDIRECT = re.compile(
    r"\s*#\s*(?:redirect|weiterleitung|redirection|redirección|rinvia|doorverwijzing|patrz|"
    r"omdirigering|перенаправление|przekieruj|転送|重定向|تحويل)\s*:?\s*\[\[([^\]|#]+)",
    re.IGNORECASE,
)


def parse_block(block: Block, site: Site, path: Path) -> _Records:
    """Records of one block of pages.

    Raises:
        InputError: malformed XML, or pages without a title, id or text.
    """
    try:
        root = ET.fromstring(b"<pages>" + block.xml + b"</pages>")
    except ET.ParseError as error:
        raise InputError(_malformed(block, path, error)) from None
    records = (_record(page, site, path) for page in root)
    return [record for record in records if record is not None]


def _malformed(block: Block, path: Path, error: ET.ParseError) -> str:
    line = error.position[0]
    before = sum(len(text) + 1 for text in block.xml.split(b"\n")[: line - 1])
    titles = re.findall(rb"<title>([^<]*)</title>", block.xml[: before + 1])
    page = titles[-1].decode(errors="replace") if titles else None
    reason = str(error).partition(":")[0]
    return (
        f"{path}: malformed XML ({reason}) in the line at XML byte {block.offset + before:,}, "
        + (f"in or after page {page!r}" if page else "before the title of a page")
        + "; get the file again"
    )


def _record(page: ET.Element, site: Site, path: Path) -> Article | Redirect | None:
    title = page.findtext("title")
    if page.tag != "page" or not title:
        raise InputError(f"{path}: <{page.tag}> where a <page> with a <title> should be")
    if page.findtext("ns", default="0") != "0":
        return None
    page_id = page.findtext("id", default="")
    revision = page.find("revision[last()]")
    if not page_id.isdigit() or revision is None:
        raise InputError(f"{path}: page {title!r} has no <id> number or no <revision>")
    if revision.findtext("model", default="wikitext") != "wikitext":
        return None
    title = normalise_title(title, site)
    redirect = page.find("redirect")
    if redirect is not None:
        target = redirect.get("title", "").partition("#")[0]
        return Redirect(int(page_id), title, normalise_title(target, site))
    source = _source(revision, title, path)
    pointer = _REDIRECT.match(source)
    if pointer:
        return Redirect(int(page_id), title, normalise_title(pointer[1], site))
    return Article(int(page_id), title, parse_wikitext(source, site))


def _source(revision: ET.Element, title: str, path: Path) -> str:
    text = revision.find("text")
    source = "" if text is None else text.text or ""
    if source or text is None or text.get("deleted") is not None:
        return source
    if text.get("bytes", "0") != "0":
        raise InputError(
            f"{path}: page {title!r} has {text.get('bytes')} bytes of text that are not in the "
            "file (a 'stub' dump); use a pages-articles dump"
        )
    return source


# --- helpers --------------------------------------------------------------------------------------


def resolve_redirect(title: str, redirects: Mapping[str, str]) -> str:
    """Title at the end of a chain of redirects; the title itself if the chain is circular.

    Args:
        title: title in its normal form, such as ``Link.target``.
        redirects: ``Redirect.title`` to ``Redirect.target``.
    """
    seen = {title}
    current = title
    while (following := redirects.get(current)) is not None:
        if following in seen:
            return title
        seen.add(following)
        current = following
    return current


def excerpt_path() -> Path:
    """Path of the excerpt of the English Wikipedia's dump (1.7 MB) that gensim installs.

    Raises:
        InputError: gensim, or its test data, is not installed.
    """
    spec = importlib.util.find_spec("gensim")
    if spec is None or spec.origin is None:
        raise InputError("the Wikipedia excerpt comes with gensim, which is not installed")
    path = Path(spec.origin).parent / "test" / "test_data" / EXCERPT
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; this gensim was installed without its test data: "
            "reinstall it (pip install --force-reinstall gensim) or name a dump of your own"
        )
    return path


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr for ``on_progress``; hidden if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    with Progress(console=console) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
