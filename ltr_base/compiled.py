"""Kernels: functions that numba compiles when they are first called, not when imported."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from numbers import Number
from pathlib import Path
from threading import RLock
from types import CodeType
from typing import Any

from ltr_base.user_warning import warn_user

_compiling = RLock()
#: Callbacks to invoke when a kernel is compiled, see :func:`on_compilation`.
_tell: list[Callable[[], None]] = []


class CompilationWarning(UserWarning):
    """Compiled code is not kept for later processes."""


class Kernel:
    """A function that numba compiles at its first call, for the types of the arguments, unless an
    earlier process has cached the compiled code. Numba is not imported before.

    Compiled code is cached beside the source or, if that folder is not writable, in the user's
    cache folder (or in ``NUMBA_CACHE_DIR``); if neither is writable, only within this process, of
    which a :class:`CompilationWarning` tells. It is compiled again if the source changes, that of
    the kernels that it calls included.
    Kernels whose names begin with ``_`` can only be called by other kernels.

    Attributes:
        py_func: the Python function.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func, self._options = function, options
        self._is_inner = function.__name__.startswith("_")
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self._is_inner:  # compiled without a wrapper for Python: the call would crash
            raise TypeError(f"{self.py_func.__name__} can only be called by other kernels")
        return (self._dispatcher or self._compiled())(*arguments)

    @property
    def _numba_type_(self) -> Any:
        """The type by which numba recognises an object that compiled code may call."""
        return self._compiled()._numba_type_

    def _compiled(self) -> Any:
        with _compiling:  # threads that make the first call together share one dispatcher
            if self._dispatcher is None:
                import numba

                if _tell:
                    _listen()
                # Leaving out unused wrappers shortens compilation by a quarter.
                unused = {"no_cfunc_wrapper": True, "no_cpython_wrapper": self._is_inner}
                dispatcher = numba.njit(nogil=True, **unused, **self._options)(self.py_func)
                try:
                    dispatcher.enable_caching()
                    dispatcher._cache._cache_file._source_stamp = _stamp(self)
                    _discard_if_unreadable(dispatcher._cache)
                except RuntimeError:
                    _tell_not_kept()
                self._dispatcher = dispatcher
            return self._dispatcher


def _stamp(called: Kernel) -> str:
    """A digest of what compiled code is made of: the sources of a kernel and of all kernels that it
    calls, and the numbers that these take from other files. Numba itself looks at the time of the
    first source only, and would keep what another file meant before it was changed."""
    kernels, numbers = [called], set()
    for user in kernels:
        function = user.py_func
        for name in _names(function.__code__):
            value = function.__globals__.get(name)
            if isinstance(value, Kernel) and value not in kernels:
                kernels.append(value)
            elif isinstance(value, Number):
                numbers.add(f"{function.__module__}.{name} = {value!r}")
    files = {Path(user.py_func.__code__.co_filename) for user in kernels}
    parts = [*(path.read_bytes() for path in sorted(files)), *map(str.encode, sorted(numbers))]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _names(code: CodeType) -> Iterator[str]:
    """The global names in a function, and in functions inside it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _discard_if_unreadable(cache: Any) -> None:
    """Make a cache of compiled code start afresh if it cannot be read: one written by another
    version may refer to names that no longer exist."""
    load = cache.load_overload

    def load_or_discard(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # unpickling names that no longer exist may raise anything
            with suppress(OSError):
                cache.flush()
            return None

    cache.load_overload = load_or_discard


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator that makes a function a :class:`Kernel`.

    Args:
        options: arguments of ``numba.njit``, such as ``fastmath``.
    """
    return lambda function: Kernel(function, options)


@contextmanager
def on_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once, when the first kernel is compiled while the block runs; not at all if
    earlier processes have cached the compiled code."""
    _tell.append(tell)
    try:
        yield
    finally:
        _tell.clear()


@cache  # once, whatever becomes of Python's own record of what it showed
def _tell_not_kept() -> None:
    message = (
        "kernels are compiled again by every process, which may take minutes: no folder for "
        "compiled code can be written; set NUMBA_CACHE_DIR to one that can"
    )
    warn_user(message, CompilationWarning)


@cache
def _listen() -> None:
    """Register a numba event listener that invokes the callbacks when compilation starts."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, _: Any) -> None:
            if _tell:
                _tell.pop()()

        def on_end(self, _: Any) -> None:
            pass

    event.register("numba:compile", Listener())
