"""Exported rankers score as the ranker does: by small readers of each engine's rule."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.dataset import RankingData
from letor.errors import InputError
from letor.rankers.export import TARGETS, _floor32, export
from letor.rankers.lambdamart import LambdaMART


def rows(seed=0, n_queries=30, size=12, p=5):
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = rng.normal(size=(n, p)).astype(np.float32).round(1)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0.5).astype(np.float32)
    return RankingData(
        X=X,
        y=y,
        query_ids=[str(q) for q in range(n_queries)],
        query_index=np.repeat(np.arange(n_queries), size),
        column_names=["bm25", "url length", 'odd "name"', "ssi", "pagerank"][:p],
    )


@pytest.fixture(scope="module")
def ranker():
    return LambdaMART(n_estimators=25, min_data_in_leaf=5, normalise="none").fit(rows())


def opensearch(text):
    """XGBoost trees: the child "yes" where x < split_condition, in single precision."""
    trees = json.loads(json.loads(text)["model"]["model"]["definition"])

    def value(node, x):
        while "leaf" not in node:
            below = np.float32(x[node["split"]]) < np.float32(node["split_condition"])
            wanted = node["yes"] if below else node["no"]
            node = next(child for child in node["children"] if child["nodeid"] == wanted)
        return node["leaf"]

    return lambda x: sum(value(tree, x) for tree in trees)


def solr(text):
    """left where x <= threshold, in single precision."""
    model = json.loads(text)
    assert {f["name"] for f in model["features"]} == set(rows().column_names)

    def value(node, x):
        while "value" not in node:
            left = np.float32(x[node["feature"]]) <= np.float32(node["threshold"])
            node = node["left" if left else "right"]
        return float(node["value"])

    return lambda x: sum(value(t["root"], x) * float(t["weight"]) for t in model["params"]["trees"])


def vespa(text):
    """LightGBM's dump: left where x <= threshold."""
    model = json.loads(text)

    def value(node, x):
        while "leaf_value" not in node:
            assert node["decision_type"] == "<="
            left = x[model["feature_names"][node["split_feature"]]] <= node["threshold"]
            node = node["left_child" if left else "right_child"]
        return node["leaf_value"]

    return lambda x: sum(value(tree["tree_structure"], x) for tree in model["tree_info"])


READERS = {"opensearch": opensearch, "solr": solr, "vespa": vespa}


@pytest.mark.parametrize("target", TARGETS)
def test_every_engine_scores_as_the_ranker(ranker, target):
    data = rows(seed=1)
    # Values exactly at and next to the thresholds, too.
    limits = np.array([_floor32(t) for t in thresholds(ranker)], dtype=np.float32)
    limits = limits[np.abs(limits) > 1e-30]  # LightGBM takes values below 1e-35 for 0
    rng = np.random.default_rng(2)
    X = rng.choice(np.concatenate([limits, np.nextafter(limits, np.float32(9)), data.X.ravel()]),
                   size=data.X.shape)  # fmt: skip
    data = RankingData(X, data.y, data.query_ids, data.query_index, data.column_names)
    score = READERS[target](export(ranker, target))
    found = [score(dict(zip(data.column_names, row, strict=True))) for row in data.X]
    np.testing.assert_allclose(found, ranker.predict(data), rtol=1e-6, atol=1e-6)


def thresholds(ranker):
    def below(node):
        if "threshold" in node:
            yield node["threshold"]
            yield from below(node["left_child"])
            yield from below(node["right_child"])

    return [t for tree in ranker.dump()["tree_info"] for t in below(tree["tree_structure"])]


@given(st.floats(-(2.0**90), 2.0**90), st.floats(-(2.0**90), 2.0**90, width=32))
@settings(max_examples=300)
def test_thresholds_keep_their_side(threshold, x):
    assert (float(x) <= threshold) == (np.float32(x) <= _floor32(threshold))


def test_what_an_engine_cannot_do_is_refused(ranker):
    with pytest.raises(InputError, match="target 'lucene' is unknown; use one of opensearch"):
        export(ranker, "lucene")
    normalised = LambdaMART(n_estimators=3, min_data_in_leaf=5, normalise="minmax").fit(rows())
    with pytest.raises(InputError, match="trained with normalise='minmax'"):
        export(normalised, "solr")
