"""How ``columns build`` deals queries into folds and parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from toys import done, refused, run, topics

from letor.column_names import read_rows
from ltr_features.columns.context import make_workspace, open_workspace


def test_too_few_folds_are_refused_with_the_reason(workspace, tmp_path):
    build = ("columns", "build", "--out", tmp_path / "x", "--workspace", workspace)
    said = refused(*build, "--model", "lsi", "--folds", 3)
    assert "3 folds: one part tests, one validates and the others train (two or more" in said
    assert "give 4 or more" in said
    said = refused(*build, "--family", "vsm", "--folds", 2)
    assert "2 folds: one part tests, one validates and the others train; give 3 or more" in said
    assert "3 folds" in done(*build, "--family", "vsm", "--folds", 3)


def test_folds_are_written_without_models_too(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out")
    assert "in 4 folds" in done(*build, tmp_path / "folds", "--folds", 4)
    parts = [read_rows(tmp_path / "folds" / "Fold4" / f"{p}.txt").query_ids
             for p in ("train", "vali", "test")]  # fmt: skip
    assert len(set().union(*parts)) == sum(map(len, parts)) == 40
    (tmp_path / "file").write_text("mine")
    assert "file is a file; folds are written" in refused(*build, tmp_path / "file", "--folds", 4)
    assert "folds is a folder; name a file, or give --folds" in refused(*build, tmp_path / "folds")
    assert "has no groups of queries" in refused(*build, tmp_path / "g", "--folds", 4, "--by-group")
    assert not (tmp_path / "g").exists()


def test_parts_that_are_given_are_kept(workspace, tmp_path):
    """In every command that makes folds, for the rows of models as for those of the test."""
    ids = open_workspace(workspace).collection.query_ids
    part = ["test" if n % 4 == 0 else "Train" for n in range(len(ids))]
    marked = tmp_path / "judged.csv"  # a row for each judgement; its id is none of a query
    rows = pd.DataFrame({"id": range(2 * len(ids)), "query_id": ids * 2, "split": part * 2})
    rows.to_csv(marked, index=False)
    folds = tmp_path / "folds"
    fast = ("--param", "ssi.max_epochs=1", "--param", "ssi.rank=4")
    build = ("columns", "build", "--workspace", workspace, "--model", "ssi", *fast, "--out", folds)
    assert "in 1 fold" in done(*build, "--split", marked)
    found = {p: set(read_rows(folds / "Fold1" / f"{p}.txt").query_ids)
             for p in ("train", "vali", "test")}  # fmt: skip
    assert found["test"] == {query for query, p in zip(ids, part, strict=True) if p == "test"}
    assert found["train"] | found["vali"] == set(ids) - found["test"]
    assert len(found["vali"]) == 6
    n_models = len(list((folds / "models").iterdir()))
    train = folds / "Fold1" / "train.txt"
    done("rank", "train", train, "--ranker", "coordinate-ascent", "--out", tmp_path / "ranker")
    marked.unlink()
    done("pipeline", "build", folds, "--ranker", tmp_path / "ranker", "--out", tmp_path / "service")
    assert len(list((folds / "models").iterdir())) == n_models  # none was trained again
    rows.assign(split="dev").to_csv(marked, index=False)
    assert "queries for training, and others for the test" in refused(*build, "--split", marked)
    rows.assign(split="x").to_csv(marked, index=False)
    assert "judged.csv, line 2: 'x' is no part; use train, " in refused(*build, "--split", marked)
    rows[1:40].to_csv(marked, index=False)
    assert "judged.csv: no part of 1 query, e.g. " in refused(*build, "--split", marked)
    assert "leave out --folds" in refused(*build, "--split", marked, "--folds", 5)


def test_groups_that_folds_separate_are_told(tmp_path):
    grouped = replace(
        topics(),
        query_groups=[str(q // 2) for q in range(24)],
        query_times=np.tile([0, 2, 1, 3], 6),
    )
    workspace = make_workspace(grouped, tmp_path / "workspace")
    parts = tmp_path / "parts.csv"
    marks = ("test" if n % 4 == 0 else "train" for n in range(24))
    rows = [f"{query},{part}" for query, part in zip(grouped.query_ids, marks, strict=True)]
    parts.write_text("\n".join(["query_id,split", *rows]))
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out")
    # The other of the sixth group is a validation query.
    said = run(*build, tmp_path / "given", "--split", parts).stderr
    assert "5 of 6 test queries belong to a group that their fold also trains on: keep" in said
    assert "belong to a group" in run(*build, tmp_path / "random", "--folds", 4).stderr
    together = run(*build, tmp_path / "together", "--folds", 4, "--by-group").stderr
    assert "belong to a group" not in together
    by_time = run(*build, tmp_path / "by-time", "--folds", 4, "--by-time").stderr
    assert "6 of 6 test queries belong to a group that their fold also trains on, at earlier" in (
        by_time
    )
    assert "keep groups together" not in by_time


def test_files_of_judgements_may_be_the_parts(workspace, tmp_path):
    """As in BEIR's folders."""
    ids = open_workspace(workspace).collection.query_ids
    qrels, folds = tmp_path / "qrels", tmp_path / "folds"
    qrels.mkdir()
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", folds)
    assert "qrels: no judgements (*.tsv)" in refused(*build, "--split", qrels)

    def judge(name, queries):
        lines = "".join(f"{query}\tany\t1\n" for query in queries)
        (qrels / f"{name}.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)

    parts = {"train": ids[8:], "dev": ids[4:8], "test": ids[:4] * 2}
    for name, queries in parts.items():
        judge(name, queries)
    done(*build, "--split", qrels)
    for name, queries in parts.items():
        part = folds / "Fold1" / f"{name.replace('dev', 'vali')}.txt"
        assert set(read_rows(part).query_ids) == set(queries)
    judge("dev", ids[3:8])
    told = f"test.tsv, line 5: query {ids[3]!r} is for test, before for validation"
    assert told in refused(*build, "--split", qrels)
    (qrels / "dev.tsv").rename(qrels / "more.tsv")
    assert "more.tsv, line 2: 'more' is no part" in refused(*build, "--split", qrels)


def test_parts_that_rankers_cannot_use_are_told(tmp_path):
    """A query whose word no document has gets no row: of two with rows, one part at most trains,
    and another validates."""
    texts = [text if q < 2 else f"unheard{q}" for q, text in enumerate(topics().query_texts)]
    make_workspace(replace(topics(), query_texts=texts), tmp_path / "workspace")
    build = ("columns", "build", "--workspace", tmp_path / "workspace", "--family", "vsm")
    told = run(*build, "--folds", 12, "--out", tmp_path / "folds").stderr
    useless = [f"Fold{n}" for n in range(1, 13)
               if not (tmp_path / "folds" / f"Fold{n}" / "vali.txt").stat().st_size]  # fmt: skip
    assert len(useless) >= 10
    names = f"{', '.join(useless[:-1])} and {useless[-1]}"
    assert f"{names}: no validation query has rows of two different labels" in told
    assert "of all 24 queries 2 have: judge more queries, or find more candidates" in told
    assert "no training query" not in told
    said = refused(*build, "--folds", 30, "--out", tmp_path / "folds")
    assert said.startswith("--folds 30: 24 queries cannot be dealt into 30 parts")


def test_queries_of_one_text_in_two_given_parts_are_told(tmp_path):
    twins = replace(topics(), query_texts=[f"topic{q // 4}word{q // 2 % 2}" for q in range(24)])
    make_workspace(twins, tmp_path / "workspace")
    parts = tmp_path / "parts.tsv"
    parts.write_text("".join(f"{q}\t{'test' if n < 5 else 'train'}\n"
                             for n, q in enumerate(twins.query_ids)))  # fmt: skip
    build = ("columns", "build", "--workspace", tmp_path / "workspace", "--family", "vsm",
             "--split", parts, "--out", tmp_path / "folds")  # fmt: skip
    for columns in ((), ("--model", "lsa")):
        told = run(*build, *columns).stderr
        assert told.count("1 test query has the same text as a training query") == 1


def test_folds_beside_others_are_refused_before_the_work(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", tmp_path)
    done(*build, "--folds", 5)
    said = refused(*build, "--folds", 4)
    assert "has Fold5 of other folds, which would be taken for a part of these 4" in said
    done(*build, "--folds", 5)
