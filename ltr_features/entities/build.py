"""Build a knowledge base from a Wikipedia dump, as a stream and in bounded memory.

The first pass reads the dump: articles, words, links and redirects become hashes in temporary
files, see :mod:`ltr_features.entities.spool`. Passes over these files resolve titles and redirects,
sort the in-links, count the anchors (both in pieces that fit in memory), and count their
occurrences in all texts. An interrupted run in one process leaves nothing behind and starts anew;
with the workers of a cluster, it continues with the existing pieces.

Rules:

- links to the article itself and to articles that the dump lacks do not count;
- a phrase is an anchor text of 1 to 6 words, of more than one character and not digits only;
- titles and redirects are phrases as well (without the "(...)" at the end) and count as one link
  each, see Ferragina and Scaiella 2010, section 3; disambiguation pages, by
  the brackets of their titles, are not;
- occurrences are counted within sections, across their lines; a phrase occurs at least as often as
  it is a link.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.digests import write_digests
from letor.errors import InputError
from letor.files import atomic_path, check_replaced, save_array, write_json
from ltr_base.parallel import map_blocks
from ltr_base.slices import slices
from ltr_features.cluster import Cluster, connected
from ltr_features.entities.digest import digest
from ltr_features.entities.knowledge import ARRAYS, MARK, VERSION, BaseArrays, bucket_index, look_up
from ltr_features.entities.spool import Arrays, Spool, read_arrays, spool_dump
from ltr_features.entities.words import WORD_RULE
from ltr_features.kernels.entities import LONGEST_PHRASE, count_phrases
from ltr_features.part_store import PartFolder
from ltr_features.sources.dump_stream import DumpStream
from ltr_features.sources.wikipedia import WITHHELD

#: Records held in memory at a time.
_CHUNK = 1 << 22

#: Links sorted at a time.
_PART = 1 << 23

#: The parallel files of the links that count, and the types of their records.
_LINKS: dict[str, Any] = {"from": np.dtype("i4"), "to": np.dtype("i4"), "by": np.dtype("u8")}

#: Words whose phrases are counted at a time, and the most pieces of work, which may make it more.
_WORDS, _PIECES = 1 << 24, 32


def build_knowledge_base(
    dump: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    processes: int = 1,
    scheduler: str | None = None,
    held_out: Collection[str] = (),
    withhold_query_sections: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, int]:
    """Write the knowledge base of a dump into ``folder``, replacing an older one.

    Args:
        dump, processes, on_progress: see :func:`ltr_features.sources.wikipedia.map_dump`.
        scheduler: make the pieces on the workers of a Dask cluster instead, see
            :func:`ltr_features.cluster.connected`, in the folder ``FOLDER.parts``, which is removed
            at the end. The workers must see it and the dump's folder under the same paths. The
            result is the same.
        held_out: titles of articles whose text and links are left out of all statistics, to test a
            linker on them.
        withhold_query_sections: leave out every second section of each article, text and links,
            for search tasks whose queries are drawn from these sections, see
            :func:`ltr_features.sources.wikipedia.document_sections`.

    Returns:
        The numbers of articles, redirects, links, phrases, senses and words.

    Raises:
        InputError: the dump is unreadable or has no articles, ``folder`` holds something else, or
            as for :func:`ltr_features.cluster.connected`.
    """
    dump, folder = Path(dump), Path(folder)
    check_replaced(folder, MARK, "knowledge base")
    if scheduler is not None and processes != 1:
        raise InputError("processes: workers of the scheduler parse the dump; give one of the two")
    stream = DumpStream(dump)  # raises for a file that is not a dump, before anything is made
    stream.close()
    pack = partial(
        digest,
        held_out=frozenset(held_out),
        withhold_query_sections=withhold_query_sections,
    )
    with (
        _workers(scheduler, dump, folder) as (parts, cluster),
        atomic_path(folder, kind="folder") as unfinished,
    ):
        unfinished.mkdir(parents=True)
        if parts is None:
            parts = unfinished / "parts"
            parts.mkdir()
        spool = spool_dump(
            dump, pack, parts, processes=processes, cluster=cluster, on_progress=on_progress
        )
        if not any(len(page_id) for (page_id,) in spool.each("page_id")):
            raise InputError(f"{dump}: no article in it, so there are no entities to link to")
        facts = _finish(spool, BaseArrays(unfinished.resolve()), threads=processes)
        shutil.rmtree(parts)
        sizes = {n: len(np.load(unfinished / f"{n}.npy", mmap_mode="r")) for n in ARRAYS}
        header: dict[str, Any] = {
            "version": VERSION,
            "source": dump.name,
            "language": stream.site.language,
            "sizes": sizes,
            "facts": facts,
        }
        header["word rule"] = WORD_RULE
        if withhold_query_sections:
            header["withheld"] = WITHHELD
        write_json(unfinished / MARK, header)
        write_digests(unfinished)
    return facts


@contextmanager
def _workers(
    scheduler: str | None, dump: Path, folder: Path
) -> Iterator[tuple[Path | None, Cluster | None]]:
    """The folder of what workers make, and their cluster; (None, None) without a scheduler."""
    if scheduler is None:
        yield None, None
        return
    parts = folder.with_name(f"{folder.name}.parts").resolve()
    parts.mkdir(parents=True, exist_ok=True)
    with connected(scheduler, PartFolder(parts), dump.parent) as cluster:
        yield parts, cluster


def _finish(spool: Spool, base: BaseArrays, threads: int) -> dict[str, int]:
    """The passes after the first: make the arrays from the temporary files."""
    page_id, n_words = spool.whole("page_id", "n_words")
    base.save("page_id", page_id)
    for name in ("title", "abstract"):
        (sizes,) = spool.whole(f"{name}_sizes")
        base.save(f"{name}_ends", np.append(0, np.cumsum(sizes)))
        for (text,) in spool.each(f"{name}_bytes"):
            base.append(f"{name}_bytes", text)
        base.close(f"{name}_bytes")
    names = _names(spool)
    base.save("name_hash", names[0])
    base.save("name_entity", names[1])
    links = _resolve(spool, *names)
    n_in_links = _in_links(spool, base, links, len(page_id))
    n_phrases, n_senses = _senses(spool, base, links)
    _count_occurrences(spool, base, n_words, threads)
    return {
        "articles": len(page_id),
        "redirects": sum(len(titles) for (titles,) in spool.each("redirect_hash")),
        "links": n_in_links,
        "phrases": n_phrases,
        "senses": n_senses,
        "words": int(n_words.sum()),
    }


def _names(spool: Spool) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Ascending hashes of titles and redirects, and their entities; the first of equal titles."""
    titles, hashes, targets = spool.whole("title_hash", "redirect_hash", "redirect_target")
    titles, first = np.unique(titles, return_index=True)
    order = np.argsort(hashes, kind="stable")
    hashes, targets = hashes[order], targets[order]
    goal = targets.copy()
    for _ in range(5):  # chains of redirects are short: MediaWiki follows one
        at, again = look_up(goal, hashes)
        _, arrived = look_up(goal, titles)
        goal = np.where(again & ~arrived, targets[at] if len(targets) else goal, goal)
    at, arrived = look_up(goal, titles)
    _, is_title = look_up(hashes, titles)
    kept = arrived & ~is_title
    names = np.concatenate([titles, hashes[kept]])
    entity = np.concatenate([first, first[at[kept]]]).astype(np.int32)
    names, unique = np.unique(names, return_index=True)
    return names, entity[unique]


