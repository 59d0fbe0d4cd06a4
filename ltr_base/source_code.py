"""Source code of this software and of others that extend it, and its identity: what was made by
other code is not reused."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

OURS = frozenset({"ltr_base", "letor", "ssi_models", "ltr_features"})
_SUFFIXES = {".py", ".txt", ".jinja", ".html", ".css", ".js", ".toml"}


def is_ours(module: str) -> bool:
    """Whether a module, by its name, is part of this software."""
    return module.partition(".")[0] in OURS


def source_files(name: str) -> list[Path]:
    """The file of a module, or all source files of a package."""
    file = Path(str(getattr(find_spec(name), "origin", None)))
    if file.name != "__init__.py":
        return [file]
    return sorted(path for path in file.parent.rglob("*") if path.suffix in _SUFFIXES)


def packages_of(*made: Callable[..., Any]) -> tuple[str, ...]:
    """The packages of others that classes or functions, and the bases of classes, come from; a
    module outside a package stands for itself, and a notebook or a script is none."""
    modules = {part.__module__ for one in made for part in _others(one)}
    return tuple(sorted({_package(name) for name in modules if _has_file(name)}))


def code_of_others(made: Callable[..., Any]) -> str:
    """A digest of the code of a class or function, as far as it is not part of this software: the
    files of the packages of :func:`packages_of`, and the functions and classes of a notebook or a
    script, with those that they name. "" if all is ours."""
    parts = [path.read_bytes() for name in packages_of(made) for path in source_files(name)]
    written = [part for part in _others(made) if not _has_file(part.__module__)]
    parts += [text.encode() for part in written for text in _told(part, set())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest() if parts else ""


def _others(made: Callable[..., Any]) -> list[Any]:
    """The function, or the class and its bases down to those that ours or Python have."""
    if isinstance(made, FunctionType):
        found: tuple[Any, ...] = (inspect.unwrap(made),)
    else:
        found = (made if isinstance(made, type) else type(made)).__mro__
    ours = [part for part in found if is_ours(part.__module__)]
    known = {object}.union(*(part.__mro__ for part in ours if isinstance(part, type)), ours)
    return [part for part in found if part not in known]


def _has_file(module: str) -> bool:
    return module != "__main__" and bool(getattr(sys.modules.get(module), "__file__", None))


def _package(module: str) -> str:
    """The outermost package of a module that has a file: folders without ``__init__`` may hold
    anything."""
    names = module.split(".")
    outer = (".".join(names[:n]) for n in range(1, len(names)))
    return next((name for name in outer if _has_file(name)), module)


def _told(made: Any, seen: set[int]) -> Iterator[str]:
    """What a class, function or plain value of a notebook consists of, and what it names there."""
    made = getattr(made, "fget", None) or getattr(made, "func", None) or inspect.unwrap(made)
    if id(made) in seen:
        return
    seen.add(id(made))
    if isinstance(made, type):
        for name, value in vars(made).items():
            if isinstance(value, FunctionType) or not name.startswith(("__", "_abc_")):
                yield name
                yield from _told(value, seen)
    elif isinstance(code := getattr(made, "__code__", None), CodeType):
        yield from _instructions(code)
        cells = [cell.cell_contents for cell in made.__closure__ or ()]
        named = [made.__globals__.get(name) for name in code.co_names]
        for value in (made.__defaults__, made.__kwdefaults__, *cells, *named):
            if getattr(value, "__module__", made.__module__) == made.__module__:
                yield from _told(value, seen)
    elif not isinstance(made, ModuleType):
        yield re.sub(r" at 0x[0-9a-f]+", "", repr(made))


def _instructions(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _instructions(value)
        else:  # a set has no order of its own
            yield repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
