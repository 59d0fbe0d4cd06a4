"""A trained ranker as the model file of a search engine: OpenSearch and Elasticsearch, Solr, Vespa.

The engines compute the features themselves; they must be called as the ranker's columns are.
Trees compare single-precision features with thresholds. LightGBM's thresholds are double: a
single-precision x is at most t where it is at most the largest single t' <= t, and below t where it
is at most the one before, so that every engine takes the branches that the ranker takes. (Values
between -1e-35 and 1e-35 are the exception: LightGBM takes them for 0.)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from letor.errors import InputError
from letor.rankers.base import Ranker
from letor.rankers.lambdamart import LambdaMART

Node = dict[str, Any]


def export(ranker: Ranker, target: str, *, name: str = "ltr-features") -> str:
    """The ranker as JSON for an engine.

    Args:
        ranker: a fitted LambdaMART with ``normalise="none"``; trees do not need normalising, and
            engines cannot normalise by query.
        target: "opensearch" (the LTR plug-in of OpenSearch and Elasticsearch: the body to create a
            model from a feature set, ``model/xgboost+json``), "solr" (MultipleAdditiveTreesModel)
            or "vespa" (LightGBM's own JSON, read by the rank feature ``lightgbm``).
        name: the model's name there.

    Raises:
        InputError: another target, another kind of ranker, or one with a normaliser.
    """
    if target not in _TARGETS:
        raise InputError(f"target {target!r} is unknown; use one of {', '.join(_TARGETS)}")
    if not isinstance(ranker, LambdaMART):
        raise InputError(
            f"a ranker {ranker.name!r} cannot be exported; train 'lambdamart', whose trees engines "
            "can evaluate"
        )
    if ranker.normalise != "none":
        raise InputError(
            f"the ranker was trained with normalise={ranker.normalise!r}, which an engine cannot "
            "do; train it with normalise='none' (trees rank alike without)"
        )
    return json.dumps(_TARGETS[target](ranker, name), indent=1)


def _trees(ranker: LambdaMART) -> list[Node]:
    return [tree["tree_structure"] for tree in ranker.dump()["tree_info"]]


def _floor32(threshold: float) -> np.float32:
    """The largest single-precision number that is not above the threshold."""
    single = np.float32(threshold)
    below = np.nextafter(single, np.float32(-np.inf))
    return single if float(single) <= threshold else below


def _opensearch(ranker: LambdaMART, name: str) -> Node:
    """XGBoost's form, whose test is x < split_condition."""
    names = ranker.feature_names_
    count = 0

    def node(tree: Node, depth: int) -> Node:
        nonlocal count
        mine = count
        count += 1
        if "leaf_value" in tree:
            return {"nodeid": mine, "leaf": tree["leaf_value"]}
        limit = np.nextafter(_floor32(tree["threshold"]), np.float32(np.inf))
        left, right = node(tree["left_child"], depth + 1), node(tree["right_child"], depth + 1)
        return {
            "nodeid": mine,
            "depth": depth,
            "split": names[tree["split_feature"]],
            "split_condition": float(limit),
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": left["nodeid"] if tree["default_left"] else right["nodeid"],
            "children": [left, right],
        }

    trees = []
    for tree in _trees(ranker):
        count = 0
        trees.append(node(tree, 0))
    definition = {"type": "model/xgboost+json", "definition": json.dumps(trees)}
    return {"model": {"name": name, "model": definition}}


def _solr(ranker: LambdaMART, name: str) -> Node:
    """Solr's form, whose test is x <= threshold."""
    names = ranker.feature_names_

    def node(tree: Node) -> Node:
        if "leaf_value" in tree:
            return {"value": repr(tree["leaf_value"])}
        return {
            "feature": names[tree["split_feature"]],
            "threshold": repr(float(_floor32(tree["threshold"]))),
            "left": node(tree["left_child"]),
            "right": node(tree["right_child"]),
        }

    return {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
        "name": name,
        "features": [{"name": feature} for feature in names],
        "params": {"trees": [{"weight": "1", "root": node(tree)} for tree in _trees(ranker)]},
    }


def _vespa(ranker: LambdaMART, name: str) -> Node:
    """LightGBM's dump, with the columns' own names and single-precision thresholds."""
    dump = ranker.dump()

    def single(tree: Node) -> None:
        if "threshold" in tree:
            tree["threshold"] = float(_floor32(tree["threshold"]))
            single(tree["left_child"])
            single(tree["right_child"])

    for tree in dump["tree_info"]:
        single(tree["tree_structure"])
    return {**dump, "feature_names": list(ranker.feature_names_), "name": name}


_TARGETS: dict[str, Callable[[LambdaMART, str], Node]] = {
    "opensearch": _opensearch,
    "solr": _solr,
    "vespa": _vespa,
}
#: What :func:`export` can write.
TARGETS = tuple(_TARGETS)
