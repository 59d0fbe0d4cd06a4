"""TrainingOptions: how a model is trained on preferences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ssi_models.parameters import AUTO, check_choice, check_least, check_positive
from ssi_models.training.batches import NEGATIVES, SHUFFLES
from ssi_models.training.held_out import HELD_OUT, VALIDATION_MEASURES
from ssi_models.training.losses import LOSSES, RANK_WEIGHTS

#: Rates that ``learning_rate="auto"`` compares by their training loss.
RATES = (0.003, 0.01, 0.03, 0.1, 0.3)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a model is trained by mini-batches on pairwise preferences.

    A batch holds B relevant pairs and K documents that are negatives of all of them: every
    document is embedded once and B x K tuples (q, d+, d-) are learned from. With candidate lists,
    each pair has k further negatives from the list of its own query.

    Args:
        margin: margin of the ranking loss (1 in the paper; q . d lies in [0, 1], so a smaller
            margin keeps the learned part from drowning the identity), and the softness of the
            logistic loss. "auto" trains with .3 and .1 and keeps what ranks held-out queries best;
            if 2,000 or more queries, or groups, have relevant documents, with .1 only where .3
            teaches the model nothing.
        loss, rank_weight: see :class:`ssi_models.training.losses.PairwiseLoss`.
        negatives, shuffle: see :class:`ssi_models.training.batches.PairStream`.
        learning_rate: step size, or several, the largest first: each is tried if the best epoch
            with the one before was among the first five and training went on until ``patience``
            (not until ``max_epochs`` or ``max_seconds``), and the one that ranks held-out queries
            best is kept. With 2,000 or more queries (or groups) only the first is used, unless it
            teaches the model nothing. "auto": the rate of .003, .01, .03, .1, .3 with the lowest
            training loss after two passes over a sample of the pairs (as in the papers).
        optimizer: ``"adagrad"`` (one accumulator per word) or ``"sgd"`` (fixed rate, the paper).
        accumulator_start: initial value of AdaGrad's accumulators; larger values damp the first
            steps, above all those of rare words.
        batch_size: B. n_negatives: K, the negatives that a batch shares, at most.
        list_share: in [0, 1], weight in a pair's loss of the negatives from its query's list, if
            ``fit`` is given lists; the shared negatives have the rest, or the full weight for
            queries whose list has no negative. With 0, lists are not used at all.
        n_list_negatives: k; drawn uniformly from all ranks of the list.
        max_epochs, patience: an epoch is one pass over the relevant pairs; training stops after
            ``patience`` epochs without a better validation measure.
        least_gain: smallest gain that counts as better, as a share of the best measure so far, so
            that training does not go on for epochs that hardly change anything; 0 = any gain.
        max_seconds: training also stops after the first epoch that ends later than this; the
            result then depends on the machine's speed.
        validation_share: share of the queries, or pairs, held out for early stopping, in (0, 1);
            has no effect where they are held out in parts.
        hold_out: what early stopping and the choice of the factor are based on. "parts": the
            queries are split into three parts, each of which is ranked by a model trained on the
            other two, and the model of all queries keeps the epoch and the factor that are best
            for the three together. "queries": a share of the queries with all their pairs, which
            no model learns from. "auto": "parts" where fewer than 2,000 queries, or groups, have
            relevant documents, else "queries". "pairs": single pairs of any query, for models that
            are to find further documents for the same queries (links of articles).
        validation_measure: "map" or "rank_loss".
        validation_documents: largest number of documents ranked in validation; of a larger
            collection, that many are drawn at random, and the relevant ones added. At most 1,000
            held-out queries rank them, over all models where several are fitted on parts.
        hogwild: every thread learns from batches of its own, without locks (Niu et al., NIPS
            2011), instead of all threads from one batch. Not deterministic: with more than one
            thread, two fits differ, and so do a resumed fit and an uninterrupted one.
    """

    #: The margins that ``margin="auto"`` compares, the usual one first.
    margins: ClassVar[tuple[float, ...]] = (0.3, 0.1)
    #: Allowed values of ``optimizer``.
    optimizers: ClassVar[tuple[str, ...]] = ("adagrad", "sgd")
    #: Optimizers whose steps use all pairs at once.
    whole_passes: ClassVar[tuple[str, ...]] = ()
    validation_measures: ClassVar[tuple[str, ...]] = VALIDATION_MEASURES

    margin: float | str = AUTO
    loss: str = "margin"
    rank_weight: str = "uniform"
    negatives: str = "uniform"
    shuffle: str = "pairs"
    learning_rate: float | Sequence[float] | str = (0.03, 0.01, 0.003)
    optimizer: str = "adagrad"
    accumulator_start: float = 1e-3
    batch_size: int = 256
    n_negatives: int = 256
    list_share: float = 0.25
    n_list_negatives: int = 4
    max_epochs: int = 100
    patience: int = 5
    least_gain: float = 0.005
    max_seconds: float | None = None
    validation_share: float = 0.1
    hold_out: str = "auto"
    validation_measure: str = "map"
    validation_documents: int = 10_000
    hogwild: bool = False

    def check(self) -> None:
        """Raise ValueError naming an option that is out of range."""
        check_least(self, 1, "batch_size", "n_negatives", "n_list_negatives", "patience")
        check_least(self, 1, "validation_documents")
        check_least(self, 0, "max_epochs", "max_seconds")
        check_positive(self, "accumulator_start")
        if self.margin != AUTO:
            check_positive(self, "margin")
        rates = self.rates
        if not rates or not all(0 < rate < np.inf for rate in rates):
            raise ValueError(
                f"learning_rate must be positive and finite, got {self.learning_rate!r}"
            )
        if not 0 <= self.least_gain < np.inf:
            raise ValueError(f"least_gain must be 0 or more and finite, got {self.least_gain}")
        if not 0 <= self.list_share <= 1:
            raise ValueError(f"list_share must be in [0, 1], got {self.list_share}")
        if not 0 < self.validation_share < 1:
            raise ValueError(f"validation_share must be in (0, 1), got {self.validation_share}")
        check_choice("optimizer", self.optimizer, self.optimizers)
        if self.hogwild and self.optimizer in self.whole_passes:
            others = tuple(name for name in self.optimizers if name not in self.whole_passes)
            raise ValueError(f"hogwild: {self.optimizer} takes whole passes; use {others}")
        check_choice("loss", self.loss, LOSSES)
        check_choice("rank_weight", self.rank_weight, RANK_WEIGHTS)
        check_choice("negatives", self.negatives, NEGATIVES)
        check_choice("shuffle", self.shuffle, SHUFFLES)
        check_choice("hold_out", self.hold_out, HELD_OUT)
        check_choice("validation_measure", self.validation_measure, self.validation_measures)

    def check_for_parts(self) -> None:
        """Raise ValueError if an option says how else to hold out queries than in given parts."""
        usual = {"hold_out": (AUTO, "parts"), "validation_share": (type(self).validation_share,)}
        for name, values in usual.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}: a fold holds out its training queries in "
                    "parts; leave it out"
                )

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates to choose from, the usual one first; one if they are not used."""
        asked: Any = self.learning_rate
        if asked == AUTO:
            return RATES
        rates = tuple(asked) if isinstance(asked, (tuple, list)) else (asked,)
        return rates[:1] if self.optimizer in self.whole_passes else rates

    def choices(self) -> dict[str, tuple[float, ...]]:
        """The rates and margins that held-out queries choose from, the usual one first."""
        margins = self.margins if self.margin == AUTO else (float(self.margin),)
        return {"learning_rate": tuple(map(float, self.rates)), "margin": margins}

    @property
    def adagrad_start(self) -> float | None:
        """Initial value of AdaGrad's accumulators; None with another optimizer."""
        return self.accumulator_start if self.optimizer == "adagrad" else None
