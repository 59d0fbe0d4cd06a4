"""Oriented principal component analysis: the noise between paired texts is projected away."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy
import scipy.sparse as sp
from numpy.typing import NDArray

from ltr_base.blas import one_blas_thread
from ltr_base.quiet import ignored
from ssi_models.matrices import take_columns
from ssi_models.parameters import check_least, check_positive, model_class
from ssi_models.projections.baselines import Examples
from ssi_models.projections.cosine import pair_matrix, split_words, stacked
from ssi_models.projections.lsa import PairProjection
from ssi_models.projections.svd import with_signs
from ssi_models.training.preferences import Preferences

DENSE_WORDS = 2000


@model_class
class OPCA(PairProjection):
    """f(q, d) = cosine of projections to the directions in which pairs differ least.

    The leading solutions of S v = mu (N + rho I) v, where S is the correlation matrix of the
    queries and documents of all relevant pairs and N that of the pairs' differences (Gao et al.,
    eq. 22-24).

    Beyond 2,000 words (or 5 times ``rank``), no matrix of words by words is formed: LOBPCG only
    needs products with the sparse texts.

    Args:
        ridge: rho as a share of the mean diagonal of N; keeps words that differ in no pair from
            having no noise at all.
        tolerance, max_iterations: iteration stops when |S v - mu (N + rho I) v| is below the
            tolerance for every solution v (of unit length in N + rho I), or after that many steps;
            used only beyond that many words.

    Reference:
        Diamantaras, Kung: "Principal component neural networks", 1996; Platt, Toutanova, Yih:
        "Translingual document representations from discriminative projections", EMNLP 2010; Gao,
        Toutanova, Yih: "Clickthrough-based latent semantic models for web search", SIGIR 2011.
    """

    name: ClassVar[str] = "opca"
    ridge: float = 3.0
    tolerance: float = 1e-3
    max_iterations: int = 60

    def check_params(self) -> None:
        super().check_params()
        check_positive(self, "ridge", "tolerance")
        check_least(self, 1, "max_iterations")

    def _learn(self, given: Examples) -> None:
        texts = stacked(given.Q, given.D, self.vocabularies)
        # Words that occur in no text would be free of noise.
        words = np.unique(texts.indices).astype(np.int64)
        found = self._directions(take_columns(texts, words), given.preferences)
        A = np.zeros((texts.shape[1], found.shape[1]), np.float32)
        A[words] = found
        self.A_q_, self.A_d_ = split_words(A, given.Q.shape[1], self.vocabularies)

    def _directions(self, T: sp.csr_matrix, preferences: Preferences) -> NDArray[np.float32]:
        n, n_words = len(preferences), T.shape[1]
        rank = min(self.ranks[-1], n_words)
        uses = np.concatenate([
            np.bincount(preferences.query, minlength=preferences.n_queries),
            np.bincount(preferences.document, minlength=preferences.n_documents),
        ])  # fmt: skip
        differences = pair_matrix(preferences, -1)
        L = sp.csr_matrix(differences.T @ differences) / n
        with one_blas_thread():
            if n_words <= max(DENSE_WORDS, 5 * rank):
                return _dense(T, sp.diags_array(uses / (2 * n)), L, rank, self.ridge)
            return self._matrix_free(T, uses / (2 * n), L, rank)

    def _matrix_free(
        self, T: sp.csr_matrix, weights: NDArray[np.float64], L: sp.csr_matrix, rank: int
    ) -> NDArray[np.float32]:
        """The leading solutions by LOBPCG, preconditioned by the diagonal of N + rho I."""
        T, L, W = T.astype(np.float64), L.astype(np.float64), weights[:, None]
        transpose = T.T.tocsr()
        noise = np.asarray(T.multiply(L @ T).sum(axis=0)).ravel()
        rho = self.ridge * noise.mean() or 1.0
        inverse = 1 / (noise + rho)[:, None]
        X = np.random.default_rng([self.seed, 9]).standard_normal((T.shape[1], rank))
        # The cosines hardly change if the last of many directions miss the tolerance.
        with ignored("Exited "):
            values, V = sp.linalg.lobpcg(
                lambda X: transpose @ (W * (T @ X)),
                X * np.sqrt(inverse),
                B=lambda X: transpose @ (L @ (T @ X)) + rho * X,
                M=lambda X: inverse * X,
                largest=True,
                tol=self.tolerance,
                maxiter=self.max_iterations,
            )
        return with_signs(V[:, np.argsort(-values)])


def _dense(
    T: sp.csr_matrix, weights: sp.sparray, L: sp.csr_matrix, rank: int, ridge: float
) -> NDArray[np.float32]:
    """The leading solutions, with dense matrices of words by words."""
    S, N = ((T.T @ (M @ T)).toarray().astype(np.float64) for M in (weights, L))
    n_words = len(S)
    rho = ridge * np.trace(N) / n_words or 1.0
    last = n_words - rank, n_words - 1
    _, V = scipy.linalg.eigh(S, N + rho * np.eye(n_words), subset_by_index=last)
    return with_signs(V[:, ::-1])
