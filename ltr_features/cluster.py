"""Run work on the workers of a Dask cluster, with the same results as in one process.

Dask is optional (extra ``dask``) and imported only here. Settings and paths are sent, not data:
workers read from and write to storage that they all share, each output appears once it is complete,
and all have the same version of this package. So a run that was killed can resume from there.
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

from letor.digests import folder_digest
from letor.errors import InputError, described
from ltr_features.part_store import PartFolder, PartStore

_LOCAL = re.compile(r"local:(.*)")
_PATIENCE = 60  # seconds without a worker
#: Calls per thread that are submitted ahead of the one being waited for.
_AHEAD = 2
#: Number of workers that may die of one piece of work.
_DEATHS = 4
_DIED = (
    "workers died of one piece of work, several times ({}): give them more memory, or make the "
    "pieces smaller"
)


class Cluster:
    """Workers that see the same files; see :func:`connected`.

    Args:
        client: the Dask client.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._submitted: WeakSet[Any] = WeakSet()

    @property
    def n_threads(self) -> int:
        """Number of threads of all current workers, at least 1: calls that run at a time."""
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, work: Callable[..., Any], *given: Any, at: str | None = None) -> Any:
        """Submit ``work(*given)`` to the worker at an address, or to any; returns a future for
        :meth:`result`. If a worker dies, another one starts the work again, which must cope with
        what the first has left behind.

        Raises:
            InputError: something that the work needs cannot be pickled.
        """
        where, sent = None if at is None else [at], packed((work, given))
        future = self._client.submit(_worked, software(), sent, pure=False, workers=where)
        self._submitted.add(future)
        return future

    def cancel(self) -> None:
        """Cancel all work whose results are no longer needed."""
        self._client.cancel(list(self._submitted))

    def result(self, future: Any, timeout: float | None = None) -> Any:
        """Wait for the result of a future, and raise the error of its work.

        Raises:
            TimeoutError: there is no result after ``timeout`` seconds.
            InputError: the work killed workers several times, no worker is left, or a worker could
                not read or write a file (because its disk is full, for example).
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
        """The addresses of all current workers."""
        return sorted(self._client.scheduler_info(n_workers=-1)["workers"])

    @property
    def host(self) -> str:
        """The address under which the workers reach this process."""
        from distributed.utils import get_ip

        scheduler = str(self._client.scheduler.address)
        return str(get_ip(scheduler.rpartition("/")[2].rpartition(":")[0]))

    def together(self, work: Callable[..., Any], calls: Mapping[str, tuple[Any, ...]]) -> list[Any]:
        """Run ``work(*given)`` on several workers at the same time, with the arguments for each by
        its address, for pieces of work that communicate with each other; returns the results.

        Raises:
            InputError: a worker failed or died.
        """
        from distributed import wait

        futures = [self.submit(work, *given, at=address) for address, given in calls.items()]
        try:
            # A worker that waits for a dead one may never notice, so react to the first failure.
            while any(not future.done() for future in futures):
                with suppress(TimeoutError):
                    wait(futures, timeout=1, return_when="FIRST_COMPLETED")
                if any(future.status == "error" for future in futures):
                    sleep(1)  # until the scheduler knows which worker died
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
        """The results of ``work(*given)`` for the arguments of each call, in order; a few calls are
        submitted ahead.

        Args:
            homes: the worker that ran each call, by its number, the last time; it is used again
                while it lives and has no more calls than others. Updated in place.
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
        """Submit a call to its home worker, and to another if that dies; returns a function that
        waits for the result."""

        def submitted() -> Any:
            homes[number] = self._home(homes, homes.get(number))
            return self.submit(work, *given, at=homes[number])

        def result() -> Any:
            future = first
            for _ in range(_DEATHS):
                while homes[number] in self.workers or future.done():
                    with suppress(TimeoutError):
                        return self.result(future, timeout=1)
                future.cancel()
                future = submitted()
            raise InputError(_DIED.format(f"{_DEATHS} of them"))

        first = submitted()
        return result

    def _alive(self) -> list[str]:
        """The addresses of the workers; waits until there are some."""
        for _ in range(_PATIENCE):
            if alive := self.workers:
                return alive
            sleep(1)
        raise InputError(f"there has been no worker for {_PATIENCE} s: start some")

    def _home(self, homes: Mapping[int, str], own: str | None) -> str:
        """The worker for a call whose last worker was ``own``, if any: another one if that died or
        has at least two more calls than the least busy worker."""
        alive = self._alive()
        n_calls = Counter(homes.values())
        least = min(alive, key=lambda worker: n_calls[worker])
        return own if own in alive and n_calls[own] <= n_calls[least] + 1 else least


def software() -> str:
    """The versions that workers must share with the process that submits the work; the Unicode
    version of Python is one of them, as tokenisation depends on it."""
    return f"ltr-features {version('ltr-features')}, Unicode {unicodedata.unidata_version}"


def packed(what: Any) -> bytes:
    """Work and its arguments as Dask pickles them, or an InputError; for :func:`_worked` to unpack,
    as Dask itself closes every worker that lacks a package that they need."""
    from distributed.protocol.pickle import dumps

    try:
        return bytes(dumps(what))
    except Exception as error:
        raise InputError(
            f"what the workers are to do cannot be sent to them ({described(error)}): families "
            "and models that they get must not hold locks, open files and the like"
        ) from error


