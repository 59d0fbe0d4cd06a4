"""Storage for the parts that workers produce: a folder that all machines see, or a URL such as
``s3://bucket/prefix``.

A part appears under its name once it is complete. URLs are accessed through fsspec (extra
``dask``), with the settings and credentials that each machine has for them.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from letor.errors import InputError

#: The file whose content shows that two machines see the same store.
_MARK = "mark"
_PATTERN = re.compile(r"[*?\[\]]")  # characters that fsspec interprets as wildcards


def part_store(place: str, output: Path) -> PartStore:
    """The store in a folder or at a URL, ready for parts.

    Args:
        place: a folder that all machines see under the same path, or the URL of an existing one
            (for object stores, a bucket and any prefix).
        output: what the parts are for; the place may hold parts of other outputs, too.

    Raises:
        InputError: the store cannot be reached or written.
    """
    own = "parts-" + hashlib.sha256(str(output.resolve()).encode()).hexdigest()[:16]
    if "://" not in place:
        found: PartStore = PartFolder(Path(place).resolve() / own)
    elif _PATTERN.search(place):
        raise InputError(f"parts {place}: an address without *, ?, [ and ] is needed")
    else:
        found = PartUrl(place, own)
    found.begin()
    return found


@dataclass(frozen=True)
class PartFolder:
    """Files by name in a folder that all machines see under the same path. The object is sent to
    workers, which access the same files through it.

    Attributes:
        folder: an absolute path.
    """

    folder: Path

    def __str__(self) -> str:
        return f"folder {self.folder}"

    def begin(self) -> None:
        """Prepare the store for parts; existing ones are kept.

        Raises:
            InputError: the store cannot be reached or written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"parts {self.folder}: {error.strerror}; name another one") from None

    def seen(self) -> str:
        """A text that is the same on all machines that see this store; a URL that cannot be reached
        is an InputError."""
        return "there" if self.folder.is_dir() else "missing"

    def has(self, name: str) -> bool:
        """Whether a part exists, and so is complete."""
        return (self.folder / name).is_file()

    @contextmanager
    def working(self) -> Iterator[Path]:
        """A folder to write parts in; a file must appear there only when it is complete."""
        yield self.folder

    def put(self, path: Path) -> None:
        """Publish a file in the folder of :meth:`working` as a part; here all machines see it
        already."""

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """A part as a local file, which exists while the context is open."""
        yield self.folder / name

    def remove(self) -> None:
        """Remove all parts."""
        shutil.rmtree(self.folder)


@dataclass(frozen=True)
class PartUrl:
    """As :class:`PartFolder`, at a URL that fsspec can access.

    Attributes:
        url: URL of a folder, or of a bucket and prefix. own: prefix of this output's file names.
    """

    url: str
    own: str

    def __str__(self) -> str:
        return f"parts {self.url}"

    def begin(self) -> None:
        with self.working() as folder:  # test all that a part needs: writing, renaming, reading
            (folder / _MARK).write_bytes(secrets.token_hex(8).encode())
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
            # A bucket shows only complete files; a file system, which a URL can also be, does not.
            partial = f"{start}{path.name}-{secrets.token_hex(8)}.partial"
            try:
                files.put_file(str(path), partial)
                files.mv(partial, start + path.name)
            except Exception:
                with suppress(Exception):  # report the first error, not this one
                    files.rm_file(partial)
                raise

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        # Windows cannot remove a file that is mapped into memory.
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
        """The fsspec file system, and the prefix of the paths of parts."""
        where = f"parts {self.url}, on {socket.gethostname()}"
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise InputError(f"{where}: fsspec is missing: install ltr-features[dask]") from None
        try:
            files, place = url_to_fs(self.url)
            files.invalidate_cache()  # other machines write, too
            yield files, f"{place.rstrip('/')}/{self.own}-"
        except ImportError as error:
            raise InputError(f"{where}: {error}; all machines need it") from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # name the full disk
                error.filename = error.filename2 or error.filename or tempfile.gettempdir()
                error.filename2 = None
                raise
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise InputError(
                f"{where}: {what}; check the address, and that this machine may read, write and "
                "delete there"
            ) from error


PartStore: TypeAlias = PartFolder | PartUrl
