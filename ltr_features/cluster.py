"""Work on the workers of a Dask cluster, with the results of one process.

Dask is optional (extra ``dask``) and imported only here. Settings and paths travel, not data: what
workers read and write lies on storage that all of them share, each output appears when it is
complete, and all have one version of this package. So a run that was killed takes up what is there.
"""

from __future__ import annotations

import hashlib
import logging
import re
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakSet

from letor.digests import DIGESTS
from letor.errors import InputError

_LOCAL = re.compile(r"local:(\d+)")
_PATIENCE = 60  # seconds for the first worker
#: Calls that are asked for ahead of the one that is waited for, for each thread.
_AHEAD = 2


class Cluster:
    """Workers that see the same files; see :func:`connected`.

    Args:
        client: of Dask.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._asked: WeakSet[Any] = WeakSet()

    @property
    def n_threads(self) -> int:
        """Of all workers that there are now, one at least: so much work runs at a time."""
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, work: Callable[..., Any], *given: Any) -> Any:
        """A future of ``work(*given)``, for :meth:`result`. A worker that dies is replaced: the
        work is begun again by another, and must not mind what the first has left."""
        future = self._client.submit(work, *given, pure=False)
        self._asked.add(future)
        return future

    def cancel(self) -> None:
        """Give up all work: nobody waits for its results any more."""
        self._client.cancel(list(self._asked))

    def result(self, future: Any) -> Any:
        """What the work returned, or its error.

        Raises:
            InputError: workers died of it, several times.
        """
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise InputError(
                f"workers died of one piece of work, several times ({error}): give them more "
                "memory, or make the pieces smaller"
            ) from None

    def in_order(self, work: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """The results of ``work(*given)`` for what is given to each call, in their order; a few are
        asked for ahead."""
        ahead = _AHEAD * self.n_threads
        waiting: deque[Any] = deque()
        for given in calls:
            waiting.append(self.submit(work, *given))
            if len(waiting) >= ahead:
                yield self.result(waiting.popleft())
        while waiting:
            yield self.result(waiting.popleft())


@contextmanager
def connected(address: str, *folders: Path) -> Iterator[Cluster]:
    """The workers of a cluster, which see the folders as this process does.

    Args:
        address: of a Dask scheduler ("tcp://host:8786"), or "local:N" for N processes of this
            machine with a thread each.
        folders: that are there; of those that have digests of their files, these are compared.

    Raises:
        InputError: Dask is not installed, no scheduler there, a worker has another version of this
            package or does not see a folder.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "--scheduler needs Dask, which is not installed: install ltr-features[dask]"
        ) from None
    with ExitStack() as stack:
        where: Any = address
        if local := _LOCAL.fullmatch(address):
            where = stack.enter_context(_local_cluster(max(1, int(local[1]))))
        try:
            client = stack.enter_context(Client(where, timeout="20s"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"--scheduler {address}: no Dask scheduler answers there ({error}); give its "
                "address, tcp://host:8786, or local:2"
            ) from None
        _check_workers(client, [str(folder.resolve()) for folder in folders])
        yield Cluster(client)


@contextmanager
def _local_cluster(n_workers: int) -> Iterator[Any]:
    """Processes of this machine with a thread each."""
    from distributed import LocalCluster

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        try:
            made = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,  # errors come back to whoever asked
                local_directory=folder,
            )
        except RuntimeError as error:
            raise InputError(
                f"--scheduler local:{n_workers}: a worker ended while it started ({error}); is "
                "there memory for so many? Run it again, or with fewer"
            ) from None
        yield stack.enter_context(made)


def _check_workers(client: Any, folders: list[str]) -> None:
    """Raise InputError for the first worker that would see something else."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise InputError(
            f"the Dask scheduler has no worker, also after {_PATIENCE} s: start some"
        ) from None
    told: Mapping[str, Any] = client.run(_what_a_worker_sees, folders, on_error="return")
    _, here = _what_a_worker_sees(folders)
    for worker, answer in sorted(told.items()):
        if isinstance(answer, OSError):  # it died: what comes in its place is asked by its work
            continue
        if isinstance(answer, Exception):
            raise InputError(
                f"worker {worker} cannot run this package ({type(answer).__name__}: {answer}); "
                "install the same version there"
            )
        host, seen = answer
        for what, value in here.items():
            if seen[what] != value:
                raise InputError(
                    f"worker {worker} on {host}: {what} is {seen[what]}, here it is {value}; "
                    "install one version everywhere, and keep inputs and outputs on shared storage"
                )


def _what_a_worker_sees(folders: list[str]) -> tuple[str, dict[str, str]]:
    """The host's name, and what must be the same on all."""
    seen = {"the version of ltr-features": version("ltr-features")}
    return socket.gethostname(), seen | {f"folder {name}": folder_digest(name) for name in folders}


def folder_digest(folder: str) -> str:
    """Of the digests that lie in a folder; "there" where none do, "missing" where it is not."""
    path = Path(folder)
    if not (path / DIGESTS).is_file():
        return "there" if path.is_dir() else "missing"
    return digest((path / DIGESTS).read_bytes())


def check_folder(folder: str, seen: str) -> None:
    """For a worker, which may have come later than the others.

    Raises:
        InputError: the folder is not the one that had this digest.
    """
    if folder_digest(folder) != seen:
        raise InputError(f"worker on {socket.gethostname()}: {folder} is another one there")


def digest(content: bytes) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:16]
