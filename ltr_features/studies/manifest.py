"""What a report was made from and what it is made of: enough to make the same bytes again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from letor.files import atomic_path
from ltr_features.studies.stages import code_digest, versions

MANIFEST = "manifest.json"


def write_manifest(
    folder: Path,
    *,
    title: str,
    verdict: str,
    settings: Mapping[str, Any],
    inputs: Mapping[str, Any],
    seeds: Mapping[str, Any],
    timed: Sequence[str] = (),
) -> None:
    """Write ``manifest.json`` into a folder, as its last file.

    Args:
        verdict: what was found, in a sentence; "" where nothing is asked.
        settings: all that the files depend on, ``inputs`` (what was read, by digest) apart.
        seeds: of each random part.
        timed: files that show how long something took: these have other bytes every time.
    """
    found = {
        "title": title,
        "verdict": verdict,
        "versions": versions(),
        "code": code_digest(),
        "machine": {
            "system": platform.system(),
            "release": platform.release(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
        "seeds": seeds,
        "settings": settings,
        "inputs": inputs,
        "files": {
            file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.relative_to(folder).as_posix() not in timed
        },
    }
    if timed:
        found["files with clock times"] = list(timed)
    text = json.dumps(found, indent=1, ensure_ascii=False, default=str)
    with atomic_path(folder / MANIFEST) as partial:
        partial.write_text(text + "\n", encoding="utf-8", newline="\n")
