"""Exported rankers score as the ranker does: by small readers of each engine's rule."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import load_from_string
from onnx.reference import ReferenceEvaluator
from sklearn.base import clone

from letor.dataset import RankingData
from letor.errors import InputError
from letor.rankers.export import TARGETS, _before_slack, export, floor32, used_columns
from letor.rankers.lambdamart import LambdaMART
from letor.rankers.onnx_model import to_onnx
from letor.rankers.rankboost import RankBoost
from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART


def rows(seed=0, n_queries=30, size=12, p=5):
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = rng.normal(size=(n, p)).astype(np.float32).round(1)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0.5).astype(np.float32)
    names = ["bm25", "url_length", "bm25(title)", "ssi", "pagerank"][:p]
    return RankingData.from_rows(X, y, np.repeat(np.arange(n_queries), size), column_names=names)


KINDS = {
    "lambdamart": LambdaMART(n_estimators=25, min_data_in_leaf=5, normalise="none"),
    "xgboost": XGBoostLambdaMART(n_estimators=25, learning_rate=0.3, normalise="none"),
}


@pytest.fixture(scope="module", params=KINDS)
def ranker(request):
    return clone(KINDS[request.param]).fit(rows())


def opensearch(text):
    """XGBoost trees: the child "yes" where x < split_condition, in single precision; a missing
    feature goes to "missing"."""
    trees = json.loads(json.loads(text)["model"]["model"]["definition"])

    def value(node, x):
        while "leaf" not in node:
            found = np.float32(x[node["split"]])
            below = found < np.float32(node["split_condition"])
            wanted = node["yes"] if below else node["no"]
            wanted = node["missing"] if np.isnan(found) else wanted
            node = next(child for child in node["children"] if child["nodeid"] == wanted)
        return node["leaf"]

    return lambda x: sum(value(tree, x) for tree in trees)


def solr(text):
    """left where x <= threshold + 1e-6, in single precision; a missing feature is 0, or from
    version 9.2 goes by "missing" where isNullSameAsZero is false."""
    model = json.loads(text)
    assert {f["name"] for f in model["features"]} == set(rows().column_names)
    as_zero = model["params"].get("isNullSameAsZero", True)

    def value(node, x):
        while "value" not in node:
            found = np.float32(x[node["feature"]])
            if np.isnan(found) and as_zero:
                assert "missing" not in node  # older versions refuse models with it
                found = np.float32(0)
            left = found <= np.float32(node["threshold"]) + np.float32(1e-6)
            branch = "left" if left else "right"
            node = node[node["missing"] if np.isnan(found) else branch]
        return float(node["value"])

    return lambda x: sum(value(t["root"], x) * float(t["weight"]) for t in model["params"]["trees"])


def vespa(text):
    """LightGBM's form: left where x < threshold, in double precision, or, by default_left, where
    not x >= threshold, which holds for a missing feature too."""
    model = json.loads(text)
    assert {"objective", "pandas_categorical"} <= set(model)

    def value(node, x):
        while "leaf_value" not in node:
            assert node["decision_type"] == "<="
            found = float(x[model["feature_names"][node["split_feature"]]])
            limit = node["threshold"]
            left = not found >= limit if node["default_left"] else found < limit
            node = node["left_child" if left else "right_child"]
        return node["leaf_value"]

    return lambda x: sum(value(tree["tree_structure"], x) for tree in model["tree_info"])


def onnx(model):
    """The reference implementation of the standard, with the columns in the order of "columns"."""
    proto = load_from_string(model)
    columns = json.loads({p.key: p.value for p in proto.metadata_props}["columns"])
    run = ReferenceEvaluator(proto).run

    def score(x):
        features = np.array([[x[column] for column in columns]], np.float32)
        return run(None, {"features": features})[0].item()

    return score


READERS = {
    "opensearch": opensearch, "elasticsearch": opensearch, "solr": solr, "vespa": vespa,
    "onnx": onnx,
}  # fmt: skip


def exported(ranker, target):
    return to_onnx(ranker) if target == "onnx" else export(ranker, target)


def test_every_target_is_tested():
    assert set(READERS) == {*TARGETS, "onnx"}


@pytest.mark.parametrize("target", READERS)
def test_every_engine_scores_as_the_ranker(ranker, target):
    data = rows(seed=1)
    # Values exactly at and next to the thresholds, too.
    limits = np.array([floor32(t) for t in thresholds(ranker)], dtype=np.float32)
    limits = limits[np.abs(limits) > 1e-30]  # LightGBM takes values below 1e-35 for 0
    rng = np.random.default_rng(2)
    X = rng.choice(np.concatenate([limits, np.nextafter(limits, np.float32(9)), data.X.ravel()]),
                   size=data.X.shape)  # fmt: skip
    data = RankingData(X, data.y, data.query_ids, data.query_index, data.column_names)
    score = READERS[target](exported(ranker, target))
    found = [score(dict(zip(data.column_names, row, strict=True))) for row in data.X]
    np.testing.assert_allclose(found, ranker.predict(data), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", READERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trained", ["whole rows", "rows with gaps", "a gap in one column"])
def test_absent_features_are_scored_as_by_the_ranker(target, kind, trained):
    """Also where thresholds lie about 0, as those of counts and of tiny numbers do."""
    data = rows(seed=3)
    data.X[:, 1] = np.maximum(data.X[:, 1], 0)
    data.X[:, 4] *= np.float32(1e-6)
    rng = np.random.default_rng(4)
    gaps = rng.random(data.X.shape) < {"whole rows": 0, "rows with gaps": 0.3}.get(trained, 0)
    gaps[:40, 2] |= trained == "a gap in one column"
    kept = np.where(gaps, np.nan, data.X).astype(np.float32)
    train = replace(data, X=kept)
    ranker = clone(KINDS[kind]).fit(train)
    kinds = {node["missing_type"] for node in splits(ranker)}
    ours = {
        "whole rows": {"None"}, "rows with gaps": {"NaN"}, "a gap in one column": {"None", "NaN"},
    }[trained]  # fmt: skip
    assert kinds == ({"NaN"} if kind == "xgboost" else ours)
    score = READERS[target](exported(ranker, target))
    for absent in ([0], [1], [2], [3], [4], range(5)):
        X = data.X.copy()
        X[:, list(absent)] = np.nan
        asked = replace(data, X=X)
        found = [score(dict(zip(data.column_names, row, strict=True))) for row in X]
        np.testing.assert_allclose(found, ranker.predict(asked), rtol=1e-6, atol=1e-6)


def splits(ranker):
    def below(node):
        if "threshold" in node:
            yield node
            yield from below(node["left_child"])
            yield from below(node["right_child"])

    return [n for tree in ranker.dump()["tree_info"] for n in below(tree["tree_structure"])]


def thresholds(ranker):
    return [node["threshold"] for node in splits(ranker)]


@given(st.floats(-(2.0**90), 2.0**90), st.floats(-(2.0**90), 2.0**90, width=32))
@settings(max_examples=300)
def test_thresholds_keep_their_side(threshold, x):
    assert (float(x) <= threshold) == (np.float32(x) <= floor32(threshold))


@given(st.floats(-(2.0**90), 2.0**90, width=32))
@settings(max_examples=300)
def test_solrs_slack_is_taken_off(limit):
    found = _before_slack(np.float32(limit)) + np.float32(1e-6)
    assert limit - max(2.0**-22 * abs(limit), 1.2e-13) <= found <= limit


@pytest.mark.parametrize("odd", ["1", "url length", 'odd "name"', "a+b", "größe"])
def test_names_that_vespa_would_misread_are_refused(odd):
    data = rows()
    named = replace(data, column_names=[odd, *data.column_names[1:]])
    ranker = LambdaMART(n_estimators=3, min_data_in_leaf=5, normalise="none").fit(named)
    with pytest.raises(InputError, match="Vespa cannot use the names"):
        export(ranker, "vespa")
    names = [odd, *data.column_names[1:]]
    score = opensearch(export(ranker, "opensearch"))
    for row, expected in zip(data.X[:20], ranker.predict(named)[:20], strict=True):
        assert score(dict(zip(names, row, strict=True))) == pytest.approx(expected)
    assert odd in [f["name"] for f in json.loads(export(ranker, "solr"))["features"]]


def test_solr_needs_only_the_columns_that_trees_test():
    """It refuses a model with a feature that its store lacks."""
    data = rows()
    X = data.X.copy()
    X[:, 1] = 1.0
    ranker = LambdaMART(n_estimators=9, min_data_in_leaf=5, normalise="none")
    ranker.fit(replace(data, X=X))
    found = [f["name"] for f in json.loads(export(ranker, "solr"))["features"]]
    names = data.column_names
    assert found == used_columns(ranker) == [n for n in names if n in found]
    assert names[1] not in found
    assert names[0] in found
    odd = replace(data, X=X, column_names=[names[0], "of no use", *names[2:]])
    assert "of no use" in json.loads(export(clone(ranker).fit(odd), "vespa"))["feature_names"]


def test_what_an_engine_cannot_do_is_refused(ranker):
    with pytest.raises(InputError, match="target 'lucene' is unknown; use one of opensearch"):
        export(ranker, "lucene")
    with pytest.raises(InputError, match="'rankboost' cannot be exported; train 'lambdamart' or"):
        export(RankBoost(n_rounds=2, normalise="none").fit(rows()), "solr")
    normalised = LambdaMART(n_estimators=3, min_data_in_leaf=5, normalise="minmax").fit(rows())
    with pytest.raises(InputError, match="trained with normalise='minmax'"):
        export(normalised, "solr")
    with pytest.raises(InputError, match="trained with normalise='minmax'"):
        to_onnx(normalised)


def test_trees_of_too_many_levels_are_told():
    """Each of 1,300 columns is 1 in one row, so that each level splits one row off."""
    n = 1300
    X = np.zeros((2 * n, n), np.float32)
    X[np.arange(0, 2 * n, 2), np.arange(n)] = 1
    ranker = LambdaMART(n_estimators=1, num_leaves=n, min_data_in_leaf=1, normalise="none")
    queries, columns = [f"q{i}" for i in range(n)], [f"f{i}" for i in range(n)]
    ranker.fit(RankingData(X, np.tile([1, 0], n), queries, np.repeat(np.arange(n), 2), columns))
    for target in TARGETS:
        with pytest.raises(InputError, match="trees of some 1,000 levels or more"):
            export(ranker, target)
    with pytest.raises(InputError, match="trees of some 1,000 levels or more"):
        to_onnx(ranker)
