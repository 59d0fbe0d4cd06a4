"""The documentation's examples run, in the order of their page, on data that the tests make."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from letor.dataset import RankingData
from letor.svmlight import read_letor
from letor.writing import write_letor
from ltr_features.cli import app

DOCS = Path(__file__).resolve().parents[1] / "docs"
FENCE = re.compile(r"^```(python|console|toml)\n(.*?)^```$", re.S | re.M)
N_TOPICS, N_DOCUMENTS, N_QUERIES = 6, 120, 60


def texts():
    """Documents of six topics, queries of one topic each, and who answers whom."""
    rng = np.random.default_rng(1)
    documents = [
        " ".join([*(f"topic{d % N_TOPICS}word{w}" for w in rng.integers(6, size=8)),
                  *(f"common{w}" for w in rng.integers(9, size=6))])
        for d in range(N_DOCUMENTS)
    ]  # fmt: skip
    queries = [f"topic{q % N_TOPICS}word{q % 6} common{q % 9}" for q in range(N_QUERIES)]
    judged = [(q, d) for q in range(N_QUERIES) for d in range(q % N_TOPICS, N_DOCUMENTS, N_TOPICS)]
    return documents, queries, judged


def make_letor(folder):
    """LETOR files with docids, and the texts behind them in TREC's form."""
    documents, queries, judged = texts()
    rng = np.random.default_rng(2)
    relevant = set(judged)
    (folder / "gov").mkdir()
    pages = (f"<DOC><DOCNO>GX{d}</DOCNO>{text}</DOC>\n" for d, text in enumerate(documents))
    (folder / "gov" / "00").write_text("".join(pages))
    (folder / "queries.txt").write_text("".join(f"{q}:{text}\n" for q, text in enumerate(queries)))
    (folder / "others.txt").write_text("".join(f"{q}\n" for q in range(36)))
    (folder / "qrels.txt").write_text("".join(f"{q} 0 GX{d} 1\n" for q, d in judged))
    parts = np.array_split(np.arange(N_QUERIES), [36, 48])
    for name, part in zip(("train", "vali", "test"), parts, strict=True):
        rows = [(q, d) for q in part for d in rng.permutation(N_DOCUMENTS)[:20]]
        y = np.array([(q, d) in relevant for q, d in rows], dtype=np.float32)
        X = rng.random((len(rows), 46), dtype=np.float32)
        X[:, 24] += y / 2
        comments = [f"#docid = GX{d} inc = 1 prob = 0.5".encode() for _, d in rows]
        data = RankingData.from_rows(
            X, y, [str(q) for q, _ in rows], comments=np.array(comments, dtype=object)
        )
        path = folder / "MQ2008" / "Fold1" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_letor(data, path)


def make_shop(folder):
    documents, queries, judged = texts()
    frame = pd.DataFrame({"sku": [f"s{d}" for d in range(N_DOCUMENTS)], "text": documents})
    frame["name"] = [text.split()[0] for text in documents]
    frame["page"] = "/p/" + frame["sku"]
    # The page's own example query has to find something.
    frame.loc[:9, "text"] += " running shoe"
    frame.to_csv(folder / "products.csv", index=False)
    labels = ["Exact", "Partial", "None"]
    rows = [(f"{queries[q]} q{q}", f"s{d}", labels[(q + d) % 3]) for q, d in judged]
    pd.DataFrame(rows, columns=["query", "sku", "label"]).to_csv(
        folder / "ratings.csv", index=False
    )


def make_beir(folder):
    documents, queries, judged = texts()
    (folder / "dataset" / "qrels").mkdir(parents=True)
    for name, prefix, lines in (("corpus", "d", documents), ("queries", "q", queries)):
        records = (json.dumps({"_id": f"{prefix}{i}", "text": t}) for i, t in enumerate(lines))
        (folder / "dataset" / f"{name}.jsonl").write_text("\n".join(records))
    lines = [f"q{q}\td{d}\t1\n" for q, d in judged]
    (folder / "dataset" / "qrels" / "test.tsv").write_text("".join(lines))
    (folder / "qrels.txt").write_text("".join(f"q{q} 0 d{d} 1\n" for q, d in judged))


PAGES = {
    "docs/researcher": make_letor,
    "docs/engineer": make_shop,
    "docs/pyterrier": make_beir,
    "docs/experiments": make_beir,
    "README": make_beir,
}


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    if page == "docs/pyterrier":
        pytest.importorskip("pyterrier", reason="the extra pyterrier is not installed")
    PAGES[page](tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = FENCE.findall((DOCS.parent / f"{page}.md").read_text(encoding="utf-8"))
    assert blocks
    for kind, block in blocks:
        if kind == "toml":
            Path("my-experiment.toml").write_text(block, encoding="utf-8")
            continue
        if kind == "python":
            exec(compile(block, f"{page}.md", "exec"), names)
            continue
        for line in block.replace("\\\n", "").splitlines():
            assert line.startswith("$ ltr-features "), line
            arguments = shlex.split(line.removeprefix("$ ltr-features "))
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
            assert result.exit_code == 0, result.output
    if page == "docs/experiments":
        assert "words+SSI" in Path("out/report/summary.txt").read_text(encoding="utf-8")
    if page == "docs/researcher":
        enriched = read_letor("new/Fold1/test.txt")
        assert enriched.X.shape[1] == 47
        assert (enriched.X == read_letor("again.txt").X).all()


def test_every_page_is_in_the_contents():
    contents = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.name for path in DOCS.glob("*.md")}
    assert set(re.findall(r"[\w-]+\.md", contents)) == pages
    links = {
        link
        for page in DOCS.glob("*.md")
        for link in re.findall(r"\]\((\w+\.md)", page.read_text())
    }
    assert links <= pages


def test_tables_come_from_the_program():
    spec: dict[str, object] = {}
    exec((DOCS / "hooks.py").read_text(encoding="utf-8"), spec)
    fill = spec["on_page_markdown"]
    for page, wanted in (
        ("columns", "| 25 | `bm25_whole` |"),
        ("models", "| `ssi` | LowRankSSI |"),
        ("measures", "LETOR 4.0"),
    ):
        text = fill((DOCS / f"{page}.md").read_text(encoding="utf-8"))  # type: ignore[operator]
        assert wanted in text
        assert "{{" not in text


def test_no_path_of_a_machine_is_named():
    for path in [*DOCS.rglob("*"), DOCS.parent / "README.md"]:
        if path.suffix in (".md", ".py"):
            assert os.sep + "root" not in path.read_text(encoding="utf-8")
