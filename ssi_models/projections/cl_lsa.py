"""Cross-language LSA: latent semantic analysis of paired texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.baselines import Examples
from ssi_models.fitting import check_choice
from ssi_models.parallel import Workers
from ssi_models.projections.cosine import VOCABULARIES, pair_matrix, split_words, stacked
from ssi_models.projections.lsa import Projection
from ssi_models.projections.svd import right_singular_vectors
from ssi_models.validation import mixed
from ssi_models.word_weight import AUTO, WORD_WEIGHTS, WeighsWords


@dataclass(kw_only=True, eq=False, repr=False)
class PairProjection(WeighsWords, Projection):
    """What projections that are learned from pairs share.

    Args:
        word_weight: weight w, 0 to 1, of plain word matching: f = w q . d + (1 - w) cos(A'q, A'd),
            or "auto", see :class:`ssi_models.word_weight.WeighsWords`. 0 is the paper. Separate
            vocabularies have no words in common, and no such part.
        vocabularies: "shared": column j of queries and documents is the same word, and one matrix
            projects both; "separate": the two sides have words of their own (two languages, two
            kinds of text), and a matrix each.
    """

    vocabularies: str = "shared"
    word_weight: float | str = AUTO

    def check_params(self) -> None:
        super().check_params()
        self.check_weight()
        check_choice("vocabularies", self.vocabularies, VOCABULARIES)

    @property
    def weight_of_words(self) -> float:
        return super().weight_of_words if self.same_words else 0.0

    def fit_alone(self, *given: Any, **options: Any) -> Self:
        return Projection.fit(self, *given, **options)

    def mixtures(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> Iterator[NDArray[np.float32]]:
        learned = self._project(Q, self.A_q_) @ self._project(D, self.A_d_).T
        words = (Q @ D.T).toarray() if self.same_words else None
        return mixed([(w, 1 - w) for w in WORD_WEIGHTS], words, learned)

    def _fitted_header(self) -> dict[str, Any]:
        return {"word_weight": self.word_weight_}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self.word_weight_ = fitted.get("word_weight", 0.0)

    @property
    def same_words(self) -> bool:
        return self.vocabularies == "shared"


@dataclass(kw_only=True, eq=False, repr=False)
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
            A, _ = right_singular_vectors(factors, self.rank, self.seed, workers)
        self.A_q_, self.A_d_ = split_words(A, given.Q.shape[1], self.vocabularies)
