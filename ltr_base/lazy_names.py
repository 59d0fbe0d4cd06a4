"""Names of a package that are imported on first access."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ltr_base.former import FormerName


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
            warnings.warn(
                f"{name} is called {new} now; change the import", FormerName, stacklevel=2
            )
            name = new
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], package), name)

    return get, lambda: sorted(homes)
