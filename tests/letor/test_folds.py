"""Folds: LETOR's rotation, seeded k-fold, strata, groups, errors."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from letor.dataset import RankingData
from letor.errors import InputError
from letor.folds import (
    Fold,
    by_time,
    given_parts,
    has_relevant,
    k_fold,
    letor_rotation,
    queries_of_trained_groups,
    training_parts,
    with_fewer_queries,
)
from letor.missing import Missing


def test_letor_rotation_is_the_official_one():
    """Fold i: train S_i, S_i+1, S_i+2; validation S_i+3; test S_i+4 (LETOR 4.0 description)."""
    parts = [[f"s{i}a", f"s{i}b"] for i in range(1, 6)]
    folds = letor_rotation(parts)
    assert [f.name for f in folds] == ["Fold1", "Fold2", "Fold3", "Fold4", "Fold5"]
    assert folds[0].train == ["s1a", "s1b", "s2a", "s2b", "s3a", "s3b"]
    assert (folds[0].validation, folds[0].test) == (["s4a", "s4b"], ["s5a", "s5b"])
    assert folds[3].train == ["s4a", "s4b", "s5a", "s5b", "s1a", "s1b"]
    assert (folds[3].validation, folds[3].test) == (["s2a", "s2b"], ["s3a", "s3b"])


def test_parts_that_are_given_are_kept():
    ids = [f"q{i}" for i in range(30)]
    parts = ["test" if i < 10 else "train" for i in range(30)]
    fold = given_parts(ids, parts, seed=0, groups=[i // 2 for i in range(30)])
    assert list(fold.test) == ids[:10]
    assert len(fold.validation) == 4
    assert sorted([*fold.train, *fold.validation]) == sorted(ids[10:])
    for part in (*fold.parts, fold.validation):  # queries of a group are in one
        assert len({int(q[1:]) // 2 for q in part}) * 2 == len(part)
    assert len(fold.parts) == 4
    parts[10:13] = ["validation"] * 3
    fold = given_parts(ids, parts, seed=0)
    assert list(fold.validation) == ids[10:13]
    assert sorted(fold.train) == sorted(ids[13:])
    assert len(fold.parts) == 5
    with pytest.raises(InputError, match="parts: 'dev' is unknown; use train, validation, test"):
        given_parts(ids, ["dev"] * 30, seed=0)
    with pytest.raises(InputError, match="for training, and others for the test"):
        given_parts(ids, ["train"] * 30, seed=0)
    few = ["train"] * 3 + ["test"] * 27
    with pytest.raises(InputError, match=r"training queries: 3 queries in 3 groups cannot be .* 5"):
        given_parts(ids, few, seed=0)


@given(st.integers(3, 6), st.integers(0, 60), st.integers(0, 5))
def test_k_fold_tests_every_query_once(k, extra, seed):
    ids = [f"q{i}" for i in range(k + extra)]
    folds = k_fold(ids, k, seed=seed)
    assert sorted(q for f in folds for q in f.test) == sorted(ids)
    sizes = [len(f.test) for f in folds]
    assert max(sizes) - min(sizes) <= 1
    for i, fold in enumerate(folds):
        assert sorted([*fold.train, *fold.validation, *fold.test]) == sorted(ids)
        assert fold.validation == folds[i - 1].test
    assert folds == k_fold(ids, k, seed=seed)


def test_another_seed_gives_other_folds():
    ids = [str(i) for i in range(50)]
    assert k_fold(ids, seed=1) != k_fold(ids, seed=2)


def test_strata_are_spread_evenly():
    ids = [f"q{i}" for i in range(100)]
    empty = [i < 28 for i in range(100)]
    for fold in k_fold(ids, seed=3, strata=empty):
        share = sum(empty[int(q[1:])] for q in fold.test)
        assert share in (5, 6)
        assert len(fold.test) == 20


def test_groups_stay_together_and_parts_stay_even():
    rng = np.random.default_rng(0)
    article = rng.integers(0, 40, 300)
    ids = [f"q{i}" for i in range(300)]
    folds = k_fold(ids, seed=3, groups=article)
    parts = [{article[int(q[1:])] for q in f.test} for f in folds]
    assert sum(len(p) for p in parts) == len(set(article))
    assert max(len(f.test) for f in folds) - min(len(f.test) for f in folds) <= 10


def test_groups_and_strata_together():
    article = [i // 5 for i in range(200)]
    kind = [i // 5 % 2 for i in range(200)]
    for fold in k_fold([str(i) for i in range(200)], seed=1, groups=article, strata=kind):
        assert sum(kind[int(q)] for q in fold.test) == 20
        assert len(fold.test) == 40


def rows():
    query = ["b", "a", "b", "c", "d", "a"]
    return RankingData.from_rows(np.arange(6).reshape(6, 1), [0, 1, 0, 2, 0, 0], query)


def test_rows_are_divided_by_their_queries():
    missing = Missing({"e": {1: 2}})
    data = replace(rows(), missing=missing)
    assert k_fold(data, 3, seed=0) == k_fold([*"bacde"], 3, seed=0)
    assert len(k_fold(data, 3, seed=0, strata=has_relevant(data))) == 3


def test_split_keeps_all_rows_of_a_query():
    train, validation, test = Fold("f", ["a", "b"], ["d"], ["c"]).split(rows())
    assert train.X[:, 0].tolist() == [0, 1, 2, 5]
    assert (validation.query_ids, test.query_ids) == (["d"], ["c"])


def test_has_relevant():
    assert has_relevant(rows()).tolist() == [False, True, True, False]


def test_errors_name_the_query():
    with pytest.raises(InputError, match="query 'a' is in test and already in train"):
        Fold("f", ["a"], ["b"], ["a"])
    for parts in ((("a",),), (("a",), ("b",), ("c",)), (("b",), ("c",))):
        with pytest.raises(InputError, match="parts must hold exactly the training queries"):
            Fold("f", ["a", "b"], [], ["d"], parts=parts)
    with pytest.raises(InputError, match="2 validation queries not in the data: x, y"):
        Fold("f", ["a"], ["x", "y"], ["b"]).split(rows())
    with pytest.raises(InputError, match=r"6 validation queries not .*: u, v, w, x, y$"):
        Fold("f", ["a"], list("uvwxyz"), ["b"]).split(rows())
    with pytest.raises(InputError, match="at least 3"):
        letor_rotation([["a"], ["b"]])
    with pytest.raises(InputError, match="distinct"):
        k_fold(["a", "a", "b"], 3, seed=0)
    with pytest.raises(InputError, match="3 queries in 2 groups cannot be dealt into 3 parts"):
        k_fold(["a", "b", "c"], 3, seed=0, groups=[0, 0, 1])
    with pytest.raises(InputError, match=r"0 queries cannot be dealt into 3 parts: .* give more"):
        k_fold([], 3, seed=0)
    for ids in (range(3), np.arange(3)):
        with pytest.raises(InputError, match=r"query ids must be text, got .*; write str\(id\)"):
            k_fold(ids, 3, seed=0)
    with pytest.raises(InputError, match=r"query ids must be text, got 1; write str\(id\)"):
        rows().select_queries([1])
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(InputError, match="groups: query 'b' has none; give one of its own"):
            k_fold(["a", "b", "c"], 3, groups=["x", missing, "y"], seed=0)
    with pytest.raises(InputError, match="strata has 1 entries for 3"):
        k_fold(["a", "b", "c"], 3, seed=0, strata=[0])


def test_series_of_queries_are_in_their_order():
    """As they are put beside the queries by position."""
    ids, groups = ["a", "b", "c", "d"], pd.Series([0, 0, 1, 2], index=["a", "b", "c", "d"])
    folds = k_fold(ids, 3, seed=0, groups=groups)
    assert folds == k_fold(ids, 3, seed=0, groups=groups.to_list())
    assert folds == k_fold(ids, 3, seed=0, groups=groups.reset_index(drop=True))
    for make in (
        lambda values: k_fold(ids, 3, seed=0, groups=values),
        lambda values: k_fold(ids, 3, seed=0, strata=values),
        lambda values: by_time(ids, values),
        lambda values: given_parts(ids, ["train"] * 3 + ["test"], seed=0, groups=values),
        lambda values: given_parts(ids, values.map(lambda n: "test" if n else "train"), seed=0),
    ):
        with pytest.raises(InputError, match=r"(groups|strata|times|parts): .* \(row 0: d\)"):
            make(groups[::-1])


def test_series_of_query_ids_are_taken_by_position():
    """Those of a shuffled frame, of which ids[0] is another one: groups would be torn apart, and
    training queries tested."""
    ids = [f"q{i}" for i in range(12)]
    series = pd.Series(ids, index=np.roll(np.arange(12), 5))
    groups = np.repeat(np.arange(4), 3)
    parts = ["train"] * 9 + ["test"] * 3
    assert k_fold(series, 3, seed=0, groups=groups) == k_fold(ids, 3, seed=0, groups=groups)
    assert by_time(series, np.arange(12)) == by_time(ids, np.arange(12))
    expected = given_parts(ids, parts, seed=0, k=3, groups=groups)
    assert given_parts(series, parts, seed=0, k=3, groups=groups) == expected
    assert expected.test == ids[9:]


@pytest.mark.parametrize("seed", range(8))
def test_large_groups_are_dealt_first(seed):
    """Else the parts cannot have 5 queries each."""
    sizes = [2, 3, 5, 2, 3]
    group = np.repeat(np.arange(5), sizes)
    folds = k_fold([str(i) for i in range(15)], 3, seed=seed, groups=group)
    assert [len(fold.test) for fold in folds] == [5, 5, 5]


@pytest.mark.parametrize("seed", range(8))
def test_parts_that_lack_a_kind_alike_are_filled_by_size(seed):
    kinds = [0, 0, 0, 0, 1, 1]
    folds = k_fold([str(i) for i in range(6)], 3, seed=seed, strata=kinds)
    assert [len(fold.test) for fold in folds] == [2, 2, 2]


@pytest.mark.parametrize("seed", range(8))
def test_kinds_are_spread_before_sizes(seed):
    """A group of three of one kind leaves no part without two of the other."""
    sizes, kinds = [3, 1, 1, 1] + [1] * 6, [0] * 4 + [1] * 6
    group, kind = np.repeat(np.arange(10), sizes), np.repeat(kinds, sizes)
    folds = k_fold([str(i) for i in range(12)], 3, seed=seed, groups=group, strata=kind)
    assert [sum(kind[int(q)] for q in fold.test) for fold in folds] == [2, 2, 2]


def test_queries_keep_their_order_within_a_part():
    ids = [f"q{i:02d}" for i in range(40)]
    for fold in k_fold(ids, 4, seed=5, groups=np.arange(40) // 2):
        assert fold.test == sorted(fold.test)


@given(st.integers(4, 7), st.lists(st.integers(0, 30), min_size=12, max_size=60))
def test_folds_by_time_train_on_earlier_queries_than_they_test(k, times):
    ids = [f"q{i}" for i in range(len(times))]
    at = dict(zip(ids, times, strict=True))
    if len(set(times)) < k:
        with pytest.raises(InputError, match=rf"different times of queries \({len(set(times))}\)"):
            by_time(ids, times, k)
        return
    folds = by_time(ids, times, k)
    assert [fold.name for fold in folds] == [f"Fold{i + 1}" for i in range(k - 3)]
    for fold in folds:
        train, validation, test = (
            [at[q] for q in part] for part in (fold.train, fold.validation, fold.test)
        )
        assert max(train) < min(validation) <= max(validation) < min(test)
    last = folds[-1]
    assert sorted([*last.train, *last.validation, *last.test]) == sorted(ids)
    assert len(last.parts) == k - 2
    for earlier, later in pairwise([*last.parts, last.validation, last.test]):
        assert max(at[q] for q in earlier) < min(at[q] for q in later)
    for fold, next_fold in pairwise(folds):
        assert next_fold.validation == fold.test
        assert next_fold.parts == [*fold.parts, fold.validation]


def test_folds_by_time_have_equal_parts_where_times_differ():
    ids = [f"q{i}" for i in range(40)]
    (fold,) = by_time(ids, np.random.default_rng(0).permutation(40))
    assert [len(p) for p in (*fold.parts, fold.validation, fold.test)] == [10, 10, 10, 10]
    # One time that has most queries leaves one to each of the others.
    (fold,) = by_time(ids, [0] * 37 + [1, 2, 3], 4)
    assert [len(p) for p in (*fold.parts, fold.validation, fold.test)] == [37, 1, 1, 1]


def test_training_parts_are_those_of_the_fold_or_the_others_tests():
    folds = by_time(list("abcdef"), range(6), 6)
    assert training_parts(folds, folds[0]) == [["a"], ["b"]]
    assert training_parts(folds, folds[2]) == [["a"], ["b"], ["c"], ["d"]]
    assert training_parts(folds, folds[2].only("acef")) == [["a"], ["c"]]
    rotation = letor_rotation([["a"], ["b"], ["c"], ["d"]])
    assert training_parts(rotation, rotation[0]) == [["a"], ["b"]]


def test_fewer_queries_of_folds_by_time():
    ids = [f"q{i}" for i in range(60)]
    whole = by_time(ids, np.arange(60), 6)
    fewer = with_fewer_queries(whole, 0.5, seed=1)
    for fold, half in zip(whole, fewer, strict=True):
        assert (half.validation, half.test) == (fold.validation, fold.test)
        assert [len(part) for part in half.parts] == [5] * len(fold.parts)
        assert all(set(a) <= set(b) for a, b in zip(half.parts, fold.parts, strict=True))
    assert set(fewer[0].train) <= set(fewer[1].train)
    assert with_fewer_queries(whole, 1, seed=1) == whole


def test_errors_of_folds_by_time():
    with pytest.raises(InputError, match="4 distinct query ids need as many times"):
        by_time(list("abcd"), [1, 2, 3])
    with pytest.raises(InputError, match="query 'b' has no time"):
        by_time(list("abcd"), [1, float("nan"), 3, 4])
    with pytest.raises(InputError, match="at least 4 parts"):
        by_time(list("abcd"), [1, 2, 3, 4], 3)
    with pytest.raises(InputError, match="parts must hold exactly the training queries"):
        Fold("f", ["a", "b"], ["c"], ["d"], parts=[["a"]])


def test_test_queries_of_groups_that_are_trained_on_are_counted() -> None:
    folds = [Fold("1", ["a", "b"], ["c"], ["d", "e"]), Fold("2", ["d", "e"], ["a"], ["b", "c"])]
    groups = {"a": "x", "d": "x", "b": "y", "c": "z", "e": "y"}  # d like a, e like b; b like e
    assert queries_of_trained_groups(folds, groups) == 3
    assert queries_of_trained_groups(folds, {"a": "x", "d": "x"}) == 1  # the others are alone
