"""Stages of a run in one folder: each output is made once and reused while its inputs match."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from letor.errors import InputError
from letor.files import atomic_path, read_json, write_json
from letor.lock import locked
from ltr_base.machine import is_running, is_temporary, process_of
from ltr_base.names import listed
from ltr_base.source_code import is_ours, source_files
from ltr_features.studies.identity import Digests

STUDIES = "ltr_features.studies"
PACKAGES = ("ssi_models", "letor", "ltr_features", STUDIES)
#: Subfolders that a package's own outputs do not depend on, or that are input rather than code.
_ON_TOP = {"studies", "commands", "experiments"}
#: Libraries that compute the numbers of stages, and those that write reports.
LIBRARIES = (
    "numpy", "scipy", "pandas", "numba", "llvmlite", "scikit-learn", "lightgbm", "xgboost", "torch",
    "gensim", "PyStemmer", "tagme", "ir_datasets", "ranx", "statsmodels", "safetensors", "pyarrow",
)  # fmt: skip
WRITERS = ("matplotlib", "jinja2")
#: The note inside every output folder: what the output was made from, and the digests of its files.
NOTE = ".stage.json"
#: Why a stage runs that no earlier run has begun.
NEW = "not made yet"
#: Digests of large files, in the run's folder, so that a later run need not read them again.
DIGESTS = ".digests.json"


@dataclass(frozen=True, eq=False)
class Planned:
    """A stage of a plan.

    Attributes:
        name: path of its folder within the output folder.
        inputs: JSON-compatible; everything that its output depends on, except code. The order of
            keys does not count: where the output depends on it, a list of the keys is an input.
        make: fills the folder that it is given, a temporary one.
        size: how much it has to do, in words.
        kind, amount: determine how long it takes, see :class:`progress.Work`.
        title: name shown while it runs; ``name`` by default.
        resumable: ``make`` gets the final folder instead, which may hold finished files of an
            interrupted run with the same inputs, and makes the missing ones.
        code: packages, modules and functions ("module:name") that make the output; it is made
            again when they change.
        after: names of further stages that it reads, beyond those whose keys are among its inputs;
            its output does not depend on their content.
        together: consecutive stages of a plan with the same value may run in parallel.
        seconds: what it roughly takes on one core, where no run has measured it; 0 if unknown.
        first_result: whether a first result is told when it is made.
        n_parts, make_part: number of parts of a resumable stage that workers may make beforehand,
            in any order, and the function that makes one; ``make`` finds them in the folder.
    """

    name: str
    inputs: Mapping[str, Any]
    make: Callable[[Path], None]
    size: str = ""
    kind: str = ""
    amount: float = 1.0
    title: str = ""
    resumable: bool = False
    code: tuple[str, ...] = PACKAGES
    after: Sequence[str] = ()
    together: str = ""
    seconds: float = 0.0
    first_result: bool = False
    n_parts: int = 0
    make_part: Callable[[Path, int], None] | None = None

    @cached_property
    def noted(self) -> dict[str, Any]:
        """Inputs and the digest of the code, as a note has them: with lists instead of tuples."""
        return json.loads(json.dumps({**self.inputs, "code": code_digest(self.code)}))

    @cached_property
    def key(self) -> str:
        """Digest of the inputs and the code; an input of later stages."""
        return json_digest(self.noted)[:16]


@dataclass(frozen=True)
class StageResult:
    """The result of a stage.

    Attributes:
        key: see :class:`Planned`.
        path: the output folder. files: digests of its files, by name.
        reused: whether an earlier run had made it.
        reason: why it was made, if it was not reused.
    """

    key: str
    path: Path
    reused: bool
    reason: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """Digest of all files."""
        return json_digest(self.files)[:16]

    def json(self, name: str) -> Any:
        """The content of a JSON file of the output."""
        return read_json(self.path / name)

    def per_query(self, ids: str = "qid") -> pd.DataFrame:
        """The output's ``per_query.csv``, by its column of query ids, which are text: 01, NA."""
        found = pd.read_csv(
            self.path / "per_query.csv", dtype={ids: str}, keep_default_na=False, na_values=[""]
        )
        return found.set_index(ids)


