"""A study's learning curve: fewer training queries, the same test queries."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from letor.folds import Fold, k_fold, training_parts, with_fewer_queries
from ltr_features.studies.statistics.learning_curve import learning_curve
from ltr_features.studies.statistics.significance import TestSettings

QUERIES = [f"q{i}" for i in range(40)]


def test_training_parts_are_those_of_the_folds_that_test_them() -> None:
    folds = k_fold(QUERIES, 5, seed=0)
    parts = training_parts(folds, folds[0])
    assert parts == [list(fold.test) for fold in folds if fold.test[0] in folds[0].train]
    assert sorted(q for part in parts for q in part) == sorted(folds[0].train)


def test_a_larger_share_has_the_queries_of_a_smaller_one() -> None:
    folds = k_fold(QUERIES, 5, seed=0)
    small, large = (with_fewer_queries(folds, share, seed=3) for share in (0.25, 0.5))
    for few, more, whole in zip(small, large, folds, strict=True):
        assert len(few.train) == 6  # 2 of the 8 of each of the three parts
        assert len(more.train) == 12
        assert set(few.train) < set(more.train) < set(whole.train)
        assert (few.validation, few.test) == (whole.validation, whole.test)
        assert all(len(part) == 2 for part in training_parts(folds, few))
    of_part = [set(folds[1].test) & set(fold.train) for fold in small]
    assert len({frozenset(part) for part in of_part if part}) == 1  # the same in every fold
    assert with_fewer_queries(folds, 0.25, seed=3) == small
    assert with_fewer_queries(folds, 0.25, seed=4) != small
    assert with_fewer_queries(folds, 1.0, seed=3) == folds
    assert all(len(fold.train) == 3 for fold in with_fewer_queries(folds, 0.001, seed=0))


def test_groups_stand_together() -> None:
    groups = {q: f"g{i // 4}" for i, q in enumerate(QUERIES)}
    folds = k_fold(QUERIES, 5, seed=0, groups=list(groups.values()))
    for fold in with_fewer_queries(folds, 0.5, seed=0, groups=groups):
        kept = pd.Series([groups[q] for q in fold.train]).value_counts()
        assert kept.tolist() == [4, 4, 4]


def test_differences_at_each_number_of_queries() -> None:
    rng = np.random.default_rng(0)

    def frame(mean: float) -> pd.DataFrame:
        return pd.DataFrame({"MAP": np.clip(rng.normal(mean, 0.05, 40), 0, 1)}, index=QUERIES)

    fixed, first, second = frame(0.3), frame(0.4), frame(0.5)
    curve = partial(
        learning_curve,
        [(5.0, {"s": [first]}), (10.0, {"s": [first, second]})],
        [("s", "fixed")],
        "MAP",
        TestSettings(n_permutations=200, n_resamples=200),
        untrained={"fixed": fixed},
    )
    table = curve()
    assert table["queries"].tolist() == [5.0, 10.0]
    means = [first["MAP"].mean(), (first["MAP"].mean() + second["MAP"].mean()) / 2]
    assert table["system_mean"].tolist() == pytest.approx(means)
    assert table["baseline_mean"].tolist() == pytest.approx([fixed["MAP"].mean()] * 2)
    assert (table["low"] < table["difference"]).all()
    once, twice = table["p"]
    assert once < 0.01  # over queries alone
    assert twice > 0.05  # the two fits are .1 apart
    two_groups = {query: query in QUERIES[:20] for query in QUERIES}
    assert curve(groups=two_groups)["p"][0] == 0.5  # with the signs of both, or of neither


def test_empty_parts_of_folds_are_left_out() -> None:
    folds = [Fold("a", ["x"], ["y"], ["z"]), Fold("b", ["z"], ["x"], ["y"])]
    assert training_parts(folds, Fold("c", ["z"], [], [])) == [["z"]]
