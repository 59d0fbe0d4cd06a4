"""Training data: matrices, the pairs that a model learns from and those that are held out."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssi_models.matrices import arrays
from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.held_out import MAX_QUERIES, hold_out_pairs, hold_out_queries, n_validated
from ssi_models.training.options import TrainingOptions
from ssi_models.training.preferences import (
    Preferences,
    candidate_rows,
    check_any_left,
    check_excluded,
    check_shapes,
)


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The checked data that a model is fitted on.

    Attributes:
        Q, D: checked matrices. preferences: all preferences.
        training, validating: the preferences that are learned from, and those held out.
        excluded: int64 [m] or None. candidates: int64, document rows that may be negatives.
        only_relevant: whether the candidates are the documents that are relevant in training.
        part: number of the run, within a joint fit, that the data belong to.
        candidate_lists: the documents that a model is to rank for each query, or None.
        n_validated: largest number of held-out queries that are ranked in validation.
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
    n_validated: int = MAX_QUERIES
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_any_left(self.training)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays that make up the data, for digests."""
        given = self.preferences
        excluded = np.zeros(0, np.int64) if self.excluded is None else self.excluded
        listed = self.candidate_lists
        lists = () if listed is None else (listed.offsets, listed.document)
        return (
            *arrays(self.Q), *arrays(self.D), given.query, given.document, given.grade,
            given.rejected_query, given.rejected_document, self.candidates, excluded, *lists,
            *given.weights,
        )  # fmt: skip

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The result of ``make()``, computed once and shared by all runs on the same matrices. If
        it also depends on the preferences, its key must contain ``part``."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def without(self, part: NDArray[np.int64], number: int) -> TrainingData:
        """The data with the preferences of a part's queries held out. The parts of a joint fit are
        validated together, and share the limit on the number of ranked queries."""
        training = self.preferences.without(part, self.excluded)
        pool = np.unique(training.document) if self.only_relevant else self.candidates
        return replace(
            self,
            preferences=training,
            training=training,
            validating=self.preferences.only(part),
            candidates=pool,
            part=number,
            n_validated=n_validated(part, len(self.preferences.queries)),
        )


def training_data(
    options: TrainingOptions,
    seed: int,
    Q: sp.csr_matrix,
    D: sp.csr_matrix,
    preferences: Preferences,
    *,
    groups: ArrayLike | None = None,
    in_parts: bool = False,
    excluded: ArrayLike | None = None,
    candidates: ArrayLike | str | None = None,
    lists: CandidateLists | None = None,
) -> TrainingData:
    """Check the data and hold out preferences; none ``in_parts``, where a joint fit does it.

    Args:
        Q, D: checked matrices. others: see ``TrainableModel.fit``.

    Raises:
        ValueError: as ``TrainableModel.fit``.
    """
    check_shapes(Q, D, preferences)
    barred = check_excluded(excluded, Q.shape[0], D.shape[0])
    if in_parts:
        kept, held_out = preferences, preferences.only(np.zeros(0, np.int64))
    elif options.hold_out != "pairs":
        kept, held_out = hold_out_queries(preferences, groups, options.validation_share, seed)
    elif groups is None:
        kept, held_out = hold_out_pairs(preferences, options.validation_share, seed)
    else:
        raise ValueError("groups: single pairs are held out; use hold_out='queries'")
    if lists is not None:
        if not isinstance(lists, CandidateLists):
            raise TypeError(f"candidate_lists must be CandidateLists, got {type(lists)}")
        if (lists.n_queries, lists.n_documents) != (Q.shape[0], D.shape[0]):
            raise ValueError(
                f"candidate_lists are over {lists.n_queries} x {lists.n_documents} rows, Q and D "
                f"have {Q.shape[0]} x {D.shape[0]}"
            )
        if options.negatives == "given":
            raise ValueError(
                "candidate_lists: negatives='given' takes those that are judged, not those of lists"
            )
    return TrainingData(
        Q,
        D,
        preferences,
        kept.without_reversed(held_out, barred),
        held_out,
        barred,
        candidate_rows(candidates, preferences),
        isinstance(candidates, str),
        candidate_lists=lists if options.list_share else None,
    )