def _resolve(spool: Spool, names: NDArray[np.uint64], entity: NDArray[np.int32]) -> Path:
    """Write :data:`_LINKS`, sources, entities and phrases, into a folder, unless they exist."""
    folder = spool.path("links")
    if folder.is_dir():
        return folder
    with atomic_path(folder, kind="folder") as unfinished:
        unfinished.mkdir()
        with (
            (unfinished / "from").open("wb") as from_,
            (unfinished / "to").open("wb") as to,
            (unfinished / "by").open("wb") as by,
        ):
            first = 0
            for page_id, source, target, phrase in spool.each(
                "page_id", "source", "target", "phrase"
            ):
                source = np.where(source < 0, source, source + np.int32(first))
                first += len(page_id)
                at, known = look_up(target, names)
                goal = entity[at]
                known &= goal != source
                from_.write(source[known].tobytes())
                to.write(goal[known].tobytes())
                by.write(phrase[known].tobytes())
    return folder


def _links(folder: Path, *columns: str) -> Iterator[tuple[NDArray, ...]]:
    """Yield the records of some of the :data:`_LINKS`, some millions at a time."""
    n = (folder / "to").stat().st_size // _LINKS["to"].itemsize
    for rows in slices(n, _CHUNK):
        yield tuple(
            np.fromfile(
                folder / name, kind, rows.stop - rows.start, offset=rows.start * kind.itemsize
            )
            for name, kind in ((column, _LINKS[column]) for column in columns)
        )


