"""Source code of this software and of others that extend it, and its identity: what was made by
other code is not reused."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

OURS = frozenset({"ltr_base", "letor", "ssi_models", "ltr_features"})
#: Attribute that stands for the code of a class or function of a notebook or a script; workers get
#: it with the class.
_MARK = "_defined_as"
#: Hidden files of a package, and what was compiled from its code.
_ASIDE = re.compile(r"(^|/)(\.|__pycache__/)")
#: Bytes from which on a file does not count as code: a base class may be of a package of gigabytes.
_LARGE = 1 << 24


def is_ours(module: str) -> bool:
    """Whether a module, by its name, is part of this software."""
    return module.partition(".")[0] in OURS


def source_files(name: str) -> list[Path]:
    """The file of a module, or all files of a package, as its code may read any of them, up to 16
    MiB each; or the archive that holds it."""
    file = Path(str(getattr(find_spec(name), "origin", None)))
    if file.name != "__init__.py" or not file.exists():
        return [next((part for part in (file, *file.parents) if part.is_file()), file)]
    folder = file.parent
    found = (p for p in folder.rglob("*") if p.is_file() and p.stat().st_size < _LARGE)
    return sorted(p for p in found if not _ASIDE.search(p.relative_to(folder).as_posix()))


def packages_of(*made: Callable[..., Any]) -> tuple[str, ...]:
    """The packages of others that classes or functions, and the bases of classes, come from; a
    module outside a package stands for itself, and a notebook or a script is none."""
    modules = {part.__module__ for one in made for part in _others(one)}
    return tuple(sorted({_package(name) for name in modules if _has_file(name)}))


def code_of_others(made: Callable[..., Any]) -> str:
    """A digest of the code of a class or function, as far as it is not part of this software: the
    files of the packages of :func:`packages_of`. "" if all is ours. What a notebook or a script
    defines is new code each time, as nothing tells whether it has changed."""
    others, digest = _others(made), hashlib.sha256()
    for path in (path for name in packages_of(made) for path in source_files(name)):
        digest.update(path.read_bytes() + b"\0")
    for part in others:
        if not _has_file(part.__module__):
            digest.update(_mark(part).encode() + b"\0")
    return digest.hexdigest() if others else ""


def _mark(defined: Any) -> str:
    if _MARK not in vars(defined):
        setattr(defined, _MARK, uuid4().hex)
    return str(vars(defined)[_MARK])


def _others(made: Callable[..., Any]) -> list[Any]:
    """The function, or the class and its bases down to those that ours or Python have; a function
    may be a method, be decorated, or have some of its arguments."""
    while isinstance(made, partial):
        made = made.func
    if isinstance(made, type):
        found: tuple[Any, ...] = made.__mro__
    elif hasattr(made, "__qualname__"):
        found = (inspect.unwrap(getattr(made, "__func__", made)),)
    else:
        found = type(made).__mro__
    ours = [part for part in found if is_ours(part.__module__)]
    known = {object}.union(*(part.__mro__ for part in ours if isinstance(part, type)), ours)
    return [part for part in found if part not in known and not _is_pythons(part.__module__)]


def _is_pythons(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _has_file(module: str) -> bool:
    return module != "__main__" and bool(getattr(sys.modules.get(module), "__file__", None))


def _package(module: str) -> str:
    """The outermost package of a module that has a file: folders without ``__init__`` may hold
    anything."""
    names = module.split(".")
    outer = (".".join(names[:n]) for n in range(1, len(names)))
    return next((name for name in outer if _has_file(name)), module)
