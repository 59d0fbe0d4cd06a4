"""Export of trained rankers as ONNX models, which onnxruntime, Vespa and other servers evaluate.

The package ``onnx`` is optional (extra ``onnx``) and imported only here.
"""

from __future__ import annotations

import json
from typing import Any

from letor.errors import InputError
from letor.rankers.base import Ranker
from letor.rankers.export import (
    Node,
    absent_goes_left,
    floor32,
    of_few_levels,
    of_plain_trees,
    trees_of,
)

#: Versions of ONNX, its operators and its tree operators that onnxruntime has read since 2021.
_IR_VERSION, _OPERATORS, _TREE_OPERATORS = 8, 15, 3


def to_onnx(ranker: Ranker, *, name: str = "ltr-features") -> bytes:
    """Export a ranker as an ONNX model: input "features", float32 [rows, columns]; output "scores",
    float32 [rows, 1].

    The column names, in the order of the input, are in the model's metadata under "columns", as a
    JSON list. Absent features are given as NaN. Branches are those of the ranker, for absent
    features too; scores are sums in single precision, so they agree to about seven digits.

    Args:
        ranker: see :func:`letor.rankers.export.export`.
        name: name of the graph.

    Raises:
        InputError: the ranker is of another kind, or has a normaliser or trees of very many levels;
            or ``onnx`` is not installed.
    """
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise InputError("ONNX models need the package onnx: install ltr-features[onnx]") from None
    trained = of_plain_trees(ranker)
    with of_few_levels():
        attributes = _attributes(trees_of(trained))
    scores = helper.make_node(
        "TreeEnsembleRegressor",
        ["features"],
        ["scores"],
        domain="ai.onnx.ml",
        **attributes,
    )
    columns = list(trained.feature_names_)
    graph = helper.make_graph(
        [scores],
        name,
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["rows", len(columns)])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", 1])],
    )
    operators = [
        helper.make_opsetid("", _OPERATORS),
        helper.make_opsetid("ai.onnx.ml", _TREE_OPERATORS),
    ]
    model = helper.make_model(graph, opset_imports=operators, producer_name="ltr-features")
    model.ir_version = _IR_VERSION
    helper.set_model_props(model, {"columns": json.dumps(columns)})
    checker.check_model(model)
    return bytes(model.SerializeToString())


def _attributes(trees: list[Node]) -> dict[str, Any]:
    """The trees as parallel lists for the operator TreeEnsembleRegressor, with roots first."""
    nodes: list[dict[str, Any]] = []
    leaves: list[dict[str, Any]] = []

    def add(tree: int, node: Node) -> int:
        """Add a node and those below it; returns the node's number."""
        number = len(nodes)
        added = {
            "treeids": tree, "nodeids": number, "featureids": 0, "values": 0.0, "modes": "LEAF",
            "truenodeids": 0, "falsenodeids": 0, "missing_value_tracks_true": 0,
        }  # fmt: skip
        nodes.append(added)
        if "leaf_value" in node:
            leaf = {"treeids": tree, "nodeids": number, "ids": 0, "weights": node["leaf_value"]}
            leaves.append(leaf)
            return number
        added |= {
            "featureids": node["split_feature"],
            "values": float(floor32(node["threshold"])),
            "modes": "BRANCH_LEQ",
            "truenodeids": add(tree, node["left_child"]),
            "falsenodeids": add(tree, node["right_child"]),
            "missing_value_tracks_true": int(absent_goes_left(node)),
        }
        return number

    for tree, root in enumerate(trees):
        add(tree, root)
    return {
        **{f"nodes_{name}": [node[name] for node in nodes] for name in nodes[0]},
        **{f"target_{name}": [leaf[name] for leaf in leaves] for name in leaves[0]},
        "n_targets": 1,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
    }
