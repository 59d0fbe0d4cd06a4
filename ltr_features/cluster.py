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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from letor.dataset import RankingData
from letor.digests import DIGESTS
from letor.errors import InputError
from letor.parquet import read_parquet, write_parquet
from ltr_features.blocks import Block, BlockWork
from ltr_features.columns.context import ColumnContext, open_workspace

_LOCAL = re.compile(r"local:(\d+)")
#: Blocks that are asked for ahead of the one that is waited for, for each worker.
_AHEAD = 2


@contextmanager
def on_cluster(
    address: str, workspace: Path, folder: Path
) -> Iterator[Callable[[BlockWork, Iterable[Block]], Iterator[RankingData]]]:
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
    local = _LOCAL.fullmatch(address)
    cluster, scratch = None, tempfile.TemporaryDirectory()
    if local:
        cluster = LocalCluster(
            n_workers=max(1, int(local[1])),
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=scratch.name,
        )
    try:
        client = Client(cluster or address, timeout="20s")
    except (OSError, ValueError) as error:
        raise InputError(
            f"--scheduler {address}: no Dask scheduler answers there ({error}); give its address, "
            "tcp://host:8786, or local:2"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _check_workers(client, workspace, folder)
        yield lambda work, blocks: _made(client, workspace, folder, work, blocks)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()
        scratch.cleanup()
    shutil.rmtree(folder)


def _check_workers(client: Any, workspace: Path, folder: Path) -> None:
    """Raise InputError for the first worker that would make other rows, or none."""
    client.wait_for_workers(1, timeout=60)
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
    digests = Path(workspace) / DIGESTS
    return socket.gethostname(), {
        "the version of ltr-features": version("ltr-features"),
        f"workspace {workspace}": _digest(digests.read_bytes()) if digests.is_file() else "missing",
        f"folder {folder}": "there" if Path(folder).is_dir() else "missing",
    }


def _made(
    client: Any, workspace: Path, folder: Path, work: BlockWork, blocks: Iterable[Block]
) -> Iterator[RankingData]:
    """The rows of the blocks, in their order."""
    base = _digest((workspace / DIGESTS).read_bytes() + _settings(work))
    ahead = _AHEAD * max(1, len(client.scheduler_info()["workers"]))
    waiting: list[tuple[Path, Any]] = []
    todo = iter(blocks)
    done = False
    while not done or waiting:
        while not done and len(waiting) < ahead:
            block = next(todo, None)
            if block is None:
                done = True
                break
            path = folder / f"{base}-{block.first}-{block.last}.parquet"
            future = None
            if not path.is_file():
                future = client.submit(_write_block, str(workspace), work, block, str(path))
            waiting.append((path, future))
        if waiting:
            path, future = waiting.pop(0)
            if future is not None:
                future.result()
            yield read_parquet(path)


def _write_block(workspace: str, work: BlockWork, block: Block, path: str) -> None:
    """What a worker does: make the rows of a block and write them."""
    write_parquet(work.rows(_context(workspace), block), path)


@lru_cache(maxsize=1)
def _context(workspace: str) -> ColumnContext:
    """The workspace, opened once by each worker, of which there is one for each core."""
    return open_workspace(workspace, threads=1)


def _settings(work: BlockWork) -> bytes:
    """All that the rows of a block depend on beside the workspace."""
    families: list[Mapping[str, Any]] = [
        {"name": family.name, **{k: repr(v) for k, v in vars(family).items()}}
        for family in work.families
    ]
    told = [version("ltr-features"), dict(work.candidates), families]
    return json.dumps(told, sort_keys=True, default=str).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
