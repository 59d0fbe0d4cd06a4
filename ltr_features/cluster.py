"""Blocks of rows made by the workers of a Dask cluster, with the bytes of one process.

Dask is optional (extra ``dask``) and imported only here. A worker opens the workspace by its path
and writes the rows of a block to a file beside the result, so that only settings and paths travel;
a run that was killed takes up the files that are there. Workspace and result must be on storage
that all workers share, and all must have one version of this package.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from letor.arrow_rows import ArrowRows
from letor.digests import DIGESTS
from letor.errors import InputError
from ltr_features.blocks import Block, BlockWork
from ltr_features.columns.context import ColumnContext, open_workspace

_LOCAL = re.compile(r"local:(\d+)")
_PATIENCE = 60  # seconds for the first worker
#: Blocks that are asked for ahead of the one that is waited for, for each worker.
_AHEAD = 2


@contextmanager
def on_cluster(
    address: str, workspace: Path, folder: Path
) -> Iterator[Callable[[BlockWork, Iterable[Block]], Iterator[ArrowRows]]]:
    """What makes the rows of blocks on a cluster, for :func:`ltr_features.blocks.write_columns`.

    Args:
        address: of a Dask scheduler ("tcp://host:8786"), or "local:N" for N processes of this
            machine with a thread each.
        workspace: the folder that ``ltr-features index`` made, as the workers see it.
        folder: for the blocks' files, as the workers see it; removed when the work is done.

    Raises:
        InputError: Dask is not installed, no scheduler there, a worker has another version of this
            package or does not see the folders.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            "--scheduler needs Dask, which is not installed: install ltr-features[dask]"
        ) from None
    with ExitStack() as stack:
        where: Any = address
        if local := _LOCAL.fullmatch(address):
            where = stack.enter_context(
                LocalCluster(
                    n_workers=max(1, int(local[1])),
                    threads_per_worker=1,
                    dashboard_address=None,
                    local_directory=stack.enter_context(tempfile.TemporaryDirectory()),
                )
            )
        try:
            client = stack.enter_context(Client(where, timeout="20s"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"--scheduler {address}: no Dask scheduler answers there ({error}); give its "
                "address, tcp://host:8786, or local:2"
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
        _check_workers(client, workspace, folder)
        yield lambda work, blocks: _made(client, workspace, folder, work, blocks)
    shutil.rmtree(folder)


def _check_workers(client: Any, workspace: Path, folder: Path) -> None:
    """Raise InputError for the first worker that would make other rows, or none."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise InputError(
            f"the Dask scheduler has no worker, also after {_PATIENCE} s: start some"
        ) from None
    told = client.run(_what_a_worker_sees, str(workspace), str(folder))
    _, here = _what_a_worker_sees(str(workspace), str(folder))
    for worker, (host, seen) in sorted(told.items()):
        for what, value in here.items():
            if seen[what] != value:
                raise InputError(
                    f"worker {worker} on {host}: {what} is {seen[what]}, here it is {value}; "
                    "install one version everywhere, and keep workspace and result on shared "
                    "storage"
                )


def _what_a_worker_sees(workspace: str, folder: str) -> tuple[str, dict[str, str]]:
    """The host's name, and what must be the same on all."""
    return socket.gethostname(), {
        "the version of ltr-features": version("ltr-features"),
        f"workspace {workspace}": _digest_of(workspace),
        f"folder {folder}": "there" if Path(folder).is_dir() else "missing",
    }


def _made(
    client: Any, workspace: Path, folder: Path, work: BlockWork, blocks: Iterable[Block]
) -> Iterator[ArrowRows]:
    """The rows of the blocks, in their order."""
    from distributed import KilledWorker

    seen = _digest_of(str(workspace))
    base = _digest(seen.encode() + _settings(work))
    ahead = _AHEAD * max(1, len(client.scheduler_info()["workers"]))
    waiting: deque[tuple[Path, Any]] = deque()

    def rows() -> ArrowRows:
        """Of the block that waits longest."""
        path, future = waiting.popleft()
        try:
            if future is not None:
                future.result()
        except KilledWorker as error:
            raise InputError(
                f"workers died of one block of queries, several times ({error}): give them more "
                "memory, or make blocks smaller (--memory)"
            ) from None
        return ArrowRows.open(path)

    for block in blocks:
        path = folder / f"{base}-{_name(block)}.arrow"
        future = None  # its file is there
        if not path.is_file():
            future = client.submit(_write_block, str(workspace), seen, work, block, str(path))
        waiting.append((path, future))
        if len(waiting) >= ahead:
            yield rows()
    while waiting:
        yield rows()


def _write_block(workspace: str, seen: str, work: BlockWork, block: Block, path: str) -> None:
    """What a worker does: make the rows of a block and write them. Workers that came later were
    not asked what they see."""
    if _digest_of(workspace) != seen:
        raise InputError(f"worker on {socket.gethostname()}: workspace {workspace} is another one")
    work.rows(_context(workspace, seen), block).save(path)


@lru_cache(maxsize=1)
def _context(workspace: str, seen: str) -> ColumnContext:
    """The workspace, opened once by each worker, of which there is one for each core."""
    return open_workspace(workspace, threads=1)


def _name(block: Block) -> str:
    """A block's queries, and a digest of its pairs if it has some."""
    name = f"{block.first}-{block.last}"
    if block.pairs is None:
        return name
    content = block.pairs.query.tobytes() + block.pairs.document.tobytes()
    return f"{name}-{_digest(content + repr(block.origins).encode())}"


def _settings(work: BlockWork) -> bytes:
    """All that the rows of a block depend on beside the workspace."""
    families = [[family.name, vars(family), _files(vars(family))] for family in work.families]
    told = [version("ltr-features"), dict(work.candidates), families]
    return json.dumps(told, sort_keys=True, default=repr).encode()


def _files(value: Any) -> list[tuple[str, int, int]]:
    """Size and time of the files that are named somewhere in a family's parameters."""
    if isinstance(value, Mapping):
        return [one for part in value.values() for one in _files(part)]
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in _files(part)]
    if isinstance(value, (str, Path)) and Path(value).is_file():
        status = Path(value).stat()
        return [(str(value), status.st_size, status.st_mtime_ns)]
    return []


def _digest_of(workspace: str) -> str:
    path = Path(workspace) / DIGESTS
    return _digest(path.read_bytes()) if path.is_file() else "missing"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
