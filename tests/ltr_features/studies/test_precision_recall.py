"""Precision at levels of recall: as trec_eval has it, and only where recall means something."""

from __future__ import annotations

import ir_measures
import numpy as np
import pandas as pd
import pytest

from ltr_features.studies.statistics.precision_recall import (
    LEVELS,
    coverage_remarks,
    interpolated_precision,
    precision_recall,
)


def qrels_of(**queries: dict[str, int]) -> pd.DataFrame:
    rows = [(q, d, label) for q, docs in queries.items() for d, label in docs.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def run_of(**queries: str) -> pd.DataFrame:
    rows = [(q, d, -float(i)) for q, docs in queries.items() for i, d in enumerate(docs)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def test_by_hand() -> None:
    """Relevant at ranks 2 and 3 of two: precision 1/2, 2/3; the greater one counts for both."""
    qrels, run = qrels_of(q={"b": 1, "c": 2, "a": 0}), run_of(q="abcd")
    assert interpolated_precision(qrels, run) == pytest.approx(np.full(11, 2 / 3))
    half = run_of(q="xb")  # the second is not found: nothing beyond recall 1/2
    assert interpolated_precision(qrels, half) == pytest.approx(np.where(LEVELS <= 0.5, 0.5, 0))


def test_as_trec_eval_has_it() -> None:
    rng = np.random.default_rng(0)
    names = [f"d{i:02d}" for i in range(60)]
    judged = {f"q{i}": dict.fromkeys(rng.choice(names, 10, False), 1) for i in range(8)}
    run = pd.DataFrame(
        [(q, d, rng.random()) for q in [*judged][:-1] for d in rng.choice(names, 50, False)],
        columns=["qid", "docno", "score"],
    )
    qrels = qrels_of(**judged)
    measures = [ir_measures.IPrec @ float(round(level, 1)) for level in LEVELS]
    theirs = ir_measures.calc_aggregate(
        measures,
        qrels.set_axis(["query_id", "doc_id", "relevance"], axis=1),
        run.set_axis(["query_id", "doc_id", "score"], axis=1),
    )
    expected = [theirs[measure] for measure in measures]  # the query without a ranking counts 0
    assert interpolated_precision(qrels, run) == pytest.approx(expected)


def test_a_mean_over_fits_and_what_must_be_known() -> None:
    qrels = qrels_of(q={"b": 1, "c": 2, "a": 0}, p={"x": 1, "y": 1})
    good, bad = run_of(q="bca", p="xy"), run_of(q="abc", p="zxy")
    curves = [interpolated_precision(qrels, run) for run in (good, bad)]
    table, note = precision_recall(
        qrels, {"one": curves[:1], "two": curves}, {"one": good, "two": good}
    )
    assert table is not None
    assert table["recall"].tolist() == pytest.approx(LEVELS)
    assert table["one"].tolist() == [1.0] * 11
    assert table["two"].tolist() == pytest.approx([5 / 6] * 11)
    assert "median 2" in note
    assert "At least 100% of the first" in note
    positive, note = precision_recall(qrels[qrels["label"] > 0], {"one": curves}, {"one": good})
    assert positive is not None
    assert "list only relevant documents" in note
    _, note = precision_recall(qrels, {}, {"one": run_of(q="uvwxyzb", p="abcdef")})
    assert "recall is too high" in note
    assert "At least 7% of the first" in note  # 1 of 13


def test_of_several_rankings_the_least_judged_counts() -> None:
    """ "old" is judged to the tenth document of both queries; "new" and "newer" have three and two
    documents of 20 that nobody judged."""
    judged = "abcdefghij"
    qrels = qrels_of(**{q: dict.fromkeys(judged, 0) | {"a": 1, "b": 1} for q in "pq"})
    old, new, newer = (
        run_of(q=f"{judged}uvw", p=f"{first}uvw") for first in (judged, "abcdefgxyz", "abcdefghyz")
    )
    _, note = precision_recall(qrels, {}, {"old": old, "new": new})
    assert "At least 85% of the first 10 documents" in note
    [told] = coverage_remarks(qrels, {"old": old, "new": new})
    assert told.startswith(
        "of the first 10 documents, unequal shares are judged: old 100%, new 85%"
    )
    assert [*coverage_remarks(qrels, {"old": old, "newer": newer})] == []


def test_no_curve_where_queries_have_one_relevant_document() -> None:
    table, note = precision_recall(qrels_of(q={"a": 1}, p={"b": 1, "c": 0}), {}, {})
    assert table is None
    assert "all or nothing" in note
