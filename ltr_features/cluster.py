"""Work on the workers of a Dask cluster, with the results of one process.

Dask is optional (extra ``dask``) and imported only here. Settings and paths travel, not data: what
workers read and write lies on storage that all of them share, each output appears when it is
complete, and all have one version of this package. So a run that was killed takes up what is there.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import logging
import re
import socket
import tempfile
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import sleep
from typing import Any
from weakref import WeakSet

from letor.digests import DIGESTS
from letor.errors import InputError
from ltr_features.part_store import PartStore

_LOCAL = re.compile(r"local:(\d+)")
_PATIENCE = 60  # seconds without a worker
#: Calls that are asked for ahead of the one that is waited for, for each thread.
_AHEAD = 2
#: Workers that may die of one piece of work.
_DEATHS = 4
_DIED = (
    "workers died of one piece of work, several times ({}): give them more memory, or make the "
    "pieces smaller"
)


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

    def submit(self, work: Callable[..., Any], *given: Any, at: str | None = None) -> Any:
        """A future of ``work(*given)``, for :meth:`result`, at the address of a worker or of any.
        A worker that dies is replaced: the work is begun again by another, and must not mind what
        the first has left."""
        where = None if at is None else [at]
        future = self._client.submit(_worked, software(), work, *given, pure=False, workers=where)
        self._asked.add(future)
        return future

    def cancel(self) -> None:
        """Give up all work: nobody waits for its results any more."""
        self._client.cancel(list(self._asked))

    def result(self, future: Any, timeout: float | None = None) -> Any:
        """What the work returned, or its error.

        Raises:
            TimeoutError: after so many seconds.
            InputError: workers died of it, several times; none is left; or one could not read or
                write something, because its disk is full, say.
        """
        from distributed import KilledWorker, wait

        try:
            while timeout is None and not future.done():
                with suppress(TimeoutError):
                    wait(future, timeout=_PATIENCE)
                if not future.done():
                    self._alive()
            return future.result(timeout)
        except KilledWorker as error:
            raise InputError(_DIED.format(error)) from None

    @property
    def workers(self) -> list[str]:
        """The addresses of all that there are now."""
        return sorted(self._client.scheduler_info(n_workers=-1)["workers"])

    @property
    def host(self) -> str:
        """The address of this process, as the workers reach it."""
        from distributed.utils import get_ip

        scheduler = str(self._client.scheduler.address)
        return str(get_ip(scheduler.rpartition("/")[2].rpartition(":")[0]))

    def together(self, work: Callable[..., Any], calls: Mapping[str, tuple[Any, ...]]) -> list[Any]:
        """The results of ``work(*given)`` on each worker, by address, at one time: of pieces that
        talk to each other.

        Raises:
            InputError: one of them failed or died.
        """
        from distributed import wait

        futures = [self.submit(work, *given, at=address) for address, given in calls.items()]
        try:
            # A worker that waits for one that has died may not notice; the others fail first.
            while any(not future.done() for future in futures):
                with suppress(TimeoutError):
                    wait(futures, timeout=1, return_when="FIRST_COMPLETED")
                if any(future.status == "error" for future in futures):
                    sleep(1)  # until the scheduler knows who has died
                    break
                if not set(calls) <= set(self.workers):
                    break
            if not set(calls) <= set(self.workers):
                raise InputError("a worker died, and the others need it: run the command again")
            return [self.result(future) for future in futures if future.done()]
        finally:
            self._client.cancel(futures)

    def in_order(
        self,
        work: Callable[..., Any],
        calls: Iterable[tuple[Any, ...]],
        homes: dict[int, str] | None = None,
    ) -> Iterator[Any]:
        """The results of ``work(*given)`` for what is given to each call, in their order; a few are
        asked for ahead.

        Args:
            homes: the worker that did the call of a number the last time, and does it again while
                it lives and has not more of them than others; filled.
        """
        ahead = _AHEAD * self.n_threads
        waiting: deque[Callable[[], Any]] = deque()
        for number, given in enumerate(calls):
            if homes is None:
                waiting.append(partial(self.result, self.submit(work, *given)))
            else:
                waiting.append(self._at_home(number, homes, work, given))
            if len(waiting) >= ahead:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()

    def _at_home(
        self, number: int, homes: dict[int, str], work: Callable[..., Any], given: tuple[Any, ...]
    ) -> Callable[[], Any]:
        """Begins a call at its home, or if that dies at another one; gives the result."""

        def begun() -> Any:
            homes[number] = self._home(homes, homes.get(number))
            return self.submit(work, *given, at=homes[number])

        def result() -> Any:
            future = first
            for _ in range(_DEATHS):
                while homes[number] in self.workers or future.done():
                    with suppress(TimeoutError):
                        return self.result(future, timeout=1)
                future.cancel()
                future = begun()
            raise InputError(_DIED.format(f"{_DEATHS} of them"))

        first = begun()
        return result

    def _alive(self) -> list[str]:
        """The addresses of the workers, once there are some.

        Raises:
            InputError: there is none for a while.
        """
        for _ in range(_PATIENCE):
            if alive := self.workers:
                return alive
            sleep(1)
        raise InputError(f"there has been no worker for {_PATIENCE} s: start some")

    def _home(self, homes: Mapping[int, str], own: str | None) -> str:
        """A worker for what has this home or none: another one if it died, or has two more of them
        than some."""
        alive = self._alive()
        held = Counter(homes.values())
        least = min(alive, key=lambda worker: held[worker])
        return own if own in alive and held[own] <= held[least] + 1 else least


def software() -> str:
    """What workers must have in common with the process that gives them work: the words of texts
    depend on Python's Unicode, too."""
    return f"ltr-features {version('ltr-features')}, Unicode {unicodedata.unidata_version}"


