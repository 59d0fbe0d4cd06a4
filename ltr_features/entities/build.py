"""Build a knowledge base from a Wikipedia dump, as a stream and in bounded memory.

First pass, over the dump: articles, words, links and redirects go to temporary files as hashes,
20 bytes per link and 8 per word. Then, over those files: titles and redirects are resolved, the
in-links sorted, the anchors counted (both in parts that fit in memory, written as they go), and
their occurrences in all texts counted. Interrupted, it leaves nothing behind and starts anew.

Rules:

- links to the article itself and to articles that the dump lacks do not count;
- a phrase is an anchor text of 1 to 6 words, of more than one character and not digits only;
- titles and redirects are phrases as well (without the "(...)" at the end), as if each were one
  link, see Ferragina and Scaiella 2010, section 3; disambiguation pages are not;
- occurrences are counted within sections, across their lines; a phrase occurs at least as often as
  it is a link.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from letor.digests import write_digests
from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.entities.digest import Digest, digest
from ltr_features.entities.knowledge import ARRAYS, MARK, VERSION, bucket_index, look_up
from ltr_features.entities.words import hash_phrases, hash_titles, hash_words
from ltr_features.kernels.entities import LONGEST_PHRASE, count_phrases
from ltr_features.parallel import map_blocks
from ltr_features.sources.wikipedia import WITHHELD, map_dump

#: Records held in memory at a time.
_CHUNK = 1 << 22

#: Links sorted at a time.
_PART = 1 << 23


def build_knowledge_base(
    dump: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    processes: int = 1,
    held_out: Collection[str] = (),
    withhold_query_sections: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, int]:
    """Write the knowledge base of a dump into ``folder``; an older one there is replaced.

    Args:
        dump, processes, on_progress: see :func:`ltr_features.sources.wikipedia.map_dump`.
        held_out: titles of articles whose text and links are left out of all statistics, to test a
            linker on them.
        withhold_query_sections: leave out every second section of each article, text and links,
            for search tasks whose queries are drawn from these, see
            :func:`ltr_features.sources.wikipedia.document_sections`.

    Returns:
        Counts of what it holds: articles, redirects, links, phrases, senses, words.

    Raises:
        InputError: not a readable dump, one without articles, or ``folder`` holds something else.
    """
    folder = Path(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise InputError(f"{folder} is not empty and no knowledge base; name another folder")
    pack = partial(
        digest,
        held_out=frozenset(held_out),
        withhold_query_sections=withhold_query_sections,
    )
    blocks = map_dump(dump, pack, processes=processes, on_progress=on_progress)
    with atomic_path(folder, kind="folder") as unfinished:
        unfinished.mkdir(parents=True)
        spool = _Spool(unfinished)
        spool.write(blocks)
        if not spool.page_id:
            raise InputError(f"{dump}: no article in it; nothing can be linked to")
        facts = _finish(spool, threads=processes)
        sizes = {n: len(np.load(unfinished / f"{n}.npy", mmap_mode="r")) for n in ARRAYS}
        described = {"version": VERSION, "source": Path(dump).name, "sizes": sizes, "facts": facts}
        if withhold_query_sections:
            described["withheld"] = WITHHELD
        (unfinished / MARK).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
        write_digests(unfinished)
    return facts


class _Spool:
    """The first pass: temporary files of fixed-size records beside the arrays to come."""

    FILES = ("words", "source", "target", "phrase", "title_bytes", "abstract_bytes")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.page_id, self.title_hash = array("q"), array("Q")
        self.title_ends, self.abstract_ends = array("q", [0]), array("q", [0])
        self.redirect_hash, self.redirect_target = array("Q"), array("Q")
        self.n_words = 0

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.raw"

    def write(self, blocks: Iterator[Digest]) -> None:
        out: dict[str, BinaryIO] = {name: self.path(name).open("wb") for name in self.FILES}
        try:
            for block in blocks:
                self._articles(block, out)
                self._redirects(block, out)
        finally:
            for file in out.values():
                file.close()

    def _articles(self, block: Digest, out: dict[str, BinaryIO]) -> None:
        rows = len(self.page_id) + np.arange(len(block.page_ids))
        for title, abstract in zip(block.titles, block.abstracts, strict=True):
            self.title_ends.append(self.title_ends[-1] + len(title))
            self.abstract_ends.append(self.abstract_ends[-1] + len(abstract))
        out["title_bytes"].write(b"".join(block.titles))
        out["abstract_bytes"].write(b"".join(block.abstracts))
        self.page_id.extend(block.page_ids)
        words = hash_words(block.words)
        self.n_words += int((words != 0).sum())
        out["words"].write(words.tobytes())
        # Before an article's links stands its name.
        sizes = np.array(block.n_links, dtype=np.int64) + 1
        names = np.cumsum(sizes) - sizes
        source = np.repeat(rows, sizes)
        source[names] = -1
        targets = hash_titles(block.targets)
        self.title_hash.frombytes(targets[names].tobytes())
        self._links(source, targets, hash_phrases(block.anchors), out)

    def _redirects(self, block: Digest, out: dict[str, BinaryIO]) -> None:
        titles, targets = hash_titles(block.redirects), hash_titles(block.redirect_targets)
        self.redirect_hash.frombytes(titles.tobytes())
        self.redirect_target.frombytes(targets.tobytes())
        other = titles != targets
        phrases = hash_phrases(block.redirect_names)[other]
        self._links(np.full(len(phrases), -1), targets[other], phrases, out)

    @staticmethod
    def _links(
        source: NDArray,
        target: NDArray[np.uint64],
        phrase: NDArray[np.uint64],
        out: dict[str, BinaryIO],
    ) -> None:
        """Source -1 is a name: it gives a phrase but no in-link."""
        out["source"].write(source.astype(np.int32).tobytes())
        out["target"].write(target.tobytes())
        out["phrase"].write(phrase.tobytes())

    def append(self, name: str, values: NDArray) -> None:
        """Write more of an array of the knowledge base."""
        with self.path(name).open("ab") as file:
            values.astype(ARRAYS[name], copy=False).tofile(file)

    def close(self, *names: str) -> None:
        """Put a header before arrays that were written in parts."""
        for name in names:
            _raw_to_npy(self.path(name), self.folder / f"{name}.npy", ARRAYS[name])

    def chunks(self, *columns: tuple[str, Any]) -> Iterator[tuple[NDArray, ...]]:
        """The records of parallel files, some millions at a time."""
        files = [self.path(name).open("rb") for name, _ in columns]
        try:
            while True:
                parts = [
                    np.fromfile(file, dtype=dtype, count=_CHUNK)
                    for file, (_, dtype) in zip(files, columns, strict=True)
                ]
                if not len(parts[0]):
                    return
                yield tuple(parts)
        finally:
            for file in files:
                file.close()


def _finish(spool: _Spool, threads: int) -> dict[str, int]:
    """The second part: from temporary files to the arrays."""
    folder = spool.folder

    def save(name: str, values: NDArray) -> None:
        np.save(folder / f"{name}.npy", values.astype(ARRAYS[name], copy=False))

    n = len(spool.page_id)
    for name in ("page_id", "title_ends", "abstract_ends"):
        save(name, np.array(getattr(spool, name), dtype=np.int64))
    spool.close("title_bytes", "abstract_bytes")
    name_hash, name_entity = _names(spool)
    save("name_hash", name_hash)
    save("name_entity", name_entity)
    n_links = _resolve(spool, name_hash, name_entity)
    n_in_links = _in_links(spool, n)
    n_phrases, n_senses = _senses(spool, n_links)
    _occurrences(spool, threads)
    for path in folder.glob("*.raw"):
        path.unlink()
    return {
        "articles": n,
        "redirects": len(spool.redirect_hash),
        "links": n_in_links,
        "phrases": n_phrases,
        "senses": n_senses,
        "words": spool.n_words,
    }


def _names(spool: _Spool) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Titles and redirects by hash; of a title that occurs twice the first counts."""
    titles, first = np.unique(np.array(spool.title_hash, dtype=np.uint64), return_index=True)
    hashes = np.array(spool.redirect_hash, dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    hashes, targets = hashes[order], np.array(spool.redirect_target, dtype=np.uint64)[order]
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


def _resolve(spool: _Spool, names: NDArray[np.uint64], entity: NDArray[np.int32]) -> int:
    """Rewrite the links as (source, entity, phrase), those that count; returns their number."""
    n = 0
    columns = (("source", np.int32), ("target", np.uint64), ("phrase", np.uint64))
    with (
        spool.path("from").open("wb") as from_,
        spool.path("to").open("wb") as to,
        spool.path("by").open("wb") as by,
    ):
        for source, target, phrase in spool.chunks(*columns):
            at, known = look_up(target, names)
            reached = entity[at]
            known &= reached != source
            n += int(known.sum())
            from_.write(source[known].tobytes())
            to.write(reached[known].tobytes())
            by.write(phrase[known].tobytes())
    for name, _ in columns:
        spool.path(name).unlink()
    return n


def _in_links(spool: _Spool, n: int, part: int = _PART) -> int:
    """Sort the links by target, those of some targets at a time, about ``part`` links."""
    columns = (("from", np.int32), ("to", np.int32))
    sizes = np.zeros(n, dtype=np.int64)
    for source, target in spool.chunks(*columns):
        sizes += np.bincount(target[source >= 0], minlength=n)
    before = np.cumsum(sizes) - sizes
    bounds = np.append(np.searchsorted(before, np.arange(0, int(sizes.sum()) + 1, part)), n)
    bounds[0] = 0
    spool.append("link_sources", np.zeros(0, dtype=np.int32))
    for begin, end in pairwise(bounds):
        packed = np.empty(int(sizes[begin:end].sum()), dtype=np.uint64)
        filled = 0
        for source, target in spool.chunks(*columns):
            mine = (source >= 0) & (target >= begin) & (target < end)
            stop = filled + int(mine.sum())
            packed[filled:stop] = target[mine].astype(np.uint64) << np.uint64(32)
            packed[filled:stop] |= source[mine].astype(np.uint64)
            filled = stop
        packed.sort()
        packed = packed[np.append(True, packed[1:] != packed[:-1])[: len(packed)]]
        sizes[begin:end] = np.bincount(
            (packed >> np.uint64(32)).astype(np.int64) - begin, minlength=end - begin
        )
        spool.append("link_sources", packed & np.uint64(0xFFFFFFFF))
    spool.append("link_ends", np.append(0, np.cumsum(sizes)))
    spool.close("link_sources", "link_ends")
    return int(sizes.sum())


def _senses(spool: _Spool, n_links: int, part: int = _PART) -> tuple[int, int]:
    """Count (phrase, entity), about ``part`` links at a time, by the phrases' leading bits."""
    bits = int(n_links // part).bit_length()
    arrays = ("phrase_hash", "phrase_links", "sense_ends", "sense_entity", "sense_links")
    n_phrases = n_senses = 0
    spool.append("sense_ends", np.zeros(1, dtype=np.int64))
    for leading in range(1 << bits):
        phrase, target = _links_of(spool, bits, leading)
        order = np.lexsort((target, phrase))
        phrase, target = phrase[order], target[order]
        begins = _begins((phrase[1:] != phrase[:-1]) | (target[1:] != target[:-1]), len(phrase))
        counts = np.diff(np.append(begins, len(phrase)))
        phrase, target = phrase[begins], target[begins]
        order = np.lexsort((target, -counts, phrase))
        phrase, target, counts = phrase[order], target[order], counts[order]
        begins = _begins(phrase[1:] != phrase[:-1], len(phrase))
        links = np.add.reduceat(counts, begins) if len(begins) else counts
        ends = n_senses + np.append(begins, len(phrase))[1:]
        for name, values in zip(arrays, (phrase[begins], links, ends, target, counts), strict=True):
            spool.append(name, values)
        n_phrases += len(begins)
        n_senses += len(phrase)
    spool.close(*arrays)
    return n_phrases, n_senses


def _links_of(
    spool: _Spool, bits: int, leading: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The links (phrase, entity) whose phrase has these leading bits."""
    phrases, targets = [np.zeros(0, dtype=np.uint64)], [np.zeros(0, dtype=np.int32)]
    for phrase, target in spool.chunks(("by", np.uint64), ("to", np.int32)):
        mine = phrase != 0
        if bits:
            mine &= (phrase >> np.uint64(64 - bits)) == leading
        phrases.append(phrase[mine])
        targets.append(target[mine])
    return np.concatenate(phrases), np.concatenate(targets)


def _begins(changes: NDArray[np.bool_], n: int) -> NDArray[np.int64]:
    """Where runs of equal ones begin among ``n`` sorted records, from where neighbours differ."""
    return np.flatnonzero(np.append(True, changes)[:n])


def _occurrences(spool: _Spool, threads: int) -> None:
    hashes = np.load(spool.folder / "phrase_hash.npy")
    links = np.load(spool.folder / "phrase_links.npy", mmap_mode="r")
    first, shift = bucket_index(hashes)
    counts = np.zeros((threads, len(hashes)), dtype=np.uint32)
    spool.append("phrase_count", np.zeros(0))

    def count(words: NDArray[np.uint64], end: int) -> None:
        """Count the phrases that start before ``end``, a share of them per thread."""
        bounds = np.linspace(0, end, threads + 1).astype(np.int64)

        def share(thread: int) -> None:
            begin, stop = bounds[thread : thread + 2]
            seen = words[begin : stop + LONGEST_PHRASE - 1]
            count_phrases(seen, stop - begin, hashes, first, shift, counts[thread])

        list(map_blocks(share, range(threads), threads))

    rest = np.zeros(0, dtype=np.uint64)
    for (words,) in spool.chunks(("words", np.uint64)):
        words = np.concatenate([rest, words])
        end = max(0, len(words) - LONGEST_PHRASE + 1)
        count(words, end)
        rest = words[end:]
    count(rest, len(rest))
    for begin in range(0, len(hashes), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        total = counts[:, part].sum(axis=0, dtype=np.int64)
        spool.append("phrase_count", np.maximum(total, links[part]))
    spool.close("phrase_count")


def _raw_to_npy(raw: Path, path: Path, dtype: Any) -> None:
    """Put a header before the bytes of a file, a piece at a time."""
    size = raw.stat().st_size // np.dtype(dtype).itemsize
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (size,)}
    with path.open("wb") as out, raw.open("rb") as source:
        np.lib.format.write_array_header_1_0(out, header)
        while piece := source.read(1 << 24):
            out.write(piece)
    raw.unlink()
