"""Work in blocks on a few threads, results in the order of the blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

from ssi_models.parallel import thread_count

T = TypeVar("T")
R = TypeVar("R")


def map_blocks(work: Callable[[T], R], blocks: Iterable[T], threads: int | None) -> Iterator[R]:
    """``work(block)`` for each block, in order; ``work`` must release the GIL to gain anything.

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
