"""Wikispeedia's articles and links, from the folder named by LTR_DATA, for the benchmarks."""

import gzip
import json
import os
import sys
from pathlib import Path


def folder() -> Path:
    """The data set's folder; ends the benchmark with a message if LTR_DATA does not lead to it."""
    path = Path(os.environ.get("LTR_DATA", "")) / "wikispeedia"
    if "LTR_DATA" not in os.environ or not path.is_dir():
        sys.exit("set LTR_DATA to the folder of the research data sets (with wikispeedia/ in it)")
    return path


def articles() -> tuple[list[str], list[str]]:
    """Titles and texts of all articles."""
    with gzip.open(folder() / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    return [d["title"] for d in documents], [d["text"] for d in documents]


def links() -> list[tuple[int, int]]:
    """(source, target) rows of ``articles`` of all links between them."""
    with gzip.open(folder() / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        row_of = {json.loads(line)["_id"]: row for row, line in enumerate(lines)}
    with open(folder() / "links.tsv", encoding="utf-8") as lines:
        named = [line.rstrip("\n").split("\t") for line in lines]
    return [(row_of[a], row_of[b]) for a, b in named if a in row_of and b in row_of]
