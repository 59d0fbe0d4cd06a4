"""EMModel: the base class of language models that learn by EM from pairs of queries and titles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.matrices import lengths_of
from ssi_models.parameters import model_class
from ssi_models.persistence import count, numbers
from ssi_models.topics.language_model import LanguageModel
from ssi_models.topics.state import Iteration
from ssi_models.training.preferences import Preferences


@model_class
class EMModel(LanguageModel):
    """A language model that learns by EM from pairs of queries and titles.

    Attributes:
        history_: list of :class:`ssi_models.topics.state.Iteration`.
        n_left_out_: number of pairs that were left out because a side is empty.
    """

    weighs_pairs: ClassVar[bool] = True

    history_: list[Iteration] = field(init=False)
    n_left_out_: int = field(init=False)

    @property
    def in_pieces(self) -> bool:
        return True

    def can_learn(self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences) -> bool:
        return bool(_have_words(*self._begin(Q, D, preferences), preferences).any())

    def _both_sides(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None]:
        """The pairs (query rows, title rows, weights if there are any) that have words on both
        sides; records how many are left out."""
        if preferences is None:
            raise ValueError(f"{type(self).__name__} learns from pairs: give preferences")
        kept = _have_words(Q, D, preferences)
        if not kept.any():
            raise ValueError(f"none of the {len(preferences)} pairs has words on both sides")
        self.n_left_out_ = int(np.count_nonzero(~kept))
        weight = None if preferences.weight is None else preferences.weight[kept]
        return preferences.query[kept], preferences.document[kept], weight

    def _fitted_header(self) -> dict[str, Any]:
        return {
            **self.weight_header(),
            "n_left_out": self.n_left_out_,
            "history": [vars(line) for line in self.history_],
        }

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self.n_left_out_ = count(fitted, "n_left_out")
        self.restore_weight(fitted)
        self.history_ = [Iteration(**numbers(line)) for line in fitted["history"]]


def _have_words(Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences) -> NDArray[np.bool_]:
    """bool [n]: whether query and title of each pair have words."""
    return (lengths_of(Q)[preferences.query] > 0) & (lengths_of(D)[preferences.document] > 0)
