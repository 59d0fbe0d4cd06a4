"""Models without trained word embeddings: the baselines that a trained model has to beat."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.base import LearnsFrom, MatchingModel
from ssi_models.matrices import with_data
from ssi_models.parameters import model_class
from ssi_models.representation import Representation
from ssi_models.stored_tensors import Tensor
from ssi_models.training.preferences import Preferences, check_constraints, check_shapes
from ssi_models.vocabulary import Vocabulary, check_words
from ssi_models.weighting import TfIdf


@dataclass(frozen=True, eq=False)
class Examples:
    """The checked data that a baseline is fitted on.

    Attributes:
        Q, D: checked matrices. preferences: over their rows.
        candidates: int64, document rows that may be negatives.
        excluded: int64 [m], the document row that each query was drawn from, or -1; or None.
    """

    Q: sp.csr_matrix
    D: sp.csr_matrix
    preferences: Preferences
    candidates: NDArray[np.int64]
    excluded: NDArray[np.int64] | None


@model_class
class Baseline(MatchingModel):
    """Base class of the baselines.

    Args:
        seed: seed of whatever a baseline draws at random.
        threads: worker threads for scoring; the result does not depend on it. None = all cores.
    """

    seed: int = 0
    threads: int | None = None

    def fit(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        *,
        vocabulary: Vocabulary | None = None,
        weighting: TfIdf | None = None,
        recipe: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Any], None] | None = None,
        **constraints: Any,
    ) -> Self:
        """Fit in a single step, so that ``checkpoint`` and ``callback`` are not used. The rest is
        as in :meth:`TrainableModel.fit`, except that ``candidate_lists`` are refused.

        Raises:
            ValueError: matrices of different width or with non-finite values, or preferences made
                for other matrices.
        """
        self.check_params()
        Q, D = self._check_spaces(Q, D)
        if self.same_words:
            check_words(vocabulary, weighting, D.shape[1])
        check_shapes(Q, D, preferences)
        checked = check_constraints(self.name, preferences, **constraints)
        with self._unchanged_on_error():
            self._learn(Examples(Q, D, preferences, *checked))
        self.n_query_words_, self.n_words_ = Q.shape[1], D.shape[1]
        self.vocabulary_, self.weighting_, self.recipe_ = vocabulary, weighting, recipe
        return self

    def _learn(self, given: Examples) -> None:
        """Fit on checked data; nothing by default."""


@model_class
class VSM(Baseline):
    """f(q, d) = q . d: the cosine of unit tf-idf vectors, W = I.

    Reference:
        Salton, Wong, Yang: "A vector space model for automatic indexing", CACM 18(11), 1975.
    """

    name: ClassVar[str] = "vsm"
    former_names: ClassVar[tuple[str, ...]] = ("tfidf", "tf-idf", "TF-IDF")
    learns_from: ClassVar[LearnsFrom] = "documents"

    @property
    def only_same_words(self) -> bool:
        return True


@model_class
class Popularity(Baseline):
    """f(q, d) = the number of training queries that d is relevant to (its in-degree, for links).

    Tied to the documents of ``fit``: D must have the same rows in the same order.

    Attributes:
        in_degree_: float32 [n].
    """

    name: ClassVar[str] = "popularity"
    of_its_documents: ClassVar[bool] = True
    tensors: ClassVar[Mapping[str, Tensor]] = {"in_degree": Tensor(("documents",))}

    in_degree_: NDArray[np.float32] = field(init=False)

    def _learn(self, given: Examples) -> None:
        counts = np.bincount(given.preferences.document, minlength=given.D.shape[0])
        self.in_degree_ = counts.astype(np.float32)

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        return Representation(np.ones((Q.shape[0], 1), np.float32))

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        return Representation(self._degrees(D)[:, None])

    def _degrees(self, D: sp.csr_matrix) -> NDArray[np.float32]:
        if D.shape[0] != len(self.in_degree_):
            raise ValueError(
                f"D has {D.shape[0]} documents, in-degrees were counted for "
                f"{len(self.in_degree_)}; give the documents that the model was fitted on"
            )
        return self.in_degree_

    def nearest_words_of_text(self, q: sp.csr_matrix, n: int = 5) -> list[tuple[int, float]]:
        raise TypeError(f"{type(self).__name__} scores documents, not words")


@model_class
class PopularTfIdf(Popularity):
    """f(q, d) = q . d log(1 + in-degree of d)."""

    name: ClassVar[str] = "tfidf-popularity"

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        return Representation(sparse=Q)

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        factor = np.log1p(self._degrees(D)).astype(np.float32)
        return Representation(sparse=with_data(D, D.data * np.repeat(factor, np.diff(D.indptr))))
