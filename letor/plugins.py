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
        group: the entry point group of other packages, "" if they cannot register any. A name that
            is built in stays so.
        built_in: ``module:attribute`` by name.
        kind: the base class of those that are classes, whose attribute ``name`` is their name
            here; None for functions.
    """

    what: str
    group: str
    built_in: Mapping[str, str]
    kind: type | None = None

    def names(self) -> list[str]:
        """All names: the built-in ones in their order, then the others, sorted."""
        return [*self.built_in, *sorted(self._others())]

    def get(self, name: str) -> Any:
        """The object of that name.

        Raises:
            InputError: there is none, or the one of an installed package cannot be loaded or is
                something else.
        """
        if name in self.built_in:
            return EntryPoint(name, self.built_in[name], self.group).load()
        if not (points := self._others().get(name)):
            raise InputError(f"there is no {self.what} {name!r}; {nearest(name, self.names())}")
        if len(points) > 1:
            raise InputError(
                f"several installed packages have a {self.what} {name!r} "
                f"({', '.join(sorted(points))}): remove all but one of them"
            )
        (point,) = points.values()
        try:
            found = point.load()
        except Exception as error:
            raise InputError(
                f"{self.what} {name!r} ({point.value}) cannot be loaded: {error}; fix or "
                "remove the package that provides it"
            ) from error
        if fault := self._fault(name, found):
            raise InputError(f"{self.what} {name!r} ({point.value}) {fault}")
        return found

    def _fault(self, name: str, found: Any) -> str:
        """Why another package's object cannot be used; "" if it can."""
        if self.kind is None:
            return "" if callable(found) else f"is {found!r}: register a function"
        if not (isinstance(found, type) and issubclass(found, self.kind)):
            return f"is {found!r}: register a subclass of {self.kind.__name__}"
        if undefined := sorted(getattr(found, "__abstractmethods__", ())):
            return f"does not define {', '.join(undefined)}"
        if (own := getattr(found, "name", None)) != name:
            return f"has the name {own!r}: register it under the name that it has"
        return ""

    def _others(self) -> dict[str, dict[str, EntryPoint]]:
        """The entry points of other packages, by name and value: one for each name, unless packages
        have taken the same."""
        points: dict[str, dict[str, EntryPoint]] = {}
        for point in entry_points(group=self.group) if self.group else ():
            if point.name not in self.built_in:
                points.setdefault(point.name, {})[point.value] = point
        return points
