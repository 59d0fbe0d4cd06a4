"""Build a knowledge base from a Wikipedia dump, as a stream and in bounded memory.

First pass, over the dump: articles, words, links and redirects go to temporary files as hashes,
16 bytes per link and 8 per word. Then, over those files: titles and redirects are resolved, the
in-links sorted, the anchors counted (in parts by their hash, so that a part fits in memory), and
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
import re
from array import array
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.entities.knowledge import ARRAYS, MARK, VERSION, bucket_index, look_up
from ltr_features.entities.words import phrase_hashes, title_hashes, word_hashes
from ltr_features.kernels.entities import LONGEST_PHRASE, count_phrases
from ltr_features.sources.wikipedia import Article, Redirect, read_dump

#: Code points of an abstract.
ABSTRACT_LENGTH = 2000

#: Records held in memory at a time.
_CHUNK = 1 << 22

_IN_BRACKETS = re.compile(r" \([^()]*\)$")
_POINTLESS = re.compile(r"[\W_\d]*|\W*\w\W*")


def build_knowledge_base(
    dump: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    processes: int = 1,
    held_out: Collection[str] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, int]:
    """Write the knowledge base of a dump into ``folder``; an older one there is replaced.

    Args:
        dump, processes, on_progress: see :func:`ltr_features.sources.wikipedia.read_dump`.
        held_out: titles of articles whose text and links are left out of all statistics, to test a
            linker on them.

    Returns:
        Counts of what it holds: articles, redirects, links, phrases, senses, words.

    Raises:
        InputError: not a readable dump, one without articles, or ``folder`` holds something else.
    """
    folder = Path(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise InputError(f"{folder} is not empty and no knowledge base; name another folder")
    records = read_dump(dump, processes=processes, on_progress=on_progress)
    with atomic_path(folder, kind="folder") as partial:
        partial.mkdir(parents=True)
        spool = _Spool(partial, frozenset(held_out))
        spool.write(records)
        if not spool.page_id:
            raise InputError(f"{dump}: no article in it; nothing can be linked to")
        facts = _finish(spool)
        sizes = {n: len(np.load(partial / f"{n}.npy", mmap_mode="r")) for n in ARRAYS}
        described = {"version": VERSION, "source": Path(dump).name, "sizes": sizes, "facts": facts}
        (partial / MARK).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    return facts


class _Spool:
    """The first pass: temporary files of fixed-size records beside the arrays to come."""

    FILES = ("words", "source", "target", "phrase", "title_bytes", "abstract_bytes")

    def __init__(self, folder: Path, held_out: frozenset[str]) -> None:
        self.folder, self.held_out = folder, held_out
        self.page_id, self.title_hash = array("q"), array("Q")
        self.title_ends, self.abstract_ends = array("q", [0]), array("q", [0])
        self.redirect_hash, self.redirect_target = array("Q"), array("Q")
        self.n_words = 0

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.raw"

    def write(self, records: Iterator[Article | Redirect]) -> None:
        out: dict[str, BinaryIO] = {name: self.path(name).open("wb") for name in self.FILES}
        try:
            for record in records:
                if isinstance(record, Article):
                    self._article(record, out)
                else:
                    self._redirect(record, out)
        finally:
            for file in out.values():
                file.close()

    def _article(self, article: Article, out: dict[str, BinaryIO]) -> None:
        row = len(self.page_id)
        title = article.title.encode("utf8", "surrogatepass")
        lead = article.sections[0].text if article.sections else ""
        abstract = lead[:ABSTRACT_LENGTH].encode("utf8", "replace")
        out["title_bytes"].write(title)
        out["abstract_bytes"].write(abstract)
        self.title_ends.append(self.title_ends[-1] + len(title))
        self.abstract_ends.append(self.abstract_ends[-1] + len(abstract))
        self.page_id.append(article.page_id)
        targets, anchors = [article.title], [_as_phrase(article.title)]
        if article.title not in self.held_out:
            words = word_hashes(section.text for section in article.sections)
            self.n_words += int((words != 0).sum())
            out["words"].write(words.tobytes())
            for section in article.sections:
                targets += [link.target for link in section.links]
                anchors += [link.anchor for link in section.links]
        hashes = title_hashes(targets)
        self.title_hash.append(int(hashes[0]))
        self._links(np.r_[-1, np.full(len(targets) - 1, row)], hashes, anchors, out)

    def _redirect(self, redirect: Redirect, out: dict[str, BinaryIO]) -> None:
        title, target = title_hashes([redirect.title, redirect.target])
        self.redirect_hash.append(int(title))
        self.redirect_target.append(int(target))
        if title != target:
            self._links(np.array([-1]), np.array([target]), [_as_phrase(redirect.title)], out)

    @staticmethod
    def _links(
        source: NDArray, target: NDArray[np.uint64], anchors: list[str], out: dict[str, BinaryIO]
    ) -> None:
        """Source -1 is a name: it gives a phrase but no in-link."""
        phrases = phrase_hashes("" if _POINTLESS.fullmatch(a) else a for a in anchors)
        out["source"].write(source.astype(np.int32).tobytes())
        out["target"].write(target.astype(np.uint64).tobytes())
        out["phrase"].write(phrases.tobytes())

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


def _as_phrase(title: str) -> str:
    return "" if title.endswith("(disambiguation)") else _IN_BRACKETS.sub("", title)


def _finish(spool: _Spool) -> dict[str, int]:
    """The second part: from temporary files to the arrays."""
    folder = spool.folder

    def save(name: str, values: NDArray) -> None:
        np.save(folder / f"{name}.npy", values.astype(ARRAYS[name], copy=False))

    n = len(spool.page_id)
    for name in ("page_id", "title_ends", "abstract_ends"):
        save(name, np.array(getattr(spool, name), dtype=np.int64))
    for name in ("title_bytes", "abstract_bytes"):
        _raw_to_npy(spool.path(name), folder / f"{name}.npy", np.uint8)
    name_hash, name_entity = _names(spool)
    save("name_hash", name_hash)
    save("name_entity", name_entity)
    n_links = _resolve(spool, name_hash, name_entity)
    n_in_links = _in_links(spool, n, n_links, save)
    n_phrases, n_senses = _senses(spool, n_links, save)
    _occurrences(spool, save)
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


def _in_links(spool: _Spool, n: int, n_links: int, save: Callable[[str, NDArray], None]) -> int:
    packed = np.empty(n_links, dtype=np.uint64)
    filled = 0
    for source, target in spool.chunks(("from", np.int32), ("to", np.int32)):
        real = source >= 0
        part = (target[real].astype(np.uint64) << np.uint64(32)) | source[real].astype(np.uint64)
        packed[filled : filled + len(part)] = part
        filled += len(part)
    packed = packed[:filled]
    packed.sort()
    distinct = np.ones(filled, dtype=np.bool_)
    distinct[1:] = packed[1:] != packed[:-1]
    packed = packed[distinct]
    save("link_ends", np.searchsorted(packed, np.arange(n + 1, dtype=np.uint64) << np.uint64(32)))
    save("link_sources", (packed & np.uint64(0xFFFFFFFF)).astype(np.int32))
    return len(packed)


def _senses(spool: _Spool, n_links: int, save: Callable[[str, NDArray], None]) -> tuple[int, int]:
    """Count (phrase, entity), a part of the phrases at a time, by their leading bits."""
    bits = max(0, int(n_links // (4 * _CHUNK)).bit_length())
    phrases, links, sense_counts, entities, sense_links = [], [], [], [], []
    for part in range(1 << bits):
        found = []
        for phrase, target in spool.chunks(("by", np.uint64), ("to", np.int32)):
            mine = phrase != 0
            if bits:
                mine &= (phrase >> np.uint64(64 - bits)) == part
            found.append((phrase[mine], target[mine]))
        if not found:
            continue
        phrase, target = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.lexsort((target, phrase))
        phrase, target = phrase[order], target[order]
        begins = np.flatnonzero(
            np.r_[True, (phrase[1:] != phrase[:-1]) | (target[1:] != target[:-1])][: len(phrase)]
        )
        counts = np.diff(np.append(begins, len(phrase)))
        phrase, target = phrase[begins], target[begins]
        order = np.lexsort((target, -counts, phrase))
        phrase, target, counts = phrase[order], target[order], counts[order]
        distinct, begins = np.unique(phrase, return_index=True)
        phrases.append(distinct)
        sense_counts.append(np.diff(np.append(begins, len(phrase))))
        links.append(np.add.reduceat(counts, begins) if len(begins) else counts)
        entities.append(target)
        sense_links.append(counts)
    ends = np.cumsum(np.concatenate([[0], *sense_counts]))
    save("phrase_hash", np.concatenate([np.zeros(0, np.uint64), *phrases]))
    save("phrase_links", np.concatenate([np.zeros(0, np.int64), *links]))
    save("sense_ends", ends)
    save("sense_entity", np.concatenate([np.zeros(0, np.int32), *entities]))
    save("sense_links", np.concatenate([np.zeros(0, np.int64), *sense_links]))
    return len(ends) - 1, int(ends[-1])


def _occurrences(spool: _Spool, save: Callable[[str, NDArray], None]) -> None:
    hashes = np.load(spool.folder / "phrase_hash.npy")
    links = np.load(spool.folder / "phrase_links.npy")
    first, shift = bucket_index(hashes)
    counts = np.zeros(len(hashes), dtype=np.int64)
    rest = np.zeros(0, dtype=np.uint64)
    for (words,) in spool.chunks(("words", np.uint64)):
        words = np.concatenate([rest, words])
        end = max(0, len(words) - LONGEST_PHRASE + 1)
        count_phrases(words, end, hashes, first, shift, counts)
        rest = words[end:]
    count_phrases(rest, len(rest), hashes, first, shift, counts)
    save("phrase_count", np.maximum(counts, links))


def _raw_to_npy(raw: Path, path: Path, dtype: Any) -> None:
    """Put a header before the bytes of a file, a piece at a time."""
    size = raw.stat().st_size // np.dtype(dtype).itemsize
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (size,)}
    with path.open("wb") as out, raw.open("rb") as source:
        np.lib.format.write_array_header_1_0(out, header)
        while piece := source.read(1 << 24):
            out.write(piece)
    raw.unlink()
