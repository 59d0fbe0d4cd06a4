"""LambdaMART trained by XGBoost, with its ranking objectives."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

import numpy as np
import xgboost
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from xgboost import collective

from letor.dataset import RankingData
from letor.errors import InputError, reading
from letor.rankers.array_ranker import BestOf
from letor.rankers.base import Choices, Ranges
from letor.rankers.rows import check_whole_labels, measured, shown_positions
from letor.rankers.stored_trees import check_xgboost
from letor.rankers.trees import TreeRanker
from ltr_base.machine import temporary_folder_named

MODEL_FILE = "model.json"
_BLOCK_BYTES = 2**26  # size of a block of memory-mapped values
_ONE_THREAD = {"nthread": 1, "verbosity": 0}


@dataclass(eq=False, repr=False)
class XGBoostLambdaMART(TreeRanker):
    """XGBoost's ranking objectives, on one thread so that the same rows give the same model.

    With validation rows, training stops when ``measure`` (our own, not XGBoost's) has not improved
    for ``early_stopping_rounds`` trees, and the best number of trees is kept. Rows are shuffled
    within queries, as the order of a file may give the labels away.

    Memory-mapped rows (``letor.parquet.read_parquet(memory=)``) are read block by block into
    XGBoost's external memory. Its bins are then found from summaries of the blocks: the same rows
    give the same model, but not quite the model of rows in memory.

    Args:
        objective: ``rank:ndcg`` (gain 2^label - 1; if a label is above 30, the label itself),
            ``rank:map`` (labels 0 and 1; larger ones count 1) or ``rank:pairwise``.
        n_estimators: maximum number of trees.
        learning_rate: shrinkage of each tree.
        max_depth: maximum depth of a tree.
        min_child_weight: minimum sum of second derivatives in a leaf.
        subsample: share of rows drawn for each tree.
        colsample_bytree: share of columns tried for each tree.
        reg_lambda: ridge penalty on leaf values.
        lambdarank_unbiased: whether labels are clicks on rows shown at the ``positions`` of the
            training rows: the effect of positions on clicks and skips is then learned with the
            trees (not with ``rank:map``), and rows are ordered by position.
        lambdarank_bias_norm: power p of the regularisation of these effects, above 0.
        measure: measure for early stopping, a name that ``letor.measures.parse_measure`` knows.
        early_stopping_rounds: trees without improvement after which training stops.
        normalise: ``raw+zscore`` shows each column as it is and as z-score within its query; or
            ``none``, ``minmax``, ``zscore`` or ``standard``, see :mod:`letor.normalise`.
        seed: seed of the shuffling and of XGBoost's sampling.

    Attributes:
        best_iteration_: number of trees kept.
        validation_curve_: value of ``measure`` on the validation rows after each tree tried.
    """

    name: ClassVar[str] = "xgboost"
    stopping: ClassVar[tuple[str, ...]] = ("measure", "early_stopping_rounds")
    effective_with: ClassVar[Mapping[str, tuple[str, str | bool]]] = {
        "lambdarank_bias_norm": ("lambdarank_unbiased", True)
    }
    same_in_files: ClassVar[bool] = False
    ranges: ClassVar[Ranges] = {
        "n_estimators": (1, 1_000_000),
        "learning_rate": (1e-9, 1e3),
        "max_depth": (1, 100),
        "min_child_weight": (0.0, 1e300),
        "subsample": (1e-6, 1.0),
        "colsample_bytree": (1e-6, 1.0),
        "reg_lambda": (0.0, 1e300),
        "lambdarank_bias_norm": (1e-9, 1e9),
        "early_stopping_rounds": (1, 2**31 - 1),
        "seed": (0, 2**31 - 1),
    }
    choices: ClassVar[Choices] = {
        "objective": ("rank:ndcg", "rank:map", "rank:pairwise"),
        "lambdarank_unbiased": (False, True),
    }

    objective: Literal["rank:ndcg", "rank:map", "rank:pairwise"] = "rank:ndcg"
    n_estimators: int = 1000
    learning_rate: float = 0.05
    max_depth: int = 4
    min_child_weight: float = 0.1
    subsample: float = 1.0
    colsample_bytree: float = 1.0
    reg_lambda: float = 1.0
    measure: str = "ndcg@10"
    early_stopping_rounds: int = 100
    normalise: str = "raw+zscore"
    seed: int = 0
    lambdarank_unbiased: bool = False
    lambdarank_bias_norm: float = 1.0

    def dump(self) -> dict[str, Any]:
        self._check_fitted()
        learner = json.loads(self._model_json)["learner"]
        base = float(learner["learner_model_param"]["base_score"].strip("[]"))
        trees = learner["gradient_booster"]["model"]["trees"]
        nodes = [_node(tree, 0, 0.0 if i else base) for i, tree in enumerate(trees)]
        return {
            "name": "tree", "version": "v4", "objective": self.objective, "pandas_categorical": [],
            "tree_info": [{"tree_index": i, "tree_structure": n} for i, n in enumerate(nodes)],
        }  # fmt: skip

    def check(self) -> None:
        super().check()
        if self.lambdarank_unbiased and self.objective == "rank:map":
            raise InputError("lambdarank_unbiased=True: rank:map does not learn it")

    def check_rows(self, data: RankingData) -> None:
        super().check_rows(data)
        self._xgboost_parameters(data)

    def _fit(self, train: RankingData, valid: RankingData | None) -> None:
        with TemporaryDirectory() as folder:  # for memory-mapped rows
            self._fit_within(folder, train, valid)

    def _fit_within(self, folder: str, train: RankingData, valid: RankingData | None) -> None:
        parameters = self._xgboost_parameters(train)
        rng = np.random.default_rng(self.seed)
        order = None
        if self.lambdarank_unbiased:
            # XGBoost takes the place of a row within its query as the position shown.
            order = shown_positions(train, "lambdarank_unbiased").astype(np.float64)
        matrix, _ = self._matrix(train, rng, os.path.join(folder, "train"), order)
        held_out, best = None, BestOf(None, 1, self._finished)
        if valid is not None:
            held_out, rows = self._matrix(valid, rng, os.path.join(folder, "vali"), like=matrix)
            evaluator = measured(self.measure, valid.select_rows(rows))
            best = BestOf(evaluator, self.early_stopping_rounds, self._finished)
        booster = xgboost.Booster(parameters, cache=[matrix])
        for tree in range(self.n_estimators):
            booster.update(matrix, tree)
            scores = None if held_out is None else booster.predict(held_out, output_margin=True)
            best.improves(scores)
            if best.should_stop:
                break
        self.best_iteration_ = self.n_estimators if valid is None else best.best + 1
        self.validation_curve_ = best.curve
        # Even before saving, scores come from the JSON model: reloading cannot change a bit.
        self._set_model(bytes(booster[: self.best_iteration_].save_raw("json")))

    def contributions(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        self._check_fitted()
        parts = self._booster.predict(xgboost.DMatrix(_finite(X), nthread=1), pred_contribs=True)
        return np.asarray(parts[:, :-1], dtype=np.float64)  # the last one is the constant

    def _predict(self, data: RankingData) -> NDArray[Any]:
        return np.asarray(self._booster.inplace_predict(_finite(data.X), predict_type="margin"))

    def _importance(self) -> tuple[Any, Any]:
        names = [f"f{j}" for j in range(self._n_inputs)]
        gain = self._booster.get_score(importance_type="total_gain")
        splits = self._booster.get_score(importance_type="weight")
        return (
            [float(gain.get(name, 0.0)) for name in names],
            [int(splits.get(name, 0)) for name in names],
        )

    def _save(self, folder: Path) -> dict[str, Any]:
        (folder / MODEL_FILE).write_bytes(self._model_json)
        return {
            "best_iteration": self.best_iteration_,
            "validation_curve": self.validation_curve_,
            "xgboost_version": xgboost.__version__,
            "model_sha256": hashlib.sha256(self._model_json).hexdigest(),
        }

    def _load(self, folder: Path, fitted: Mapping[str, Any]) -> None:
        path = folder / MODEL_FILE
        with reading(path, "restore the file, or train the ranker again"):
            text = path.read_bytes()
            if hashlib.sha256(text).hexdigest() != fitted["model_sha256"]:
                raise InputError(f"{path} is damaged: it is not the text that was saved")
            check_xgboost(text)
        try:
            self._set_model(text)
            self._check_width(path, self._booster.num_features())
        except xgboost.core.XGBoostError as error:
            said = str(error).partition("\n")[0]  # its calls follow
            raise InputError(f"{path} is not an XGBoost model: {said}") from None
        self.best_iteration_ = fitted["best_iteration"]
        self.validation_curve_ = fitted["validation_curve"]

    def _set_model(self, text: bytes) -> None:
        self._model_json = text
        # XGBoost loads a model on all cores, whatever nthread; in a process forked from one that
        # has loaded any it would wait forever for threads that are not there.
        with threadpool_limits(1, user_api="openmp"):
            self._booster = xgboost.Booster(_ONE_THREAD, model_file=bytearray(text))

    def _xgboost_parameters(self, train: RankingData) -> dict[str, Any]:
        exponential = largest_label(train) <= 30
        if self.objective == "rank:map" or (self.objective == "rank:ndcg" and exponential):
            check_whole_labels([train], f"xgboost with objective={self.objective!r}")
        return {
            "objective": self.objective,
            "eta": self.learning_rate,
            "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight,
            "subsample": self.subsample,
            "colsample_bytree": self.colsample_bytree,
            "lambda": self.reg_lambda,
            "tree_method": "hist",
            "lambdarank_unbiased": self.lambdarank_unbiased,
            "lambdarank_bias_norm": self.lambdarank_bias_norm,
            "ndcg_exp_gain": exponential,
            "disable_default_eval_metric": True,
            "seed": self.seed,
            **_ONE_THREAD,
        }

    def _matrix(
        self,
        data: RankingData,
        rng: np.random.Generator,
        cache: str,
        order: NDArray[Any] | None = None,
        *,
        like: xgboost.DMatrix | None = None,
    ) -> tuple[xgboost.DMatrix, NDArray[np.int64]]:
        """The rows grouped by query, and sorted by ``order`` or shuffled within; and their numbers.

        Args:
            cache, like: for memory-mapped rows, the prefix of XGBoost's own files, and the training
                rows, whose bins are to be used.
        """
        rows = np.lexsort((rng.random(len(data)) if order is None else order, data.query_index))
        y = np.minimum(data.y[rows], 1.0) if self.objective == "rank:map" else data.y[rows]
        qid = data.query_index[rows]
        if isinstance(data.X, np.memmap):
            _check_room(cache, data.X.size)
            blocks = _Blocks(data.X, rows, y, qid, cache)
            return xgboost.ExtMemQuantileDMatrix(blocks, nthread=1, ref=like), rows
        return xgboost.DMatrix(_finite(data.X[rows]), label=y, qid=qid, nthread=1), rows


def _check_room(cache: str, size: int) -> None:
    """XGBoost keeps a byte or more of each value in its files; when a disk is full, it ends the
    process."""
    with temporary_folder_named():
        if shutil.disk_usage(os.path.dirname(cache)).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def largest_label(train: RankingData) -> float:
    """The largest label of all rows, even if several processes train together on parts of them."""
    largest = np.array([train.y.max()], np.float64)
    return float(collective.allreduce(largest, collective.Op.MAX)[0])


class _Blocks(xgboost.DataIter):
    """Iterates over memory-mapped rows in blocks of whole queries.

    Args:
        X: the values. rows: numbers of the rows in the order wanted, query by query.
        y, qid: labels and queries in that order. cache: prefix of the files that XGBoost writes.
    """

    def __init__(
        self,
        X: NDArray[np.float32],
        rows: NDArray[np.int64],
        y: NDArray[Any],
        qid: NDArray[np.int64],
        cache: str,
    ) -> None:
        self.X, self.rows, self.y, self.qid = X, rows, y, qid
        ends = np.append(np.flatnonzero(np.diff(qid)) + 1, len(qid))
        wanted = np.arange(0, len(qid), max(1, _BLOCK_BYTES // (4 * X.shape[1])))
        firsts = ends[np.searchsorted(ends, wanted[1:])]
        self.edges = np.unique(np.concatenate([[0], firsts, [len(qid)]]))
        super().__init__(cache_prefix=cache)

    def reset(self) -> None:
        self.n_read = 0

    def next(self, input_data: Callable[..., Any]) -> bool:
        if self.n_read + 1 == len(self.edges):
            return False
        block = slice(self.edges[self.n_read], self.edges[self.n_read + 1])
        values = _finite(self.X[self.rows[block]])
        input_data(data=values, label=self.y[block], qid=self.qid[block])
        self.n_read += 1
        return True


def _node(tree: Mapping[str, Any], at: int, base: float) -> dict[str, Any]:
    """A node of a tree of XGBoost's JSON model and those below it, in LightGBM's form; ``base`` is
    added to leaves. XGBoost goes left if x < t in single precision, that is x <= the number before
    t, and sends a missing value in a direction of its own at every node."""
    condition = tree["split_conditions"][at]
    if tree["left_children"][at] < 0:
        return {"leaf_value": condition + base}
    return {
        "split_feature": tree["split_indices"][at],
        "threshold": float(np.nextafter(np.float32(condition), np.float32(-np.inf))),
        "decision_type": "<=",
        "missing_type": "NaN",
        "default_left": bool(tree["default_left"][at]),
        "left_child": _node(tree, tree["left_children"][at], base),
        "right_child": _node(tree, tree["right_children"][at], base),
    }


def _finite(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Replace infinities, which XGBoost refuses, by the large numbers 1e30 and -1e30."""
    return np.where(np.isinf(X), np.copysign(np.float32(1e30), X), X)
