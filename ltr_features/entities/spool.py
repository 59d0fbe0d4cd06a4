"""The first pass over a dump: articles, words, links and redirects become hashes, 20 bytes per link
and 8 per word, in parts that cover about 16 MiB of XML each.

Each intermediate result on the way to a knowledge base is a file of arrays that appears when it is
complete, under a name that identifies the dump, the settings and the piece. It may be made by this
process or by a worker of a cluster; an existing file is not made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import count, islice, starmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError, reading
from letor.files import atomic_path
from ltr_features.cluster import Cluster, check_folder
from ltr_features.cluster import digest as short_digest
from ltr_features.entities.digest import Digest
from ltr_features.entities.words import hash_phrases, hash_titles, hash_words
from ltr_features.sources.dump_ranges import Range, page_ranges
from ltr_features.sources.dump_stream import BLOCK_BYTES, DumpStream
from ltr_features.sources.wiki_links import Site
from ltr_features.sources.wikipedia import map_dump, parse_block

#: Number of blocks of the dump, of about 1 MiB each, in a part.
PART_BLOCKS = 16

Arrays = Mapping[str, NDArray[Any]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Spool:
    """The intermediate files between a dump and its knowledge base.

    Attributes:
        folder: folder of all files; workers see it under the same path.
        name: identifies the dump and the settings; the names of all files begin with it.
        parts: files of the first pass, in the order of the dump.
        cluster: the cluster whose workers make the pieces; None makes them in this process.
    """

    folder: Path
    name: str
    cluster: Cluster | None
    parts: list[Path] = field(default_factory=list)

    def path(self, what: str) -> Path:
        """The file or folder of a piece."""
        return self.folder / f"{self.name}-{what}"

    def made(self, work: Callable[..., Arrays], calls: Iterable[tuple[Any, ...]]) -> Iterator[Path]:
        """The files of what ``work(*given)`` returns, for each of the calls ``(what, *given)`` in
        order; existing files are reused."""
        in_order = starmap if self.cluster is None else self.cluster.in_order
        named = ((self.path(f"{what}.npz"), work, *given) for what, *given in calls)
        return iter(in_order(_made, named))

    def each(self, *names: str) -> Iterator[tuple[NDArray[Any], ...]]:
        """The named arrays of each part."""
        return (read_arrays(part, *names) for part in self.parts)

    def whole(self, *names: str) -> list[NDArray[Any]]:
        """The named arrays of all parts, concatenated."""
        return [np.concatenate(arrays) for arrays in zip(*self.each(*names), strict=True)]


def spool_dump(
    dump: Path,
    pack: partial[Digest],
    folder: Path,
    *,
    processes: int = 1,
    cluster: Cluster | None = None,
    on_progress: Progress | None = None,
) -> Spool:
    """Make the first pass over a dump, in this process or on workers. With workers, parts may begin
    and end at other pages, but the knowledge base is the same.

    Args:
        dump, processes, on_progress: see :func:`ltr_features.sources.wikipedia.map_dump`.
        pack: packs the records of a block; a function that workers can import, with its settings.
        folder: an existing folder.
        cluster: a cluster whose workers see ``folder`` and the folder of the dump.

    Raises:
        InputError: as for :func:`ltr_features.sources.wikipedia.map_dump`.
    """
    spool = Spool(folder, _name(dump, pack), cluster)
    if cluster is None:
        digests = map_dump(dump, pack, processes=processes, on_progress=on_progress)
        spool.parts.extend(spool.made(_hashed, _parts(digests)))
        return spool
    with closing(DumpStream(dump)) as stream:
        ranges = _ranges(stream, pack, spool, on_progress or (lambda done, total: None))
        for part in spool.made(_hashed_range, ranges):
            part.with_suffix(".xml").unlink(missing_ok=True)
            spool.parts.append(part)
    return spool


def _name(dump: Path, pack: partial[Digest]) -> str:
    status = dump.stat()
    facts = [version("ltr-features"), PART_BLOCKS, BLOCK_BYTES, pack.keywords]
    facts += [dump.name, status.st_size, status.st_mtime_ns]
    return short_digest(json.dumps(facts, sort_keys=True, default=sorted).encode())


def _parts(digests: Iterator[Digest]) -> Iterator[tuple[str, list[Digest]]]:
    for number in count():
        if not (group := list(islice(digests, PART_BLOCKS))):
            return
        yield f"part-{number}", group


def _ranges(
    stream: DumpStream, pack: partial[Digest], spool: Spool, on_progress: Progress
) -> Iterator[tuple[str, Range, Site, Path, partial[Digest]]]:
    """Yield the name of each part, and where and how workers read its pages."""

    def file_of(number: int) -> Path | None:
        done = spool.path(f"part-{number}.npz").is_file()
        return None if done else spool.path(f"part-{number}.xml")

    for number, (pages, position) in enumerate(page_ranges(stream, PART_BLOCKS, file_of)):
        yield f"part-{number}", pages, stream.site, stream.path, pack
        on_progress(position, stream.size)


def _hashed_range(pages: Range, site: Site, dump: Path, pack: partial[Digest]) -> Arrays:
    try:
        return _hashed(pack(parse_block(block, site, dump)) for block in pages.blocks())
    except InputError as error:
        raise InputError(f"{error}{pages.counted()}") from None


def _hashed(digests: Iterable[Digest]) -> Arrays:
    """The arrays of a part: its hashed blocks of pages, with articles numbered from 0."""
    blocks: list[Arrays] = []
    n = 0
    for block in digests:
        blocks.append(_hashed_block(block, n))
        n += len(block.page_ids)
    part = {name: np.concatenate([arrays[name] for arrays in blocks]) for name in blocks[0]}
    return part | {"n_words": np.array([np.count_nonzero(part["words"])])}


def _hashed_block(block: Digest, first: int) -> Arrays:
    """The arrays of a block. Names are links with the source -1: a phrase, but no in-link."""
    # An article's name comes before its links.
    sizes = np.array(block.n_links, dtype=np.int64) + 1
    names = np.cumsum(sizes) - sizes
    source = np.repeat(first + np.arange(len(sizes)), sizes)
    source[names] = -1
    targets = hash_titles(block.targets)
    redirects, goals = hash_titles(block.redirects), hash_titles(block.redirect_targets)
    other = redirects != goals
    phrases = hash_phrases(block.anchors), hash_phrases(block.redirect_names)[other]
    return {
        "page_id": np.array(block.page_ids, dtype=np.int64),
        "title_hash": targets[names],
        "title_sizes": np.array([len(title) for title in block.titles], dtype=np.int64),
        "title_bytes": np.frombuffer(b"".join(block.titles), dtype=np.uint8),
        "abstract_sizes": np.array([len(text) for text in block.abstracts], dtype=np.int64),
        "abstract_bytes": np.frombuffer(b"".join(block.abstracts), dtype=np.uint8),
        "words": hash_words(block.words),
        "source": np.append(source, np.full(len(phrases[1]), -1)).astype(np.int32),
        "target": np.concatenate([targets, goals[other]]),
        "phrase": np.concatenate(phrases),
        "redirect_hash": redirects,
        "redirect_target": goals,
    }


def _made(path: Path, work: Callable[..., Arrays], *given: Any) -> Path:
    """Do a piece of work, unless its file exists."""
    check_folder(str(path.parent), "there")
    if not path.is_file():
        arrays = work(*given)
        with atomic_path(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    return path


def read_arrays(path: Path, *names: str) -> tuple[NDArray[Any], ...]:
    """Read the named arrays of a piece.

    Raises:
        InputError: the file is damaged.
    """
    with reading(path, "remove it, and run the same command again"), np.load(path) as file:
        return tuple(file[name] for name in names)
