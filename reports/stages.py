"""Stages of a run in one folder: each output is made once and reused while its inputs are equal."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from letor.errors import InputError
from letor.files import atomic_path

PACKAGES = ("ssi_models", "letor", "ltr_features", "reports")


@dataclass(frozen=True)
class StageResult:
    """What became of a stage.

    Attributes:
        key: digest of all that the output depends on; an input of the stages after it.
        path: the output.
        reused: whether an earlier run had made it.
        reason: why it was made, if it was.
    """

    key: str
    path: Path
    reused: bool
    reason: str = ""


class Stages:
    """The stages of one output folder.

    A stage's key digests its inputs (parameters, the keys of earlier stages) and the code of this
    software. A note per stage in ``.stages`` tells which inputs its output was made from.

    Args:
        folder: the output folder; made if it is not there.

    Raises:
        InputError: the folder cannot be made or written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._notes = self.folder / ".stages"
        try:
            self._notes.mkdir(parents=True, exist_ok=True)
            probe = self._notes / f"probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"{self.folder}: cannot write there ({error.strerror}); name another output folder"
            ) from None

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        make: Callable[[Path], None],
        *,
        resumable: bool = False,
    ) -> StageResult:
        """Make ``folder/name`` by ``make(path)`` unless it is there with the same inputs.

        Args:
            name: path of the output within the folder; a file or a folder.
            inputs: JSON-compatible; all that the output depends on, code apart.
            make: writes the output at the path that it is given, a temporary one.
            resumable: ``make`` gets the final path instead, a folder that may hold finished files
                of an interrupted run with the same inputs, and makes what is missing.

        Raises:
            InputError: the output exists, but no stage of ours made it.
        """
        target = self.folder / name
        inputs = {**inputs, "code": code_digest()}
        key = _digest(inputs)
        note = self._read_note(name)
        if target.exists() and note is None:
            raise InputError(
                f"{target}: is there already and was not made by this program; move it away or "
                "name another output folder"
            )
        if note is not None and note["key"] == key and note["complete"] and target.exists():
            return StageResult(key, target, reused=True)
        reason = _reason(note, inputs, target)
        if resumable:
            if note is None or note["key"] != key:
                self._write_note(name, key, inputs, complete=False)
                shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True, exist_ok=True)
            make(target)
        else:
            self._write_note(name, key, inputs, complete=False)
            with atomic_path(target) as partial:
                make(partial)
        self._write_note(name, key, inputs, complete=True)
        return StageResult(key, target, reused=False, reason=reason)

    def _note_path(self, name: str) -> Path:
        return self._notes / (name.replace("/", "--") + ".json")

    def _read_note(self, name: str) -> dict[str, Any] | None:
        try:
            note: dict[str, Any] = json.loads(self._note_path(name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:  # damaged: as if the stage had never been finished
            return {"key": "", "inputs": {}, "complete": False}
        return note

    def _write_note(
        self, name: str, key: str, inputs: Mapping[str, Any], *, complete: bool
    ) -> None:
        text = json.dumps({"key": key, "complete": complete, "inputs": inputs}, indent=1)
        with atomic_path(self._note_path(name)) as partial:
            partial.write_text(text + "\n", encoding="utf-8")


@cache
def code_digest() -> str:
    """Digest of the source of this software, so that outputs of other code are not reused."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        root = Path(str(resources.files(package)))
        for path in sorted(root.rglob("*")):
            if path.suffix in {".py", ".txt", ".jinja", ".html", ".css", ".js", ".toml"}:
                digest.update(f"{package}/{path.relative_to(root)}".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _digest(inputs: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def _reason(note: Mapping[str, Any] | None, inputs: Mapping[str, Any], target: Path) -> str:
    if note is None:
        return "not made yet"
    before = note["inputs"]
    changed = [name for name in inputs if before.get(name) != inputs[name]]
    if changed:
        return f"changed: {', '.join(changed)}"
    return "interrupted" if not note["complete"] else f"{target.name} is missing"
