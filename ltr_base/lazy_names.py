"""Names of a package that are imported on first access."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ltr_base.former import warn_of_former


def declared_names(file: str) -> dict[str, str]:
    """The module of each name that a package declares to type checkers, for :func:`lazy_names`.

    Args:
        file: the package's ``__file__``, with ``from MODULE import NAME as NAME`` under ``if
            TYPE_CHECKING``.
    """
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    declared = [line for block in body if isinstance(block, ast.If) for line in block.body]
    imports = [line for line in declared if isinstance(line, ast.ImportFrom)]
    return {name.name: str(line.module) for line in imports for name in line.names}


def lazy_names(
    package: str, homes: Mapping[str, str], renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Args:
        package: its ``__name__``.
        homes: the module of each name, absolute or, with a leading dot, relative to the package.
        renamed: the new name for each old one; using an old name gives a
            :class:`~ltr_base.former.FormerName`.
    """
    new_names = renamed or {}

    def get(name: str) -> Any:
        if name in new_names:
            new = new_names[name]
            warn_of_former(f"{name} is called {new} now; change the import")
            name = new
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], package), name)

    return get, lambda: sorted(homes)
