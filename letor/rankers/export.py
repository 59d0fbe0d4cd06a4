"""Export of trained rankers as models of search engines: OpenSearch, Elasticsearch, Solr, Vespa.

The engines compute the features themselves, under the names of the ranker's columns.

Trees compare single-precision features with thresholds. They go left if x <= t, with t in double
precision (XGBoost's too, in the form of :class:`~letor.rankers.trees.TreeRanker`); that is, if x is
at most the largest single-precision number not above t. Engines test differently, and thresholds
are written so that each takes the same branches as the ranker: OpenSearch and Elasticsearch test
x < t in single precision, Vespa x < t in double, Solr x <= t + 1e-6 in single. (Exceptions:
LightGBM treats values between -1e-35 and 1e-35 as 0; if t is below 1e-6, Solr's sum may be too low
by up to 1.2e-13.)

A feature that the engine does not have for a document goes where the ranker sends a missing value:
LightGBM in the direction that was learned, if training rows had missing values in that column, else
as 0; XGBoost in a direction of each node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from letor.errors import InputError
from letor.rankers.base import Ranker
from letor.rankers.trees import TreeRanker
from ltr_base.names import listed

Node = dict[str, Any]

_INFINITY, _LARGEST = np.float32(np.inf), np.finfo(np.float32).max
#: A function of a rank profile (``bm25_title``), or a rank feature (``bm25(title)``, ``query(x)``).
_VESPA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\([A-Za-z0-9_.,\s]*\))?(\.[A-Za-z0-9_.]+)?")
#: Levels of a tree that engines' readers of JSON take; Python's takes more from 3.12 on.
_MAX_LEVELS = 900
_TOO_DEEP = (
    "trees of some 1,000 levels or more cannot be exported: train with fewer leaves (num_leaves of "
    "lambdamart) or levels (max_depth of xgboost)"
)
#: What Solr adds to every threshold.
_SOLR_SLACK = np.float32(1e-6)


def export(ranker: Ranker, target: str, *, name: str = "ltr-features") -> str:
    """Export a ranker as JSON for a search engine.

    Args:
        ranker: a fitted :class:`~letor.rankers.trees.TreeRanker` (``lambdamart``, ``xgboost``) with
            ``normalise="none"``, as engines score each document by itself and cannot normalise by
            query.
        target: "opensearch" or "elasticsearch" (both for the learning-to-rank plug-in: the request
            body that creates a model from a feature set, ``model/xgboost+json``), "solr"
            (MultipleAdditiveTreesModel) or "vespa" (LightGBM's own JSON, read by the rank feature
            ``lightgbm``).
        name: the model's name in the engine.

    Raises:
        InputError: the target is unknown, the ranker is of another kind or has a normaliser; for
            Vespa, a column name is neither a function nor a rank feature; trees have some 1,000
            levels or more.
    """
    if target not in _TARGETS:
        raise InputError(f"target {target!r} is unknown; use one of {', '.join(_TARGETS)}, onnx")
    with of_few_levels():
        return json.dumps(_TARGETS[target](of_plain_trees(ranker), name), indent=1)


@contextmanager
def of_few_levels() -> Iterator[None]:
    """Tell of trees that are deeper than Python's recursion and JSON's readers allow."""
    try:
        yield
    except RecursionError:
        raise InputError(_TOO_DEEP) from None


def of_plain_trees(ranker: Ranker) -> TreeRanker:
    """Return the ranker if it has trees over plain columns; raise InputError for any other."""
    if not isinstance(ranker, TreeRanker):
        raise InputError(
            f"a ranker {ranker.name!r} cannot be exported; train 'lambdamart' or 'xgboost', whose "
            "trees engines can evaluate"
        )
    if ranker.normalise != "none":
        raise InputError(
            f"the ranker was trained with normalise={ranker.normalise!r}, which an engine cannot "
            "do, as it scores each document by itself; train one with normalise='none' and measure "
            "what that costs (ltr-features measure)"
        )
    return ranker


def trees_of(ranker: TreeRanker) -> list[Node]:
    """The roots of the ranker's trees, see :meth:`~letor.rankers.trees.TreeRanker.dump`.

    Raises:
        InputError: a tree has more levels than readers of JSON take.
    """
    with of_few_levels():
        trees = [tree["tree_structure"] for tree in ranker.dump()["tree_info"]]
    if _n_levels(trees) > _MAX_LEVELS:
        raise InputError(_TOO_DEEP)
    return trees


def used_columns(ranker: TreeRanker) -> list[str]:
    """The names of the columns that trees test, which an engine must compute."""
    used = {tree["split_feature"] for tree in _splits(trees_of(ranker))}
    return [name for number, name in enumerate(ranker.feature_names_) if number in used]


def floor32(threshold: float) -> np.float32:
    """The largest single-precision number that is not above the threshold."""
    single = np.float32(min(threshold, float(_LARGEST)))
    return single if float(single) <= threshold else _next(single, -_INFINITY)


def _next(single: np.float32, towards: np.float32) -> np.float32:
    """The neighbour of a single-precision number; the largest ones are returned unchanged."""
    neighbour = np.nextafter(single, towards) if abs(single) < _LARGEST else single
    return np.float32(neighbour)


def absent_goes_left(tree: Node) -> bool:
    """Whether a row whose feature is missing goes left at a node."""
    if tree["missing_type"] == "NaN":  # training rows had missing values
        return bool(tree["default_left"])
    return bool(tree["threshold"] >= 0)


def _plug_in(ranker: TreeRanker, name: str) -> Node:
    """XGBoost's format, for the plug-in of OpenSearch and Elasticsearch; the test is x <
    split_condition."""
    names = ranker.feature_names_
    count = 0

    def node(tree: Node, depth: int) -> Node:
        nonlocal count
        number = count
        count += 1
        if "leaf_value" in tree:
            return {"nodeid": number, "leaf": tree["leaf_value"]}
        limit = _next(floor32(tree["threshold"]), _INFINITY)
        left, right = node(tree["left_child"], depth + 1), node(tree["right_child"], depth + 1)
        return {
            "nodeid": number,
            "depth": depth,
            "split": names[tree["split_feature"]],
            "split_condition": float(limit),
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": (left if absent_goes_left(tree) else right)["nodeid"],
            "children": [left, right],
        }

    trees = []
    for tree in trees_of(ranker):
        count = 0
        trees.append(node(tree, 0))
    definition = {"type": "model/xgboost+json", "definition": json.dumps(trees)}
    return {"model": {"name": name, "model": definition}}


def _solr(ranker: TreeRanker, name: str) -> Node:
    """Solr's format, whose test is x <= threshold + 1e-6. It refuses a model that names a feature
    which its store lacks, so only those that trees test are named. If missing values are not
    treated as 0, the model needs Solr 9.2: older versions have no direction for them."""
    names, trees = ranker.feature_names_, trees_of(ranker)
    as_zero = not any(tree["missing_type"] == "NaN" for tree in _splits(trees))

    def node(tree: Node) -> Node:
        if "leaf_value" in tree:
            return {"value": repr(tree["leaf_value"])}
        missing = {} if as_zero else {"missing": "left" if absent_goes_left(tree) else "right"}
        return {
            "feature": names[tree["split_feature"]],
            "threshold": repr(float(_before_slack(floor32(tree["threshold"])))),
            **missing,
            "left": node(tree["left_child"]),
            "right": node(tree["right_child"]),
        }

    params: Node = {"trees": [{"weight": "1", "root": node(tree)} for tree in trees]}
    return {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
        "name": name,
        "features": [{"name": feature} for feature in used_columns(ranker)],
        "params": params if as_zero else {"isNullSameAsZero": False, **params},
    }


def _before_slack(limit: np.float32) -> np.float32:
    """The threshold that becomes ``limit`` when Solr adds 1e-6 in single precision, or else the
    nearest below, so that 0 never falls on the wrong side of a negative limit."""
    near = limit - _SOLR_SLACK
    around = (_next(near, _INFINITY), near, _next(near, -_INFINITY))
    return next(t for t in around if t + _SOLR_SLACK <= limit)


def _vespa(ranker: TreeRanker, name: str) -> Node:
    """The dump, with the columns' own names. Vespa tests x < threshold in double precision,
    and sends a missing value by ``default_left`` alone. It evaluates names as expressions: a column
    "1" would be read as the number."""
    odd = [column for column in used_columns(ranker) if not _VESPA_NAME.fullmatch(column)]
    if odd:
        raise InputError(
            f"Vespa cannot use the names {listed([repr(column) for column in odd], 3)}: name "
            "columns as functions or rank features (letters, digits and '_', a letter first) in "
            "the rows, and train the ranker on them"
        )
    dump = ranker.dump()
    for tree in _splits([info["tree_structure"] for info in dump["tree_info"]]):
        tree["default_left"] = absent_goes_left(tree)
        below = floor32(tree["threshold"])
        # Half-way between two single-precision numbers, < and <= are the same test.
        tree["threshold"] = (float(below) + float(_next(below, _INFINITY))) / 2
    return {**dump, "feature_names": list(ranker.feature_names_), "name": name}


def _splits(trees: Iterable[Node]) -> Iterator[Node]:
    """The nodes that are not leaves, at any depth."""
    nodes = list(trees)
    while nodes:
        node = nodes.pop()
        if "threshold" in node:
            yield node
            nodes += (node["left_child"], node["right_child"])


def _n_levels(trees: Iterable[Node]) -> int:
    """The levels of the deepest tree."""
    n, level = 0, list(trees)
    while level:
        n, nodes = n + 1, (node for node in level if "threshold" in node)
        level = [child for node in nodes for child in (node["left_child"], node["right_child"])]
    return n


_TARGETS: dict[str, Callable[[TreeRanker, str], Node]] = {
    "opensearch": _plug_in,
    "elasticsearch": _plug_in,
    "solr": _solr,
    "vespa": _vespa,
}
#: Targets of :func:`export`.
TARGETS = tuple(_TARGETS)
