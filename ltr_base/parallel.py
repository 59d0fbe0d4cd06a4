"""Run work on threads, in blocks or in a few large parts, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from numbers import Integral
from threading import Thread
from typing import TypeVar

from ltr_base.machine import available_cores

T = TypeVar("T")
R = TypeVar("R")


def thread_count(threads: int | None) -> int:
    """``threads``, or the number of cores that this process may use.

    Raises:
        ValueError: fewer than one thread, or not a whole number.
    """
    if threads is None:
        return available_cores()
    if not isinstance(threads, Integral) or threads < 1:
        raise ValueError(f"threads must be 1 or more, got {threads!r}")
    return int(threads)


def map_blocks(work: Callable[[T], R], blocks: Iterable[T], threads: int | None) -> Iterator[R]:
    """Yield ``work(block)`` for each block, in order; faster only if ``work`` releases the GIL.

    At most two blocks per thread are taken ahead of the consumer, so that memory stays bounded
    for an iterator of any length. The blocks, and so the results, do not depend on ``threads``.
    """
    workers = thread_count(threads)
    blocks = iter(blocks)
    ahead = list(islice(blocks, 2))
    blocks = chain(ahead, blocks)
    if workers == 1 or len(ahead) < 2:  # starting threads costs more than a small block
        yield from map(work, blocks)
        return
    pending: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for block in blocks:
            pending.append(pool.submit(work, block))
            if len(pending) >= 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def side_by_side(work: Callable[[T], R], parts: Sequence[T], threads: int | None) -> list[R]:
    """Run ``work(part)`` for a few parts that take long, such as training, as many at a time as
    there are threads. Data that they share must be created safely by whichever comes first.

    After an error or an interrupt, parts that are running are not waited for: their results are
    dropped, and they end with the process at the latest.
    """
    workers = min(thread_count(threads), len(parts))
    if workers <= 1:
        return [work(part) for part in parts]
    results: list[Future[R]] = [Future() for _ in parts]
    todo = deque(zip(parts, results, strict=True))

    def run() -> None:
        while todo:
            try:
                part, result = todo.popleft()
            except IndexError:  # another thread has taken the last one
                return
            try:
                result.set_result(work(part))
            except BaseException as error:
                todo.clear()
                result.set_exception(error)

    for _ in range(workers):
        Thread(target=run, daemon=True).start()
    try:
        wait(results, return_when=FIRST_EXCEPTION)
        for result in results:  # raises the first error, in the order of the parts
            if result.done():
                result.result()
        return [result.result() for result in results]
    finally:
        todo.clear()