def _worked(wanted: str, work: Callable[..., Any], *given: Any) -> Any:
    """``work(*given)`` on a worker, which may have come later than those that were checked: an
    error of its files tells whose they are."""
    if (own := software()) != wanted:
        raise InputError(
            f"worker on {socket.gethostname()}: has {own}; where the command runs there is "
            f"{wanted}: install one version of this package and of Python everywhere"
        )
    try:
        return work(*given)
    except OSError as error:
        said, named = str(error), error.filename
        if named is None and error.errno == errno.ENOSPC:  # of a file without a name
            named = tempfile.gettempdir()
        if named is not None and error.strerror:
            said = f"{named}: {error.strerror}"
        raise InputError(
            f"worker on {socket.gethostname()}: {said}; put that right there, and run the same "
            "command again to go on"
        ) from error


@contextmanager
def connected(address: str, *places: Path | PartStore) -> Iterator[Cluster]:
    """The workers of a cluster, which see folders and stores as this process does.

    Args:
        address: of a Dask scheduler ("tcp://host:8786"), or "local:N" for N processes of this
            machine with a thread each.
        places: folders that are there; of those that have digests of their files, these are
            compared. And stores, which have begun.

    Raises:
        InputError: Dask is not installed, no scheduler there, a worker has another version of this
            package or does not see a folder or store.
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
            client, failed = stack.enter_context(Client(where, timeout="20s")), ""
        except (OSError, ValueError) as error:
            failed = str(error)
        if failed:
            # The client that did not connect is closed now: Dask would wait for ever if it were
            # found by chance while another one starts.
            gc.collect()
            raise InputError(
                f"--scheduler {address}: no Dask scheduler answers there ({failed}); give its "
                "address, tcp://host:8786, or local:2"
            )
        _check_workers(client, [p.resolve() if isinstance(p, Path) else p for p in places])
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
                f"--scheduler local:{n_workers}: a worker ended while it started ({error}); in "
                "a script of your own, begin under if __name__ == '__main__'; or is there memory "
                "for so many? Run it again, or with fewer"
            ) from None
        yield stack.enter_context(made)


def _check_workers(client: Any, places: Sequence[Path | PartStore]) -> None:
    """Raise InputError for the first worker that would see something else."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise InputError(
            f"the Dask scheduler has no worker, also after {_PATIENCE} s: start some"
        ) from None
    told: Mapping[str, Any] = client.run(_what_a_worker_sees, places, on_error="return")
    _, here = _what_a_worker_sees(places)
    for worker, answer in sorted(told.items()):
        if isinstance(answer, OSError):  # it died: what comes in its place is asked by its work
            continue
        if isinstance(answer, InputError):
            raise InputError(f"worker {worker}: {answer}")
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
                    "install one version everywhere, and keep inputs and outputs on shared storage "
                    "(where there are --parts: equal copies of the inputs)"
                )


def _what_a_worker_sees(places: Sequence[Path | PartStore]) -> tuple[str, dict[str, str]]:
    """The host's name, and what must be the same on all."""
    seen = {"the version": software()}
    for place in places:
        if isinstance(place, Path):
            seen[f"folder {place}"] = folder_digest(str(place))
        else:
            seen[str(place)] = place.seen()
    return socket.gethostname(), seen


def folder_digest(folder: str) -> str:
    """Of the digests that lie in a folder, or of a file; "there" for a folder without digests,
    "missing" where nothing is."""
    path = Path(folder)
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
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
