"""Models without word embeddings of their own training: what a trained model has to beat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from ssi_models.base import LearnsFrom, MatchingModel
from ssi_models.fitting import check_shapes
from ssi_models.matrices import arrays, check_csr, check_rows, take_rows, with_data
from ssi_models.mixing import ALPHAS, best_mixture, rank_loss
from ssi_models.parts import Parts, joined, pair_scores, scaled
from ssi_models.preferences import Preferences
from ssi_models.validation import sample_triples
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf


@dataclass(kw_only=True, eq=False, repr=False)
class Baseline(MatchingModel):
    """What the baselines share.

    Args:
        seed: seed of whatever a baseline draws at random.
        threads: worker threads that score; the result does not depend on it. None = all cores.
    """

    seed: int = 0
    threads: int | None = None

    def fit(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        *,
        candidates: ArrayLike | None = None,
        vocabulary: Vocabulary | None = None,
        weighting: TfIdf | None = None,
        recipe: str | None = None,
        **ignored: Any,
    ) -> Self:
        """Fit; takes what :meth:`ssi_models.fitting.RankingModel.fit` takes.

        Raises:
            ValueError: matrices of different width or with non-finite values, or preferences made
                for other matrices.
        """
        Q, D = check_csr("Q", Q), check_csr("D", D)
        if Q.shape[1] != D.shape[1]:
            raise ValueError(f"Q has {Q.shape[1]} columns, D has {D.shape[1]}")
        check_shapes(Q, D, preferences)
        pool = np.arange(D.shape[0]) if candidates is None else candidates
        self._learn(Q, D, preferences, check_rows("candidates", pool, D.shape[0]))
        self.n_query_words_ = self.n_words_ = D.shape[1]
        self.vocabulary_, self.weighting_, self.recipe_ = vocabulary, weighting, recipe
        return self

    def _learn(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        candidates: NDArray[np.int64],
    ) -> None:
        """Fit on checked data; nothing by default."""


@dataclass(kw_only=True, eq=False, repr=False)
class TfIdfCosine(Baseline):
    """f(q, d) = q . d: the cosine of unit tf-idf vectors, W = I."""

    name: ClassVar[str] = "tfidf"
    learns_from: ClassVar[LearnsFrom] = "documents"

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        return Parts(sparse=Q)

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        return Parts(sparse=D)


@dataclass(kw_only=True, eq=False, repr=False)
class Popularity(Baseline):
    """f(q, d) = the number of training queries that d is relevant to (its in-degree, for links).

    Belongs to the documents of ``fit``: D must have their rows in their order.

    Attributes:
        in_degree_: float32 [n].
    """

    name: ClassVar[str] = "popularity"
    tensors: ClassVar[tuple[str, ...]] = ("in_degree",)

    in_degree_: NDArray[np.float32] = field(init=False)

    def _learn(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        candidates: NDArray[np.int64],
    ) -> None:
        counts = np.bincount(preferences.document, minlength=D.shape[0])
        self.in_degree_ = counts.astype(np.float32)

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        return Parts(np.ones((Q.shape[0], 1), np.float32))

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        return Parts(self._of(D)[:, None])

    def _of(self, D: sp.csr_matrix) -> NDArray[np.float32]:
        if D.shape[0] != len(self.in_degree_):
            raise ValueError(
                f"D has {D.shape[0]} documents, in-degrees were counted for "
                f"{len(self.in_degree_)}; give the documents that the model was fitted on"
            )
        return self.in_degree_

    def nearest_words(self, word: int, n: int = 5) -> list[tuple[int, float]]:
        raise TypeError(f"{type(self).__name__} scores documents, not words")


@dataclass(kw_only=True, eq=False, repr=False)
class PopularTfIdf(Popularity):
    """f(q, d) = q . d log(1 + in-degree of d)."""

    name: ClassVar[str] = "tfidf-popularity"

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        return Parts(sparse=Q)

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        factor = np.log1p(self._of(D)).astype(np.float32)
        return Parts(sparse=with_data(D, D.data * np.repeat(factor, np.diff(D.indptr))))


@dataclass(kw_only=True, eq=False, repr=False)
class LatentSemanticIndex(Baseline):
    """f(q, d) = cosine of the projections of q and d to the first singular vectors of D.

    Args:
        rank: number of singular vectors (at most the rank of D).

    Attributes:
        components_: float32 [V, rank], right singular vectors of D; projections are not divided
            by the singular values.

    Reference:
        Deerwester, Dumais, Landauer, Furnas, Harshman: "Indexing by latent semantic analysis",
        JASIS 41(6), 1990.
    """

    name: ClassVar[str] = "lsi"
    learns_from: ClassVar[LearnsFrom] = "documents"
    tensors: ClassVar[tuple[str, ...]] = ("components",)

    rank: int = field(default=200, kw_only=False)

    components_: NDArray[np.float32] = field(init=False)

    def _learn(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        candidates: NDArray[np.int64],
    ) -> None:
        if self.rank < 1:
            raise ValueError(f"rank must be 1 or more, got {self.rank}")
        rank = min(self.rank, *D.shape)
        # One thread: sums of a BLAS on several depend on their number.
        with threadpool_limits(limits=1, user_api="blas"):
            vt = randomized_svd(D, rank, n_iter=4, random_state=self.seed)[2]
        self.components_ = np.ascontiguousarray(vt.T, np.float32)

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        return Parts(self._project(Q))

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        return Parts(self._project(D))

    def _project(self, X: sp.csr_matrix) -> NDArray[np.float32]:
        projected = np.asarray(X @ self.components_)
        length = np.linalg.norm(projected, axis=1, keepdims=True)
        return (projected / np.where(length == 0, 1, length)).astype(np.float32)


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
    tensors: ClassVar[tuple[str, ...]] = ("components", "alpha")

    alpha: float | None = None

    alpha_: NDArray[np.float32] = field(init=False)

    def _learn(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        candidates: NDArray[np.int64],
    ) -> None:
        if self.alpha is not None and not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must be in [0, 1], got {self.alpha}")
        super()._learn(Q, D, preferences, candidates)
        if self.alpha is not None:
            self.alpha_ = np.array([self.alpha], np.float32)
            return

        def scores(
            query: NDArray[np.int64], document: NDArray[np.int64]
        ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            out = []
            for alpha in (1, 0):
                self.alpha_ = np.array([alpha], np.float32)
                out.append(pair_scores(self, Q, D, query, document))
            return out[0], out[1]

        alpha = best_mixture(scores, preferences, candidates, ALPHAS, self.seed)
        self.alpha_ = np.array([alpha], np.float32)

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        alpha = float(self.alpha_[0])
        own = Parts(self._project(Q))
        return joined(scaled(own, alpha), scaled(Parts(sparse=Q), 1 - alpha))

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        return Parts(self._project(D), D)


@dataclass(kw_only=True, eq=False, repr=False)
class QueryExpansion(Baseline):
    """f(q, d) = (q + beta mean of the E documents with the largest q . d') . d: blind feedback.

    The documents of ``fit`` are the collection that queries are expanded from.

    Args:
        beta: weight of the feedback, 0 or more. n_expansion: E. None = chosen by the rank loss of
            training triples.

    Attributes:
        beta_: float32 [1]. n_expansion_: int64 [1].
        D_data_, D_indices_, D_indptr_, D_shape_: the collection.

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", section 4.
    """

    name: ClassVar[str] = "query-expansion"
    tensors: ClassVar[tuple[str, ...]] = (
        "beta", "n_expansion", "D_data", "D_indices", "D_indptr", "D_shape",
    )  # fmt: skip
    BETAS: ClassVar[tuple[float, ...]] = (0.1, 0.2, 0.5, 1.0)
    EXPANSIONS: ClassVar[tuple[int, ...]] = (1, 2, 5, 10, 20)
    N_TRIPLES: ClassVar[int] = 2000

    beta: float | None = None
    n_expansion: int | None = None

    beta_: NDArray[np.float32] = field(init=False)
    n_expansion_: NDArray[np.int64] = field(init=False)

    def _learn(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        candidates: NDArray[np.int64],
    ) -> None:
        if self.beta is not None and not 0 <= self.beta < np.inf:
            raise ValueError(f"beta must be 0 or more, got {self.beta}")
        if self.n_expansion is not None and self.n_expansion < 1:
            raise ValueError(f"n_expansion must be 1 or more, got {self.n_expansion}")
        self.D_indptr_, self.D_indices_, self.D_data_ = arrays(D)
        self.D_shape_ = np.array(D.shape, np.int64)
        betas = self.BETAS if self.beta is None else (self.beta,)
        sizes = self.EXPANSIONS if self.n_expansion is None else (self.n_expansion,)
        beta, size = betas[0], sizes[0]
        if len(betas) * len(sizes) > 1:
            triples = sample_triples(preferences, candidates, self.N_TRIPLES, self.seed)
            beta, size = self._choose(Q, D, triples, betas, sizes)
        self.beta_, self.n_expansion_ = np.array([beta], np.float32), np.array([size])

    def _choose(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        triples: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        betas: tuple[float, ...],
        sizes: tuple[int, ...],
    ) -> tuple[float, int]:
        """The (beta, E) with the lowest rank loss."""
        query, positive, negative = triples
        asked, row = np.unique(query, return_inverse=True)
        queries = take_rows(Q, asked)
        best = self._best(queries, D, max(sizes))
        difference = take_rows(D, positive) - take_rows(D, negative)
        own = np.asarray(queries[row].multiply(difference).sum(axis=1)).ravel()
        losses = {}
        for size in sizes:
            feedback = _mean_rows(best, D, size)[row]
            added = np.asarray(feedback.multiply(difference).sum(axis=1)).ravel()
            for beta in betas:
                losses[beta, size] = rank_loss(own + beta * added, np.zeros(len(own)))
        return min(losses, key=lambda choice: losses[choice])

    def _best(self, Q: sp.csr_matrix, D: sp.csr_matrix, n: int) -> NDArray[np.int64]:
        """int64 [m, n], the rows of the n best documents of each query; ties by row."""
        n = min(n, D.shape[0])
        postings = D.T.tocsr()
        best = np.empty((Q.shape[0], n), np.int64)
        for i in range(Q.shape[0]):
            scores = (Q[i] @ postings).toarray()[0]
            best[i] = np.argsort(-scores, kind="stable")[:n]
        return best

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        D = sp.csr_matrix((self.D_data_, self.D_indices_, self.D_indptr_), tuple(self.D_shape_))
        size = int(self.n_expansion_[0])
        feedback = _mean_rows(self._best(Q, D, size), D, size)
        return Parts(sparse=check_csr("queries", Q + float(self.beta_[0]) * feedback))

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        return Parts(sparse=D)


def _mean_rows(best: NDArray[np.int64], D: sp.csr_matrix, n: int) -> sp.csr_matrix:
    """The mean of the first n of each row's documents."""
    n = min(n, best.shape[1])
    indptr = np.arange(len(best) + 1) * n
    share = np.full(len(best) * n, 1 / n, np.float32)
    chooser = sp.csr_matrix((share, best[:, :n].ravel(), indptr), shape=(len(best), D.shape[0]))
    return chooser @ D
