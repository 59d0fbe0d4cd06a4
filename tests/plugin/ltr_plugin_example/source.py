"""A source: a document per line, and one query that every line with its word answers."""

from pathlib import Path

import numpy as np

from ltr_features.text.collection import Collection, Judgements


def read_lines(file: str | Path, query: str):
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    found = np.array([i for i, line in enumerate(lines) if query in line], dtype=np.int64)
    ones = np.ones_like(found)
    return Collection(
        name="lines",
        document_ids=[f"line{i}" for i in range(len(lines))],
        fields={"body": lines, "title": [line.split()[0] for line in lines]},
        query_ids=["q"],
        query_texts=[query],
        judgements=Judgements(ones * 0, found, ones),
    )
