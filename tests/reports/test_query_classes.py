"""Kinds of queries, and the documents that moved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from letor.errors import InputError
from ltr_features.collection import Collection, Judgements
from ltr_features.columns.registry import ColumnContext
from ltr_features.index import TermIndex
from ltr_features.text import Analyzer
from reports.drill_down import _moved, _movers
from reports.query_classes import query_class_table, query_properties
from reports.significance import TestSettings

TEST = TestSettings(n_permutations=500, n_resamples=200)


def test_properties_count_words_relevant_documents_and_what_they_share():
    rows = np.array([0, 0, 0, 1, 2])
    collection = Collection(
        name="c",
        document_ids=["a", "b", "c"],
        streams={"body": ["red green blue", "red cat", "dog"]},
        query_ids=["q1", "q2", "q3"],
        query_texts=["red green cat red", "dog unknownword", "blue"],
        judgements=Judgements(rows, np.array([0, 1, 2, 2, 0]), np.array([1, 2, 0, 1, 0])),
    )
    index = TermIndex.build(collection, Analyzer())
    table = query_properties(ColumnContext.of(collection, index))
    assert table.index.tolist() == ["q1", "q2"]  # q3 has no relevant document
    assert table["words"].tolist() == [3, 1]
    assert table["relevant documents"].tolist() == [2, 1]
    assert table["overlap"].tolist() == pytest.approx([(2 / 3 + 2 / 3) / 2, 1.0])


def test_classes_are_of_about_equal_size_and_equal_values_stay_together():
    queries = [f"q{i}" for i in range(90)]
    properties = pd.DataFrame({"words": np.repeat([1, 2, 3, 4, 5, 6], 15)}, index=queries)
    baseline = pd.Series(0.5, index=queries)
    system = baseline + 0.1 * (properties["words"] >= 5)
    table = query_class_table(properties, {"a - b": (system, baseline)}, settings=TEST)
    assert table["class"].tolist() == ["1 to 2", "3 to 4", "5 to 6"]
    assert table["n_queries"].tolist() == [30, 30, 30]
    assert table["gain"].tolist() == pytest.approx([0, 0, 0.1])
    assert (table["p"] < 0.01).tolist() == [False, False, True]
    constant = query_class_table(
        properties.assign(words=7), {"a - b": (system, baseline)}, settings=TEST
    )
    assert constant["class"].tolist() == ["7"]
    assert constant["n_queries"].tolist() == [90]
    with pytest.raises(InputError, match="other queries"):
        query_class_table(properties, {"a - b": (system[:-1], baseline)}, settings=TEST)


def test_moves_are_those_of_the_first_ten_relevant_ones_first():
    ranks = pd.DataFrame(
        {"after": [1.0, 2, 3, 50, np.nan], "before": [3.0, 1, 3, 60, 4]},
        index=["up", "down", "same", "deep", "gone"],
    )
    moved = _moved(ranks, {"down": 0, "up": 2, "gone": 1})
    assert moved.index.tolist() == ["up", "gone", "down"]
    assert moved["label"].tolist() == [2, 1, 0]


def test_movers_are_the_columns_that_push_in_the_direction_of_the_move():
    system = pd.DataFrame({"a": [0.5], "b": [-0.2], "new": [0.9]}, index=["d"])
    baseline = pd.DataFrame({"a": [0.1], "b": [0.3]}, index=["d"])
    up, down = pd.Series({"before": 5, "after": 2}), pd.Series({"before": 2, "after": 5})
    assert _movers(system, baseline, "d", up) == [("new", 0.9), ("a", pytest.approx(0.4))]
    assert _movers(system, baseline, "d", down) == [("b", pytest.approx(-0.5))]
