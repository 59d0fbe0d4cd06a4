"""Both rankings of a query: the first documents, which of them moved, and what moved them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from letor.dataset import RankingData
from ltr_features.studies.kinds.drill_down import _in_spreads, _movers, _Side, _with_columns
from ltr_features.studies.kinds.ranking_config import SystemConfig
from ltr_features.studies.page.query_rankings import TOP, RankedDocument, moved, query_rankings


def run_of(**queries: str) -> pd.DataFrame:
    """A ranking of documents with names of one letter."""
    rows = [(q, d, -float(i)) for q, docs in queries.items() for i, d in enumerate(docs)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def test_the_first_documents_of_both_rankings_the_largest_changes_first() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    system = run_of(a="xyz", b=letters)
    baseline = run_of(a="zyx", b=letters[::-1])
    judged = [("a", "x", 2), ("a", "y", 0), ("a", "z", -2), ("c", "x", 1)]
    qrels = pd.DataFrame(judged, columns=["qid", "docno", "label"])
    differences = pd.Series({"a": 0.1, "b": -0.5, "c": 0.0})
    found = query_rankings(differences, [system, baseline], qrels, str.upper)
    assert list(found) == ["b", "a", "c"]
    assert [(d.document, d.before, d.after) for d in found["a"]] == [
        ("x", 3, 1), ("y", 2, 2), ("z", 1, 3)
    ]  # fmt: skip
    assert found["a"][0] == RankedDocument("x", "X", 2, 3, 1)
    # What is judged not relevant is told from what nobody judged.
    assert [d.label for d in found["a"]] == [2, 0, -2]
    assert {d.label for d in found["b"]} == {None}
    ranks = {d.document: (d.before, d.after) for d in found["b"]}
    assert len(ranks) == 20  # the first ten of either
    assert ranks["z"] == (1, 26)
    assert all(min(pair) <= TOP for pair in ranks.values())
    assert found["c"] == []


def test_of_equal_scores_the_smaller_id_is_first_as_for_the_measures() -> None:
    tied = pd.DataFrame({"qid": ["a"] * 3, "docno": ["y", "z", "x"], "score": [1.0, 2.0, 1.0]})
    none = pd.DataFrame(columns=["qid", "docno", "label"])
    [documents] = query_rankings(pd.Series({"a": 0.0}), [tied, tied], none, lambda d: "").values()
    assert [d.document for d in documents] == ["z", "x", "y"]
    assert moved(documents) == []


def test_moved_documents_relevant_and_large_moves_first() -> None:
    documents = [
        RankedDocument("new", "", -2, None, 9),
        RankedDocument("up", "", 2, 3, 1),
        RankedDocument("down", "", None, 1, 2),
        RankedDocument("same", "", 0, 3, 3),
        RankedDocument("gone", "", 1, 4, None),
    ]
    found = moved(documents)
    assert [one.document for one in found] == ["up", "gone", "down", "new"]
    assert [one.up for one in found] == [True, False, False, True]
    # One place at the top is more of a relevant document than ten are of another one.
    places = [RankedDocument("far", "", 0, None, 1), RankedDocument("near", "", 2, 2, 1)]
    assert [one.document for one in moved(places)] == ["near", "far"]


def test_movers_are_the_columns_that_push_in_the_direction_of_the_move() -> None:
    names, shift = ["a", "b", "new", "none"], np.array([0.4, -0.5, 0.9, 0.0])
    assert _movers(names, shift, up=True) == [("new", 0.9), ("a", pytest.approx(0.4))]
    assert _movers(names, shift, up=False) == [("b", pytest.approx(-0.5))]


def test_columns_push_up_what_the_system_has_above_its_baseline(tmp_path):
    """Both rank by a column alone, one in the other order; scores 0, 1, 2 have the spread
    sqrt(2/3)."""
    rows = RankingData(
        X=np.array([[2, 0], [1, 1], [0, 2]], np.float32),
        y=np.zeros(3, np.float32),
        query_ids=["a"],
        query_index=np.zeros(3, np.int64),
        column_names=["new", "old"],
        document_ids=np.array(["x", "y", "z"], dtype=object),
    )
    documents = [
        RankedDocument("x", "", 1, 3, 1), RankedDocument("y", "", 1, 2, 2),
        RankedDocument("z", "", 1, 1, 3),
    ]  # fmt: skip
    sides = [_Side(SystemConfig(name=name, score=name), tmp_path) for name in ("new", "old")]
    x, y, z = _with_columns({"a": documents}, rows, sides)["a"]
    step = pytest.approx(1 / np.sqrt(2 / 3))
    assert dict(x.columns) == {"new": step, "old": step}
    assert y.columns == ()
    step = pytest.approx(-1 / np.sqrt(2 / 3))
    assert dict(z.columns) == {"new": step, "old": step}


def test_contributions_to_scores_that_are_equal_but_for_rounding_stay_small() -> None:
    apart = _in_spreads(np.array([[0.3, 0.1], [0.1, 0.1]]))
    np.testing.assert_allclose(apart, [[1.0, 0.0], [-1.0, 0.0]])
    tied = np.array([[0.1, 0.2], [0.3, 0.0], [0.0, 0.3]])
    centred = tied - tied.mean(axis=0)
    assert 0 < centred.sum(axis=1).std() < 1e-16  # divided by it, they would be of size 1e16
    np.testing.assert_array_equal(_in_spreads(tied), centred)
