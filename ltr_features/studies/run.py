"""Run an experiment file of any kind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from letor.errors import InputError
from letor.plugins import Plugins
from ltr_base.names import nearest
from ltr_features.cluster import connected
from ltr_features.studies.config import read_toml
from ltr_features.studies.progress import Reporter
from ltr_features.studies.standard_experiment import (
    check_kept,
    has_standard,
    keep,
    standard_experiment,
)
from ltr_features.studies.study import Study
from ltr_features.studies.workers import done_by_workers

_BUILT_IN = {
    "ranking": "ltr_features.studies.kinds.ranking:RankingStudy",
    "matching": "ltr_features.studies.kinds.matching:MatchingStudy",
    "clickthrough": "ltr_features.studies.kinds.clickthrough:ClickthroughStudy",
    "clicks": "ltr_features.studies.kinds.clicks:ClicksStudy",
    "letor": "ltr_features.studies.kinds.letor:LetorStudy",
    "compare": "ltr_features.studies.kinds.compare:CompareStudy",
}
_KINDS = Plugins("kind", "", _BUILT_IN)
_LARGEST = 2**20  # bytes of an experiment's file


def run_file(
    path: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    candidates: Mapping[str, Mapping[str, Any]] | None = None,
    threads: int | None = None,
    memory: int | None = None,
    reporter: Reporter | None = None,
    dry_run: bool = False,
    scheduler: str | None = None,
) -> Path:
    """Run an experiment and return the folder of its report.

    Args:
        path: a TOML file, whose key ``kind`` determines how the rest is read ("ranking" by
            default); the name of an installed experiment (see :func:`experiment_names`); or the
            folder of a workspace or of LETOR folds, or a file of rows, for the :mod:`standard
            experiment <ltr_features.studies.standard_experiment>` on it, which is written to
            ``out``.
        out: folder for all outputs; finished stages there are reused.
        data: folder that paths in the file are relative to; by default the one named by the
            environment variable LTR_DATA, else the working folder. Not for the standard
            experiment, whose paths are relative to the working folder.
        candidates: of the standard experiment on a workspace, see
            :func:`ltr_features.candidates.candidate_sources`; by default BM25's best 100.
        threads, memory, reporter: see :class:`~ltr_features.studies.study.Study`.
        dry_run: check the file and print what would be done; nothing is run or written.
        scheduler: run the stages on the workers of a Dask cluster, see
            :func:`ltr_features.cluster.connected`; workers must see ``out`` and ``data`` under the
            same paths. Results do not depend on it.

    Raises:
        InputError: the file, or anything that it names, cannot be used.
    """
    if data is not None and has_standard(Path(path)):
        raise InputError(
            f"--data: {path} is no experiment file, and paths of its standard experiment are "
            "relative to the current folder; leave it out"
        )
    folder = Path(data if data is not None else os.environ.get("LTR_DATA", "."))
    with _file_of(path, Path(out), dry_run, candidates or {}) as file:
        kind = study_class(kind_of(file))
        if memory is not None and not kind.has_table:
            raise InputError(
                f"--memory: an experiment of kind {kind_of(file)!r} makes no feature table; "
                "leave it out"
            )
        config = kind.read(file, folder)
        study = kind(config, out, folder, threads=threads, memory=memory, reporter=reporter)
        if scheduler is None or dry_run:
            return study.run(dry_run=dry_run)
        study.folder.mkdir(parents=True, exist_ok=True)
        with connected(scheduler, study.folder, folder) as cluster:
            return study.run(made_by=lambda stages: done_by_workers(study, stages, cluster))


@contextmanager
def _file_of(
    path: str | os.PathLike[str],
    out: Path,
    dry_run: bool,
    candidates: Mapping[str, Mapping[str, Any]],
) -> Iterator[Path]:
    """The file of an experiment; a standard one is in ``out``, except for a dry run, and goes again
    if the run ends before it has made anything, so that it is no obstacle once inputs are
    mended."""
    if not has_standard(Path(path)):
        found = find_experiment(path)
        if candidates:
            raise InputError(
                "--candidates is for the standard experiment on a workspace; name the sources in "
                "the file, candidates = { judged = {} }"
            )
        yield found
        return
    try:
        experiment = standard_experiment(Path(path), candidates)
    except InputError as error:
        if _is_toml(Path(path)):
            raise InputError(
                f"{path}: by its ending it is a file of rows, but it holds TOML; the file of an "
                "experiment ends in .toml: rename it"
            ) from error
        raise
    if dry_run:
        check_kept(experiment, out)
        with TemporaryDirectory() as folder:
            yield keep(experiment, Path(folder))
        return
    before = set(os.listdir(out)) if out.is_dir() else None
    file = keep(experiment, out)
    try:
        yield file
    except BaseException:
        if set(os.listdir(out)) - (before or set()) == {file.name}:
            file.unlink()
            if before is None:
                out.rmdir()
        raise


def _is_toml(path: Path) -> bool:
    """Whether a path names a file, no larger than experiments are, that can be read as TOML."""
    try:
        return path.stat().st_size < _LARGEST and bool(read_toml(path))
    except (OSError, InputError):
        return False


def kind_of(path: Path) -> str:
    """The kind of an experiment file.

    Raises:
        InputError: the file cannot be read, is not TOML, or names an unknown kind.
    """
    kind = str(read_toml(path).get("kind", "ranking"))
    try:
        study_class(kind)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return kind


def study_kinds() -> list[str]:
    """The names of all kinds of studies."""
    return _KINDS.names()


def study_class(kind: str) -> type[Study]:
    """The class of a kind of study.

    Raises:
        InputError: there is no such kind.
    """
    return _KINDS.get(kind)


def experiment_names() -> list[str]:
    """Names of the experiments that are installed with the package."""
    folder = resources.files("ltr_features.studies") / "experiments"
    return sorted(
        p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")
    )


def find_experiment(path: str | os.PathLike[str]) -> Path:
    """The path itself if it is a file, or the file of the installed experiment of that name.

    Raises:
        InputError: there is neither; or it is a folder, or a file of another kind.
    """
    if Path(path).is_file():
        if Path(path).suffix not in ("", ".toml") and not _is_toml(Path(path)):
            raise InputError(
                f"{path} is neither an experiment (.toml) nor, by its ending, a file of rows "
                "(.txt, .parquet, ...); of a table, `ltr-features convert` makes rows"
            )
        return Path(path)
    if str(path) in experiment_names():
        return Path(str(resources.files("ltr_features.studies") / "experiments" / f"{path}.toml"))
    if Path(path).is_dir():
        raise InputError(
            f"{path} is no workspace and has no LETOR folds; make one by ltr-features index, or "
            "name an experiment's file, or a file of rows (.txt, .parquet, ...)"
        )
    raise InputError(
        f"{path}: no such file, and no experiment of that name; "
        f"{nearest(str(path), experiment_names())}"
    )
