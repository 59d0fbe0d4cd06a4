"""Cross-language LSA: latent semantic analysis of paired texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ssi_models.parallel import Workers
from ssi_models.parameters import check_choice
from ssi_models.projections.baselines import Examples
from ssi_models.projections.cosine import VOCABULARIES, pair_matrix, split_words, stacked
from ssi_models.projections.lsa import Projection
from ssi_models.projections.svd import right_singular_vectors
from ssi_models.word_weight import AUTO


@dataclass(kw_only=True, eq=False, repr=False)
class PairProjection(Projection):
    """What projections that are learned from pairs share.

    Args:
        vocabularies: "shared": column j of queries and documents is the same word, and one matrix
            projects both; "separate": the two sides have words of their own (two languages, two
            kinds of text), and a matrix each.
    """

    vocabularies: str = "shared"
    word_weight: float | str = AUTO

    def check_params(self) -> None:
        super().check_params()
        check_choice("vocabularies", self.vocabularies, VOCABULARIES)

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

    rank: int = field(default=200, kw_only=False)

    def _learn(self, given: Examples) -> None:
        factors = [pair_matrix(given.preferences, 1), stacked(given.Q, given.D, self.vocabularies)]
        with Workers(self.threads) as workers:
            A, _ = right_singular_vectors(factors, self.rank, self.seed, workers)
        self.A_q_, self.A_d_ = split_words(A, given.Q.shape[1], self.vocabularies)
