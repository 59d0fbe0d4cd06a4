"""Names that a package hands out and imports when they are first asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Args:
        package: its ``__name__``.
        homes: for each name its module, absolute or, with a dot before it, within the package.
        renamed: for each old name, which warns, its new one.
    """
    new_names = renamed or {}

    def get(name: str) -> Any:
        if name in new_names:
            new = new_names[name]
            warnings.warn(
                f"{name} is called {new} now; change the import", FutureWarning, stacklevel=2
            )
            name = new
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], package), name)

    return get, lambda: sorted(homes)
