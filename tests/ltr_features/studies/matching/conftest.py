"""Small generated data: linked articles on topics, and sentences in two languages."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

N_ARTICLES, N_TOPICS, N_PAIRS = 60, 4, 80


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``articles`` (links within topics) and ``sentences`` (word for word)."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    _write_articles(folder / "articles", rng)
    _write_sentences(folder / "sentences", rng)
    return folder


def _write_articles(folder: Path, rng: np.random.Generator) -> None:
    folder.mkdir()
    topic = np.arange(N_ARTICLES) % N_TOPICS
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for i in range(N_ARTICLES):
            words = [f"t{topic[i]}w{w}" for w in rng.integers(25, size=20)]
            words += [f"common{w}" for w in rng.integers(10, size=10)]
            file.write(json.dumps({"_id": f"A{i}", "text": " ".join(words)}) + "\n")
    with (folder / "links.tsv").open("w", encoding="utf-8") as file:
        for i in range(N_ARTICLES):
            others = np.flatnonzero((topic == topic[i]) & (np.arange(N_ARTICLES) != i))
            for j in rng.choice(others, 6, replace=False):
                file.write(f"A{i}\tA{j}\n")
        file.write("A0\tA0\nA0\tUnknown\n")


def _write_sentences(folder: Path, rng: np.random.Generator) -> None:
    folder.mkdir()
    for part, n in (("train", N_PAIRS), ("dev", 5), ("test", 20)):
        words = [rng.integers(30, size=6) for _ in range(n)]
        for language, stem in (("ja", "語"), ("en", "word")):
            lines = (" ".join(f"{stem}{w}" for w in row) for row in words)
            (folder / f"{part}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
