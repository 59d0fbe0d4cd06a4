"""Standard experiments, for which the user writes no file. On a workspace: do columns of matching
models help on its collection? On LETOR folds, or a file of rows whose queries are dealt into folds:
do the learned columns help, or which ranker is best?
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from numpy.typing import NDArray

from letor.column_names import read_rows
from letor.errors import InputError, LetorWarning, reading
from letor.files import atomic_path, read_json
from letor.fold_files import is_rows_file, layout, one_file
from letor.rankers.registry import ranker_names
from ltr_base.names import counted
from ltr_base.user_warning import warn_user
from ltr_features.candidates import candidate_sources, source_kind
from ltr_features.columns.base import NOTHING
from ltr_features.columns.context import is_workspace, open_workspace
from ltr_features.feature_files import BUILT, built_of
from ltr_features.studies.kinds.sections import with_paths
from ltr_features.studies.statistics.paired_tests import smallest_p
from ltr_features.studies.statistics.significance import USUAL
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Collection

#: Name of its file in an output folder.
FILE = "experiment.toml"

#: Parts into which the experiment splits queries, their groups and their times.
_N_PARTS = 5
#: NDCG@10 cuts nothing where most queries have no more documents than this.
_SHORT_LIST = 10
#: A line of the experiment that names a file or folder.
_PATH = re.compile(r'(?:folder|queries|groups|sources) = (".*").*')


def has_standard(folder: Path) -> bool:
    """Whether there is a standard experiment on a folder (a workspace, or LETOR folds) or a file of
    rows."""
    if is_rows_file(folder):
        return True
    return is_workspace(folder) or (folder.is_dir() and layout(folder) != "")


def standard_experiment(
    folder: Path, candidates: Mapping[str, Mapping[str, Any]] | None = None
) -> str:
    """The standard experiment on a workspace, on LETOR folds or on a file of rows, as TOML.

    Args:
        candidates: see :func:`on_workspace`.

    Raises:
        InputError: it is none of these, or rows have their candidates; or see
            :func:`on_workspace` and :func:`on_folds`.
    """
    if is_workspace(folder):
        return on_workspace(folder, candidates or {})
    if candidates:
        raise InputError(
            f"{folder} has rows, whose documents are ranked: --candidates is for a workspace"
        )
    return on_folds(folder)


def on_workspace(workspace: Path, candidates: Mapping[str, Mapping[str, Any]]) -> str:
    """The standard experiment on the collection of a workspace, as TOML.

    Queries are split at random and, if their groups or times are known, by these, too.

    Args:
        candidates: settings of candidate sources, see
            :func:`ltr_features.candidates.candidate_sources`; relative paths are those of the
            working folder. BM25's best 100 documents if there are none.

    Raises:
        InputError: it is no workspace, or has fewer judged queries than an experiment needs, or
            there is no such source of candidates, or it has no such options.
    """
    if candidates:
        candidate_sources(candidates)
    context = open_workspace(workspace)
    collection, usual = context.collection, asdict(Analyzer())
    judged, n_judged = np.unique(collection.judgements.query, return_counts=True)
    if len(judged) < _N_PARTS:
        raise InputError(
            f"{workspace} has judgements of {counted(len(judged), 'query')}; an experiment needs "
            f"{_N_PARTS} or more: index the collection with queries and their judgements"
        )
    not_split = dict(_not_split(collection, judged))
    for sentence in not_split.values():
        warn_user(sentence, LetorWarning)
    experiment = _rendered(
        "standard_experiment.toml.jinja",
        title=f"Do matching columns help on {collection.name}?",
        folder=str((workspace / "collection").absolute()),
        candidates={
            name: with_paths(source_kind(name, options), options, Path.cwd())
            for name, options in candidates.items()
        },
        measures=(
            _measures(n_judged, collection.judgements.grade)
            if [*candidates] == ["judged"]
            else ["NDCG@10", "MAP"]
        ),
        text={
            key: value
            for key, value in asdict(context.index.analyzer).items()
            if key != "version" and value != usual[key]
        },
        groups=collection.query_groups is not None and "groups" not in not_split,
        times=collection.query_times is not None and "times" not in not_split,
        not_split="".join(f" {told[0].upper()}{told[1:]}." for told in not_split.values()),
    )
    if collection.query_groups is not None:
        _check_groups({collection.query_groups[row] for row in judged.tolist()}, experiment)
    return experiment


def _check_groups(groups: Set[str], experiment: str) -> None:
    """Warn if the judged queries belong to so few groups that no comparison of the experiment could
    find anything, before it takes its time."""
    evaluation = tomllib.loads(experiment)["evaluation"]
    n_tests = len(evaluation["comparisons"]) * len(evaluation["measures"])
    p = smallest_p(len(groups), len(groups), USUAL.n_permutations)
    if USUAL.corrected([p] * n_tests).min() >= USUAL.alpha:
        warn_user(
            f"queries are tested by their {counted(len(groups), 'group')}, so that p is {p:.2g} at "
            f"best, and nothing is significant after correction over {n_tests} tests: give smaller "
            "groups (index --groups), or none if queries are independent",
            LetorWarning,
        )


def _not_split(collection: Collection, judged: NDArray[np.int64]) -> Iterator[tuple[str, str]]:
    """Why the experiment cannot split the judged queries by their "groups" or "times", which are
    known: a sentence each, without a full stop."""
    groups, times = collection.query_groups, collection.query_times
    few = f"as they have fewer than {_N_PARTS}"
    if groups is not None:
        if (n := len({groups[row] for row in judged.tolist()})) < _N_PARTS:
            yield "groups", f"queries are not split by group, {few} groups ({n})"
        elif _n_kept(collection, judged) == _n_kept(collection, judged, by_group=True):
            why = "no group has queries of different texts, and those of one text are in one part"
            yield "groups", f"queries are not split by group, as {why} anyway"
    if times is None:
        return
    if n := int(np.isnan(times[judged]).sum()):
        yield "times", f"queries are not split by time, as {n:,} of them have no time"
    elif (n := len(np.unique(times[judged]))) < _N_PARTS:
        yield "times", f"queries are not split by time, {few} different times ({n})"


def _n_kept(collection: Collection, queries: NDArray[np.int64], *, by_group: bool = False) -> int:
    """Into how many parts folds could divide these queries."""
    labels = collection.kept_together(by_group=by_group)
    return len(queries if labels is None else np.unique(labels[queries]))


def on_folds(folder: Path) -> str:
    """The standard experiment on LETOR folds or, with random folds, on a file of rows, as TOML.

    If provenance tells which columns were learned or made elsewhere, LambdaMART with those of each
    family, and with all, is compared with LambdaMART on the other columns; else LambdaMART with the
    other rankers.

    Raises:
        InputError: a file cannot be read, or has fewer queries than an experiment needs.
    """
    file = folder if folder.is_file() else one_file(folder)
    # Text has marks of missing values that are not finite (Istella's, say); the report tells them.
    is_text = file.suffix.lower() != ".parquet"
    rows = read_rows(file, non_finite="nan" if is_text else "raise")
    if folder.is_file() and rows.n_queries < _N_PARTS:
        raise InputError(
            f"{folder} has rows of {counted(rows.n_queries, 'query')}; an experiment needs "
            f"{_N_PARTS} or more: give more queries, or the folder with all folds"
        )
    called = Path(os.path.abspath(folder)).name  # that of "." is no title
    families: dict[str, list[str]] = {}
    for name in rows.column_names:
        made = rows.provenance.get(name, {})
        if not str(made.get("trained on", NOTHING)).startswith(NOTHING):
            families.setdefault(str(made.get("family", name)), []).append(name)
    further = {name for names in families.values() for name in names}
    rankers: list[tuple[str, str, list[str]]]  # label, name, and the columns it does not see
    if not further or len(further) == len(rows.column_names):
        title = f"Which ranker is best on {called}?"
        names = sorted(ranker_names(), key=lambda name: name != "lambdamart")
        rankers = [(name, name, []) for name in names]
    else:
        title = f"Do the learned columns help on {called}?"
        seen = {"other columns": set[str]()}
        if len(families) > 1:
            seen["all columns"] = further
        seen |= {f"other columns + {family}": {*names} for family, names in families.items()}
        rankers = [(label, "lambdamart", sorted(further - seen[label])) for label in seen]
    return _rendered(
        "standard_letor.toml.jinja",
        title=title,
        folder=str(folder.absolute()),
        is_text=is_text,
        k=_N_PARTS if folder.is_file() else 0,
        measures=_measures(rows.group_sizes, rows.y),
        rankers=rankers,
        apart=rankers[0][2],
        **_queries_of(folder),
    )


def _measures(
    sizes: NDArray[np.integer[Any]], labels: NDArray[np.integer[Any] | np.floating[Any]]
) -> list[str]:
    """Measures that can tell rankings of given documents apart.

    Args:
        sizes: number of documents of each query. labels: of all documents.
    """
    measures = ["NDCG@10"]
    if np.median(sizes) <= _SHORT_LIST:
        measures.append("NDCG@1")
    if (labels < 1).any():  # else it is 1 for every ranking
        measures.append("MAP")
    return measures


def _queries_of(folder: Path) -> dict[str, str | bool]:
    """The file with the texts of the queries, and whether it has their groups and sources, if the
    folds have a workspace that is as it was; else a warning says why they are not known."""
    unknown: dict[str, str | bool] = {"queries": "", "groups": False, "sources": False}
    built = folder / BUILT
    if not built.exists():
        return unknown
    try:
        with reading(built, "it names the workspace of the folds"):
            found = read_json(built)
            collection = built_of(folder, found).collection
            file = folder / found["workspace"] / "collection" / "queries.jsonl"
    except InputError as error:
        warn_user(f"texts and groups of queries are unknown: {error}", LetorWarning)
        return unknown
    return {
        "queries": str(file.resolve()),
        "groups": collection.query_groups is not None,
        "sources": collection.query_sources is not None,
    }


def keep(experiment: str, out: Path) -> Path:
    """The file of an experiment in its output folder, which is written unless it is there. If what
    its paths name has been moved, it gets the new ones.

    Raises:
        InputError: as :func:`check_kept`.
    """
    check_kept(experiment, out)
    file = out / FILE
    if not file.exists() or file.read_text(encoding="utf-8") != experiment:
        with atomic_path(file) as partial:
            partial.write_text(experiment, encoding="utf-8", newline="\n")
    return file


def check_kept(experiment: str, out: Path) -> None:
    """Raise InputError if the output folder has the file of another experiment."""
    file = out / FILE
    former = file.read_text(encoding="utf-8") if file.exists() else experiment
    if former != experiment and not _moved(former, experiment):
        raise InputError(
            f"{file} is another experiment, or was changed, or written by another version: run it "
            "by its name, or name another folder by --out"
        )


def _moved(former: str, experiment: str) -> bool:
    """Whether two experiments differ, and in no line but those of paths, which no longer lead
    anywhere in the former one."""
    lines = zip_longest(former.splitlines(), experiment.splitlines(), fillvalue="")
    found = [(_PATH.fullmatch(a), _PATH.fullmatch(b)) for a, b in lines if a != b]
    return bool(found) and all(a and b and not Path(json.loads(a[1])).exists() for a, b in found)


def _rendered(template: str, **values: Any) -> str:
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["toml"] = _toml
    source = resources.files("ltr_features.studies").joinpath(template)
    return environment.from_string(source.read_text(encoding="utf-8")).render(**values)


def _toml(value: Any) -> str:
    """A value of TOML; JSON writes strings, numbers and lists of them alike."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml(key)} = {_toml(v)}' for key, v in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
