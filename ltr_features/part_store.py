"""Where workers put the parts that they make: a folder that all see, or a store that is reached by
a URL, such as ``s3://bucket/prefix``.

A part appears under its name when it is complete. URLs are read by fsspec (extra ``dask``), with
the settings and credentials that each machine has for them.
"""

from __future__ import annotations

import errno
import hashlib
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from letor.errors import InputError

#: The file by which a machine knows that it sees the store of another one.
_MARK = "mark"
_PATTERN = re.compile(r"[*?\[\]]")  # characters that fsspec takes for patterns of names


class PartStore(Protocol):
    """Files by name. Workers are given the object, and reach the same files by it."""

    def begin(self) -> None:
        """Make the store ready for parts; those that are there stay.

        Raises:
            InputError: it cannot be reached or written.
        """

    def seen(self) -> str:
        """What this machine sees of it: the same on all.

        Raises:
            InputError: it cannot be reached.
        """

    def has(self, name: str) -> bool:
        """Whether a part is there, complete."""

    def working(self) -> AbstractContextManager[Path]:
        """A folder to write parts in, each of which appears there when it is complete."""

    def put(self, path: Path) -> None:
        """Let a file in the folder of :meth:`working` be there for all."""

    def reading(self, name: str) -> AbstractContextManager[Path]:
        """A part as a file of this machine, while the block runs."""

    def remove(self) -> None:
        """Remove all parts."""


def part_store(place: str, output: Path) -> PartStore:
    """The store in a folder or at a URL, ready for parts.

    Args:
        place: of the folder, which all machines see under the same path, or the URL of one that is
            there (with stores of objects, a bucket and any prefix).
        output: the file or folder that the parts are for; those of others may lie beside them.

    Raises:
        InputError: it cannot be reached or written.
    """
    found: PartStore
    own = "parts-" + hashlib.sha256(str(output.resolve()).encode()).hexdigest()[:16]
    if "://" not in place:
        found = PartFolder(Path(place).resolve() / own)
    elif _PATTERN.search(place):
        raise InputError(f"parts {place}: an address without *, ?, [ and ] is needed")
    else:
        found = PartUrl(place, own)
    found.begin()
    return found


@dataclass(frozen=True)
class PartFolder:
    """A folder that all machines see under the same path.

    Attributes:
        folder: an absolute path.
    """

    folder: Path

    def __str__(self) -> str:
        return f"folder {self.folder}"

    def begin(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"parts {self.folder}: {error.strerror}; name another one") from None

    def seen(self) -> str:
        return "there" if self.folder.is_dir() else "missing"

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    @contextmanager
    def working(self) -> Iterator[Path]:
        yield self.folder

    def put(self, path: Path) -> None:
        """All see it already."""

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        yield self.folder / name

    def remove(self) -> None:
        shutil.rmtree(self.folder)


@dataclass(frozen=True)
class PartUrl:
    """Files of a store that fsspec reads.

    Attributes:
        url: of a folder, or bucket and prefix. own: what names begin with, and no others' names.
    """

    url: str
    own: str

    def __str__(self) -> str:
        return f"parts {self.url}"

    def begin(self) -> None:
        with self.working() as folder:  # as each part is: written, renamed, read
            (folder / _MARK).write_text(secrets.token_hex(8))
            self.put(folder / _MARK)
        self.seen()

    def seen(self) -> str:
        with self._reached() as (files, start):
            return str(files.cat_file(start + _MARK).decode())

    def has(self, name: str) -> bool:
        with self._reached() as (files, start):
            return bool(files.exists(start + name))

    @contextmanager
    def working(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    def put(self, path: Path) -> None:
        with self._reached() as (files, start):
            # A bucket shows what is complete; a file system, which a URL may also name, does not.
            partial = f"{start}{path.name}-{secrets.token_hex(8)}.partial"
            try:
                files.put_file(str(path), partial)
                files.mv(partial, start + path.name)
            except Exception:
                with suppress(Exception):  # the first error is to be told
                    files.rm_file(partial)
                raise

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        # Windows removes no file that is mapped into memory.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path = Path(folder) / name
            with self._reached() as (files, start):
                files.get_file(start + name, str(path))
            yield path

    def remove(self) -> None:
        with self._reached() as (files, start):
            folder, _, first = start.rpartition("/")
            names = [str(name) for name in files.ls(folder, detail=False)]
            files.rm([name for name in names if name.rpartition("/")[2].startswith(first)])

    @contextmanager
    def _reached(self) -> Iterator[tuple[Any, str]]:
        """The file system of fsspec, and what paths of parts begin with."""
        said = f"parts {self.url}, on {socket.gethostname()}"
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise InputError(f"{said}: fsspec is missing: install ltr-features[dask]") from None
        try:
            files, place = url_to_fs(self.url)
            files.invalidate_cache()  # others write, too
            yield files, f"{place.rstrip('/')}/{self.own}-"
        except ImportError as error:
            raise InputError(f"{said}: {error}; all machines need it") from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # of a file, a copy's
                error.filename = error.filename2 or error.filename or tempfile.gettempdir()
                error.filename2 = None
                raise
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise InputError(
                f"{said}: {what}; check the address, and that this machine may read, write and "
                "delete there"
            ) from error
