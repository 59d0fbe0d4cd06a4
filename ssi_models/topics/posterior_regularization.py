"""Bilingual topic models whose posteriors are projected: equal topic fractions in both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ssi_models.topics.em import Projection
from ssi_models.topics.topic_model import TopicModel


@dataclass(kw_only=True, eq=False, repr=False)
class BLTMPR(TopicModel):
    """BLTM whose E-step takes, of the posteriors under which the expected fractions of query
    words and of title words in each topic are equal, those closest to the true ones in KL.

    Args:
        tolerance: the largest difference of fractions that a projection may leave.
        max_evaluations: most gradients per pair and iteration; a pair that needs more goes on
            from where it stopped in the next iteration.

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
        if self.max_evaluations < 1:
            raise ValueError(f"max_evaluations must be 1 or more, got {self.max_evaluations}")
        if self.beta == 1:
            raise ValueError("beta must be above 1: with beta 1 a projection may not exist")

    @property
    def _projection(self) -> Projection:
        return Projection(self.tolerance, self.max_evaluations)


@dataclass(kw_only=True, eq=False, repr=False)
class BLTMPR1V(BLTMPR):
    """BLTM-PR with one vocabulary: query and title words have one phi (section 5.2 of the
    paper)."""

    name: ClassVar[str] = "bltm-pr-1v"
    tensors: ClassVar[tuple[str, ...]] = ("phi_q", "background")
    shared: ClassVar[bool] = True
