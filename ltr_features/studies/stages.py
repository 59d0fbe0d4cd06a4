"""Stages of a run in one folder: each output is made once and reused while its inputs are equal."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from letor.errors import InputError
from letor.files import atomic_path, read_json
from ltr_base.machine import is_temporary, process_of
from ltr_features.studies.identity import Digests
from ltr_features.studies.lock import locked

STUDIES = "ltr_features.studies"
PACKAGES = ("ssi_models", "letor", "ltr_features", STUDIES)
#: Rooms on top of a package that its own outputs do not depend on, and what is input, not code.
_ON_TOP = {"studies", "commands", "experiments"}
#: Libraries that the numbers of stages come from, and those that reports are written by.
LIBRARIES = (
    "numpy", "scipy", "pandas", "numba", "llvmlite", "scikit-learn", "lightgbm", "xgboost", "torch",
    "gensim", "PyStemmer", "tagme", "ir_datasets", "ranx", "statsmodels", "safetensors",
)  # fmt: skip
WRITERS = ("pyarrow", "matplotlib", "jinja2")
#: The note inside every output folder: what it was made from, and which files it has.
NOTE = ".stage.json"
#: Digests of large files, in the folder of all outputs: a later run need not read them again.
DIGESTS = ".digests.json"


@dataclass(frozen=True)
class StageResult:
    """What became of a stage.

    Attributes:
        key: digest of all that the output depends on; an input of the stages after it.
        path: the output folder. files: digests of its files, by name.
        reused: whether an earlier run had made it.
        reason: why it was made, if it was.
    """

    key: str
    path: Path
    reused: bool
    reason: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """Digest of all files."""
        return _digest(self.files)[:16]

    def json(self, name: str) -> Any:
        """What a JSON file among them holds."""
        return read_json(self.path / name)


class Stages:
    """The stages of one output folder.

    A stage's key digests its inputs (parameters, the keys of earlier stages) and the code of this
    software. A note inside each output folder tells which inputs it was made from; a folder
    without one is somebody else's and never touched. The note has the digest of every file of the
    output, too: one that was changed since is made again.

    Args:
        folder: the output folder; nothing is written before it is needed.

    Attributes:
        digests: of inputs and outputs.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.digests = Digests(self.folder / DIGESTS, self.folder)

    @contextmanager
    def claimed(self) -> Iterator[str]:
        """Hold the folder while the block runs; it is made if it is not there, and what killed
        runs and workers left half-made in it is removed.

        Yields:
            What is worth saying of a former run, see :func:`lock.locked`.

        Raises:
            InputError: the folder cannot be made or written, or another run is going on there.
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
        with locked(self.folder) as said:
            self._remove_half_made()
            try:
                yield said
            finally:
                self._remove_half_made()
                self.digests.save()

    def _remove_half_made(self) -> None:
        """Remove what killed processes of this machine have left."""
        for path in list(self.folder.rglob(".*")):
            process = process_of(path.name)
            if process is not None and not _is_running(process):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def check(self, names: Iterable[str]) -> None:
        """Raise InputError if an output of that name exists that no stage of ours made."""
        for name in names:
            target = self.folder / name
            foreign = target.is_file() or (target.is_dir() and any(target.iterdir()))
            if foreign and _read_note(target) is None:
                raise InputError(
                    f"{target}: is there already and was not made by this program; move it away "
                    "or name another output folder"
                )

    def look(
        self, name: str, inputs: Mapping[str, Any], *, code: tuple[str, ...] = PACKAGES
    ) -> StageResult:
        """What ``run`` would find: whether the output is there, else why it would be made."""
        target, key = self.folder / name, key_of(inputs, code)
        note = _read_note(target)
        if note is not None and note["key"] == key and note["files"] == self._files(target):
            return StageResult(key, target, reused=True, files=note["files"])
        return StageResult(key, target, reused=False, reason=_reason(note, _all(inputs, code)))

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        make: Callable[[Path], None],
        *,
        resumable: bool = False,
        code: tuple[str, ...] = PACKAGES,
    ) -> StageResult:
        """Fill the folder ``name`` by ``make(path)`` unless it is there with the same inputs.

        Args:
            name: path of the output folder within the run's folder.
            inputs: JSON-compatible; all that the output depends on, code apart.
            make: fills the folder that it is given, a temporary one.
            resumable: ``make`` gets the final folder instead, which may hold finished files of an
                interrupted run with the same inputs, and makes what is missing.
            code: packages, modules and functions ("module:name") that make the output; it is
                made again when they change.

        Raises:
            InputError: the output exists, but no stage of ours made it.
        """
        self.check([name])
        found = self.look(name, inputs, code=code)
        if found.reused:
            return found
        key, target, reason = found.key, found.path, found.reason
        inputs, note = _all(inputs, code), _read_note(target)
        if resumable:
            if note is None or note["key"] != key:
                # First the old outputs go: the new key never stands beside files of the old one.
                if target.exists():
                    shutil.rmtree(target)
                target.mkdir(parents=True)
            elif note["files"] is not None:  # finished once: what was changed since is made again
                for file, digest in self._files(target).items():
                    if note["files"].get(file) != digest:
                        (target / file).unlink()
            _write_note(target, key, inputs, files=None)
            make(target)
            files = self._files(target)
            _write_note(target, key, inputs, files=files)
        else:
            with atomic_path(target, kind="folder") as partial:
                partial.mkdir()
                make(partial)
                files = self._files(partial)
                _write_note(partial, key, inputs, files=files)
        return StageResult(key, target, reused=False, reason=reason, files=files)

    def _files(self, folder: Path) -> dict[str, str]:
        """Digest of every file of a folder by its path within, the note left out."""
        return {
            path.relative_to(folder).as_posix(): self.digests.sha256(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != NOTE and not is_temporary(path.name)
        }


def key_of(inputs: Mapping[str, Any], code: tuple[str, ...] = PACKAGES) -> str:
    """The key of a stage: a digest of its inputs and its code."""
    return _digest(_all(inputs, code))[:16]


def _digest(found: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def _all(inputs: Mapping[str, Any], code: tuple[str, ...]) -> dict[str, Any]:
    """Inputs and code, with lists where Python has tuples, as a note has them."""
    found: dict[str, Any] = json.loads(json.dumps({**inputs, "code": code_digest(code)}))
    return found


def versions(libraries: Iterable[str] = (*LIBRARIES, *WRITERS)) -> dict[str, str]:
    """Versions of Python, of this software, and of those of the libraries that are installed; none
    is imported for it."""
    found = {"Python": platform.python_version()}
    for name in ("ltr-features", *libraries):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def code_digest(code: tuple[str, ...] = PACKAGES) -> str:
    """Digest of the source of packages, modules or functions of this software and the versions of
    the libraries that their numbers come from: outputs of other code are not reused."""
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
    """The lines of a module's function."""
    found = next(n for n in ast.parse(source).body if getattr(n, "name", "") == function)
    return b"\n".join(source.splitlines()[found.lineno - 1 : found.end_lineno])


