"""Sources of collections by name: built-in ones, and those of other packages in the entry point
group ``ltr_features.sources`` (``module:function`` of a function that returns a ``Collection``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from letor.errors import InputError, naming
from letor.plugins import Plugins
from ltr_base.names import listed
from ltr_features.parameters import check_call
from ltr_features.text.collection import Collection

_BUILT_IN = {
    "beir": "ltr_features.sources.beir:read_beir",
    "trec": "ltr_features.sources.trec:read_trec",
    "table": "ltr_features.sources.table:read_table",
    "ir-datasets": "ltr_features.sources.ir_dataset:read_ir_dataset",
    "clicks": "ltr_features.clicks.source:read_clicks",
    "collection": "ltr_features.text.collection_files:load_collection",
    "wikipedia-sections": "ltr_features.sources.wikipedia_sections:section_collection",
}

_SOURCES = Plugins("source", "ltr_features.sources", _BUILT_IN)

Source = Callable[..., Collection]


def sources() -> list[str]:
    """The names of all sources, built-in ones first."""
    return _SOURCES.names()


def get_source(name: str) -> Source:
    """The function that reads a kind of source.

    Raises:
        InputError: no such source, or the source of a package cannot be loaded.
    """
    if name not in sources() and (path := Path(name)).exists():
        example = f"beir folder={name}" if path.is_dir() else f"table documents={name}"
        raise InputError(
            f"{name} is a path, not a source: name the source, and the path as its option, for "
            f"example {example}; sources are {listed(sources(), 20)}"
        )
    return _SOURCES.get(name)


def check_options(name: str, options: dict[str, Any]) -> None:
    """Raise InputError for options or values that a source does not take, and for missing ones."""
    check_call(get_source(name), options, f"source {name!r}")


def read_collection(name: str, /, **options: Any) -> Collection:
    """Read a collection from a source by name, such as files or frames of documents, queries and
    judgements: ``read_collection("table", documents=frame, queries=frame, judgements=frame)``.

    Args:
        name: "table", "beir", "trec", "ir-datasets", "clicks", or the source of a package.
        options: parameters of the source's function, which
            ``help(ltr_features.sources.registry.get_source(name))`` shows; for "table" they are
            those of :func:`~ltr_features.sources.table.read_table`.

    Raises:
        InputError: no such source, wrong options, or input that cannot be read.
    """
    check_options(name, options)
    with naming(f"source {name!r}"):
        found = get_source(name)(**options)
    if not isinstance(found, Collection):
        raise InputError(f"source {name!r} returned {found!r}: it must return a Collection")
    return found
