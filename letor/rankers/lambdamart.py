"""LambdaMART: boosted regression trees with LambdaRank gradients, by LightGBM."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import lightgbm
import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError, reading
from letor.mapped import take_rows
from letor.measures import check_gains
from letor.rankers.base import Choices, Ranges
from letor.rankers.rows import check_whole_labels, measured, shown_positions
from letor.rankers.stored_trees import END_OF_TREES, check_lightgbm
from letor.rankers.trees import TreeRanker
from ltr_base.parallel import thread_count

# Maximum number of rows per query in LightGBM's ranking objectives.
MAX_ROWS_PER_QUERY = 10_000
MODEL_FILE = "model.txt"
#: Number of rows from which on threads score them faster than one.
_WORTH_THREADS = 10_000
#: The process that LightGBM's threads belong to.
_LOADED_BY = os.getpid()


@dataclass(eq=False, repr=False)
class LambdaMART(TreeRanker):
    """LightGBM's ``lambdarank`` with reproducible settings: the same rows, parameters and seed give
    the same model for any number of threads.

    With validation rows, training stops when ``measure`` has not improved for
    ``early_stopping_rounds`` trees, and the best number of trees is kept. The measure is our own,
    with a stated rule for queries without relevant documents (LightGBM's counts them as 1).

    Rows of each query are shuffled (by the seed) before training: all scores are equal before the
    first tree, so the order of the rows, which in many files gives the labels away, would enter
    the first gradients and the measure.

    Args:
        objective: ``lambdarank``, or ``rank_xendcg`` (cross entropy over each query's rows with
            sampled targets), which has no gain and no truncation level.
        n_estimators: maximum number of trees.
        learning_rate: shrinkage of each tree.
        num_leaves: maximum number of leaves per tree.
        min_data_in_leaf: minimum number of rows per leaf.
        feature_fraction: share of columns tried for each tree.
        bagging_fraction: share of rows drawn (anew for each tree) if below 1.
        lambda_l2: ridge penalty on leaf values.
        truncation_level: a pair counts if at least one of its rows is ranked above this level.
        gain: gain of label l: ``exponential`` 2^l - 1 (labels up to 30), ``linear`` l, or the gains
            of labels 0, 1, 2, ...
        position_bias: whether labels are clicks on rows shown at the ``positions`` of the training
            rows: what a position adds to the score is then learned with the trees, and left out of
            ``predict`` (``lambdarank`` only).
        position_bias_regularization: ridge penalty on these additions.
        measure: measure for early stopping, a name that ``letor.measures.parse_measure`` knows.
        early_stopping_rounds: trees without improvement after which training stops.
        normalise: ``raw+zscore`` shows each column as it is and as z-score within its query; or
            ``none``, ``minmax``, ``zscore`` or ``standard``, see :mod:`letor.normalise`.
        seed: seed of the shuffling and of LightGBM's sampling.
        num_threads: number of threads, which changes nothing in the result and is not saved; None
            for one per core. A process forked from one that has loaded LightGBM uses one.

    Attributes:
        best_iteration_: number of trees kept.
        validation_curve_: value of ``measure`` on the validation rows after each tree tried; empty
            without validation rows.

    Source: Burges, "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82; for rank_xendcg
    Bruch, "An Alternative Cross Entropy Loss for Learning-to-Rank", WWW 2021.
    """

    name: ClassVar[str] = "lambdamart"
    stopping: ClassVar[tuple[str, ...]] = ("measure", "early_stopping_rounds")
    effective_with: ClassVar[Mapping[str, tuple[str, str | bool]]] = {
        "gain": ("objective", "lambdarank"),
        "truncation_level": ("objective", "lambdarank"),
        "position_bias_regularization": ("position_bias", True),
    }
    ranges: ClassVar[Ranges] = {
        "n_estimators": (1, 1_000_000),
        "learning_rate": (1e-9, 1e9),
        "num_leaves": (2, 131_072),
        "min_data_in_leaf": (0, 2**31 - 1),
        "feature_fraction": (1e-9, 1.0),
        "bagging_fraction": (1e-9, 1.0),
        "lambda_l2": (0.0, 1e300),
        "truncation_level": (1, 2**31 - 1),
        "position_bias_regularization": (0.0, 1e300),
        "early_stopping_rounds": (1, 2**31 - 1),
        "seed": (0, 2**31 - 1),
        "num_threads": (1, 1024),
    }
    choices: ClassVar[Choices] = {
        "objective": ("lambdarank", "rank_xendcg"),
        "position_bias": (False, True),
    }

    objective: Literal["lambdarank", "rank_xendcg"] = "lambdarank"
    n_estimators: int = 1000
    learning_rate: float = 0.05
    num_leaves: int = 10
    min_data_in_leaf: int = 20
    feature_fraction: float = 1.0
    bagging_fraction: float = 1.0
    lambda_l2: float = 0.0
    truncation_level: int = 30
    gain: Literal["exponential", "linear"] | Sequence[float] = "exponential"
    measure: str = "ndcg@10"
    early_stopping_rounds: int = 100
    normalise: str = "raw+zscore"
    seed: int = 0
    num_threads: int | None = None
    position_bias: bool = False
    position_bias_regularization: float = 0.0

    def dump(self) -> dict[str, Any]:
        self._check_fitted()
        return self._booster.dump_model()

    def contributions(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        self._check_fitted()
        parts = np.asarray(self._booster.predict(X, pred_contrib=True, num_threads=1))
        return parts[:, :-1].astype(np.float64)  # the last one is the constant

    def check(self) -> None:
        super().check()
        if self.position_bias and self.objective != "lambdarank":
            raise InputError("position_bias=True: only objective='lambdarank' learns it")

    def _fit(self, train: RankingData, valid: RankingData | None) -> None:
        label_gain = self._label_gain([train] if valid is None else [train, valid])
        parameters = self._lightgbm_parameters(label_gain)
        rng = np.random.default_rng(self.seed)
        positions = shown_positions(train, "position_bias") if self.position_bias else None
        dataset, _ = _lightgbm_dataset(train, rng, parameters, positions=positions)
        curve: list[float] = []

        def finished(tree: lightgbm.callback.CallbackEnv) -> None:
            self._finished(tree.iteration + 1, curve[-1] if curve else None)

        callbacks: list[Callable[..., Any]] = [finished]
        options: dict[str, Any] = {}
        if valid is not None:
            held_out, rows = _lightgbm_dataset(valid, rng, parameters, reference=dataset)
            evaluator = measured(self.measure, valid.select_rows(rows))

            def validation_measure(scores: NDArray[Any], _: Any) -> tuple[str, float, bool]:
                curve.append(evaluator.mean(scores))
                return self.measure, curve[-1], True

            options = {
                "valid_sets": [held_out],
                "valid_names": ["validation"],
                "feval": validation_measure,
            }
            callbacks += [lightgbm.early_stopping(self.early_stopping_rounds, verbose=False)]
        trained = lightgbm.train(
            parameters, dataset, num_boost_round=self.n_estimators, callbacks=callbacks, **options
        )
        self.best_iteration_ = trained.best_iteration if valid is not None else self.n_estimators
        self.validation_curve_ = curve
        # Even before saving, scores come from the text model: reloading cannot change a bit.
        text = trained.model_to_string(num_iteration=self.best_iteration_)
        self._set_model(re.sub(r"\[num_threads: \d+\]\n", "", text))

    def _predict(self, data: RankingData) -> NDArray[Any]:
        threads = self._threads if len(data) >= _WORTH_THREADS else 1
        return np.asarray(self._booster.predict(data.X, num_threads=threads))

    def _importance(self) -> tuple[Any, Any]:
        gain, splits = map(self._booster.feature_importance, ("gain", "split"))
        return gain.astype(np.float64), splits.astype(np.int64)

    def _save(self, folder: Path) -> dict[str, Any]:
        (folder / MODEL_FILE).write_text(self._model_text, encoding="utf-8", newline="\n")
        return {
            "best_iteration": self.best_iteration_,
            "validation_curve": self.validation_curve_,
            "lightgbm_version": lightgbm.__version__,
            "model_sha256": _digest(self._model_text),
        }

    def _load(self, folder: Path, fitted: Mapping[str, Any]) -> None:
        path = folder / MODEL_FILE
        with reading(path, "restore the file, or train the ranker again"):
            text = path.read_text(encoding="utf-8")
            if _digest(text) != fitted["model_sha256"]:
                raise InputError(f"{path} is damaged: it is not the text that was saved")
            check_lightgbm(text)
        try:
            self._set_model(text)
            self._check_width(path, self._booster.num_feature())
        except lightgbm.basic.LightGBMError as error:
            raise InputError(f"{path} is not a LightGBM model: {error}") from None
        self.best_iteration_ = fitted["best_iteration"]
        self.validation_curve_ = fitted["validation_curve"]

    def _set_model(self, text: str) -> None:
        self._model_text = text
        if _is_forked():  # reading a model has no parameter for its threads and takes the last ones
            parameters = {"num_threads": 1, "verbosity": -1}
            lightgbm.Dataset(np.zeros((1, 1)), params=parameters).construct()
        trees, end, _ = text.partition(END_OF_TREES)  # parameters follow, which change no score
        self._booster = lightgbm.Booster(model_str=trees + end)

    @property
    def _threads(self) -> int:
        return 1 if _is_forked() else thread_count(self.num_threads)

    def _lightgbm_parameters(self, label_gain: list[float]) -> dict[str, Any]:
        return {
            "objective": self.objective,
            "metric": "none",
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_data_in_leaf,
            "feature_fraction": self.feature_fraction,
            "bagging_fraction": self.bagging_fraction,
            "bagging_freq": 1 if self.bagging_fraction < 1 else 0,
            "lambda_l2": self.lambda_l2,
            "lambdarank_truncation_level": self.truncation_level,
            "lambdarank_position_bias_regularization": self.position_bias_regularization,
            "label_gain": label_gain,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": self._threads,
            "verbosity": -1,
        }

    def check_rows(self, data: RankingData) -> None:
        self._label_gain([data])
        super().check_rows(data)

    def _label_gain(self, parts: Sequence[RankingData]) -> list[float]:
        """Gains of the labels 0 .. largest."""
        labels = np.concatenate([data.y for data in parts])
        largest = int(labels.max())
        check_whole_labels(parts, "LambdaMART")
        for data in parts:
            check_rows_per_query(data)
        if not isinstance(self.gain, str):
            check_gains(self.gain)
            gains = [float(g) for g in self.gain]
            if largest >= len(gains):
                raise InputError(f"gain has {len(gains)} entries, but labels go up to {largest}")
            return gains
        if self.gain == "linear":
            return [float(label) for label in range(largest + 1)]
        if self.gain != "exponential":
            raise InputError(f"gain={self.gain!r}: choose exponential, linear or a list of gains")
        if largest > 30:
            other = "use gain='linear', or " if self.objective == "lambdarank" else ""
            raise InputError(
                f"label {largest} is too large for the exponential gain 2^label - 1 (at most 30): "
                f"{other}bin the labels"
            )
        return [2.0**label - 1.0 for label in range(largest + 1)]


def _is_forked() -> bool:
    """Whether another process loaded LightGBM. Its threads are not here, and LightGBM, if it has
    used any there, would wait for them forever."""
    return os.getpid() != _LOADED_BY


def _lightgbm_dataset(
    data: RankingData,
    rng: np.random.Generator,
    parameters: Mapping[str, Any],
    reference: lightgbm.Dataset | None = None,
    positions: NDArray[np.int64] | None = None,
) -> tuple[lightgbm.Dataset, NDArray[np.int64]]:
    """The rows grouped by query and shuffled within queries, and their numbers."""
    rows = np.lexsort((rng.random(len(data)), data.query_index))
    dataset = lightgbm.Dataset(
        take_rows(data.X, rows),
        label=data.y[rows],
        group=data.group_sizes[data.group_sizes > 0],
        feature_name=[f"f{j}" for j in range(data.X.shape[1])],
        params=dict(parameters),
        reference=reference,
        position=None if positions is None else positions[rows],
    )
    return dataset, rows


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check_rows_per_query(data: RankingData) -> None:
    """Raise InputError if LightGBM does not take a query because of the number of its rows."""
    longest = int(data.group_sizes.argmax())
    if data.group_sizes[longest] > MAX_ROWS_PER_QUERY:
        raise InputError(
            f"query {data.query_ids[longest]} has {data.group_sizes[longest]:,} rows; LightGBM "
            f"takes at most {MAX_ROWS_PER_QUERY:,} per query: cut the candidates, or take another "
            "ranker (xgboost, say)"
        )
