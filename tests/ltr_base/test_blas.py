"""The limit of BLAS's threads."""

import multiprocessing
import time
import tracemalloc
from threading import Event, Thread

import pytest
import scipy.linalg  # noqa: F401  has a BLAS of its own beside that of numpy
from threadpoolctl import threadpool_info, threadpool_limits

from ltr_base import blas
from ltr_base.blas import one_blas_thread


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_limit_lasts_until_the_last_of_blocks_that_overlap_ends():
    inside, outside = Event(), Event()

    def other() -> None:
        with one_blas_thread():
            inside.set()
            outside.wait(10)

    with threadpool_limits(3, user_api="blas"):
        thread = Thread(target=other)
        with one_blas_thread():
            thread.start()
            assert inside.wait(10)
            assert threads() == {1}
        assert threads() == {1}
        outside.set()
        thread.join()
        assert threads() == {3}


def test_the_limit_is_lifted_after_an_error():
    with threadpool_limits(3, user_api="blas"):
        with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
            1 / 0  # noqa: B018
        assert threads() == {3}


def test_blocks_that_overlap_without_an_end_do_not_pile_up():
    """As those of a server that always has a request."""
    with threadpool_limits(3, user_api="blas"), one_blas_thread():
        tracemalloc.start()
        try:
            for _ in range(100):
                with one_blas_thread():
                    pass
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert kept < 100_000


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_process_forked_while_a_block_begins_elsewhere_can_begin_its_own(
    monkeypatch: pytest.MonkeyPatch,
):
    begins, take_control = Event(), blas._take_control

    def slowly() -> None:
        take_control()
        begins.set()
        time.sleep(0.2)

    def block() -> None:
        with one_blas_thread():
            pass

    monkeypatch.setattr(blas, "_take_control", slowly)
    thread = Thread(target=block)
    thread.start()
    assert begins.wait(10)
    child = multiprocessing.get_context("fork").Process(target=block)
    child.start()
    child.join(20)
    code = child.exitcode
    child.kill()
    thread.join()
    assert code == 0
