"""Checks of stored trees, before LightGBM and XGBoost get them: both follow the numbers of nodes
and columns in a file wherever they lead, out of their memory or round in circles, and LightGBM ends
the process where a line of a tree is odd."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError

#: Objectives of rankers.
_LIGHTGBM, _XGBOOST = ("lambdarank", "rank_xendcg"), ("rank:ndcg", "rank:map", "rank:pairwise")
#: A line of LightGBM's text, and a list of numbers in it.
_LINE = re.compile(r"[a-z_]+=[^=\n]*")
_WHOLE, _NUMBER = "-?[0-9]{1,18}", r"-?(?:inf|[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?)"
_LISTS = {name: re.compile(rf"{name}(?: {name})*") for name in (_WHOLE, _NUMBER)}
#: Lists in LightGBM's text with a number for each node that is no leaf; and for each leaf.
_OF_NODES = {
    **dict.fromkeys(("split_feature", "decision_type", "internal_count"), _WHOLE),
    **dict.fromkeys(("left_child", "right_child"), _WHOLE),
    **dict.fromkeys(("split_gain", "threshold", "internal_value", "internal_weight"), _NUMBER),
}
_OF_LEAVES = {"leaf_value": _NUMBER, "leaf_weight": _NUMBER, "leaf_count": _WHOLE}
#: Where trees end in LightGBM's text. What follows is not checked.
END_OF_TREES = "\nend of trees\n"
#: LightGBM reads so many lines of a tree and leaves out the others.
_MOST_LINES = 22
#: Binary logarithm of the most levels of a tree. Both libraries go down some trees by recursion,
#: which ends the process from 10,000 levels or so on. Columns that are 1 in few rows make trees of
#: hundreds.
_LEVELS = 12


def check_lightgbm(text: str) -> None:
    """Raise an error unless a model's text is one of ranking trees that LightGBM writes.

    Raises:
        InputError: it says other things.
        KeyError, ValueError: it does not say what it must.
    """
    head, _, body = text.partition("\n\nTree=")
    body, end, _ = body.partition(f"\n\n{END_OF_TREES}")
    trees = [tree.split("\n") for tree in body.split("\n\n\nTree=")]
    lines = [*head.split("\n")[1:], *(line for tree in trees for line in tree[1:])]
    # The characters that LightGBM takes for the end of a line, or of the text, as Python does not.
    if not end or re.search("[\r\0]", text) or not all(map(_LINE.fullmatch, lines)):
        raise InputError("holds lines that LightGBM does not write; it is damaged")
    found = _values(head.split("\n")[1:])
    sizes = " ".join(str(len("\n".join(["Tree=", *tree, "", ""]).encode())) for tree in trees)
    for key, wanted in (("num_class", "1"), ("num_tree_per_iteration", "1"), ("tree_sizes", sizes)):
        _check_value(key, found[key], (wanted,))
    _check_value("objective", found["objective"], _LIGHTGBM)
    for number, tree in enumerate(trees):
        _check_lightgbm_tree(f"Tree={number}", tree[1:], _whole(found["max_feature_idx"]) + 1)


def _check_lightgbm_tree(where: str, lines: Sequence[str], n_columns: int) -> None:
    found = _values(lines)
    _check_value(f"{where}: lines", len(lines), range(_MOST_LINES + 1))
    for key in ("num_cat", "is_linear"):  # categories, and linear models in leaves
        _check_value(f"{where}: {key}", found[key], ("0",))
    n_nodes = _whole(found["num_leaves"]) - 1
    lists = {**dict.fromkeys(_OF_LEAVES, n_nodes + 1), **dict.fromkeys(_OF_NODES, n_nodes)}
    if n_nodes == 0:  # LightGBM reads no more of a tree that is a leaf
        lists = {"leaf_value": 1}
    numbers = {}
    for key, length in lists.items():
        matches = _LISTS[(_OF_NODES | _OF_LEAVES)[key]].fullmatch(found[key])
        numbers[key] = np.array(found[key].split(" ") if matches else [], np.float64)
        # Where a missing value alone goes the other way, the threshold is infinite.
        as_written = key == "threshold" or np.isfinite(numbers[key]).all()
        if len(numbers[key]) != length or not as_written:
            raise InputError(f"{where}: {key} is no list of {length} numbers; it is damaged")
    if n_nodes == 0:
        return
    _check_within(f"{where}: split_feature", numbers["split_feature"], n_columns)
    if not np.isin(numbers["decision_type"], (0, 2, 4, 6, 8, 10)).all():  # odd: by categories
        raise InputError(f"{where}: decision_type is of no split by a threshold; it is damaged")
    nodes = np.concatenate([numbers["left_child"], numbers["right_child"]])
    above = np.tile(np.arange(n_nodes), 2)
    _check_tree(where, nodes[nodes >= 0], above[nodes >= 0], n_nodes)
    if not np.array_equal(np.sort(-1 - nodes[nodes < 0]), np.arange(n_nodes + 1)):
        raise InputError(f"{where}: its leaves are not each below one node; it is damaged")


def check_xgboost(text: bytes) -> None:
    """Raise an error unless a model's JSON is one of ranking trees that XGBoost writes.

    Raises:
        InputError: it says other things.
        KeyError, TypeError, ValueError: it is no JSON, or does not say what it must.
    """
    if not text.startswith(b'{"'):
        raise InputError("does not begin as JSON of XGBoost's does; it is damaged")
    learner = json.loads(text, object_pairs_hook=_object)["learner"]
    param, booster = learner["learner_model_param"], learner["gradient_booster"]
    _check_value("the booster", booster["name"], ("gbtree",))
    _check_value("the objective", learner["objective"]["name"], _XGBOOST)
    float(param["base_score"].strip("[]"))
    model = booster["model"]
    of_model, n_trees = model["gbtree_model_param"], len(model["trees"])
    for key, value, wanted in (
        ("num_class", param["num_class"], "0"),
        ("num_target", param["num_target"], "1"),
        ("feature_names", learner["feature_names"], []),
        ("feature_types", learner["feature_types"], []),
        ("cats", [value for value in model.get("cats", {}).values() if value], []),
        ("num_parallel_tree", of_model["num_parallel_tree"], "1"),
        ("num_trees", of_model["num_trees"], str(n_trees)),
        ("tree_info", model["tree_info"], [0] * n_trees),
        ("iteration_indptr", model["iteration_indptr"], list(range(n_trees + 1))),
    ):
        _check_value(key, value, (wanted,))
    for number, tree in enumerate(model["trees"]):
        _check_xgboost_tree(f"tree {number}", tree, _whole(param["num_feature"]))


def _check_xgboost_tree(where: str, tree: dict[str, Any], n_columns: int) -> None:
    left, right, parents, feature, kind = (
        np.array(tree[key])
        for key in ("left_children", "right_children", "parents", "split_indices", "split_type")
    )
    of_tree, n_nodes = tree["tree_param"], len(left)
    same = {array.shape for array in (left, right, parents, feature, kind)} == {(n_nodes,)}
    if not same or any(array.dtype.kind != "i" for array in (left, right, parents, feature, kind)):
        raise InputError(f"{where}: its lists are not of whole numbers alike; it is damaged")
    for key, value, wanted in (
        ("num_nodes", of_tree["num_nodes"], (str(n_nodes),)),
        ("num_deleted", of_tree["num_deleted"], ("0",)),
        ("size_leaf_vector", of_tree["size_leaf_vector"], ("0", "1")),
        ("categories", tree["categories"], ([],)),
        ("categories_nodes", tree["categories_nodes"], ([],)),
        ("split_type", bool(kind.any()), (False,)),
    ):
        _check_value(f"{where}: {key}", value, wanted)
    _check_within(f"{where}: split_indices", feature, n_columns)
    inner = np.flatnonzero((left != -1) | (right != -1))
    nodes, above = np.concatenate([left[inner], right[inner]]), np.tile(inner, 2)
    _check_tree(where, nodes, above, n_nodes)
    if parents[0] != 2**31 - 1 or not np.array_equal(parents[nodes], above):
        raise InputError(f"{where}: parents are not those of its nodes; it is damaged")


def _check_tree(where: str, nodes: NDArray[Any], above: NDArray[np.int64], n_nodes: int) -> None:
    """Raise InputError unless every node but the first is below one other, which comes before, and
    not too many are below each other.

    Args:
        nodes: the nodes below others. above: the node above each.
    """
    if not np.array_equal(np.sort(nodes), np.arange(1, n_nodes)) or (nodes <= above).any():
        raise InputError(f"{where}: its nodes are not each below one before; it is damaged")
    ancestor = np.zeros(n_nodes, np.int64)
    ancestor[nodes.astype(np.int64)] = above
    for _ in range(_LEVELS):
        ancestor = ancestor[ancestor]
    if ancestor.any():
        raise InputError(f"{where}: has more than {2**_LEVELS:,} levels; it is damaged")


def _check_within(name: str, values: NDArray[Any], n_columns: int) -> None:
    if values.min() < 0 or values.max() >= n_columns:
        raise InputError(
            f"{name} has {values.min():.0f} to {values.max():.0f}, but columns are 0 to "
            f"{n_columns - 1}; it is damaged"
        )


def _check_value(name: str, found: Any, wanted: Sequence[Any]) -> None:
    if found not in wanted:
        raise InputError(f"{name} is {str(found)[:60]!r}, which no ranker of ours has")


def _values(lines: Sequence[str]) -> dict[str, str]:
    """Values by key; of a key that comes twice LightGBM takes the last one, too."""
    return dict(line.split("=") for line in lines)


def _whole(text: str) -> int:
    """The number that all who read it take a text for: Python reads 1_0 as 10, others as 1."""
    if not re.fullmatch("[0-9]{1,9}", text):
        raise InputError(f"{text[:60]!r} is no whole number; it is damaged")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise InputError("has a key twice in an object; it is damaged")
    return found
