"""Folders in BEIR's layout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HEADER = "query-id\tcorpus-id\tscore\n"


def with_ids(texts: Mapping[str, str], key: str = "text") -> list[dict[str, str]]:
    """Records of texts by id."""
    return [{"_id": id_, key: text} for id_, text in texts.items()]


def write_beir(
    folder: Path,
    documents: Iterable[Mapping[str, Any]],
    queries: Iterable[Mapping[str, Any]],
    **judgements: str,
) -> Path:
    """Write records of documents and queries, and by split the lines of its judgements."""
    (folder / "qrels").mkdir(parents=True)
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    for split, lines in judgements.items():
        (folder / "qrels" / f"{split}.tsv").write_text(HEADER + lines, encoding="utf-8")
    return folder
