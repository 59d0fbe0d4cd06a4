"""What can be chosen by name: built in, or registered by other packages as entry points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from letor.errors import InputError
from ltr_base.names import nearest


@dataclass(frozen=True)
class Plugins:
    """Objects by name, imported when they are asked for: each may need a library of its own.

    Attributes:
        what: what one is called in messages.
        group: the entry point group of other packages. A name that is built in stays so.
        built_in: ``module:attribute`` by name.
    """

    what: str
    group: str
    built_in: Mapping[str, str]

    def names(self) -> list[str]:
        """All names: the built-in ones in their order, then the others, sorted."""
        return [*self.built_in, *sorted(self._others())]

    def get(self, name: str) -> Any:
        """The object of that name.

        Raises:
            InputError: there is none, or the one of an installed package cannot be loaded.
        """
        if name in self.built_in:
            return EntryPoint(name, self.built_in[name], self.group).load()
        if (point := self._others().get(name)) is None:
            raise InputError(f"there is no {self.what} {name!r}; {nearest(name, self.names())}")
        try:
            return point.load()
        except Exception as error:
            raise InputError(
                f"{self.what} {name!r} ({point.value}) cannot be loaded: {error}; fix or "
                "remove the package that provides it"
            ) from error

    def _others(self) -> dict[str, EntryPoint]:
        """The entry points of other packages, by name."""
        return {p.name: p for p in entry_points(group=self.group) if p.name not in self.built_in}
