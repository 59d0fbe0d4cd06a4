"""Warnings that are ignored while threads overlap."""

import warnings
from threading import Event, Thread

import pytest

from ltr_base.quiet import ignored


@pytest.mark.filterwarnings("error")
def test_only_the_named_warnings_are_ignored_and_only_within_the_block():
    with ignored("No step"):
        warnings.warn("No step found", stacklevel=1)
        with pytest.raises(UserWarning, match="Another"):
            warnings.warn("Another", stacklevel=1)
    with pytest.raises(UserWarning, match="No step found"):
        warnings.warn("No step found", stacklevel=1)


@pytest.mark.filterwarnings("error")
def test_warnings_of_other_categories_are_shown():
    with ignored(category=DeprecationWarning):
        warnings.warn("Old", DeprecationWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="Old"):
            warnings.warn("Old", stacklevel=1)


def test_blocks_that_overlap_in_threads_leave_the_filters_as_they_were():
    before, inside, outside = list(warnings.filters), Event(), Event()

    def other() -> None:
        with ignored("No step"):
            inside.set()
            outside.wait(10)

    thread = Thread(target=other)
    with ignored("No step"):
        thread.start()
        assert inside.wait(10)
    outside.set()
    thread.join()
    assert list(warnings.filters) == before


def test_a_filter_of_the_user_survives_an_equal_one():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="No step")
        before = list(warnings.filters)
        with ignored("No step"):
            pass
        assert list(warnings.filters) == before


def test_a_block_within_which_another_thread_catches_warnings_leaves_nothing():
    before = list(warnings.filters)
    block = ignored("No step")
    block.__enter__()
    with warnings.catch_warnings():  # has copied the filter
        block.__exit__(None, None, None)
        assert list(warnings.filters) == before
    assert list(warnings.filters) == before
