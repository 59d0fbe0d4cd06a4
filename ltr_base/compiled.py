"""Kernels: loops that numba compiles when they are first called, not when they are imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from threading import RLock
from typing import Any

_making = RLock()
#: Whom to tell that a kernel is being compiled, see :func:`telling_of_compilation`.
_tell: list[Callable[[], None]] = []


class Kernel:
    """A loop that is compiled at its first call, for the types of the arguments, unless an earlier
    process has left the compiled code. Numba is imported then, and not before.

    Compiled code is kept beside the source or, where that folder cannot be written, in the user's
    cache folder (``NUMBA_CACHE_DIR`` names another); where neither can be, in this process alone.
    A kernel whose name begins with ``_`` is called by kernels alone.

    Attributes:
        py_func: the loop in Python.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func, self._options = function, options
        self._is_inner = function.__name__.startswith("_")
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self._is_inner:  # compiled without a way in from Python: the call would crash
            raise TypeError(f"{self.py_func.__name__} is called by other kernels alone")
        return (self._dispatcher or self._made())(*arguments)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for of an object that compiled code calls."""
        return self._made()._numba_type_

    def _made(self) -> Any:
        with _making:  # two threads that call it first share what is compiled
            if self._dispatcher is None:
                import numba

                if _tell:
                    _listen()
                # Without the ways in that nobody uses, compilation takes a fourth less time.
                unused = {"no_cfunc_wrapper": True, "no_cpython_wrapper": self._is_inner}
                dispatcher = numba.njit(nogil=True, **unused, **self._options)(self.py_func)
                with suppress(RuntimeError):  # there is no folder that can be written
                    dispatcher.enable_caching()
                    _forget_what_cannot_be_read(dispatcher._cache)
                self._dispatcher = dispatcher
            return self._dispatcher


def _forget_what_cannot_be_read(cache: Any) -> None:
    """Have a cache of compiled code begin anew where it cannot be read: one that another version
    left refers to names that may be no more."""
    load = cache.load_overload

    def load_or_forget(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # unpickling names that are gone raises anything
            with suppress(OSError):
                cache.flush()
            return None

    cache.load_overload = load_or_forget


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator of loops that are compiled, see :class:`Kernel`.

    Args:
        options: of ``numba.njit``, such as ``fastmath``.
    """
    return lambda function: Kernel(function, options)


@contextmanager
def telling_of_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` when a kernel is compiled for the first time while the block runs; never where
    earlier processes have left compiled code."""
    _tell.append(tell)
    try:
        yield
    finally:
        _tell.clear()


@cache
def _listen() -> None:
    """Have numba say when it compiles."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, _: Any) -> None:
            if _tell:
                _tell.pop()()

        def on_end(self, _: Any) -> None:
            pass

    event.register("numba:compile", Listener())