def _worked(wanted: str, sent: bytes) -> Any:
    """Run work on a worker, which may have joined after the check at the start; errors of its files
    name the worker's host."""
    from distributed.protocol.pickle import loads

    if (own := software()) != wanted:
        raise InputError(
            f"worker on {socket.gethostname()}: has {own}; where the command runs there is "
            f"{wanted}: install one version of this package and of Python everywhere"
        )
    try:
        work, given = loads(sent)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"worker on {socket.gethostname()}: {described(error)}; install the packages that "
            "columns and models come from there, too, in the same versions"
        ) from error
    try:
        return work(*given)
    except OSError as error:
        message, path = str(error), error.filename
        if path is None and error.errno == errno.ENOSPC:  # the error names no file
            path = tempfile.gettempdir()
        if path is not None and error.strerror:
            message = f"{path}: {error.strerror}"
        raise InputError(
            f"worker on {socket.gethostname()}: {message}; put that right there, and run the same "
            "command again to go on"
        ) from error


@contextmanager
def connected(address: str, *places: Path | PartStore) -> Iterator[Cluster]:
    """The workers of a cluster, checked to see the same folders and stores as this process.

    Args:
        address: address of a Dask scheduler ("tcp://host:8786"), or "local:N" for N processes on
            this machine with one thread each.
        places: existing folders, whose digests are compared if they have some; and prepared stores.

    Raises:
        InputError: Dask is not installed, no scheduler answers, or a worker has another version of
            this package or does not see a folder or store.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "--scheduler needs Dask, which is not installed: install ltr-features[dask]"
        ) from None
    with ExitStack() as stack:
        stack.enter_context(_without_empty(places))
        where: Any = address
        if local := _LOCAL.fullmatch(address):
            if not re.fullmatch("[0-9]+", local[1]) or int(local[1]) < 1:
                raise InputError(
                    f"--scheduler {address}: the number of processes must be 1 or more: local:2"
                )
            where = stack.enter_context(local_cluster(int(local[1])))
        try:
            if not address:  # Dask would start a cluster of its own
                raise ValueError("the address is empty")
            client, failed = stack.enter_context(Client(where, timeout="20s")), ""
        except (OSError, ValueError) as error:
            failed = str(error)
        if failed:
            # Collect the client that did not connect now: Dask would wait for ever if the garbage
            # collector came across it while another one starts.
            gc.collect()
            raise InputError(
                f"--scheduler {address}: no Dask scheduler answers there ({failed}); give its "
                "address, tcp://host:8786, or local:2"
            )
        _check_workers(client, [p.resolve() if isinstance(p, Path) else p for p in places])
        yield Cluster(client)


@contextmanager
def _without_empty(places: Sequence[Path | PartStore]) -> Iterator[None]:
    """On an error, remove the folders of stores in which nothing was made."""
    try:
        yield
    except BaseException:
        for place in places:
            if isinstance(place, PartFolder):
                with suppress(OSError):  # it has parts, for the next run
                    place.folder.rmdir()
        raise


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """Start processes on this machine with one thread each; one that dies is started again.

    Raises:
        InputError: a process ended while it started.
    """
    import dask
    from distributed import LocalCluster

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        # Dask closes a worker that is not back after 15 s; on a busy machine it may take longer.
        stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}))
        try:
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,  # errors are raised by `result`
                local_directory=folder,
            )
        except RuntimeError as error:
            raise InputError(
                f"--scheduler local:{n_workers}: a worker ended while it started ({error}); in "
                "a script of your own, begin under if __name__ == '__main__'; or is there memory "
                "for so many? Run it again, or with fewer"
            ) from None
        yield stack.enter_context(cluster)


def _check_workers(client: Any, places: Sequence[Path | PartStore]) -> None:
    """Raise InputError for the first worker that does not see what this process sees."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise InputError(
            f"the Dask scheduler has no worker after {_PATIENCE} s: start some"
        ) from None
    answers: Mapping[str, Any] = client.run(_what_a_worker_sees, places, on_error="return")
    _, here = _what_a_worker_sees(places)
    for worker, answer in sorted(answers.items()):
        if isinstance(answer, OSError):  # it died; the work itself checks a worker that replaces it
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
    """The host's name, and the facts that must be the same on all workers."""
    seen = {"the version": software()}
    for place in places:
        if isinstance(place, Path):
            seen[f"folder {place}"] = folder_digest(str(place))
        else:
            seen[str(place)] = place.seen()
    return socket.gethostname(), seen


def check_folder(folder: str, seen: str) -> None:
    """Check a folder on a worker, which may have joined after the check at the start.

    Raises:
        InputError: the folder does not have the digest ``seen``.
    """
    if folder_digest(folder) != seen:
        raise InputError(f"worker on {socket.gethostname()}: {folder} is another one there")


def digest(content: bytes) -> str:
    """The first 16 hexadecimal digits of the SHA-256 digest."""
    return hashlib.sha256(content).hexdigest()[:16]
