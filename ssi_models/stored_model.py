"""StoredModel: a fitted model as a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssi_models import persistence
from ssi_models.parameters import NotFittedError, Parameters, check_kinds, check_least
from ssi_models.stored_tensors import Tensor, check_tensors
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

#: Version of the model file format; version 1 has ``emphasis`` in place of ``rank_weight``.
VERSION = 2


class StoredModel(Parameters):
    """Parameters and fitted arrays that are written to one safetensors file, and read from it; its
    attributes are those of :class:`ssi_models.base.MatchingModel`."""

    name: ClassVar[str]
    #: Former names of the model, which files and settings may still use.
    former_names: ClassVar[tuple[str, ...]] = ()
    #: The fitted arrays that make up the model, by name; stored in attributes ``<name>_``.
    tensors: ClassVar[Mapping[str, Tensor]] = {}

    n_words_: int
    n_query_words_: int
    vocabulary_: Vocabulary | None = None
    weighting_: TfIdf | None = None
    recipe_: str | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one safetensors file (parameters, vocabulary, weighting).

        Raises:
            NotFittedError: the model is not fitted.
            ValueError: a fitted array is missing or not as ``tensors`` declares it.
        """
        self._check_fitted()
        arrays = self._fitted_tensors()
        header = {
            "model": self.name,
            "version": VERSION,
            # The number of threads depends on the machine; equal models must give equal files.
            "params": {k: v for k, v in self.get_params().items() if k != "threads"},
            "n_words": self.n_words_,
            "n_query_words": self.n_query_words_,
            "recipe": self.recipe_,
            "fitted": self._fitted_header(),
        }
        if self.vocabulary_ is not None:
            arrays |= persistence.pack_vocabulary(self.vocabulary_)
        if self.weighting_ is not None:
            arrays["weighting.idf"] = self.weighting_.idf_
        persistence.save_tensors(path, header, arrays)

    def _fitted_tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays of ``tensors``, checked: a file must not hold what cannot be read again."""
        found = {name: getattr(self, f"{name}_", None) for name in self.tensors}
        arrays = {name: array for name, array in found.items() if isinstance(array, np.ndarray)}
        try:
            check_tensors(arrays, self.tensors, **self._sizes)
        except ValueError as error:
            raise ValueError(
                f"{type(self).__name__}: {error}; fit must set each array NAME_ as tensors "
                "declares it"
            ) from None
        return arrays

    @property
    def _sizes(self) -> dict[str, int]:
        """Sizes that ``tensors`` refer to."""
        return {"words": self.n_words_, "query_words": self.n_query_words_}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that this class saved.

        Raises:
            FileNotFoundError: no such file.
            ValueError: not a model file, the file of another model class or of a newer version, or
                damaged; arrays are checked, so that kernels never read out of bounds.
        """
        with persistence.reading(path):
            return cls._from_file(path)

    @classmethod
    def _from_file(cls, path: str | os.PathLike[str]) -> Self:
        header, arrays = persistence.load_tensors(path)
        if header["model"] not in (cls.name, *cls.former_names):
            raise ValueError(f"{path}: holds a {header['model']!r} model, not {cls.name!r}")
        if header.get("version", 1) > VERSION:
            raise ValueError(f"{path}: of a newer version of this package; update it")
        # JSON turns tuples into lists.
        params = {k: tuple(v) if isinstance(v, list) else v for k, v in header["params"].items()}
        params = cls.before_params | {cls.former_params.get(k, k): v for k, v in params.items()}
        model = cls(**params)
        model.check_params()
        model.n_words_ = persistence.count(header, "n_words")
        model.n_query_words_ = persistence.count(header, "n_query_words")
        model.recipe_ = header["recipe"]
        check_tensors(arrays, cls.tensors, **model._sizes)
        for name in cls.tensors:
            setattr(model, f"{name}_", arrays[name])
        if "vocabulary.bytes" in arrays:
            model.vocabulary_ = persistence.unpack_vocabulary(arrays)
        if "weighting.idf" in arrays:
            check_tensors(arrays, {"weighting.idf": Tensor(("idf",))})
            model.weighting_ = TfIdf.from_idf(arrays["weighting.idf"])
        model._restore(header["fitted"])
        model._check_restored()
        return model

    def _fitted_header(self) -> dict[str, Any]:
        """JSON-compatible fitted values that are not arrays."""
        return {}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        """The inverse of ``_fitted_header``."""

    def _check_restored(self) -> None:
        """Raise ValueError if the arrays and parameters of a file do not match."""

    def check_params(self) -> None:
        """Raise an error naming a parameter that is of a wrong kind or out of range."""
        check_kinds(self.get_params(), self.param_types())
        if hasattr(self, "seed"):
            check_least(self, 0, "seed")

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_words_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit or load")
