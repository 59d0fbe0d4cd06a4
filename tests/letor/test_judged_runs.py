"""Runs judged by qrels: against pytrec_eval and ranx per query, by hand, and bad input."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from typing import Any

import ir_measures
import numba
import numpy as np
import pandas as pd
import pytest
from ir_measures import AP, RR, P, R, nDCG

from letor.errors import InputError, LetorWarning
from letor.evaluation import evaluate
from letor.judged_runs import best_first, score_remarks, to_ranx, unjudged_queries
from letor.measures import MeasureDefinition, measure_problems, parse_measure, run_measure

PEERS = {
    "NDCG@10": nDCG(gains={0: 0, 1: 1, 2: 3}) @ 10,
    "NDCG-linear@10": nDCG @ 10,
    "MAP": AP,
    "P@5": P @ 5,
    "Recall@20": R @ 20,
    "MRR": RR,
}
#: What ranx calls them.
OF_RANX = {
    "NDCG@10": "ndcg_burges@10",
    "NDCG-linear@10": "ndcg@10",
    "MAP@20": "map@20",
    "P@5": "precision@5",
    "Recall@20": "recall@20",
    "MRR": "mrr",
}

#: Interpreted, as numba takes longer to compile it than it runs.
RANX = """
import json, ranx, sys
judged, ranked, measures = json.load(sys.stdin)
values = ranx.evaluate(
    ranx.Qrels(judged), ranx.Run(ranked), measures, return_mean=False, make_comparable=True
)
json.dump({name: list(found) for name, found in values.items()}, sys.stdout)
"""


def frames(seed: int, n_queries: int = 25) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Graded labels, many tied scores, documents the run misses, queries without relevant
    documents, and (the last) a query that the run lacks."""
    rng = np.random.default_rng(seed)
    qrels, run = [], []
    for i in range(n_queries):
        documents = [f"d{j}" for j in rng.permutation(60)]
        labels = rng.choice([0, 1, 2], size=30, p=[0.5, 0.3, 0.2]) * (i % 7 != 0)
        qrels += [(f"q{i}", d, int(y)) for d, y in zip(documents[:30], labels, strict=True)]
        retrieved = rng.permutation(documents)[:40] if i < n_queries - 1 else []
        run += [(f"q{i}", d, float(rng.integers(0, 8)) / 4) for d in retrieved]
    return (
        pd.DataFrame(qrels, columns=["qid", "docno", "label"]),
        pd.DataFrame(run, columns=["qid", "docno", "score"]),
    )


def nested(table: pd.DataFrame, value: str) -> dict[str, dict[str, float]]:
    return {
        str(q): dict(zip(part["docno"], part[value].tolist(), strict=True))
        for q, part in table.groupby("qid")
    }


def peer_values(qrels: pd.DataFrame, run: pd.DataFrame, measure: Any) -> pd.Series:
    """ir_measures on a run whose ties were broken independently: sorted by Python, scored by rank
    (trec_eval itself would break ties by descending id)."""
    judged: dict[str, dict[str, int]] = {}
    for q, d, y in qrels.itertuples(index=False):
        judged.setdefault(q, {})[d] = y
    ranked: dict[str, dict[str, float]] = {}
    for q in judged:
        rows = [(-s, d) for p, d, s in run.itertuples(index=False) if p == q]
        ranked[q] = {d: 1000.0 - rank for rank, (_, d) in enumerate(sorted(rows))}
    found = {m.query_id: m.value for m in ir_measures.iter_calc([measure], judged, ranked)}
    return pd.Series({q: found.get(q, 0.0) for q in judged})


def test_every_measure_agrees_with_pytrec_eval_per_query() -> None:
    qrels, run = frames(0)
    values = evaluate(qrels, run.sample(frac=1, random_state=0), list(PEERS))
    assert list(values.columns) == list(PEERS)
    assert list(values.index) == [f"q{i}" for i in range(25)]
    for name, peer in PEERS.items():
        expected = peer_values(qrels, run, peer)
        np.testing.assert_allclose(values[name], expected[values.index], atol=1e-6, err_msg=name)
    assert (values.loc["q24"] == 0).all()  # absent from the run
    assert (values.loc["q7"] == 0).all()  # no relevant document
    assert values.to_numpy().max() > 0.5