def _in_links(spool: Spool, base: BaseArrays, links: Path, n: int, part: int = _PART) -> int:
    """Sort the links by target: about ``part`` links, to a range of targets, at a time."""
    sizes = np.zeros(n, dtype=np.int64)
    for source, target in _links(links, "from", "to"):
        sizes += np.bincount(target[source >= 0], minlength=n)
    before = np.cumsum(sizes) - sizes
    bounds = np.append(np.searchsorted(before, np.arange(0, int(sizes.sum()) + 1, part)), n)
    bounds[0] = 0
    calls = [
        (f"in-links-{begin}-{end}", links, begin, end, int(sizes[begin:end].sum()))
        for begin, end in pairwise(bounds.tolist())
    ]
    base.append("link_sources", np.zeros(0))
    base.append("link_ends", np.zeros(1))
    n_links = 0
    for path in spool.made(_in_links_of, calls):
        sources, distinct = read_arrays(path, "sources", "sizes")
        base.append("link_sources", sources)
        base.append("link_ends", n_links + np.cumsum(distinct))
        n_links += len(sources)
    base.close("link_sources", "link_ends")
    return n_links


def _in_links_of(links: Path, begin: int, end: int, n: int) -> Arrays:
    """The distinct sources of the ``n`` links to a range of targets, and their number by target."""
    packed = np.empty(n, dtype=np.uint64)
    filled = 0
    for source, target in _links(links, "from", "to"):
        chosen = (source >= 0) & (target >= begin) & (target < end)
        stop = filled + int(chosen.sum())
        packed[filled:stop] = target[chosen].astype(np.uint64) << np.uint64(32)
        packed[filled:stop] |= source[chosen].astype(np.uint64)
        filled = stop
    packed.sort()
    packed = packed[_begins(packed[1:] != packed[:-1], len(packed))]
    targets = (packed >> np.uint64(32)).astype(np.int64) - begin
    return {
        "sources": (packed & np.uint64(0xFFFFFFFF)).astype(np.int32),
        "sizes": np.bincount(targets, minlength=end - begin),
    }


