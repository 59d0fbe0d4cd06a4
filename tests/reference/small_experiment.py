"""A small ranking experiment: its collection as each source reads it, experiment files, the
keys of its stages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dumps import topical_dump

from ltr_features.studies.kinds.ranking import RankingStudy
from ltr_features.studies.kinds.ranking_checks import load_config
from ltr_features.studies.kinds.ranking_config import ExperimentConfig

N_TOPICS, N_QUERIES = 3, 12


def texts() -> dict[str, dict[str, str]]:
    """Documents by id, three topics; queries by id, each about one."""
    documents = {
        f"d{i}": f"topic{i % N_TOPICS} kind{i % N_TOPICS} word{i} common{i % 5}" for i in range(24)
    }
    queries = {f"q{i}": f"topic{i % N_TOPICS} common{i % 5}" for i in range(N_QUERIES)}
    return {"documents": documents, "queries": queries}


def judged() -> list[tuple[str, str]]:
    """Of each query, two documents of its topic."""
    return [(f"q{i}", f"d{(i + N_TOPICS * j) % 24}") for i in range(N_QUERIES) for j in range(2)]


def write_beir(folder: Path) -> tuple[dict[str, Any], list[str]]:
    (folder / "qrels").mkdir()
    for name, found in (("corpus", "documents"), ("queries", "queries")):
        lines = [json.dumps({"_id": k, "text": v}) for k, v in texts()[found].items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    lines = [f"{q}\t{d}\t1" for q, d in judged()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines))
    (folder / "links.tsv").write_text("d0\td1\n")
    files = ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "links.tsv"]
    return {"source": "beir", "folder": ".", "links": "links.tsv"}, files


def write_trec(folder: Path) -> tuple[dict[str, Any], list[str]]:
    for number, half in enumerate(("a.trec", "b.trec")):
        documents = [
            f"<DOC><DOCNO>{k}</DOCNO><TEXT>{v}</TEXT></DOC>"
            for k, v in list(texts()["documents"].items())[number::2]
        ]
        (folder / half).write_text("\n".join(documents))
    (folder / "topics").write_text("".join(f"{k}:{v}\n" for k, v in texts()["queries"].items()))
    (folder / "qrels").write_text("".join(f"{q} 0 {d} 1\n" for q, d in judged()))
    options = {"documents": ["a.trec", "b.trec"], "topics": "topics", "qrels": "qrels"}
    return {"source": "trec", **options}, ["a.trec", "b.trec", "topics", "qrels"]


def write_table(folder: Path) -> tuple[dict[str, Any], list[str]]:
    files = {"documents": "d.csv", "queries": "q.csv", "judgements": "j.csv"}
    for name in ("documents", "queries"):
        lines = [f"{k},{v}" for k, v in texts()[name].items()]
        (folder / files[name]).write_text("\n".join(["id,text", *lines]))
    lines = [f"{q},{d},1" for q, d in judged()]
    (folder / "j.csv").write_text("\n".join(["query,document,grade", *lines]))
    columns = {
        "document_columns": {"id": "id", "body": "text"},
        "query_columns": {"id": "id", "text": "text"},
    }
    return {"source": "table", **files, **columns}, list(files.values())


def write_dump(folder: Path) -> tuple[dict[str, Any], list[str]]:
    (folder / "dump.xml").write_bytes(topical_dump(5, 3))
    return {"source": "wikipedia-sections", "dump": "dump.xml"}, ["dump.xml"]


def write_saved(folder: Path) -> tuple[dict[str, Any], list[str]]:
    (folder / "saved").mkdir()
    _, files = write_beir(folder / "saved")
    return {"source": "collection", "folder": "saved"}, [f"saved/{file}" for file in files]


def config_of(collection: dict[str, Any], columns: tuple[Any, ...] = ()) -> ExperimentConfig:
    """An experiment with two systems that use no further columns, and one that uses all if there
    are any."""
    families = ["vsm", *(part["family"] for part in columns)]
    with_all = [{"name": "All", "columns": families, "ranker": "linear"}] if columns else []
    rankers = [{"name": "linear", "ranker": "coordinate-ascent"}] if columns else []
    return ExperimentConfig.model_validate(
        {
            "title": "Small",
            "collection": collection,
            "columns": [{"family": "vsm"}, *columns],
            "models": [{"name": "ssi", "model": "ssi", "params": {"rank": 2, "max_epochs": 1}}],
            "splits": [{"name": "by-query", "title": "Queries", "folds": 4}],
            "rankers": rankers,
            "systems": [
                {"name": "VSM", "score": "vsm"},
                {"name": "SSI", "score": "ssi"},
                *with_all,
            ],
            "evaluation": {"measures": ["NDCG@10"], "comparisons": [["SSI", "VSM"]]},
        }
    )


def load(folder: Path, text: str) -> ExperimentConfig:
    """The experiment of a file with this text, whose data are in the folder, too."""
    path = folder / "experiment.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, folder)


def keys(config: ExperimentConfig, data: str | Path = ".") -> dict[str, str]:
    experiment = RankingStudy(config, "out", data)
    return {stage.name: stage.key for stage in experiment.stages()}


def stale(config: ExperimentConfig) -> set[str]:
    """The stages that a run would make."""
    experiment = RankingStudy(config, "out", ".")
    look = experiment.runner.stages.look
    return {stage.name for stage in experiment.stages() if not look(stage).reused}


def spoil(path: Path) -> None:
    """Other content of the same size, and the same time of change."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
