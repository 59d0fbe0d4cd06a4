"""Models that mix their score with plain word matching, and the choice of the weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ltr_base.blas import one_blas_thread
from ltr_base.slices import slices
from ssi_models.base import MatchingModel
from ssi_models.checkpoint import checkpoint_of, delete_checkpoint
from ssi_models.matrices import check_csr, take_rows
from ssi_models.parallel import Workers
from ssi_models.parameters import AUTO
from ssi_models.persistence import count
from ssi_models.remarks import of_amount, of_word_weight
from ssi_models.training.held_out import (
    BLOCK,
    Validation,
    exceeds_noise,
    holds_out_parts,
    mean_value,
    n_groups,
    n_validated,
    split_queries,
)
from ssi_models.training.preferences import (
    Preferences,
    check_excluded,
    check_parts,
    check_preferences,
)

#: Weights of word matching that "auto" compares.
WORD_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
#: Number of parts: of few queries, each half is held out once; of many, a single tenth.
_FEW_PARTS, _MANY_PARTS = 2, 10
_VALIDATION_DOCUMENTS = 10_000


class WeighsWords(MatchingModel):
    """f = w words(q, d) + (1 - w) model(q, d), both as defined by the subclass.

    With the weight "auto", the queries that have relevant documents are split into halves. Each
    half is ranked by a copy of the model fitted on the other half, and the weight that is best for
    both together becomes that of the model, which is fitted on all queries. Where 2,000 queries or
    more have relevant documents, only one part, a tenth of them, is held out. The weight 1, word
    matching alone, is kept unless another one is better by more than chance would explain.

    Attributes:
        word_weight_: the chosen weight, in [0, 1].
        n_pairs_, n_queries_: relevant pairs that were learned from, and queries that have them.
    """

    #: Name of the constructor parameter for the weight, a number or "auto".
    weight_parameter: ClassVar[str] = "word_weight"
    #: The weight if there are fewer than two queries with judgements to choose it by.
    unchosen: ClassVar[float] = 0.5
    #: Whether labels and queries only choose the weight, so that all copies have the same fit.
    reads_no_queries: ClassVar[bool] = False
    shared_by_parts: ClassVar[str] = "their weight of word matching"
    seed: int = 0

    word_weight_: float = 0.0
    n_queries_: int = 0
    n_pairs_: int = 0
    _chosen: bool = False

    @property
    def looks_at_labels(self) -> bool:
        return super().looks_at_labels or self.holds_out_queries

    @property
    def holds_out_queries(self) -> bool:
        return bool(getattr(self, self.weight_parameter) == AUTO)

    @property
    def remarks(self) -> list[str]:
        if not self.looks_at_labels or not hasattr(self, "n_words_"):
            return []
        found = of_amount(self.n_queries_, self.n_pairs_)
        if getattr(self, self.weight_parameter) == AUTO and len(self.word_weights) > 1:
            found += of_word_weight(
                self.word_weight_, chosen=self._chosen, n_queries=self.n_queries_
            )
        return found

    def weight_header(self) -> dict[str, Any]:
        """The fitted attributes of this class as a JSON-compatible mapping."""
        return {
            "word_weight": self.word_weight_,
            "chosen": self._chosen,
            "n_queries": self.n_queries_,
            "n_pairs": self.n_pairs_,
        }

    def restore_weight(self, fitted: Mapping[str, Any]) -> None:
        """The inverse of :meth:`weight_header`."""
        self.word_weight_, self._chosen = fitted["word_weight"], bool(fitted["chosen"])
        check_word_weight(self.word_weight_)
        self.n_queries_, self.n_pairs_ = count(fitted, "n_queries"), count(fitted, "n_pairs")

    @property
    def weight_of_words(self) -> float:
        """w: the value of the parameter or, if that is "auto", the chosen weight."""
        asked = getattr(self, self.weight_parameter)
        return self.word_weight_ if asked == AUTO else float(asked)

    @property
    def only_same_words(self) -> bool:
        return hasattr(self, "n_words_") and self.weight_of_words == 1

    def fit(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences | None = None,
        *,
        groups: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        self.check_params()
        if preferences is not None:
            check_preferences(preferences)
        asked = getattr(self, self.weight_parameter)
        parts: list[NDArray[np.int64]] = []
        # A previous fit, which a warm start continues, saw the labels of all parts.
        if asked == AUTO and preferences is not None and not self._goes_on:
            parts = self._parts(Q, D, preferences, groups, options.get("excluded"))
        with self._unchanged_on_error():
            if preferences is not None and parts:
                self._fit_in_parts(Q, D, preferences, parts, **options)
                return self
            if not self._goes_on:
                self.word_weight_ = self.unchosen if asked == AUTO else float(asked)
                self._chosen = False
            self._count(preferences)
            self.fit_alone(Q, D, preferences, groups=groups, **options)
        delete_checkpoint(options.get("checkpoint"))
        return self

    def fit_parts(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        parts: Sequence[NDArray[np.int64]],
        **options: Any,
    ) -> list[Self]:
        self.check_params()
        check_parts(parts, preferences, options.get("excluded"))
        if self._goes_on:
            raise ValueError("warm_start: a part's model would start from one that saw its labels")
        with self._unchanged_on_error():
            return self._fit_in_parts(Q, D, preferences, parts, **options)

    def fit_alone(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences | None, **options: Any
    ) -> Self:
        """Learn everything but the weight. The checkpoint, whose last state is that of the fitted
        model, is kept: other copies of a joint fit may not be finished."""
        raise TypeError(f"{type(self).__name__} does not define fit_alone")

    def mixtures(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> Iterator[NDArray[np.float32]]:
        """Yield f of every query with every document, float32 [m, n], for each of ``ranks`` and
        each of ``word_weights``."""
        raise TypeError(f"{type(self).__name__} does not define mixtures")

    @property
    def word_weights(self) -> Sequence[float]:
        """Weights that "auto" compares, word matching alone last; a single one is simply used."""
        return WORD_WEIGHTS

    @property
    def ranks(self) -> Sequence[int]:
        """Numbers of dimensions to compare together with the weights; a single one is simply used.
        ``mixtures`` yields every weight for the first, then every weight for the second, ..."""
        return (0,)

    def keep_rank(self, rank: int) -> None:
        """Drop all dimensions after the first ``rank``."""

    def check_params(self) -> None:
        super().check_params()
        check_word_weight(getattr(self, self.weight_parameter), self.weight_parameter)

    @property
    def _goes_on(self) -> bool:
        """Whether a fit continues from the previous one (warm start)."""
        return bool(getattr(self, "warm_start", False)) and hasattr(self, "n_words_")

    def can_learn(self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences) -> bool:
        """Whether the preferences contain anything to learn from."""
        return len(preferences) > 0

    def _parts(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        groups: ArrayLike | None,
        excluded: ArrayLike | None,
    ) -> list[NDArray[np.int64]]:
        """The parts of the queries to hold out in turn to choose the weight; empty if there are too
        few queries."""
        if n_groups(preferences, groups) < 2:
            return []
        if holds_out_parts(preferences, groups):
            parts = split_queries(preferences, groups, _FEW_PARTS, self.seed)
        else:
            parts = split_queries(preferences, groups, _MANY_PARTS, self.seed)[:1]
        sources = check_excluded(excluded, preferences.n_queries, preferences.n_documents)
        enough = all(self.can_learn(Q, D, preferences.without(part, sources)) for part in parts)
        return parts if enough else []

    def _fit_in_parts(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        parts: Sequence[NDArray[np.int64]],
        *,
        checkpoint: Any = None,
        **options: Any,
    ) -> list[Self]:
        asked = getattr(self, self.weight_parameter)
        excluded = options.get("excluded")
        sources = check_excluded(excluded, preferences.n_queries, preferences.n_documents)
        copies, values = [], []
        n_held_out = sum(map(len, parts))
        paths = [checkpoint_of(checkpoint, f"part{number}") for number in range(1, len(parts) + 1)]
        same_fit = self.reads_no_queries
        if same_fit:
            self.fit_alone(Q, D, preferences, checkpoint=checkpoint, **options)
        for path, part in zip(paths, parts, strict=True):
            model, others = self.copy(), preferences.without(part, sources)
            if not same_fit:
                model.fit_alone(Q, D, others, checkpoint=path, **options)
            held_out = preferences.only(part)
            if len(held_out) and asked == AUTO:
                most = n_validated(part, n_held_out)
                values.append(model._held_out_values(Q, D, held_out, others, most, sources))
            model._count(others)
            copies.append(model)
        self._count(preferences)
        if not same_fit:
            self.fit_alone(Q, D, preferences, checkpoint=checkpoint, **options)
        weight, rank = self.unchosen if asked == AUTO else float(asked), self.ranks[-1]
        if values:
            measured = np.concatenate(values, axis=1)
            best = int(np.argmax([mean_value(row) for row in measured]))
            weights = self.word_weights
            rank, weight = self.ranks[best // len(weights)], weights[best % len(weights)]
            if len(weights) > 1 and not exceeds_noise(measured[best], measured[-1]):
                weight = weights[-1]
        for model in (self, *copies):
            model.word_weight_, model._chosen = weight, bool(values)
            model.keep_rank(rank)
        for path in (*paths, checkpoint):
            delete_checkpoint(path)
        return self._mixed_alike(copies)

    def _count(self, preferences: Preferences | None) -> None:
        """Record how many queries and pairs were learned from."""
        if preferences is not None:
            self.n_queries_, self.n_pairs_ = len(preferences.queries), len(preferences)

    @one_blas_thread()
    def _held_out_values(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        held_out: Preferences,
        known: Preferences,
        n_queries: int,
        excluded: NDArray[np.int64] | None,
    ) -> NDArray[np.float64]:
        """Average precision of the held-out queries for each rank and weight: float64
        [ranks * weights, m]."""
        validation = Validation(
            held_out, known, excluded, _VALIDATION_DOCUMENTS, self.seed, n_queries
        )
        queries = validation.queries
        documents = take_rows(check_csr("D", D), validation.documents)
        values = np.empty((len(self.ranks) * len(self.word_weights), len(queries)))
        with Workers(self.threads) as workers:
            for rows in slices(len(queries), BLOCK // len(validation.documents)):
                block = take_rows(check_csr("Q", Q), queries[rows])
                for line, scores in zip(values, self.mixtures(block, documents), strict=True):
                    line[rows] = validation.values("map", scores, workers, rows)
        return values


def check_word_weight(weight: float | str, name: str = "word_weight") -> None:
    """Raise ValueError unless the weight is a number from 0 to 1 or "auto"."""
    if weight != AUTO and not 0 <= float(weight) <= 1:
        raise ValueError(f"{name} must be 'auto' or in 0..1, got {weight!r}")
