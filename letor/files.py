"""Outputs appear under their final name only when they are complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; rename it to ``target`` if the block succeeds.

    The caller creates a file or a folder at the yielded path. On any exception (Ctrl-C included)
    whatever was written there is removed and ``target`` keeps its former content. An existing
    file is replaced in one step; an existing folder is moved aside first, then removed.

    Raises:
        OSError: the parent folder cannot be created or written.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.partial")
    _remove(temporary)
    try:
        yield temporary
        if target.is_dir():
            aside = target.with_name(f".{target.name}.{os.getpid()}.old")
            os.replace(target, aside)
            os.replace(temporary, target)
            _remove(aside)
        else:
            os.replace(temporary, target)
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