def _senses(spool: Spool, base: BaseArrays, links: Path, part: int = _PART) -> tuple[int, int]:
    """Count pairs (phrase, entity), about ``part`` links at a time, by leading bits of phrases."""
    n_links = (links / "to").stat().st_size // np.dtype(np.int32).itemsize
    bits = int(n_links // part).bit_length()
    arrays = ("phrase_hash", "phrase_links", "sense_entity", "sense_links")
    n_phrases = n_senses = 0
    base.append("sense_ends", np.zeros(1))
    calls = ((f"senses-{bits}-{leading}", links, bits, leading) for leading in range(1 << bits))
    for path in spool.made(_senses_of, calls):
        for name, values in zip(arrays, read_arrays(path, *arrays), strict=True):
            base.append(name, values)
        (ends,) = read_arrays(path, "sense_ends")
        base.append("sense_ends", n_senses + ends)
        n_phrases += len(ends)
        n_senses += int(ends[-1]) if len(ends) else 0
    base.close(*arrays, "sense_ends")
    return n_phrases, n_senses


def _senses_of(links: Path, bits: int, leading: int) -> Arrays:
    """The phrases with these leading bits, and their senses."""
    phrase, target = _links_by(links, bits, leading)
    order = np.lexsort((target, phrase))
    phrase, target = phrase[order], target[order]
    begins = _begins((phrase[1:] != phrase[:-1]) | (target[1:] != target[:-1]), len(phrase))
    counts = np.diff(np.append(begins, len(phrase)))
    phrase, target = phrase[begins], target[begins]
    order = np.lexsort((target, -counts, phrase))
    phrase, target, counts = phrase[order], target[order], counts[order]
    begins = _begins(phrase[1:] != phrase[:-1], len(phrase))
    return {
        "phrase_hash": phrase[begins],
        "phrase_links": np.add.reduceat(counts, begins) if len(begins) else counts,
        "sense_ends": np.append(begins, len(phrase))[1:],
        "sense_entity": target,
        "sense_links": counts,
    }


def _links_by(links: Path, bits: int, leading: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The links (phrase, entity) of phrases with these leading bits."""
    phrases, targets = [np.zeros(0, dtype=np.uint64)], [np.zeros(0, dtype=np.int32)]
    for phrase, target in _links(links, "by", "to"):
        chosen = phrase != 0
        if bits:
            chosen &= (phrase >> np.uint64(64 - bits)) == leading
        phrases.append(phrase[chosen])
        targets.append(target[chosen])
    return np.concatenate(phrases), np.concatenate(targets)


def _count_occurrences(
    spool: Spool, base: BaseArrays, n_words: NDArray[np.int64], threads: int
) -> None:
    """Write how often each phrase occurs; at least as often as it is a link.

    Args:
        base: arrays that include the phrases and their links.
        n_words: int64 [parts]: the number of words in each part.
    """
    hashes = np.load(base.path("phrase_hash"))
    first, shift = bucket_index(hashes)
    save_array(base.path("first"), first)
    piece = (np.cumsum(n_words) - n_words) // max(_WORDS, -(-int(n_words.sum()) // _PIECES))
    calls = []
    for parts in np.split(np.arange(len(piece)), np.flatnonzero(np.diff(piece)) + 1):
        files = [spool.parts[part] for part in parts.tolist()]
        calls.append((f"counts-{parts[0]}-{parts[-1]}", files, base.folder, shift, threads))
    total = np.zeros(len(hashes), dtype=np.int64)
    for path in spool.made(_occurrences_in, calls):
        total += read_arrays(path, "counts")[0]
    base.path("first").unlink()
    base.save("phrase_count", np.maximum(total, np.load(base.path("phrase_links"))))


def _occurrences_in(parts: Sequence[Path], base: Path, shift: np.uint64, threads: int) -> Arrays:
    """Count how often each phrase occurs in some parts."""
    # Memory-mapped to be shared by a machine's workers; "c" because kernels want writable arrays.
    hashes, first = (np.asarray(np.load(base / f"{n}.npy", "c")) for n in ("phrase_hash", "first"))
    counts = np.zeros((threads, len(hashes)), dtype=np.uint32)

    def count(words: NDArray[np.uint64]) -> None:
        """Each thread counts the phrases that start in its share of the words."""
        bounds = np.linspace(0, len(words), threads + 1).astype(np.int64)

        def share(thread: int) -> None:
            begin, stop = bounds[thread : thread + 2]
            seen = words[begin : stop + LONGEST_PHRASE - 1]
            count_phrases(seen, stop - begin, hashes, first, shift, counts[thread])

        list(map_blocks(share, range(threads), threads))

    for part in parts:
        count(*read_arrays(part, "words"))
    return {"counts": counts.sum(axis=0, dtype=np.uint32)}


def _begins(changes: NDArray[np.bool_], n: int) -> NDArray[np.int64]:
    """Where runs of equal records begin among ``n`` sorted ones, given where neighbours differ."""
    return np.flatnonzero(np.append(True, changes)[:n])
