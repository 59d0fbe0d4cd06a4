"""Latent semantic analysis, of queries and documents or of documents alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.base import LearnsFrom
from ssi_models.matrices import take_rows
from ssi_models.mixing import choose_alpha
from ssi_models.parallel import Workers
from ssi_models.parameters import AUTO, check_choice, check_least, model_class
from ssi_models.projections.baselines import Baseline, Examples
from ssi_models.projections.cosine import (
    VOCABULARIES,
    CosineOfProjections,
    pair_matrix,
    split_words,
    stacked,
)
from ssi_models.projections.svd import right_singular_vectors
from ssi_models.representation import Representation, joined, scaled
from ssi_models.stored_tensors import Tensor
from ssi_models.training.held_out import mixed
from ssi_models.word_weight import WORD_WEIGHTS, WeighsWords

SCALINGS = ("none", "inverse")
#: The texts whose singular vectors are computed.
TEXTS = ("both", "documents")


@model_class
class Projection(WeighsWords, CosineOfProjections, Baseline):
    """Base class of projections that solve an eigenproblem.

    Args:
        rank: k, the number of dimensions; there are fewer, which ``remarks`` report, if the texts
            have a lower rank.
        word_weight: weight w, 0 to 1, of plain word matching: f = w q . d + (1 - w) cos(A'q, A'd),
            or "auto", see :class:`ssi_models.word_weight.WeighsWords`. 0 as in the papers. Separate
            vocabularies have no words in common, and hence no such part.
    """

    scoring_params: ClassVar[tuple[str, ...]] = ("threads", "word_weight")
    tensors: ClassVar[Mapping[str, Tensor]] = {
        "A_q": Tensor(("query_words", "rank")),
        "A_d": Tensor(("words", "rank")),
    }

    #: Numbers of dimensions that rank="auto" compares, ascending.
    compared_ranks: ClassVar[tuple[int, ...]] = ()

    rank: int | str = field(default=100, kw_only=False)

    word_weight: float | str = 0.0

    A_q_: NDArray[np.float32] = field(init=False)
    A_d_: NDArray[np.float32] = field(init=False)

    @property
    def remarks(self) -> list[str]:
        found = super().remarks
        if hasattr(self, "A_q_") and self.rank != AUTO and self.A_q_.shape[1] < int(self.rank):
            found.append(
                f"has {self.A_q_.shape[1]} dimensions instead of {self.rank}: the texts it learned "
                "from have no more"
            )
        return found

    def check_params(self) -> None:
        super().check_params()
        if self.rank != AUTO:
            check_least(self, 1, "rank")
        elif not self.compared_ranks:
            raise ValueError(f"rank must be a number, got {self.rank!r}")

    @property
    def weight_of_words(self) -> float:
        return super().weight_of_words if self.same_words else 0.0

    @property
    def word_weights(self) -> Sequence[float]:
        return WORD_WEIGHTS if self.same_words else (0.0,)

    def fit_alone(self, *given: Any, **options: Any) -> Self:
        return Baseline.fit(self, *given, **options)

    def mixtures(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> Iterator[NDArray[np.float32]]:
        words = (Q @ D.T).toarray() if self.same_words else None
        weights = [(w, 1 - w) for w in self.word_weights]
        for rank in self.ranks:
            A_q, A_d = (np.ascontiguousarray(A[:, :rank]) for A in (self.A_q_, self.A_d_))
            yield from mixed(weights, words, self._project(Q, A_q) @ self._project(D, A_d).T)

    @property
    def ranks(self) -> Sequence[int]:
        return self.compared_ranks if self.rank == AUTO else (int(self.rank),)

    def keep_rank(self, rank: int) -> None:
        if rank < self.A_q_.shape[1]:
            symmetric = self.A_d_ is self.A_q_
            self.A_q_ = np.ascontiguousarray(self.A_q_[:, :rank])
            self.A_d_ = self.A_q_ if symmetric else np.ascontiguousarray(self.A_d_[:, :rank])

    def _fitted_header(self) -> dict[str, Any]:
        return self.weight_header()

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self.restore_weight(fitted)


@model_class
class LSA(Projection):
    """f(q, d) = cosine of the projections of q and d to the leading singular vectors of the texts.

    PCA on the uncentred correlation matrix of the texts; labels are not used. The sign of each
    dimension is chosen so that its largest weight is positive. Singular vectors are found by
    randomised subspace iteration (five passes): where singular values lie close together, the last
    ones, and with them scores, differ from those of a full decomposition.

    Args:
        texts: "both": the documents and the queries that the preferences name (no others, so that
            test queries stay unseen); "documents": the documents alone. A column of a feature table
            that reads no judgements has no preferences, so both are the documents alone.
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
    texts: str = "both"

    def check_params(self) -> None:
        super().check_params()
        check_choice("texts", self.texts, TEXTS)
        check_choice("scaling", self.scaling, SCALINGS)

    def _learn(self, given: Examples) -> None:
        texts = given.D
        if self.texts == "both":
            queries = take_rows(given.Q, np.unique(given.preferences.query))
            texts = stacked(queries, given.D, "shared")
        with Workers(self.threads) as workers:
            A, values = right_singular_vectors([texts], self.ranks[-1], self.seed, workers)
        if self.scaling == "inverse":
            A = (A / values).astype(np.float32)
        self.A_q_, self.A_d_ = split_words(A, given.Q.shape[1], "shared")


