"""The base class of all rankers."""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from letor.column_settings import training_settings, warn_of_changed_settings
from letor.dataset import RankingData
from letor.digests import check_files, write_digests
from letor.errors import InputError, NotFittedError, RankerWarning, naming, reading
from letor.evaluation import Evaluator, check_measurable
from letor.files import atomic_path, check_replaced, write_json
from letor.measures import choosing_measure, parse_measure
from letor.normalise import Normaliser, get_normaliser, normaliser_from_state, query_blocks
from letor.rankers.description import (
    DESCRIPTION_FILE,
    FORMAT_VERSION,
    plain,
    read_description,
    strings,
)
from letor.rankers.rows import labelled_rows, rows_to_score, training_rows
from ltr_base.arrays import read_only
from ltr_base.names import counted, listed, nearest
from ltr_base.user_warning import warn_user

# Least and largest value by parameter; if the least value is an int, values must be whole numbers.
Ranges = Mapping[str, tuple[float, float]]
Choices = Mapping[str, Sequence[str | bool]]


class Ranker(BaseEstimator, ABC):
    """A model that scores rows of queries; larger scores rank higher.

    A scikit-learn estimator that works with clone, Pipeline, and GridSearchCV with a group
    splitter. Constructor arguments are stored unchanged and checked by ``fit``; all of them can be
    read and set by name (``get_params``, ``set_params``). Names of fitted attributes end in ``_``.
    Columns are matched by name: rows to score must have the same columns, in any order.
    The normaliser is fitted with the model, saved with it and applied by ``predict``.

    A subclass defines ``name``, its parameters (a dataclass with their defaults will do; among them
    ``normalise``), their ``ranges`` and ``choices``, ``_fit``, ``_predict``, ``_importance``,
    ``_save`` and ``_load``. Its ``_fit`` gets normalised rows with checked labels; rows of a query
    need not be adjacent (use ``order`` and ``offsets``). Its ``_predict`` gets whole queries, some
    at a time if they have many rows.

    Attributes:
        stopping: parameters that only say when to stop on rows for early stopping.
        same_in_files: whether memory-mapped values (:mod:`letor.mapped`) give the same model.
        feature_names_: column names in the order of training.
        normaliser_: the fitted normaliser.
        column_settings_: for columns of training rows that recorded it, what decided their values,
            see :func:`letor.column_settings.training_settings`.
    """

    name: ClassVar[str]
    stopping: ClassVar[tuple[str, ...]] = ()
    same_in_files: ClassVar[bool] = True
    ranges: ClassVar[Ranges] = {}
    choices: ClassVar[Choices] = {}
    normalise: str

    feature_names_: list[str]
    normaliser_: Normaliser
    column_settings_: dict[str, dict[str, Any]]
    _callback: Callable[[int, float | None], None] | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name, as they are now."""
        return {p: getattr(self, p) for p in self._parameters()}

    @classmethod
    def _parameters(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; takes effect at the next ``fit``.

        Raises:
            InputError: an argument is unknown.
        """
        kind, known = type(self).__name__, self.get_params()
        for parameter, value in params.items():
            if parameter not in known:
                near = nearest(parameter, known)
                raise InputError(f"{kind} has no parameter {parameter!r}; {near}")
            setattr(self, parameter, value)
        return self

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        callback: Callable[[int, float | None], None] | None = None,
    ) -> Self:
        """Learn from labelled rows: ``fit(train, valid)``, or ``fit(X, y, qid=qid)``.

        Args:
            X: ``RankingData`` with the training rows; or an array [n, p]; or a pandas, polars or
                Arrow frame, whose columns keep their names.
            y: ``RankingData`` with rows for early stopping, if the ranker supports it, or None; or
                the labels, [n].
            qid: with an array or a frame, the query of each row, [n].
            eval_set: ``(X, y)`` of rows for early stopping, or a list with that one pair.
            eval_qid: the query of each row of ``eval_set``, or a list with that one array.
            callback: called after each round of training (a tree, an epoch, ...) with its number,
                from 1, and the ``measure`` on the rows for early stopping, or None without them.

        Labels must be 0 or more; at least one query must have two different ones. Rows for early
        stopping must have the same columns, in any order.

        Warns:
            RankerWarning: the ranker learned nothing, see ``remarks``; a column equals the label;
                or columns of the rows for early stopping were made with other settings.

        Raises:
            InputError: labels, columns or parameters cannot be used, or a frame has columns named
                as labels and ids are (``label``, ``qid``, ``docno``, ...).
        """
        self.check()
        train, valid = training_rows(X, y, qid, eval_set, eval_qid)
        settings = training_settings(train)
        if valid is not None:
            warn_of_changed_settings(settings, valid, "validation rows")
        normaliser = get_normaliser(self.normalise).fit(train)
        self._callback = callback
        try:
            with self._naming():
                self._fit(
                    _kept_from_changes(normaliser.transform(train)),
                    None if valid is None else _kept_from_changes(normaliser.transform(valid)),
                )
        finally:
            del self._callback
        self.feature_names_, self.normaliser_ = list(train.column_names), normaliser
        self.column_settings_ = settings
        for remark in self.remarks:
            warn_user(f"{self.name}: {remark}", RankerWarning)
        return self

    @property
    def remarks(self) -> list[str]:
        """What the user should know about the fit, as sentences without their subject ("learned
        nothing ..."); empty if all is well.

        Raises:
            NotFittedError: the ranker is not fitted.
        """
        if self.feature_importance()["gain"].any():
            return []
        return [
            "learned nothing, it uses no column and scores all rows alike: train on more rows, or "
            "relax its parameters (such as min_data_in_leaf of lambdamart)"
        ]

    def predict(self, X: Any, *, qid: Any = None) -> NDArray[np.float32]:
        """float32 [n]: score of each row, in the order of the rows.

        Args:
            X: ``RankingData``; or an array, with the columns of the training rows in their order;
                or a frame, whose columns are matched by name.
            qid: with an array or a frame, the query of each row: required if the normaliser uses
                all rows of a query.

        Warns:
            RankerWarning: columns were made with other settings than those of the training rows.

        Raises:
            NotFittedError: the ranker is not fitted.
            InputError: a column is missing or was not in the training rows; or qid is missing; or
                the ranker does not give each row a number.
        """
        self._check_fitted()
        if qid is None and self.normaliser_.by_query and not isinstance(X, RankingData):
            raise InputError(
                f"normalise={self.normaliser_.name!r} looks at all rows of a query: give the query "
                "of each row, predict(X, qid=qid)"
            )
        data = rows_to_score(X, qid, self.feature_names_)
        warn_of_changed_settings(self.column_settings_, data, "rows to score")
        if len(data) == 0:
            return np.empty(0, dtype=np.float32)
        scores = np.empty(len(data), np.float32)
        for rows, block in query_blocks(data):
            scores[rows] = self._scores(block)
        return scores

    def _scores(self, data: RankingData) -> NDArray[np.float32]:
        """float32 [n]: the score of each row of some queries."""
        normalised = _kept_from_changes(self.normaliser_.transform(data))
        with self._naming(), np.errstate(over="ignore"):  # told below
            scores = np.asarray(self._predict(normalised), dtype=np.float32)
        if scores.shape != (len(data),) or np.isnan(scores).any():
            found = "NaN" if scores.shape == (len(data),) else f"an array {list(scores.shape)}"
            raise InputError(
                f"{type(self).__name__} scored {counted(len(data), 'row')} by {found}; its "
                "_predict must return a number for each row"
            )
        if (n := int(np.isinf(scores).sum())) > 0:  # they would tie
            raise InputError(
                f"{type(self).__name__} scored {counted(n, 'row')} beyond float32 (3.4e38): train "
                "it with a normalisation, such as normalise='zscore', or on smaller values"
            )
        return scores

    def score(self, X: Any, y: Any = None, *, qid: Any = None, measure: str = "ndcg@10") -> float:
        """Mean of a measure over the queries, with equal scores in random order, as searches choose
        by it; arguments as for ``fit``.

        Raises:
            NotFittedError: the ranker is not fitted.
            InputError: as ``predict``, or the measure is unknown.
        """
        self._check_fitted()
        data = labelled_rows(X, y, qid)
        return Evaluator(choosing_measure(measure), data).mean(self.predict(X, qid=qid))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the ranker as a folder: ``ranker.json`` and the model in its library's own format.

        A ranker that was saved there before is replaced. The folder contains no code.

        Raises:
            InputError: ``folder`` is a file, or a folder that holds something else.
            NotFittedError: the ranker is not fitted.
        """
        self._check_fitted()
        description = {
            "format_version": FORMAT_VERSION,
            "ranker": self.name,
            # The number of threads is the machine's, not the ranker's.
            "parameters": {k: v for k, v in self.get_params().items() if k != "num_threads"},
            "feature_names": self.feature_names_,
            "normaliser": self.normaliser_.state(),
            "column_settings": self.column_settings_,
        }
        folder = Path(folder)
        check_replaced(folder, DESCRIPTION_FILE, "ranker")
        with atomic_path(folder, kind="folder") as temporary:
            temporary.mkdir()
            with self._naming():
                description["fitted"] = self._save(temporary)
            write_json(temporary / DESCRIPTION_FILE, description, default=plain)
            write_digests(temporary)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Load a ranker of this class from ``folder``; :func:`letor.rankers.registry.load_ranker`
        finds the class itself.

        Raises:
            InputError: the folder is not a saved ranker of this kind, or of a newer version.
        """
        folder = Path(folder)
        description = read_description(folder)
        if inspect.isabstract(cls):
            raise InputError(
                f"{cls.__name__} is an abstract class: load any saved ranker with "
                "letor.rankers.load_ranker(folder)"
            )
        with reading(
            folder, "a file there is damaged, or its class reads other files than it wrote"
        ):
            if description["ranker"] != cls.name:
                raise InputError(
                    f"{folder} holds a ranker {description['ranker']!r}, not {cls.name!r}"
                )
            ranker = cls(**description["parameters"])
            ranker.check()
            ranker.feature_names_ = strings(description["feature_names"])
            ranker.normaliser_ = normaliser_from_state(description["normaliser"])
            ranker._load(folder, description["fitted"])
            settings = description.get("column_settings", {})  # absent until version 0.2
            ranker.column_settings_ = {name: dict(of) for name, of in settings.items()}
        # Any other value in it would be taken for the saved one.
        check_files(folder, DESCRIPTION_FILE)
        return ranker

    def feature_importance(self) -> pd.DataFrame:
        """DataFrame with columns ``column``, ``gain`` and ``splits``, most important first.

        Raises:
            NotFittedError: the ranker is not fitted.
        """
        self._check_fitted()
        with self._naming():
            found = self._importance()
        if len(found) != 2 or any(np.shape(values) != (self._n_inputs,) for values in found):
            raise InputError(
                f"{type(self).__name__}: its _importance must return two lists, the gain and the "
                f"splits of each of the {self._n_inputs} columns that _fit got"
            )
        # Of all copies of a column that the normaliser makes.
        gain, splits = (
            np.reshape(values, (self.normaliser_.copies, -1)).sum(axis=0) for values in found
        )
        table = pd.DataFrame({"column": self.feature_names_, "gain": gain, "splits": splits})
        return table.sort_values("gain", ascending=False, kind="stable", ignore_index=True)

    def check_rows(self, data: RankingData) -> None:
        """Raise InputError if the ranker cannot train and stop on such rows, before ``fit``."""
        if (measure := getattr(self, "measure", None)) is not None:
            check_measurable([parse_measure(measure)], data.y)

    def check(self) -> None:
        """Check the parameters, as ``fit`` does before it starts.

        Raises:
            InputError: a parameter has an impossible value, or the class lacks one that it names.
        """
        needed = ("name", "normalise", *self._parameters(), *self.ranges, *self.choices)
        if lacking := [name for name in needed if not hasattr(self, name)]:
            raise InputError(
                f"{type(self).__name__} has no {listed(lacking, 5)}: a ranker needs a name and the "
                "parameter normalise, and its constructor stores each parameter unchanged"
            )
        for parameter, (least, largest) in self.ranges.items():
            value = getattr(self, parameter)
            if value is None and getattr(type(self), parameter, 0) is None:  # the default
                continue
            kind = Integral if isinstance(least, int) else Real
            is_kind = isinstance(value, kind) and not isinstance(value, bool)
            if not is_kind or not least <= value <= largest:
                what, form = ("a whole number", ",") if kind is Integral else ("a number", "g")
                raise InputError(
                    f"{parameter}={value!r}: must be {what} from {least:{form}} to {largest:{form}}"
                )
        for parameter, choices in self.choices.items():
            if (value := getattr(self, parameter)) not in choices:
                raise InputError(
                    f"{parameter}={value!r}: choose from {', '.join(map(str, choices))}"
                )
        if (measure := getattr(self, "measure", None)) is not None:
            parse_measure(measure)

    @abstractmethod
    def _fit(self, train: RankingData, valid: RankingData | None) -> None: ...

    @abstractmethod
    def _predict(self, data: RankingData) -> NDArray[Any]: ...

    @abstractmethod
    def _importance(self) -> tuple[Any, Any]:
        """Gain and splits of each of the ``_n_inputs`` columns that ``_fit`` got."""

    @abstractmethod
    def _save(self, folder: Path) -> dict[str, Any]:
        """Write the model's files into the folder; return further fitted state, for JSON."""

    @abstractmethod
    def _load(self, folder: Path, fitted: Mapping[str, Any]) -> None: ...

    def _finished(self, number: int, value: float | None = None) -> None:
        """Tell the caller of ``fit`` that a round is finished; for ``_fit`` to call."""
        if self._callback is not None:
            self._callback(number, value)

    def _check_width(self, path: Path, n_columns: int) -> None:
        """Raise InputError if a model file has another number of columns than ``ranker.json``."""
        if n_columns != self._n_inputs:
            raise InputError(
                f"{path} has {n_columns} columns, ranker.json means {self._n_inputs}; one is "
                "damaged"
            )

    @property
    def _n_inputs(self) -> int:
        """Number of the normalised columns that ``_fit`` and ``_predict`` get."""
        return len(self.feature_names_) * self.normaliser_.copies

    def _naming(self) -> AbstractContextManager[None]:
        """For the code of a subclass, which may be a plug-in's."""
        return naming(f"ranker {self.name!r}")

    def _check_fitted(self) -> None:
        if not hasattr(self, "feature_names_"):
            raise NotFittedError(f"{type(self).__name__} is not fitted: call fit first")


def _kept_from_changes(data: RankingData) -> RankingData:
    """Rows whose values and labels cannot be changed: they may be the user's."""
    return replace(data, X=read_only(data.X), y=read_only(data.y))
