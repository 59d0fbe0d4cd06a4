"""How columns of rows were made: settings that are recorded with them, and what differs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from letor.dataset import SETTINGS, RankingData
from letor.errors import LetorWarning
from ltr_base.names import counted, listed


def settings_of(data: RankingData) -> dict[str, dict[str, Any]]:
    """The recorded settings of columns, by column name; see :data:`letor.dataset.SETTINGS`."""
    return {
        name: dict(data.provenance[name][SETTINGS])
        for name in data.column_names
        if SETTINGS in data.provenance.get(name, ())
    }


def changed_settings(
    trained: Mapping[str, Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """A remark on columns whose settings are not those of the training rows; None if there are
    none. Only settings that both have recorded are compared."""
    changed = [
        (name, f"{key} = {value!r} instead of {trained[name][key]!r}")
        for name, settings in found.items()
        for key, value in settings.items()
        if key in trained.get(name, ()) and trained[name][key] != value
    ]
    if not changed:
        return None
    names, ways = (list(dict.fromkeys(parts)) for parts in zip(*changed, strict=True))
    return (
        f"{counted(len(names), 'column')} ({listed(names, 5)}) made in another way than for the "
        f"training rows, with {listed(ways, 3)}: their values do not mean what the ranker has "
        "learned; make them as for training, or train again"
    )


def warn_of_changed_settings(
    trained: Mapping[str, Mapping[str, Any]], data: RankingData, what: str
) -> None:
    """Warn, two calls up, of columns made with other settings than those of the training rows."""
    if (remark := changed_settings(trained, settings_of(data))) is not None:
        warnings.warn(f"{what}: {remark}", LetorWarning, stacklevel=3)
