"""Clickthrough experiments on queries that are documents: arguments, questions with duplicates."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from beir_folders import HEADER, with_ids, write_beir
from folders import unwrapped

from letor.errors import InputError
from ltr_features.studies.kinds.clickthrough_config import TaskConfig
from ltr_features.studies.kinds.clickthrough_tasks import make_task
from ltr_features.studies.run import run_file

N = 12
#: The document that each one is relevant to, and the other way round.
OTHER = [n ^ 1 for n in range(N)]
STUDY = """
kind = "clickthrough"
title = "Duplicates"
cutoffs = [2]
[tasks.small]
folder = "small"
{}
[[tables]]
name = "t"
title = "T"
task = "small"
[[tables.rows]]
label = "VSM"
model = "vsm"
"""


@pytest.fixture
def data(tmp_path):
    """Documents, each of which is a query under its own id; the first eight are trained on."""
    texts = {f"d{n}": f"topic{n // 2} topic{n // 2} word{n} word{n % 5}" for n in range(N)}
    folder = write_beir(tmp_path / "small", with_ids(texts, "title"), with_ids(texts))
    judge(folder, "train", [(n, OTHER[n]) for n in range(8)])
    judge(folder, "test", [(n, OTHER[n]) for n in range(8, N)])
    return tmp_path


def judge(folder, name, pairs):
    lines = [f"d{query}\td{document}\t1\n" for query, document in pairs]
    (folder / "qrels" / f"{name}.tsv").write_text(HEADER + "".join(lines))


def run_it(data, keys):
    (data / "x.toml").write_text(STUDY.format(keys))
    report = run_file(data / "x.toml", data=data, out=data / "out", threads=1)
    [values] = (data / "out").glob("rows/small/*/per_query.csv")
    return pd.read_csv(values)["NDCG@2"], unwrapped(report / "verdict.txt")


def test_a_query_is_not_ranked_for_its_own_document(data):
    values, told = run_it(data, 'train = "train"')
    np.testing.assert_allclose(values, 1 / np.log2(3), rtol=1e-12)  # after the document itself
    assert (
        "Task 'small': 100 % of the queries have the id of a document that has their text" in told
    )
    assert 'leave it out by sources = "same-id" of the task.' in told
    values, told = run_it(data, 'train = "train"\nsources = "same-id"')
    np.testing.assert_allclose(values, 1, rtol=1e-12)
    assert "Task 'small': 4 of 4 test queries were made from documents that are ranked" in told
    assert "have the id of a document" not in told


def test_sources_may_be_in_a_file_or_in_the_queries(data):
    config = {"folder": "small", "train": "train"}
    same = make_task(TaskConfig(**config, sources="same-id"), data)
    lines = "".join(f"d{n}\td{n}\n" for n in range(N))
    (data / "made.tsv").write_text(lines)
    queries = data / "small" / "queries.jsonl"
    read = make_task(TaskConfig(**config, sources="made.tsv"), data)
    found = [json.loads(line) for line in queries.read_text().splitlines()]
    queries.write_text("\n".join(json.dumps(line | {"source": line["_id"]}) for line in found))
    said = make_task(TaskConfig(**config), data)
    for task in (read, said):
        np.testing.assert_array_equal(task.source, same.source)
        np.testing.assert_array_equal(task.train_source, same.train_source)
    # Titles are in the order of their documents' ids.
    order = sorted(f"d{n}" for n in range(N))
    assert [order[row] for row in same.source] == list(same.query_ids)


def test_no_pair_is_learned_that_is_tested_the_other_way_round(data):
    folder = data / "small"
    judge(folder, "train", [(n, OTHER[n]) for n in range(0, N, 2)])
    judge(folder, "test", [(n, OTHER[n]) for n in range(5, N, 2)])
    config = {"folder": "small", "train": "train"}
    assert len(make_task(TaskConfig(**config), data).train) == 6
    assert len(make_task(TaskConfig(**config, sources="same-id"), data).train) == 2
    judge(folder, "test", [(n, OTHER[n]) for n in range(1, N, 2)])
    with pytest.raises(InputError, match="no relevant pair is left for training; 6 are test pairs"):
        make_task(TaskConfig(**config, sources="same-id"), data)
