"""Warnings name the line of the user, whatever lies between it and their cause."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from learnable import rows

from letor import RankingData, read_parquet
from letor.errors import LetorWarning
from letor.rankers import LambdaMART
from ltr_base.user_warning import warn_user


def table_of_other_programs(folder):
    numbers = [2**24 + 1, 2**24 + 3]
    path = folder / "rows.parquet"
    pd.DataFrame({"label": [0, 1], "qid": ["a", "a"], "length": numbers}).to_parquet(path)
    return lambda: read_parquet(path, label="label", qid="qid")


def rows_with_a_document_twice(folder):
    frame = pd.DataFrame({"label": [0, 1], "qid": ["a", "a"], "docno": ["d", "d"], "x": [1.0, 2.0]})
    return lambda: RankingData.from_pandas(frame)


def ranker_that_learns_nothing(folder):
    data = rows(0, n_queries=3, size=3)
    return lambda: LambdaMART(min_data_in_leaf=100).fit(data)


def arrays_with_the_label_as_a_column(folder):
    data = rows(0)
    X = np.column_stack([data.X, data.y])
    return lambda: LambdaMART(n_estimators=1).fit(X, data.y, qid=data.query_index)


@pytest.mark.parametrize(
    "prepared",
    [
        table_of_other_programs,
        rows_with_a_document_twice,
        ranker_that_learns_nothing,
        arrays_with_the_label_as_a_column,
    ],
)
def test_the_line_is_that_of_the_user(tmp_path, prepared):
    use = prepared(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
    told = [warning for warning in caught if issubclass(warning.category, LetorWarning)]
    assert told
    places = {(warning.filename, warning.lineno) for warning in told}
    assert places == {(__file__, use.__code__.co_firstlineno)}


def test_users_may_filter_by_their_module():
    for module, n_shown in ((__name__, 0), ("another", 1)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", module=module)
            warn_user("not shown if it is this one", UserWarning)
        assert len(caught) == n_shown
