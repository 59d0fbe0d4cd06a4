"""The data sets in the folder that LTR_DATA names, for the benchmarks."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path


class AbsentError(SystemExit):
    """A data set that is not there: ends a benchmark that does not go on without it."""


def data_folder() -> Path:
    """The folder of all data sets.

    Raises:
        AbsentError: LTR_DATA is not set.
    """
    if "LTR_DATA" not in os.environ:
        raise AbsentError("set LTR_DATA to the folder of the research data sets")
    return Path(os.environ["LTR_DATA"])


def folder_of(name: str) -> Path:
    """The folder of a data set.

    Raises:
        AbsentError: it is not there; the message says what is missing.
    """
    path = data_folder() / name
    if not path.is_dir():
        raise AbsentError(f"{path} is no folder")
    return path


def articles() -> tuple[list[str], list[str]]:
    """Titles and texts of all of Wikispeedia's articles."""
    with gzip.open(folder_of("wikispeedia") / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    return [d["title"] for d in documents], [d["text"] for d in documents]


def links() -> list[tuple[int, int]]:
    """(source, target) rows of ``articles`` of all links between them."""
    folder = folder_of("wikispeedia")
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        row_of = {json.loads(line)["_id"]: row for row, line in enumerate(lines)}
    with open(folder / "links.tsv", encoding="utf-8") as lines:
        named = [line.rstrip("\n").split("\t") for line in lines]
    return [(row_of[a], row_of[b]) for a, b in named if a in row_of and b in row_of]
