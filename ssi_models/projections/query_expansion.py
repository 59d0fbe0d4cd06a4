"""Blind feedback: queries expanded by the documents that they match best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssi_models.matrices import arrays, check_csr, take_rows
from ssi_models.mixing import rank_loss
from ssi_models.parameters import check_least, model_class
from ssi_models.projections.baselines import Baseline, Examples
from ssi_models.stored_tensors import Tensor, matrix
from ssi_models.training.held_out import sample_triples
from ssi_models.training.preferences import check_excluded


@model_class
class QueryExpansion(Baseline):
    """f(q, d) = (q + beta mean of the E documents with the largest q . d' > 0) . d: blind feedback.

    The documents of ``fit`` are the collection that queries are expanded from. The one that a query
    was drawn from, where that is known (``excluded``), is not fed back to it.

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
    tensors: ClassVar[Mapping[str, Tensor]] = {
        "beta": Tensor((1,)),
        "n_expansion": Tensor((1,), "int64"),
        **matrix("D", "documents", "words"),
        "D_shape": Tensor((2,), "int64"),
    }
    mixed_by: ClassVar[tuple[str, ...]] = ("beta_", "n_expansion_")
    shared_by_parts: ClassVar[str] = "the weight and the number of the documents fed back"
    BETAS: ClassVar[tuple[float, ...]] = (0.1, 0.2, 0.5, 1.0)
    EXPANSIONS: ClassVar[tuple[int, ...]] = (1, 2, 5, 10, 20)
    N_TRIPLES: ClassVar[int] = 2000

    beta: float | None = None
    n_expansion: int | None = None

    beta_: NDArray[np.float32] = field(init=False)
    n_expansion_: NDArray[np.int64] = field(init=False)

    def check_params(self) -> None:
        super().check_params()
        if self.beta is not None and not 0 <= self.beta < np.inf:
            raise ValueError(f"beta must be 0 or more, got {self.beta!r}")
        check_least(self, 1, "n_expansion")

    def _check_restored(self) -> None:
        shape = len(self.D_indptr_) - 1, self.n_words_
        if tuple(self.D_shape_) != shape or self.n_expansion_[0] < 1:
            raise ValueError(f"D_shape is {self.D_shape_}, must be {shape}; n_expansion 1 or more")

    def _learn(self, given: Examples) -> None:
        # Copies: what the caller does with the matrix later must not change the scores.
        self.D_indptr_, self.D_indices_, self.D_data_ = (a.copy() for a in arrays(given.D))
        self.D_shape_ = np.array(given.D.shape, np.int64)
        betas = self.BETAS if self.beta is None else (self.beta,)
        sizes = self.EXPANSIONS if self.n_expansion is None else (self.n_expansion,)
        beta, size = betas[0], sizes[0]
        if len(betas) * len(sizes) > 1:
            triples = sample_triples(
                given.preferences, given.candidates, self.N_TRIPLES, self.seed, given.excluded
            )
            beta, size = self._choose(given, triples, betas, sizes)
        self.beta_, self.n_expansion_ = np.array([beta], np.float32), np.array([size])

    def _choose(
        self,
        given: Examples,
        triples: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        betas: tuple[float, ...],
        sizes: tuple[int, ...],
    ) -> tuple[float, int]:
        """The (beta, E) with the lowest rank loss."""
        query, positive, negative = triples
        asked, row = np.unique(query, return_inverse=True)
        queries, D = take_rows(given.Q, asked), given.D
        barred = None if given.excluded is None else given.excluded[asked]
        best = _best(queries, D, max(sizes), barred)
        difference = take_rows(D, positive) - take_rows(D, negative)
        own = np.asarray(queries[row].multiply(difference).sum(axis=1)).ravel()
        losses = {}
        for size in sizes:
            feedback = _mean_rows(best, D, size)[row]
            added = np.asarray(feedback.multiply(difference).sum(axis=1)).ravel()
            for beta in betas:
                losses[beta, size] = rank_loss(own + beta * added, np.zeros(len(own)))
        return min(losses, key=lambda choice: losses[choice])

    def expanded(self, Q: sp.csr_matrix, excluded: ArrayLike | None = None) -> sp.csr_matrix:
        D = sp.csr_matrix((self.D_data_, self.D_indices_, self.D_indptr_), tuple(self.D_shape_))
        size = int(self.n_expansion_[0])
        barred = check_excluded(excluded, Q.shape[0], D.shape[0])
        feedback = _mean_rows(_best(Q, D, size, barred), D, size)
        return check_csr("queries", Q + float(self.beta_[0]) * feedback)


def _best(
    Q: sp.csr_matrix, D: sp.csr_matrix, n: int, excluded: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """int64 [m, n], with n at most the number of documents: the rows of the n best documents of
    each query that share a word with it, except the excluded one, ties by row; -1 where there are
    no more."""
    n = min(n, D.shape[0])
    postings = D.T.tocsr()
    best = np.full((Q.shape[0], n), -1)
    for i in range(Q.shape[0]):
        scores = (Q[i] @ postings).toarray()[0]
        order = np.argsort(-scores, kind="stable")[: n + 1]
        order = order[scores[order] > 0]
        if excluded is not None:
            order = order[order != excluded[i]]
        best[i, : len(order)] = order[:n]
    return best


def _mean_rows(best: NDArray[np.int64], D: sp.csr_matrix, n: int) -> sp.csr_matrix:
    """The mean of the first n documents of each row of ``best``; 0 if there are none."""
    given = best[:, :n] >= 0
    sizes = given.sum(axis=1)
    share = np.repeat(1 / np.maximum(sizes, 1), sizes).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    chooser = sp.csr_matrix((share, best[:, :n][given], indptr), shape=(len(best), D.shape[0]))
    return chooser @ D
