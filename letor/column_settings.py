"""How columns of rows were made: settings that are recorded with them, and what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from letor.dataset import SETTINGS, RankingData
from letor.errors import RankerWarning
from ltr_base.names import counted, listed
from ltr_base.slices import slices
from ltr_base.user_warning import warn_user

#: The setting of columns that had missing values in the training rows.
_MISSING = "missing values"
#: Rows that are looked at together, as they may be in a file.
_ROWS = 1 << 16


def training_settings(data: RankingData) -> dict[str, dict[str, Any]]:
    """The settings of training rows' columns, by :func:`settings_of`, and which of them had missing
    values."""
    settings, missing = settings_of(data), np.zeros(len(data.column_names), np.bool_)
    for rows in slices(len(data), _ROWS):
        missing |= np.isnan(data.X[rows]).any(axis=0)
    for column in np.flatnonzero(missing).tolist():
        settings.setdefault(data.column_names[column], {})[_MISSING] = True
    return settings


def zero_for_missing(
    trained: Mapping[str, Mapping[str, Any]], data: RankingData, what: str
) -> str | None:
    """A remark on rows of LETOR text with zeros where the training rows had missing values; None if
    there are none.

    Args:
        trained: by :func:`training_settings`. data: the rows.
        what: what the rows are.
    """
    names = [n for n in data.column_names if _MISSING in trained.get(n, ())]
    columns = [data.column_names.index(name) for name in names]
    if not any((data.X[rows][:, columns] == 0).any() for rows in slices(len(data), _ROWS)):
        return None
    return (
        f"{what}: {counted(len(names), 'column')} ({listed(names, 5)}) had missing values in the "
        "training rows; LETOR text has 0 in place of these, so that scores may be others than "
        "those of the same rows in Parquet: take .parquet, or train on text"
    )


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
    """Warn of columns made with other settings than those of the training rows."""
    if (remark := changed_settings(trained, settings_of(data))) is not None:
        warn_user(f"{what}: {remark}", RankerWarning)