def test_every_measure_agrees_with_ranx_per_query() -> None:
    """Which keeps the order of rows where scores tie, and gives queries ordered by id."""
    qrels, run = frames(3)
    run = run.sort_values(["qid", "score", "docno"], ascending=[True, False, True])
    run["score"] = np.arange(len(run), 0, -1.0)
    values = evaluate(qrels, run, list(OF_RANX))
    theirs = json.loads(
        subprocess.run(
            [sys.executable, "-c", RANX],
            env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
            input=json.dumps([nested(qrels, "label"), nested(run, "score"), [*OF_RANX.values()]]),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    for name, called in OF_RANX.items():
        ours = values.loc[sorted(values.index), name]
        np.testing.assert_allclose(ours, theirs[called], atol=1e-12, err_msg=name)


def test_objects_of_ranx_and_dictionaries_are_taken() -> None:
    qrels, run = frames(4, n_queries=5)
    expected = evaluate(qrels, run, ["NDCG@10", "MAP"])
    dictionaries = nested(qrels, "label"), nested(run, "score")
    for judged, ranked in ((to_ranx(qrels), to_ranx(run)), (qrels, to_ranx(run)), dictionaries):
        found = evaluate(judged, ranked, ["NDCG@10", "MAP"])
        pd.testing.assert_frame_equal(found.loc[expected.index], expected)
    assert unjudged_queries(to_ranx(qrels[qrels["qid"] != "q2"]), to_ranx(run)) == ["q2"]
    with pytest.raises(InputError, match=r"builtins\.list is neither qrels nor a run"):
        evaluate([("q", "d", 1)], run, ["MAP"])
    with pytest.raises(InputError, match=r"query 'q2' has \['d'\]: give its documents with"):
        evaluate({"q1": {"d": 1}, "q2": ["d"]}, run, ["MAP"])


def test_values_by_hand() -> None:
    qrels = pd.DataFrame({"qid": "q", "docno": ["a", "b", "missed"], "label": [1, 2, 1]})
    run = pd.DataFrame({"qid": "q", "docno": ["x", "b", "a"], "score": [3.0, 2.0, 1.0]})
    got = evaluate(qrels, run, ["NDCG@3", "NDCG-linear@3", "MAP", "P@10", "Recall@2", "MRR"])
    log2 = math.log2
    dcg, ideal = 3 / log2(3) + 1 / log2(4), 3 / log2(2) + 1 / log2(3) + 1 / log2(4)
    linear, ideal_linear = 2 / log2(3) + 1 / log2(4), 2 + 1 / log2(3) + 1 / log2(4)
    expected = [dcg / ideal, linear / ideal_linear, (1 / 2 + 2 / 3) / 3, 0.2, 1 / 3, 0.5]
    np.testing.assert_allclose(got.loc["q"], expected, rtol=1e-12)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_ties_go_to_the_smaller_document_id_whatever_the_row_order(order: list[int]) -> None:
    qrels = pd.DataFrame({"qid": ["q"], "docno": ["d10"], "label": [1]})
    run = pd.DataFrame({"qid": "q", "docno": ["d1", "d10", "d2"], "score": 1.0}).iloc[order]
    assert evaluate(qrels, run, ["MRR"]).loc["q", "MRR"] == 0.5
    assert evaluate(qrels, run, ["MRR"], ties="docid").loc["q", "MRR"] == 0.5
    assert evaluate(qrels, run, ["MRR"], ties="worst").loc["q", "MRR"] == 1 / 3
    assert evaluate(qrels, run, [MeasureDefinition("rr", ties="best")]).loc["q", "MRR"] == 1
    in_order = 1 / (1 + order.index(1))
    assert evaluate(qrels, run, ["MRR"], ties="input").loc["q", "MRR"] == in_order


def test_unjudged_labels_and_unjudged_queries_do_not_count() -> None:
    qrels = pd.DataFrame({"qid": "q", "docno": ["a", "b"], "label": [-1, 1]})
    run = pd.DataFrame({"qid": ["q", "q", "z"], "docno": ["a", "b", "a"], "score": [2, 1, 1]})
    got = evaluate(qrels, run, ["NDCG@1", "MAP"])
    assert list(got.index) == ["q"]
    assert got.loc["q"].tolist() == [0.0, 0.5]


def test_numba_settings_survive() -> None:
    qrels, run = frames(1, n_queries=3)  # fewer than ten queries: ranx goes down to one thread
    before = numba.get_num_threads(), numba.config.THREADING_LAYER
    evaluate(to_ranx(qrels), to_ranx(run), ["MAP"])
    assert (numba.get_num_threads(), numba.config.THREADING_LAYER) == before


def test_definitions_name_gain_cut_off_empty_queries_and_ties() -> None:
    text = run_measure("NDCG@10").formula
    for part in ("2^label - 1", "log2(rank + 1)", "first 10", "missed"):
        assert part in text
    line = run_measure("NDCG@10").definition
    for part in ("count 0", "by ascending document id"):
        assert part in line
    assert "all ranked documents" in run_measure("MAP").formula


def test_the_message_on_an_unknown_name_offers_only_what_is_allowed() -> None:
    with pytest.raises(InputError, match="for a cut-off and with prefix letor4:, mslr:"):
        parse_measure("qwxyz")
    with pytest.raises(InputError, match=r"for a cut-off$"):
        run_measure("qwxyz")


def test_two_names_of_one_measure_are_found() -> None:
    assert list(measure_problems(["NDCG@10", "NDCG-linear@10", "MAP"], ["ndcg@10"])) == []
    assert list(measure_problems(["NDCG@10", "MAP", "ndcg@10", "P"], ["MRR@0"])) == [
        "measures 'NDCG@10' and 'ndcg@10' are the same: leave one out",
        "precision needs a positive cut-off, for example P@10",
        "measure 'MRR@0' needs a positive cut-off, for example MRR@10",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NDGC@10", "did you mean NDCG@10"),
        ("P", "needs a positive cut-off, for example P@10"),
        ("MAP@0", "positive cut-off"),
        ("NDCG@", "positive cut-off"),
        ("NDCG@ten", "positive cut-off"),
        ("qwxyz", "known are NDCG"),
        ("", "measure '' is unknown"),
        ("letor4:MAP", "without a prefix"),
    ],
)
def test_bad_measure_names(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_measure(name)
    if ":" not in name:
        with pytest.raises(InputError, match=message):
            parse_measure(name)


def test_the_best_come_first_and_of_equals_the_smaller_id() -> None:
    run = pd.DataFrame({"docno": ["d", "b", "c", "a"], "score": [1.0, 2.0, 1.0, 3.0]})
    assert best_first(run)["docno"].tolist() == ["a", "b", "c", "d"]


def test_bad_tables() -> None:
    qrels, run = frames(2, n_queries=3)
    with pytest.raises(InputError, match="run lacks the column score; it has qid, docno"):
        evaluate(qrels, run.drop(columns="score"), ["MAP"])
    with pytest.raises(InputError, match=r"qrels has 1 .* more than once"):
        evaluate(pd.concat([qrels, qrels.iloc[:1]]), run, ["MAP"])
    twice = qrels.iloc[[1, 0]]
    query, document = twice[["qid", "docno"]].iloc[0]
    first = re.escape(f"the first is query {query!r}, document {document!r}")
    with pytest.raises(InputError, match=f"qrels has 2 .* more than once; {first}"):
        evaluate(pd.concat([qrels, twice]), run, ["MAP"])
    with pytest.raises(InputError, match=r"label 0\.5; labels must be whole numbers"):
        evaluate(qrels.assign(label=0.5), run, ["MAP"])
    with pytest.raises(InputError, match="score that is NaN"):
        evaluate(qrels, run.assign(score=np.nan), ["MAP"])
    for column in ("qid", "docno"):  # as read_run gives ids that are not UTF-8
        odd = run.astype({column: object})
        odd.loc[0, column] = "caf\udce9"
        with pytest.raises(InputError, match=rf"run, {column}: 'caf\\udce9' is not UTF-8; conv"):
            evaluate(qrels, odd, ["MAP"])
    with pytest.raises(InputError, match="same query ids"):
        evaluate(qrels, run.assign(qid="other-" + run["qid"]), ["MAP"])
    with pytest.warns(LetorWarning, match="no document of the run is judged for its query"):
        found = evaluate(qrels, run.assign(docno="other-" + run["docno"]), ["MAP"])
    assert not found["MAP"].any()
    with pytest.raises(InputError, match="run has no rows"):
        evaluate(qrels, run.iloc[:0], ["MAP"])
    with pytest.raises(InputError, match="no measure"):
        evaluate(qrels, run, [])


def test_ids_that_pandas_made_floats_are_those_of_other_tables() -> None:
    qrels = pd.DataFrame({"qid": [1.0, 2.0], "docno": ["a", "b"], "label": [1, 1]})
    run = {"1": {"a": 2.0}, "3": {"a": 1.0}}
    assert evaluate(qrels, run, "map")["map"].to_dict() == {"1": 1, "2": 0}
    assert unjudged_queries(qrels, run) == ["3"]
    with pytest.raises(InputError, match=r"qrels, qid: row 1 has no id"):
        evaluate(qrels.assign(qid=[1, np.nan]), run)


def test_trec_eval_reads_scores_as_float32():
    """There 1000.00001 ties with 1000.00002, and 1e39 with 2e39; other rules tell them apart."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels = {"q": {"a": 1, "b": 0}}
    for scores in ({"a": 1000.00002, "b": 1000.00001}, {"a": 2e39, "b": 1e39}):
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate({"q": scores})["q"]["map"]
        values = [
            evaluate(qrels, {"q": scores}, "map", ties=ties).loc["q", "map"]
            for ties in ("docid", "docid-ascending")
        ]
        assert (theirs, *values) == (0.5, 0.5, 1.0)


def test_scores_that_say_something_else_than_ranks_are_told() -> None:
    run = pd.DataFrame(
        {"qid": list("aaabbb"), "score": [3, 2, 2, 1, 2, 3.0], "rank": [1, 2, 3] * 2}
    )
    assert score_remarks(run[:3]) == []
    (remark,) = score_remarks(run)
    assert "order 1 of 2 queries (50%) the other way than the rank column" in remark
    assert score_remarks(run.drop(columns="rank")) == []
    (remark,) = score_remarks(run.assign(score=0.1))
    assert "all scores of a query are equal" in remark
    assert score_remarks(run[::3]) == []
