"""The limit of BLAS's threads."""

from threading import Event, Thread

import numpy as np  # noqa: F401  brings BLAS
from threadpoolctl import threadpool_info, threadpool_limits

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
        try:
            with one_blas_thread(), one_blas_thread():
                raise ValueError
        except ValueError:
            pass
        assert threads() == {3}
