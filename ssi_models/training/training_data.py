"""What a model is fitted on, and the checks of what a caller gives for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.preferences import Preferences, check_preferences


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a model is fitted on, checked.

    Attributes:
        Q, D: checked matrices. preferences: all of them.
        training, validating: those that are learned from, those that are held out.
        excluded: int64 [m] or None. candidates: int64, document rows that may be negatives.
        only_relevant: whether the candidates are the documents that are relevant in training.
        part: which of a joint fit's runs the data are of.
        candidate_lists: the documents that a model is to rank for each query, or None.
    """

    Q: sp.csr_matrix
    D: sp.csr_matrix
    preferences: Preferences
    training: Preferences
    validating: Preferences
    excluded: NDArray[np.int64] | None
    candidates: NDArray[np.int64]
    only_relevant: bool = False
    part: int = 0
    candidate_lists: CandidateLists | None = None
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """``make()``, called once: runs on the same matrices share its result. What depends on
        the preferences too must have ``part`` in its key."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def without(self, part: NDArray[np.int64], number: int) -> TrainingData:
        """The data of the queries outside a part, whose own preferences are held out."""
        training = self.preferences.without(part)
        pool = np.unique(training.document) if self.only_relevant else self.candidates
        return replace(
            self,
            preferences=training,
            training=training,
            validating=self.preferences.only(part),
            candidates=pool,
            part=number,
        )


def check_same_words(model: Any, Q: sp.csr_matrix, D: sp.csr_matrix) -> None:
    """Raise ValueError if two matrices cannot be over the same words."""
    if Q.shape[1] == D.shape[1]:
        return
    separate = "model 'cross-language'"
    if hasattr(model, "vocabularies"):
        separate = f"vocabularies='separate', or {separate}"
    raise ValueError(
        f"Q has {Q.shape[1]} columns, D has {D.shape[1]}: column j must be the same word in both; "
        f"for two vocabularies use {separate}"
    )


def check_shapes(Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences) -> None:
    """Raise ValueError if preferences were made for other matrices."""
    check_preferences(preferences)
    if (preferences.n_queries, preferences.n_documents) != (Q.shape[0], D.shape[0]):
        raise ValueError(
            f"preferences are over {preferences.n_queries} x {preferences.n_documents} rows, "
            f"Q and D have {Q.shape[0]} x {D.shape[0]}"
        )


def check_lists(lists: CandidateLists, preferences: Preferences) -> None:
    """Raise an error unless these are candidate lists of the queries and documents that the
    preferences are over."""
    if not isinstance(lists, CandidateLists):
        raise TypeError(f"candidate_lists must be CandidateLists, got {type(lists)}")
    if (lists.n_queries, lists.n_documents) != (preferences.n_queries, preferences.n_documents):
        raise ValueError(
            f"candidate_lists are over {lists.n_queries} x {lists.n_documents} rows, Q and D have "
            f"{preferences.n_queries} x {preferences.n_documents}"
        )
