"""Topic models of titles (PLSA) and of query-title pairs (BLTM), and posteriors that agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from ssi_models.base import LearnsFrom
from ssi_models.matrices import lengths_of
from ssi_models.parameters import check_least, model_class
from ssi_models.stored_tensors import Tensor
from ssi_models.topics.em import Blocks, PosteriorConstraint
from ssi_models.topics.topic_model import TopicModel
from ssi_models.training.preferences import Preferences

#: The arrays of models in which queries and titles share one phi.
_ONE_PHI = {name: TopicModel.tensors[name] for name in ("phi_q", "background")}


@model_class
class PLSA(TopicModel):
    """Topics of titles alone, by MAP estimation: P(w|d) = sum_z phi_zw theta_dz.

    Every non-empty row of D is a text of its own. Queries and preferences are only used to choose
    ``lambda2``, the weight of the title's own words; without preferences it is .95.

    Reference:
        Hofmann: "Probabilistic latent semantic indexing", SIGIR 1999; MAP as in Gao, Toutanova,
        Yih: "Clickthrough-based latent semantic models for web search", SIGIR 2011.
    """

    name: ClassVar[str] = "plsa"
    learns_from: ClassVar[LearnsFrom] = "documents"
    tensors: ClassVar[Mapping[str, Tensor]] = _ONE_PHI
    shared: ClassVar[bool] = True
    weighs_pairs: ClassVar[bool] = False

    unchosen: ClassVar[float] = 0.95
    reads_no_queries: ClassVar[bool] = True

    def _training_pairs(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences | None
    ) -> Blocks:
        document = np.flatnonzero(lengths_of(D) > 0)
        if not len(document):
            raise ValueError("D has no word in any row: there is nothing to learn from")
        self.n_left_out_ = D.shape[0] - len(document)
        nothing = Q[:0]
        nothing.resize((1, D.shape[1]))
        return Blocks(nothing, D, np.zeros(len(document), np.int64), document)


@model_class
class BLTM(TopicModel):
    """Query and title of a pair share theta, and express its topics in words of their own:
    phi^q and phi^d.

    Reference:
        Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web search",
        SIGIR 2011, eq. 3-8.
    """

    name: ClassVar[str] = "bltm"


@model_class
class BLTMPR(TopicModel):
    """BLTM whose E-step takes, of the posteriors under which the expected fractions of query
    words and of title words in each topic are equal, those closest to the true ones in KL.

    Args:
        tolerance: the largest difference of fractions that a projection may leave.
        max_evaluations: largest number of gradients per pair and iteration; a pair that needs more
            continues in the next iteration.

    Reference:
        Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web search",
        SIGIR 2011, eq. 9-13.
    """

    name: ClassVar[str] = "bltm-pr"

    tolerance: float = 1e-6
    max_evaluations: int = 200

    def check_params(self) -> None:
        super().check_params()
        if not 1e-6 <= self.tolerance < 1:
            raise ValueError(
                f"tolerance must be in 1e-6..1 (parameters are float32), got {self.tolerance}"
            )
        check_least(self, 1, "max_evaluations")
        if self.beta == 1:
            raise ValueError("beta must be above 1: with beta 1 a projection may not exist")

    @property
    def _constraint(self) -> PosteriorConstraint:
        return PosteriorConstraint(self.tolerance, self.max_evaluations)


@model_class
class BLTMPR1V(BLTMPR):
    """BLTM-PR with one vocabulary: query and title words have one phi (section 5.2 of the
    paper)."""

    name: ClassVar[str] = "bltm-pr-1v"
    tensors: ClassVar[Mapping[str, Tensor]] = _ONE_PHI
    shared: ClassVar[bool] = True
