"""Latent semantic analysis, of queries and documents or of documents alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.base import LearnsFrom
from ssi_models.matrices import take_rows
from ssi_models.mixing import ALPHAS, best_mixture
from ssi_models.parallel import Workers
from ssi_models.parameters import check_choice
from ssi_models.projections.baselines import Baseline, Examples
from ssi_models.projections.cosine import CosineOfProjections, split_words, stacked
from ssi_models.projections.svd import right_singular_vectors
from ssi_models.representation import Parts, joined, pair_scores, scaled
from ssi_models.training.held_out import mixed
from ssi_models.word_weight import WORD_WEIGHTS, WeighsWords

SCALINGS = ("none", "inverse")


@dataclass(kw_only=True, eq=False, repr=False)
class Projection(WeighsWords, CosineOfProjections, Baseline):
    """What projections that an eigenproblem gives share.

    Args:
        rank: k, the number of dimensions; there are fewer where the texts have a lower rank.
        word_weight: weight w, 0 to 1, of plain word matching: f = w q . d + (1 - w) cos(A'q, A'd),
            or "auto", see :class:`ssi_models.word_weight.WeighsWords`. 0 is the papers'. Separate
            vocabularies have no words in common, and no such part.
    """

    scoring_params: ClassVar[tuple[str, ...]] = ("threads", "word_weight")
    tensors: ClassVar[tuple[str, ...]] = ("A_q", "A_d")

    rank: int = field(default=100, kw_only=False)

    word_weight: float | str = 0.0

    A_q_: NDArray[np.float32] = field(init=False)
    A_d_: NDArray[np.float32] = field(init=False)

    def check_params(self) -> None:
        self.check_weight()
        if self.rank < 1:
            raise ValueError(f"rank must be 1 or more, got {self.rank}")

    @property
    def weight_of_words(self) -> float:
        return super().weight_of_words if self.same_words else 0.0

    @property
    def only_same_words(self) -> bool:
        return hasattr(self, "n_words_") and self.weight_of_words == 1

    def fit_alone(self, *given: Any, **options: Any) -> Self:
        return Baseline.fit(self, *given, **options)

    def mixtures(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> Iterator[NDArray[np.float32]]:
        learned = self._project(Q, self.A_q_) @ self._project(D, self.A_d_).T
        words = (Q @ D.T).toarray() if self.same_words else None
        return mixed([(w, 1 - w) for w in WORD_WEIGHTS], words, learned)

    def _fitted_header(self) -> dict[str, Any]:
        return self.weight_header()

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self.restore_weight({"word_weight": 0.0, **fitted})


@dataclass(kw_only=True, eq=False, repr=False)
class LSA(Projection):
    """f(q, d) = cosine of the projections of q and d to the leading singular vectors of the texts.

    PCA on the uncentred correlation matrix of the documents and of the queries that the preferences
    name (no others, so that queries of a test stay unseen), each a text of its own; no label is
    looked at. The sign of a dimension makes its largest weight positive.

    Args:
        scaling: "none": the eigenvectors of the correlation matrix; "inverse": divided by the
            singular values, so that all dimensions have the same variance (Deerwester et al.).

    Attributes:
        A_q_, A_d_: float32 [V, k], the same matrix.

    Reference:
        Deerwester, Dumais, Landauer, Furnas, Harshman: "Indexing by latent semantic analysis",
        JASIS 41(6), 1990; Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web
        search", SIGIR 2011, section 4.
    """

    name: ClassVar[str] = "lsa"
    learns_from: ClassVar[LearnsFrom] = "documents"

    scaling: str = "none"

    def check_params(self) -> None:
        super().check_params()
        check_choice("scaling", self.scaling, SCALINGS)

    def _learn(self, given: Examples) -> None:
        with Workers(self.threads) as workers:
            texts = [self._texts(take_rows(given.Q, np.unique(given.preferences.query)), given.D)]
            A, values = right_singular_vectors(texts, self.rank, self.seed, workers)
        if self.scaling == "inverse":
            A = (A / values).astype(np.float32)
        self.A_q_, self.A_d_ = split_words(A, given.Q.shape[1], "shared")

    def _texts(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> sp.csr_matrix:
        """What the singular vectors are of."""
        return stacked(Q, D, "shared")


@dataclass(kw_only=True, eq=False, repr=False)
class LatentSemanticIndex(LSA):
    """f(q, d) = cosine of the projections of q and d to the leading singular vectors of D.

    LSA of the documents alone, a baseline of Bai et al.

    Reference:
        Deerwester, Dumais, Landauer, Furnas, Harshman: "Indexing by latent semantic analysis",
        JASIS 41(6), 1990.
    """

    name: ClassVar[str] = "lsi"

    rank: int = field(default=200, kw_only=False)

    def _texts(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> sp.csr_matrix:
        return D


@dataclass(kw_only=True, eq=False, repr=False)
class LsiTfIdf(LatentSemanticIndex):
    """f(q, d) = alpha LSI(q, d) + (1 - alpha) q . d.

    Args:
        alpha: the factor, in [0, 1]; None = chosen by the rank loss of training triples.

    Attributes:
        alpha_: float32 [1].
    """

    name: ClassVar[str] = "lsi-tfidf"
    learns_from: ClassVar[LearnsFrom] = "preferences"
    tensors: ClassVar[tuple[str, ...]] = ("A_q", "A_d", "alpha")

    alpha: float | None = None

    alpha_: NDArray[np.float32] = field(init=False)

    def check_params(self) -> None:
        super().check_params()
        if self.alpha is not None and not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must be in [0, 1], got {self.alpha}")

    def _learn(self, given: Examples) -> None:
        super()._learn(given)
        if self.alpha is not None:
            self.alpha_ = np.array([self.alpha], np.float32)
            return

        def scores(
            query: NDArray[np.int64], document: NDArray[np.int64]
        ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            out = []
            for alpha in (1, 0):
                self.alpha_ = np.array([alpha], np.float32)
                out.append(pair_scores(self, given.Q, given.D, query, document))
            return out[0], out[1]

        alpha = best_mixture(
            scores, given.preferences, given.candidates, ALPHAS, self.seed, given.excluded
        )
        self.alpha_ = np.array([alpha], np.float32)

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        alpha = float(self.alpha_[0])
        own = super().query_parts(Q, words)
        return joined(scaled(own, alpha), scaled(Parts(sparse=Q), 1 - alpha))

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        return joined(super().document_parts(D), Parts(sparse=D))