class Stages:
    """The stages of one output folder.

    A note inside each stage's folder records the inputs it was made from; a folder without a note
    belongs to somebody else and is never touched. The note also has the digest of every file of the
    output: a file that has changed since then is made again.

    Args:
        folder: the output folder; nothing is written before it is needed.

    Attributes:
        digests: digests of input and output files.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.digests = Digests(self.folder / DIGESTS, self.folder)

    @contextmanager
    def claimed(self) -> Iterator[str]:
        """Hold the folder while the block runs. It is made if it does not exist, and half-made
        files of killed runs and workers are removed from it.

        Yields:
            A message about a former run, or "", see :func:`lock.locked`.

        Raises:
            InputError: the folder cannot be made or written, or another run is using it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe = self.folder / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"{self.folder}: cannot write there ({error.strerror}); name another output folder"
            ) from None
        with locked(self.folder) as message:
            self._remove_half_made()
            try:
                yield message
            finally:
                self._remove_half_made()
                self.digests.save()

    def _remove_half_made(self) -> None:
        """Remove temporary files left by killed processes of this machine."""
        for path in list(self.folder.rglob(".*")):
            process = process_of(path.name)
            if process is not None and not is_running(process):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def check(self, names: Iterable[str]) -> None:
        """Raise InputError if an output of one of the names exists that no stage made."""
        for name in names:
            target = self.folder / name
            foreign = target.is_file() or (target.is_dir() and any(target.iterdir()))
            if foreign and _read_note(target) is None:
                raise InputError(
                    f"{target}: exists already and was not made by this program; move it away "
                    "or name another output folder"
                )

    def others(self, names: Iterable[str]) -> list[str]:
        """Outputs of stages with other names: of systems, folds or fits that an earlier run had."""
        notes = self.folder.rglob(NOTE)
        found = {path.parent.relative_to(self.folder).as_posix() for path in notes}
        return sorted(found.difference(names))

    def look(self, stage: Planned) -> StageResult:
        """Whether ``run`` would reuse the output, or else why it would make it."""
        target = self.folder / stage.name
        note = _read_note(target)
        if note is not None and note["key"] == stage.key and note["files"] == self._files(target):
            return StageResult(stage.key, target, reused=True, files=note["files"])
        return StageResult(stage.key, target, reused=False, reason=_reason(note, stage.noted))

    def run(self, stage: Planned) -> StageResult:
        """Make the output of a stage unless it exists already for the same inputs and code.

        Raises:
            InputError: the output exists but was not made by a stage.
        """
        self.check([stage.name])
        found = self.look(stage)
        if found.reused:
            return found
        target, note = found.path, _read_note(found.path)
        if stage.resumable:
            if note is None or note["key"] != stage.key:
                # Old outputs are removed first, so that the new key is never noted for old files.
                if target.exists():
                    shutil.rmtree(target)
                target.mkdir(parents=True)
            elif note["files"] is not None:  # once finished; files changed since are made again
                for file, digest in self._files(target).items():
                    if note["files"].get(file) != digest:
                        (target / file).unlink()
            _write_note(target, stage, files=None)
            stage.make(target)
            files = self._files(target)
            _write_note(target, stage, files=files)
        else:
            with atomic_path(target, kind="folder") as partial:
                partial.mkdir()
                stage.make(partial)
                files = self._files(partial)
                _write_note(partial, stage, files=files)
        return replace(found, files=files)

    def _files(self, folder: Path) -> dict[str, str]:
        """Digest of every file of a folder, by relative path; without the note."""
        return {
            path.relative_to(folder).as_posix(): self.digests.sha256(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != NOTE and not is_temporary(path.name)
        }


def json_digest(found: Any) -> str:
    """The SHA-256 of a value as JSON, as hexadecimal digits."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def versions(libraries: Iterable[str] = (*LIBRARIES, *WRITERS)) -> dict[str, str]:
    """Versions of Python, this software and the installed ones of the libraries, which are not
    imported for it."""
    found = {"Python": platform.python_version()}
    for name in ("ltr-features", *libraries):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def code_digest(code: tuple[str, ...] = PACKAGES) -> str:
    """Digest of the source of packages, modules or functions of this software and of plug-ins, and
    of the versions of the libraries that they use; outputs made by different code are not reused.
    """
    libraries = (*LIBRARIES, *(WRITERS if STUDIES in code else ()))
    digest = hashlib.sha256(json.dumps(versions(libraries)).encode())
    for name in code:
        module, _, function = name.partition(":")
        for path in _source_files(module):
            source = path.read_bytes()
            digest.update(f"{name}/{path.name}".encode())
            digest.update(_source_of(function, source) if function else source)
    return digest.hexdigest()[:16]


def _source_of(function: str, source: bytes) -> bytes:
    """The source lines of a function in a module's source."""
    found = next(n for n in ast.parse(source).body if getattr(n, "name", "") == function)
    return b"\n".join(source.splitlines()[found.lineno - 1 : found.end_lineno])


def _source_files(name: str) -> list[Path]:
    """The file of a module, or the files of a package, of ours without those in ``_ON_TOP``
    subfolders."""
    files = source_files(name)
    folder = files[0].parent  # the files of a package begin with its __init__.py
    within = (path.relative_to(folder).parts if is_ours(name) else () for path in files)
    return [path for path, parts in zip(files, within, strict=True) if _ON_TOP.isdisjoint(parts)]


def _read_note(folder: Path) -> dict[str, Any] | None:
    """The note of a folder, or None if it has none; a damaged note matches no inputs."""
    try:
        note = read_json(folder / NOTE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        note = {}
    blank: dict[str, Any] = {"key": "", "inputs": {}, "files": None}
    return blank | note if isinstance(note, dict) else blank


def _write_note(folder: Path, stage: Planned, *, files: Mapping[str, str] | None) -> None:
    with atomic_path(folder / NOTE) as partial:
        write_json(partial, {"key": stage.key, "inputs": stage.noted, "files": files})


def _reason(note: Mapping[str, Any] | None, inputs: Mapping[str, Any]) -> str:
    if note is None:
        return NEW
    changed = list(_changed(note["inputs"], inputs))
    if changed:
        return f"changed: {listed(changed, 6)}"
    return "interrupted" if note["files"] is None else "its files have changed"


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Names of the inputs that have changed; for dictionaries ``name.key`` of the changed keys."""
    for name, value in now.items():
        former = before.get(name)
        if former == value:
            continue
        if isinstance(former, dict) and isinstance(value, dict):
            yield from (f"{name}.{k}" for k in {**former, **value} if former.get(k) != value.get(k))
        else:
            yield name