@model_class
class LSI(LSA):
    """f(q, d) = cosine of the projections of q and d to the leading singular vectors of D.

    ``LSA(200, texts="documents")`` under its own name; a baseline of Bai et al.

    Reference:
        Deerwester, Dumais, Landauer, Furnas, Harshman: "Indexing by latent semantic analysis",
        JASIS 41(6), 1990.
    """

    name: ClassVar[str] = "lsi"

    rank: int | str = field(default=200, kw_only=False)
    texts: str = "documents"


@model_class
class LsiTfIdf(LSI):
    """f(q, d) = alpha LSI(q, d) + (1 - alpha) q . d.

    Args:
        alpha: the factor, in [0, 1]; None = chosen by the rank loss of training triples.

    Attributes:
        alpha_: float32 [1].
    """

    name: ClassVar[str] = "lsi-tfidf"
    learns_from: ClassVar[LearnsFrom] = "preferences"
    tensors: ClassVar[Mapping[str, Tensor]] = {**Projection.tensors, "alpha": Tensor((1,))}
    mixed_by: ClassVar[tuple[str, ...]] = ("alpha_",)

    alpha: float | None = None

    alpha_: NDArray[np.float32] = field(init=False)

    @property
    def remarks(self) -> list[str]:
        found = super().remarks
        if self.alpha is None and self.only_same_words:
            found.append(
                "gives no weight to LSI, by the rank loss of its training queries, and is plain "
                "word matching (vsm): leave it out"
            )
        return found

    @property
    def only_same_words(self) -> bool:
        return super().only_same_words or (hasattr(self, "alpha_") and bool(self.alpha_[0] == 0))

    def check_params(self) -> None:
        super().check_params()
        if self.alpha is not None and not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must be in [0, 1], got {self.alpha}")
        if self.word_weight == AUTO:
            raise ValueError("word_weight: alpha is the weight that is chosen here; give a number")

    def _learn(self, given: Examples) -> None:
        super()._learn(given)
        if self.alpha is not None:
            self.alpha_ = np.array([self.alpha], np.float32)
        else:
            choose_alpha(self, given, given.preferences)

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        alpha = float(self.alpha_[0])
        own = super().query_representation(Q, words)
        return joined(scaled(own, alpha), scaled(Representation(sparse=Q), 1 - alpha))

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        return joined(super().document_representation(D), Representation(sparse=D))


@model_class
class PairProjection(Projection):
    """Base class of projections that are learned from pairs.

    Args:
        rank: k, the number of dimensions, or "auto": one of ``compared_ranks``, chosen together
            with ``word_weight="auto"`` by how held-out queries are ranked, or the largest if there
            are none to choose by. There are fewer if the texts have a lower rank.
        vocabularies: "shared": column j of queries and documents is the same word, and one matrix
            projects both; "separate": each side has its own words (two languages, two kinds of
            text) and its own matrix.
    """

    compared_ranks: ClassVar[tuple[int, ...]] = (50, 100, 200)

    rank: int | str = field(default=AUTO, kw_only=False)
    vocabularies: str = "shared"
    word_weight: float | str = AUTO

    def check_params(self) -> None:
        super().check_params()
        check_choice("vocabularies", self.vocabularies, VOCABULARIES)

    @property
    def same_words(self) -> bool:
        return self.vocabularies == "shared"


@model_class
class CLLSA(PairProjection):
    """f(q, d) = cosine of projections to the leading singular vectors of concatenated pairs.

    Each relevant pair is one text: q + d, or [q, d] where the vocabularies are separate. A pair of
    any grade counts once.

    Reference:
        Dumais, Letsche, Littman, Landauer: "Automatic cross-language retrieval using latent
        semantic indexing", AAAI spring symposium, 1997; Gao, Toutanova, Yih: "Clickthrough-based
        latent semantic models for web search", SIGIR 2011, section 4.
    """

    name: ClassVar[str] = "cl-lsa"

    def _learn(self, given: Examples) -> None:
        factors = [pair_matrix(given.preferences, 1), stacked(given.Q, given.D, self.vocabularies)]
        with Workers(self.threads) as workers:
            A, _ = right_singular_vectors(factors, self.ranks[-1], self.seed, workers)
        self.A_q_, self.A_d_ = split_words(A, given.Q.shape[1], self.vocabularies)
