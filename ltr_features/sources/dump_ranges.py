"""Split a dump into ranges of whole pages, for processes that see the same files.

They read the ranges of an uncompressed dump themselves, and those of a ``.bz2`` whose streams are
whole pages, as in Wikipedia's "multistream" dumps. Other compressed dumps can only be cut by this
process, which writes each range to a file.
"""

from __future__ import annotations

import bz2
import io
import mmap
import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice, pairwise
from pathlib import Path

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.sources.dump_stream import Block, DumpStream

#: Compressed bytes of a range (about 16 MiB of XML), and its greatest length.
_STREAMS_BYTES, _LONGEST = 1 << 22, 1 << 26
#: Bytes that contain the first block of a stream, and bytes that contain the dump's header.
_FIRST_BLOCK, _HEADER = 1 << 20, 1 << 22
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_BEGIN, _END = b"<mediawiki>", b"</mediawiki>"


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive whole pages of a dump.

    Attributes:
        path: the file that holds the pages. size: its number of bytes.
        begin, end: bytes of the range in the file.
        offset: offset of the first page in the dump's XML; None if unknown.
        last: whether the range ends with the end of the dump's XML.
    """

    path: Path
    size: int
    begin: int
    end: int
    offset: int | None
    last: bool = False

    def blocks(self) -> Iterator[Block]:
        """The pages in blocks, like :meth:`DumpStream.blocks`.

        Raises:
            InputError: the file is missing, was replaced, or is damaged.
        """
        with closing(DumpStream(self.path, io.BytesIO(self._as_dump()))) as stream:
            for block in stream.blocks():
                yield Block(block.xml, block.offset - len(_BEGIN) + (self.offset or 0))

    def counted(self) -> str:
        """Suffix for messages that name bytes."""
        return "" if self.offset is not None else f" (bytes count from {self.begin:,} of the file)"

    def _as_dump(self) -> bytes:
        here = f"{self.path}, as {platform.node()} sees it,"
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size != self.size:
                    raise InputError(f"{here} is another file; keep it on shared storage")
                file.seek(self.begin)
                pages = file.read(self.end - self.begin)
        except FileNotFoundError:
            raise InputError(f"{here} is not there; keep it on shared storage") from None
        pack = bz2.compress if _STREAM.match(pages) else bytes
        return b"".join([pack(_BEGIN), pages, b"" if self.last else pack(_END)])


def page_ranges(
    stream: DumpStream, n_blocks: int, file_of: Callable[[int], Path | None]
) -> Iterator[tuple[Range, int]]:
    """All pages of a dump in ranges, each with the bytes of the stored file up to its end.

    Args:
        n_blocks: number of blocks in a range; not used for a dump of streams.
        file_of: returns the file to write for a range, by its number, if other processes cannot
            read the dump; or None to write none, for a range that nobody will read.

    Raises:
        InputError: see :meth:`DumpStream.blocks`.
    """
    if ranges := _ranges_of_streams(stream.path.resolve()):
        yield from ((found, found.end) for found in ranges)
        return
    blocks = stream.blocks()
    for number in count():
        if not (group := list(islice(blocks, n_blocks))):
            return
        offset, length = group[0].offset, sum(len(block.xml) for block in group)
        if not stream.compressed:
            path = stream.path.resolve()
            held = Range(path, stream.size, offset, offset + length, offset)
        else:
            file = file_of(number)
            if file is not None:
                with atomic_path(file) as unfinished, unfinished.open("wb") as out:
                    out.writelines(block.xml for block in group)
            held = Range(file or stream.path, length, 0, length, offset)
        yield held, stream.position


def _ranges_of_streams(path: Path) -> list[Range]:
    """Ranges of the streams of a ``.bz2``; empty if they are not whole pages."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        second = _STREAM.search(data, 1, _HEADER) if _STREAM.match(data) else None
        if second is None or not _begins_with_page(data, second.start()):
            return []
        cuts = [second.start()]
        while (cut := _pages_from(data, cuts[-1] + _STREAMS_BYTES)) is not None:
            cuts.append(cut)
        cuts.append(len(data))
    if max(end - begin for begin, end in pairwise(cuts)) > _LONGEST:
        return []
    size = cuts[-1]
    return [Range(path, size, begin, end, None, end == size) for begin, end in pairwise(cuts)]


def _pages_from(data: mmap.mmap, at: int) -> int | None:
    """Start of the next stream that begins with a page; None if it is too far away."""
    for found in _STREAM.finditer(data, at, at + _LONGEST):
        if _begins_with_page(data, found.start()):
            return found.start()
    return None


def _begins_with_page(data: mmap.mmap, at: int) -> bool:
    try:
        begin = bz2.BZ2Decompressor().decompress(data[at : at + _FIRST_BLOCK], max_length=64)
    except OSError:  # not a stream, or a damaged one, which is reported when the range is read
        return False
    return re.match(rb"\s*<page>", begin) is not None
