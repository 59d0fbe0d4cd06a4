"""Save and load how a feature builder finds candidates of new queries: its fitted models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ltr_features.candidate_kinds import Search
from ltr_features.candidates import candidate_sources

#: Their folder in that of a saved builder.
SEARCHES = "searches"


def save_searches(searches: Mapping[str, Search], folder: Path) -> list[str]:
    """Write the models into a new folder and return the names of their sources, by whose places the
    files are called: a name of a source may be no name of a file."""
    models = {name: of.model.model for name, of in searches.items() if of.model is not None}
    folder.mkdir()
    for number, model in enumerate(models.values()):
        model.save(folder / f"{number}.safetensors")
    return [*models]


def load_searches(
    folder: Path, settings: Mapping[str, Mapping[str, Any]], saved: Sequence[str]
) -> dict[str, Search]:
    """Read what :func:`save_searches` wrote; by source, without those that have no candidates of
    new queries.

    Args:
        settings: of all sources. saved: names of those whose model is in the folder; builders of
            earlier versions have none.

    Raises:
        InputError: a file is missing or damaged.
    """
    places = {name: folder / f"{number}.safetensors" for number, name in enumerate(saved)}
    sources = candidate_sources(settings).items() if settings else ()
    searches = {name: source.stored_search(places.get(name)) for name, source in sources}
    return {name: found for name, found in searches.items() if found is not None}
