"""MatchingModel: the interface of every model that scores a query against a document."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssi_models import persistence
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf


class NotFittedError(ValueError, AttributeError):
    """A method that needs a fitted model was called before ``fit`` or ``load``."""


class MatchingModel:
    """Base class. Parameters are stored by the constructor as given; ``fit`` resolves them.

    Queries and documents are CSR matrices [n, V] of weighted words (see
    :class:`ssi_models.weighting.TfIdf`); pairs are two parallel arrays of row numbers.

    Attributes:
        n_words_: number of columns of the matrices that the model was fitted on.
        vocabulary_, weighting_, recipe_: what the columns stand for, where ``fit`` was told:
            the words, the fitted weighting, and the fingerprint of the text analysis.
    """

    name: ClassVar[str]
    #: Names of the fitted float arrays that make up the model, saved as attributes ``<name>_``.
    tensors: ClassVar[tuple[str, ...]] = ()

    n_words_: int
    vocabulary_: Vocabulary | None = None
    weighting_: TfIdf | None = None
    recipe_: str | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Set constructor parameters.

        Raises:
            ValueError: unknown name.
        """
        known = list(inspect.signature(type(self)).parameters)
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({parameters})"

    def score(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: ArrayLike,
        document: ArrayLike,
    ) -> NDArray[np.float32]:
        """f(q, d) of each pair (query[i], document[i]) of rows of Q [m, V] and D [n, V].

        Returns:
            float32 [n_pairs]; accumulated in float64. A zero row scores 0 with everything. The
            score of a pair does not depend on the other pairs of the call.

        Raises:
            NotFittedError: the model is not fitted.
            ValueError: wrong number of columns, or row numbers outside the matrices.
        """
        self._check_fitted()
        Q, D = self._check_matrix("Q", Q), self._check_matrix("D", D)
        q = check_rows("query", query, Q.shape[0])
        d = check_rows("document", document, D.shape[0])
        if len(q) != len(d):
            raise ValueError(f"{len(q)} query rows for {len(d)} document rows")
        return self._score(Q, D, q, d)

    def _score(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
    ) -> NDArray[np.float32]:
        raise TypeError(f"{type(self).__name__} does not define _score")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one safetensors file (parameters, vocabulary, weighting)."""
        self._check_fitted()
        header = {
            "model": self.name,
            "params": self.get_params(),
            "n_words": self.n_words_,
            "recipe": self.recipe_,
            "fitted": self._fitted_header(),
        }
        arrays = {name: getattr(self, f"{name}_") for name in self.tensors}
        if self.vocabulary_ is not None:
            arrays |= persistence.pack_vocabulary(self.vocabulary_)
        if self.weighting_ is not None:
            arrays["weighting.idf"] = self.weighting_.idf_
        persistence.save_tensors(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that this class saved.

        Raises:
            FileNotFoundError: no such file.
            ValueError: not a model file, or the file of another model class.
        """
        header, arrays = persistence.load_tensors(path)
        if header["model"] != cls.name:
            raise ValueError(f"{path}: holds a {header['model']!r} model, not {cls.name!r}")
        model = cls(**header["params"])
        model.n_words_ = header["n_words"]
        model.recipe_ = header["recipe"]
        for name in cls.tensors:
            setattr(model, f"{name}_", arrays[name])
        if "vocabulary.bytes" in arrays:
            model.vocabulary_ = persistence.unpack_vocabulary(arrays)
        if "weighting.idf" in arrays:
            model.weighting_ = TfIdf.from_idf(arrays["weighting.idf"])
        model._restore(header["fitted"])
        return model

    def _fitted_header(self) -> dict[str, Any]:
        """JSON-compatible fitted values that are not arrays."""
        return {}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        """The inverse of ``_fitted_header``."""

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_words_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit or load")

    def _check_matrix(self, name: str, matrix: sp.csr_matrix) -> sp.csr_matrix:
        matrix = check_csr(name, matrix)
        if matrix.shape[1] != self.n_words_:
            raise ValueError(
                f"{name} has {matrix.shape[1]} columns, the model was fitted on {self.n_words_} "
                "words; analyse the text with the model's vocabulary"
            )
        return matrix


def check_csr(name: str, matrix: sp.csr_matrix) -> sp.csr_matrix:
    """The matrix as CSR with float32 data, int32 column numbers and int64 row pointers.

    Raises:
        TypeError: not a sparse matrix.
        ValueError: a value is NaN or infinite (the row is named).
    """
    if not sp.issparse(matrix):
        raise TypeError(f"{name} must be a scipy sparse matrix [n, words], got {type(matrix)}")
    matrix = sp.csr_matrix(matrix)
    if matrix.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"{name} has {matrix.shape[1]} columns; at most 2^31 - 1 are possible")
    data = matrix.data.astype(np.float32, copy=False)
    if not np.isfinite(data).all():
        at = int(np.flatnonzero(~np.isfinite(data))[0])
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        raise ValueError(f"{name}: row {row} holds {data[at]}; weights must be finite")
    checked = sp.csr_matrix(matrix.shape, dtype=np.float32)
    # Set directly: the constructor would cast indptr and indices to one common type.
    checked.data = data
    checked.indices = matrix.indices.astype(np.int32, copy=False)
    checked.indptr = matrix.indptr.astype(np.int64, copy=False)
    return checked


def check_rows(name: str, rows: ArrayLike, limit: int) -> NDArray[np.int64]:
    """Row numbers as int64, all within 0..limit - 1 (ValueError names the first that is not)."""
    array = np.asarray(rows, dtype=np.int64)
    outside = (array < 0) | (array >= limit)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise ValueError(f"{name}[{at}] is row {array[at]}, outside 0..{limit - 1}")
    return array
