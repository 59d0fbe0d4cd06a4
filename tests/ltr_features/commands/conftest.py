"""Workspaces of small collections that the tests of commands build from."""

from __future__ import annotations

import numpy as np
import pytest
from beir_folders import write_beir
from toys import done

N_TOPICS = 8


@pytest.fixture(scope="module")
def beir(tmp_path_factory):
    """Documents and queries of eight topics, two queries each."""
    rng = np.random.default_rng(0)
    documents, queries, judged = [], [], ""
    for d in range(80):
        words = [f"topic{d % N_TOPICS}word{i}" for i in rng.integers(6, size=8)]
        words += [f"common{i}" for i in rng.integers(9, size=6)]
        documents.append({"_id": f"d{d}", "title": words[0], "text": " ".join(words)})
    for q in range(5 * N_TOPICS):
        text = f"topic{q % N_TOPICS}word{q % 6} common{q % 9} common{(q + 3) % 9}"
        queries.append({"_id": f"q{q}", "text": text})
        judged += "".join(f"q{q}\td{d}\t1\n" for d in range(q % N_TOPICS, 80, N_TOPICS))
    return write_beir(tmp_path_factory.mktemp("beir") / "beir", documents, queries, test=judged)


@pytest.fixture(scope="module")
def workspace(beir, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "workspace"
    done("index", "beir", f"folder={beir}", "--out", out)
    return out


@pytest.fixture(scope="module")
def gaps(beir, tmp_path_factory):
    """A workspace where one query has no candidate, one is not judged, and pools of 5 documents
    miss relevant ones of two grades."""
    folder = tmp_path_factory.mktemp("gaps")
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text((beir / "corpus.jsonl").read_text())
    queries = (beir / "queries.jsonl").read_text()
    queries += '{"_id": "lost", "text": "nowhere"}\n{"_id": "free", "text": "common1"}\n'
    (folder / "queries.jsonl").write_text(queries)
    lines = (beir / "qrels" / "test.tsv").read_text().splitlines()
    lines = [line[:-1] + str(1 + i % 2) if i else line for i, line in enumerate(lines)]
    (folder / "qrels" / "test.tsv").write_text("\n".join([*lines, "lost\td0\t1\n"]))
    out = tmp_path_factory.mktemp("out") / "workspace"
    done("index", "beir", f"folder={folder}", "keep_unjudged=true", "--out", out)
    return out
