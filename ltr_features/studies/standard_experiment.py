"""The standard experiment on a workspace: do columns of matching models help on its collection?"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import resources
from pathlib import Path

import numpy as np
from jinja2 import Environment, StrictUndefined

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.columns.context import open_workspace
from ltr_features.text.analyzer import Analyzer

#: Name of its file in an output folder.
FILE = "experiment.toml"

_TEMPLATE = "standard_experiment.toml.jinja"
#: Parts into which the experiment splits queries, their groups and their times.
_N_PARTS = 5


def standard_experiment(workspace: Path) -> str:
    """The standard experiment on the collection of a workspace, as TOML.

    Queries are split at random and, if their groups or times are known, by these, too.

    Raises:
        InputError: it is no workspace, or has fewer judged queries than an experiment needs.
    """
    context = open_workspace(workspace)
    collection, usual = context.collection, asdict(Analyzer())
    judged = np.unique(collection.judgements.query)
    if len(judged) < _N_PARTS:
        raise InputError(
            f"{workspace} has judgements of {len(judged)} queries; an experiment needs {_N_PARTS} "
            "or more: index the collection with queries and their judgements"
        )
    groups = collection.query_groups
    times = None if collection.query_times is None else collection.query_times[judged]
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["toml"] = _toml
    source = resources.files("ltr_features.studies").joinpath(_TEMPLATE)
    return environment.from_string(source.read_text(encoding="utf-8")).render(
        title=f"Do matching columns help on {collection.name}?",
        folder=str((workspace / "collection").absolute()),
        text={
            key: value
            for key, value in asdict(context.index.analyzer).items()
            if key != "version" and value != usual[key]
        },
        groups=groups is not None and len({groups[q] for q in judged.tolist()}) >= _N_PARTS,
        times=times is not None and np.isfinite(times).all() and len(set(times)) >= _N_PARTS,
    )


def keep(experiment: str, out: Path) -> Path:
    """The file of an experiment in its output folder, which is written unless it is there.

    Raises:
        InputError: the folder has the file of another experiment.
    """
    file = out / FILE
    if not file.exists():
        with atomic_path(file) as partial:
            partial.write_text(experiment, encoding="utf-8", newline="\n")
    elif file.read_text(encoding="utf-8") != experiment:
        raise InputError(
            f"{file} is another experiment, or was changed: run it by its name, or name another "
            "folder by --out"
        )
    return file


def _toml(value: str | bool | int | tuple[str, ...]) -> str:
    """A value of TOML; JSON writes strings, numbers and lists of them alike."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
