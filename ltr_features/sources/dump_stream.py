"""The bytes of a MediaWiki XML dump as blocks of whole pages, with bounded memory.

A dump is ``<mediawiki> <siteinfo/> <page/> <page/> ... </mediawiki>``, plain or compressed. This
module checks that a file is one, reads its site information, and cuts the rest after ``</page>``
into blocks of about 1 MiB that can be parsed independently of each other. In well-formed XML those
seven bytes can only be the end of a page; otherwise the parser of the block reports an error.
"""

from __future__ import annotations

import bz2
import gzip
import os
import re
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, cast

from letor.compression import Unpacked
from letor.errors import InputError
from ltr_features.sources.wiki_links import DEFAULT_SITE, Site

BLOCK_BYTES = 1 << 20
#: MediaWiki refuses pages above 2 MiB; only dumps with whole page histories exceed this limit.
MAX_PAGE_BYTES = 1 << 28
_SNIFF_BYTES = 1 << 10
_HEADER_BYTES = 1 << 22
_PAGE_END = b"</page>"


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive whole pages.

    Attributes:
        xml: the bytes of the pages, from ``<page>`` to ``</page>``.
        offset: offset of the block in the (decompressed) XML, in bytes.
    """

    xml: bytes
    offset: int


class DumpStream:
    """An open dump: its site, and its pages in blocks.

    Args:
        path: the file.
        content: stream to read in place of the file; closed together with this object.

    Attributes:
        path: the file, for messages.
        site: namespaces and title rule from the dump's ``<siteinfo>``.
        size: bytes of the file as stored (compressed).

    Raises:
        InputError: the file is missing, a folder, unreadable or not a MediaWiki dump, or as
            :class:`~letor.compression.Unpacked`.
    """

    def __init__(self, path: str | os.PathLike[str], content: IO[bytes] | None = None) -> None:
        self.path = Path(path)
        self._last_block = b""
        try:
            self._file = self.path.open("rb") if content is None else content
        except OSError as error:
            raise InputError(f"{self.path}: {_open_failure(self.path, error)}") from error
        try:
            self.size = self._file.seek(0, os.SEEK_END)
            self._file.seek(0)
            self._stream = _decompressed(self._file, self.path)
            self._head = self._read_header()
            self.site = self._parse_site()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    @property
    def compressed(self) -> bool:
        """Whether the file is compressed XML."""
        return self._stream is not self._file

    @property
    def position(self) -> int:
        """Bytes of the stored (compressed) file read so far."""
        return self._file.tell()

    def blocks(self) -> Iterator[Block]:
        """The dump's pages. Can be consumed once.

        Raises:
            InputError: the file is truncated or damaged.
        """
        offset = re.search(rb"<page>|</mediawiki>", self._head).start()  # type: ignore[union-attr]
        buffer = bytearray(self._head[offset:])
        searched = 0
        while True:
            end = buffer.rfind(_PAGE_END, max(0, searched - len(_PAGE_END)))
            if end >= 0:
                end += len(_PAGE_END)
                self._last_block = bytes(buffer[:end])
                del buffer[:end]
                yield Block(self._last_block, offset)
                offset += end
            elif len(buffer) > MAX_PAGE_BYTES:
                self._fail(f"no </page> within {MAX_PAGE_BYTES >> 20} MiB of XML byte {offset:,}")
            searched = len(buffer)
            chunk = self._read()
            if not chunk:
                break
            buffer += chunk
        before, closing, after = bytes(buffer).partition(b"</mediawiki>")
        if not closing:
            end = offset + len(buffer)
            self._fail(f"the XML ends at byte {end:,} without </mediawiki>: truncated or damaged")
        if before.strip() or after.strip():
            self._fail(f"there is more than </mediawiki> after XML byte {offset:,}")

    def _read(self) -> bytes:
        """The next piece of XML, at most ``BLOCK_BYTES`` long; empty at the end."""
        try:
            return self._stream.read(BLOCK_BYTES)
        except EOFError:
            self._fail(f"the compressed data ends early, at byte {self.size:,}: truncated")
        except (OSError, zlib.error) as error:
            if getattr(error, "errno", None):
                raise
            self._fail(f"damaged near byte {self.position:,} of the file ({error})")

    def _fail(self, cause: str) -> NoReturn:
        titles = re.findall(rb"<title>([^<]*)</title>", self._last_block)
        last = f"last whole page: {titles[-1].decode(errors='replace')!r}" if titles else ""
        raise InputError(f"{self.path}: {cause}; {last or 'no page read'}; get the file again")

    def _read_header(self) -> bytes:
        """Everything before the first page, and what was read along with it."""
        head = self._read()
        while len(head) < _SNIFF_BYTES and (chunk := self._read()):
            head += chunk
        if not re.match(rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?<mediawiki[\s>]", head):
            begins = f"begins with {head[:60]!r}" if head else "is empty"
            raise InputError(
                f"{self.path} {begins}: it is no MediaWiki XML dump; use a file "
                "such as enwiki-latest-pages-articles.xml.bz2"
            )
        while b"<page>" not in head and b"</mediawiki>" not in head:
            if len(head) > _HEADER_BYTES:
                self._fail(f"no <page> within the first {len(head):,} bytes of XML")
            if not (chunk := self._read()):
                self._fail(f"the XML ends at byte {len(head):,}, before its first page: truncated")
            head += chunk
        return head

    def _parse_site(self) -> Site:
        header = re.split(rb"<page>|</mediawiki>", self._head, maxsplit=1)[0]
        try:
            root = ET.fromstring(header + b"</mediawiki>")
        except ET.ParseError as error:
            raise InputError(f"{self.path}: malformed XML before the first page: {error}") from None
        return _site(root)


def _open_failure(path: Path, error: OSError) -> str:
    if path.is_dir():
        return "is a folder; name the dump file (.xml, .xml.bz2 or .xml.gz) in it"
    if not path.exists():
        return "no such file"
    return f"cannot be read ({error.strerror})"


def _decompressed(file: IO[bytes], path: Path) -> IO[bytes] | Unpacked:
    """The file's content; its first bytes determine the format, whatever its name."""
    magic = file.read(4)
    file.seek(0)
    if magic.startswith(b"BZh"):
        return Unpacked(bz2.open(file), path)
    if magic.startswith(b"\x1f\x8b"):
        return Unpacked(cast(IO[bytes], gzip.open(file)), path)
    return file


def _site(root: ET.Element) -> Site:
    """Namespaces from the dump, in addition to the English names that every wiki understands."""
    files, categories, others = map(
        set, (DEFAULT_SITE.files, DEFAULT_SITE.categories, DEFAULT_SITE.others)
    )
    for element in root.iterfind("{*}siteinfo/{*}namespaces/{*}namespace"):
        name = (element.text or "").lower()
        kind = {"0": None, "6": files, "14": categories}.get(element.get("key", "0"), others)
        if kind is not None and name:
            kind.add(name)
    case = root.findtext("{*}siteinfo/{*}case", default="first-letter")
    language = root.get("{http://www.w3.org/XML/1998/namespace}lang")
    main_page = root.findtext("{*}siteinfo/{*}base", default="")
    return Site(
        frozenset(files),
        frozenset(categories),
        frozenset(others),
        case != "case-sensitive",
        language,
        main_page[: max(main_page.rfind("/"), main_page.rfind("=")) + 1],
    )
