"""Sources of collections by name: built-in ones, and those of other packages in the entry point
group ``ltr_features.sources`` (``module:function`` of a function that returns a ``Collection``)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from letor.errors import InputError
from ltr_base.names import nearest
from ltr_features.parameters import check_call
from ltr_features.text.collection import Collection

ENTRY_POINT_GROUP = "ltr_features.sources"

_BUILT_IN = {
    "beir": "ltr_features.sources.beir:read_beir",
    "trec": "ltr_features.sources.trec:read_trec",
    "table": "ltr_features.sources.table:read_table",
    "ir-datasets": "ltr_features.sources.ir_dataset:read_ir_dataset",
    "clicks": "ltr_features.clicks.source:read_clicks",
    "collection": "ltr_features.text.collection_files:load_collection",
    "wikipedia-sections": "ltr_features.sources.wikipedia_sections:section_collection",
}

Source = Callable[..., Collection]


def sources() -> list[str]:
    """The names of all sources, built-in ones first."""
    others = {point.name for point in entry_points(group=ENTRY_POINT_GROUP)}
    return [*_BUILT_IN, *sorted(others - set(_BUILT_IN))]


def get_source(name: str) -> Source:
    """The function that reads a kind of source.

    Raises:
        InputError: no such source, or the source of a package cannot be loaded.
    """
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        found: Source = getattr(import_module(module), attribute)
        return found
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name:
            try:
                loaded: Source = point.load()
            except Exception as error:
                raise InputError(
                    f"source {name!r} ({point.value}) cannot be loaded: {error}; fix or remove "
                    "the package that provides it"
                ) from error
            return loaded
    raise InputError(f"there is no source {name!r}; {nearest(name, sources())}")


def check_options(name: str, options: dict[str, Any]) -> None:
    """Raise InputError for options or values that a source does not take, and for missing ones."""
    check_call(get_source(name), options, f"source {name!r}")


def read_collection(name: str, /, **options: Any) -> Collection:
    """Read a collection from a source by name; ``options`` are the parameters of its function.

    Raises:
        InputError: no such source, wrong options, or input that cannot be read.
    """
    check_options(name, options)
    return get_source(name)(**options)