def _source_files(name: str) -> list[Path]:
    """The files of a package, without the rooms on top of it, or of a module."""
    package, _, module = name.rpartition(".")
    if package and (path := Path(str(resources.files(package))) / f"{module}.py").is_file():
        return [path]
    kinds = {".py", ".txt", ".jinja", ".html", ".css", ".js", ".toml"}
    folder = Path(str(resources.files(name)))
    files = sorted(path for path in folder.rglob("*") if path.suffix in kinds)
    return [path for path in files if _ON_TOP.isdisjoint(path.relative_to(folder).parts)]


def _read_note(folder: Path) -> dict[str, Any] | None:
    """The note of a folder, None if it has none; a damaged one fits no inputs."""
    try:
        note = read_json(folder / NOTE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        note = {}
    blank: dict[str, Any] = {"key": "", "inputs": {}, "files": None}
    return blank | note if isinstance(note, dict) else blank


def _write_note(
    folder: Path, key: str, inputs: Mapping[str, Any], *, files: Mapping[str, str] | None
) -> None:
    text = json.dumps({"key": key, "inputs": inputs, "files": files}, indent=1)
    with atomic_path(folder / NOTE) as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def _reason(note: Mapping[str, Any] | None, inputs: Mapping[str, Any]) -> str:
    if note is None:
        return "not made yet"
    changed = list(_changed(note["inputs"], inputs))
    if changed:
        return f"changed: {', '.join(changed)}"
    return "interrupted" if note["files"] is None else "its files have changed"


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The inputs that are not as they were, those of tables by their own names."""
    for name, value in now.items():
        former = before.get(name)
        if former == value:
            continue
        if isinstance(former, dict) and isinstance(value, dict):
            yield from (f"{name}.{k}" for k in {**former, **value} if former.get(k) != value.get(k))
        else:
            yield name


def _is_running(process: int) -> bool:
    if os.name == "nt":  # there is no signal that only asks
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
