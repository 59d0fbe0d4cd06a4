"""RankingModel: everything that models trained on preferences share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssi_models import remarks
from ssi_models.base import MatchingModel, check_parts
from ssi_models.matrices import arrays, check_unit_rows
from ssi_models.parallel import Workers
from ssi_models.parameters import check_choice, digest_of
from ssi_models.training.batches import NEGATIVES, SHUFFLES
from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.held_out import (
    HELD_OUT,
    N_PARTS,
    VALIDATION_MEASURES,
    hold_out_pairs,
    hold_out_queries,
    holds_out_parts,
    split_queries,
)
from ssi_models.training.loop import Epoch, History, Settings, train
from ssi_models.training.losses import EMPHASES, LOSSES
from ssi_models.training.preferences import (
    Preferences,
    candidate_rows,
    check_excluded,
    check_preferences,
    check_unweighted,
)
from ssi_models.training.run import JointRun, Run, begin_at_best_scale
from ssi_models.training.towers import Scorer
from ssi_models.training.training_data import (
    TrainingData,
    check_lists,
    check_same_words,
    check_shapes,
)
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

OPTIMIZERS = ("adagrad", "sgd")
#: Rates that ``learning_rate="auto"`` compares by their training loss.
RATES = (0.003, 0.01, 0.03, 0.1, 0.3)


@dataclass(kw_only=True, eq=False, repr=False)
class RankingModel(MatchingModel):
    """A model trained by mini-batches on pairwise preferences.

    A batch holds B relevant pairs and K documents that are negatives of all of them: every
    document is embedded once and B x K tuples (q, d+, d-) are learned from. With candidate lists,
    each pair has k further negatives from the list of its own query.

    Args:
        margin: margin of the ranking loss (1 in the paper; q . d lies in [0, 1], so a smaller
            margin keeps the learned part from drowning the identity), and the softness of the
            logistic loss.
        loss, emphasis: see :class:`ssi_models.training.losses.PairwiseLoss`.
        negatives, shuffle: see :class:`ssi_models.training.batches.PairStream`.
        learning_rate: step size, or "auto": the rate of .003, .01, .03, .1, .3 with the lowest
            training loss after two passes over a sample of the pairs (the papers choose it so).
        optimizer: ``"adagrad"`` (one accumulator per word) or ``"sgd"`` (fixed rate, the paper).
        accumulator_start: initial value of AdaGrad's accumulators; larger values damp the first
            steps, above all those of rare words.
        scales: candidate factors of the learned part, f = s g(q, d) + q . d. After every epoch the
            one with the best validation measure is noted, and that of the epoch that is kept
            becomes part of the parameters. ``(1.0,)`` is the paper; smaller ones hold the model up
            by its identity where the learned part has little to say, and 0 is an honest answer
            where it has nothing. Ties go to the first.
        batch_size: B. n_negatives: K.
        list_share: in [0, 1], weight in a pair's loss of the negatives from its query's list, where
            ``fit`` is given lists; the shared negatives have the rest, and all of it for queries
            whose list has no negative. With 0, lists are not used at all.
        n_list_negatives: k; drawn from all ranks of the list alike.
        max_epochs, patience: an epoch is one pass over the relevant pairs; training stops after
            ``patience`` epochs without a better validation measure.
        least_gain: what is better there, as a share of the best measure before, so that training
            does not go on for epochs that hardly change anything; 0 = any gain.
        max_seconds: training also stops after the epoch that ends later than this; the result
            then depends on the machine's speed.
        validation_share: share of the queries, or pairs, held out for early stopping, in (0, 1).
        hold_out: what early stopping, and the choice of the factor, look at. "parts": the queries
            are split into three parts; a model for each, trained on the other two, ranks for it,
            and the model of all queries keeps the epoch and the factor that were best for all
            three together. "queries": a share of the queries with all their pairs, which no model
            learns from; "auto": "parts" where fewer than 1,000 queries, or groups, have relevant
            documents, else "queries". "pairs": single pairs of any query, where the model is to
            find further documents for the same queries (links of articles).
        validation_measure: "map" or "rank_loss".
        validation_documents: documents ranked in validation, if there are more: that many drawn
            at random, and the relevant ones.
        warm_start: a further ``fit`` starts from the fitted parameters; "auto" then holds out a
            share of the queries, the same in each fit.
        hogwild: every thread learns from batches of its own, without locks (Niu et al., NIPS
            2011), instead of all threads from one batch. Gives up determinism: with more than one
            thread, two fits differ, and so do a killed and a whole one.
        seed: seed of initialisation, hold-out and sampling.
        threads: worker threads; the result does not depend on it. None = all cores.

    Attributes:
        history_: :class:`ssi_models.training.loop.History`.
        validation_queries_: int64, the rows of the queries with held-out pairs.
        learning_rate_: the rate that was used.
        scale_: the factor chosen from ``scales``, already part of the parameters.
        n_pairs_, n_queries_: relevant pairs that were learned from, and queries that have them.
    """

    #: What the parameters of the same names may be.
    optimizers: ClassVar[tuple[str, ...]] = OPTIMIZERS
    whole_passes: ClassVar[tuple[str, ...]] = ()  # of the optimizers
    validation_measures: ClassVar[tuple[str, ...]] = VALIDATION_MEASURES
    weighs_pairs: ClassVar[bool] = True  # by the weights of the preferences

    margin: float = 0.3
    loss: str = "margin"
    emphasis: str = "uniform"
    negatives: str = "uniform"
    shuffle: str = "pairs"
    learning_rate: float | str = 0.03
    optimizer: str = "adagrad"
    accumulator_start: float = 1e-3
    scales: Sequence[float] = (1.0, 0.0, 0.1, 0.3, 3.0, 10.0)
    batch_size: int = 256
    n_negatives: int = 256
    list_share: float = 0.25
    n_list_negatives: int = 4
    max_epochs: int = 50
    patience: int = 5
    least_gain: float = 0.005
    max_seconds: float | None = None
    validation_share: float = 0.1
    hold_out: str = "auto"
    validation_measure: str = "map"
    validation_documents: int = 10_000
    warm_start: bool = False
    hogwild: bool = False
    seed: int = 0
    threads: int | None = None

    history_: History = field(init=False)
    validation_queries_: NDArray[np.int64] = field(init=False)
    learning_rate_: float = field(init=False)
    scale_: float = field(init=False)
    n_pairs_: int = field(init=False)
    n_queries_: int = field(init=False)

    def fit(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        *,
        groups: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Learn the parameters.

        Args:
            Q, D: unit tf-idf rows, [m, V] and [n, V].
            preferences: graded relevant pairs over the rows of Q and D.
            groups: a label per query row; queries of one group are held out together.
            excluded: int64 [m], for each query a document row that is never its negative, never
                ranked in validation and never fed back (the text that the query was drawn from),
                or -1.
            candidates: document rows that may serve as negatives of all queries; None = all;
                "relevant" = those that are relevant to a training query.
            candidate_lists: for each query the documents that the model is to rank. Those that are
                not judged as high as the relevant one are negatives of their own query, see
                ``list_share``. Held-out queries still rank all documents, which shows more of a
                model than their lists do.
            vocabulary, weighting, recipe: what the columns stand for; saved with the model.
            checkpoint: file that keeps the state of a run that is killed.
            callback: called after each epoch (number 0 = the initial parameters).

        Raises:
            ValueError: a parameter outside its range; matrices of different width or with
                non-finite values; preferences or lists made for other matrices, or lists where
                negatives are "given"; no judged negative where they are; fewer than two queries
                (or groups) with relevant documents.
        """
        self.check_params()
        check_preferences(preferences)
        in_parts = self.hold_out == "parts"
        if self.hold_out == "auto":
            in_parts = not self.warm_start and holds_out_parts(preferences, groups)
        if in_parts:
            parts = split_queries(preferences, groups, N_PARTS, self.seed)
            self._fit_jointly(Q, D, preferences, groups, parts, **options)
        else:
            self._fit_jointly(Q, D, preferences, groups, [], **options)
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
        check_parts(parts, preferences)
        if self.hold_out == "pairs":
            raise ValueError("hold_out='pairs': the queries are held out in parts here")
        if self.warm_start:
            raise ValueError("warm_start: a model for a part would start from what saw its labels")
        return self._fit_jointly(Q, D, preferences, None, parts, **options)

    def _fit_jointly(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        groups: ArrayLike | None,
        parts: Sequence[NDArray[np.int64]],
        *,
        excluded: ArrayLike | None = None,
        candidates: ArrayLike | str | None = None,
        candidate_lists: CandidateLists | None = None,
        vocabulary: Vocabulary | None = None,
        weighting: TfIdf | None = None,
        recipe: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Epoch], None] | None = None,
    ) -> list[Self]:
        """Fit the model on all preferences, and for each part a copy on those of the other
        queries. Returns the copies, which agree with the model in epoch and factor."""
        every = self._check_data(
            Q, D, preferences, excluded, candidates, groups, bool(parts), candidate_lists
        )
        data = [every, *(every.without(part, i) for i, part in enumerate(parts, start=1))]
        models = [self, *(self.copy() for _ in parts)]
        with Workers(self.threads) as workers, ExitStack() as stack:
            rate = self.learning_rate
            if isinstance(rate, str):
                rate = self._choose_rate(every, workers)
            # Runs learn side by side, threads that are left over serve the steps of each; those of
            # Hogwild, which wants threads for its own, one after the other.
            abreast = stack.enter_context(Workers(1)) if self.hogwild else workers
            shares = max(1, workers.n_shares // (1 if self.hogwild else len(models)))
            own = [stack.enter_context(Workers(shares)) for _ in models]
            runs = [
                model.make_run(of, rate, threads)
                for model, of, threads in zip(models, data, own, strict=True)
            ]
            path = None if checkpoint is None else Path(checkpoint)
            fingerprint = "" if path is None else self._fingerprint(every, groups, parts)
            until = None if self.max_seconds is None else time.perf_counter() + self.max_seconds
            settings = Settings(
                self.max_epochs,
                self.patience,
                self.least_gain,
                rate,
                path,
                fingerprint,
                callback,
                until,
            )
            joint = JointRun(runs, abreast)
            if self.starts_from_texts and not self.warm_start:
                begin_at_best_scale(joint)
            history = self._learn(joint, settings)
        held_out = np.unique(np.concatenate([of.validating.queries for of in data]))
        for model, run in zip(models, runs, strict=True):
            model.n_query_words_, model.n_words_ = Q.shape[1], D.shape[1]
            model.vocabulary_, model.weighting_, model.recipe_ = vocabulary, weighting, recipe
            model.history_, model.validation_queries_ = history, held_out
            model.learning_rate_, model.n_pairs_ = rate, len(run.data.training)
            model.n_queries_ = len(run.data.training.queries)
            lexical, learned = run.mixture.tolist()
            model.scale_ = learned / lexical if lexical else np.inf
            model._adopt(run)
        return models[1:]

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> Scorer:
        """The trainable form of the model, initialised by ``seed``."""
        raise TypeError(f"{type(self).__name__} does not define make_scorer")

    def make_run(self, data: TrainingData, rate: float, workers: Workers, **options: Any) -> Run:
        """A training run from the start."""
        return Run(self, data, rate, workers, **options)

    def check_params(self) -> None:
        """Raise ValueError naming a parameter that is out of its range."""
        counts = ("batch_size", "n_negatives", "n_list_negatives", "patience")
        for name in (*counts, "validation_documents"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
        positive = ["margin", "accumulator_start"]
        positive += [] if self.learning_rate == "auto" else ["learning_rate"]
        for name in positive:
            value = getattr(self, name)
            if isinstance(value, str) or not 0 < value < np.inf:
                raise ValueError(f"{name} must be positive and finite, got {value!r}")
        if not self.scales or not all(0 <= scale < np.inf for scale in self.scales):
            raise ValueError(f"scales must be 0 or more and finite, got {self.scales}")
        if not 0 <= self.least_gain < np.inf:
            raise ValueError(f"least_gain must be 0 or more and finite, got {self.least_gain}")
        if not 0 <= self.list_share <= 1:
            raise ValueError(f"list_share must be in [0, 1], got {self.list_share}")
        if not 0 < self.validation_share < 1:
            raise ValueError(f"validation_share must be in (0, 1), got {self.validation_share}")
        if self.max_epochs < 0:
            raise ValueError(f"max_epochs must be 0 or more, got {self.max_epochs}")
        check_choice("optimizer", self.optimizer, self.optimizers)
        if self.hogwild and self.optimizer in self.whole_passes:
            others = tuple(name for name in self.optimizers if name not in self.whole_passes)
            raise ValueError(f"hogwild: {self.optimizer} takes whole passes; use {others}")
        check_choice("loss", self.loss, LOSSES)
        check_choice("emphasis", self.emphasis, EMPHASES)
        check_choice("negatives", self.negatives, NEGATIVES)
        check_choice("shuffle", self.shuffle, SHUFFLES)
        check_choice("hold_out", self.hold_out, HELD_OUT)
        if self.warm_start and self.hold_out == "parts":
            raise ValueError("warm_start: what was fitted saw all parts; use hold_out='queries'")
        check_choice("validation_measure", self.validation_measure, self.validation_measures)

    @property
    def _accumulator_start(self) -> float | None:
        return self.accumulator_start if self.optimizer == "adagrad" else None

    def _check_spaces(
        self, Q: sp.csr_matrix, D: sp.csr_matrix
    ) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        Q, D = check_unit_rows("Q", Q), check_unit_rows("D", D)
        check_same_words(self, Q, D)
        return Q, D

    def _check_data(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        excluded: ArrayLike | None,
        candidates: ArrayLike | str | None,
        groups: ArrayLike | None,
        in_parts: bool = False,
        lists: CandidateLists | None = None,
    ) -> TrainingData:
        """The data of the model itself; nothing is held out of them where parts are."""
        Q, D = self._check_spaces(Q, D)
        check_shapes(Q, D, preferences)
        if not self.weighs_pairs:
            check_unweighted(self.name, preferences)
        barred = check_excluded(excluded, Q.shape[0], D.shape[0])
        if in_parts:
            held_out = preferences, preferences.only(np.zeros(0, np.int64))
        elif self.hold_out == "pairs":
            if groups is not None:
                raise ValueError("groups: single pairs are held out; use hold_out='queries'")
            held_out = hold_out_pairs(preferences, self.validation_share, self.seed)
        else:
            held_out = hold_out_queries(preferences, groups, self.validation_share, self.seed)
        pool = candidate_rows(candidates, preferences)
        if lists is not None:
            check_lists(lists, preferences)
            if self.negatives == "given":
                raise ValueError(
                    "candidate_lists: negatives='given' takes those that are judged, not of the "
                    "lists"
                )
        return TrainingData(
            Q,
            D,
            preferences,
            *held_out,
            barred,
            pool,
            isinstance(candidates, str),
            candidate_lists=lists if self.list_share else None,
        )

    def _learn(self, run: JointRun, settings: Settings) -> History:
        return train(run, settings)

    @property
    def starts_from_texts(self) -> bool:
        """Whether training starts at embeddings that the texts gave, of no particular size."""
        return False

    @property
    def mixtures(self) -> Sequence[tuple[float, float]]:
        """Factors of the lexical and of the learned part of the score that are compared."""
        return (
            [(1.0, float(scale)) for scale in self.scales] if self.matches_words else [(1.0, 1.0)]
        )

    @property
    def matches_words(self) -> bool:
        """Whether the score has a lexical part beside a learned one, so that a factor matters."""
        return True

    def _adopt(self, run: Run) -> None:
        """Take over the trained parameters; the chosen scale goes into the first of them."""
        parameters = dict(run.scorer.parameters())
        first = next(iter(parameters))
        if run.mixture[1] != 1:
            parameters[first] = parameters[first] * run.mixture[1]
        for name, values in self._pack(parameters).items():
            setattr(self, f"{name}_", values)

    @property
    def start(self) -> str:
        """What the model is before it is trained, in words."""
        return remarks.WORD_MATCHING

    @property
    def learned_weight(self) -> float:
        """Factor of the learned part in the scores, beside word matching."""
        return self.scale_

    @property
    def remarks(self) -> list[str]:
        if not hasattr(self, "history_"):
            return []
        return remarks.of_amount(self.n_queries_, self.n_pairs_) + remarks.of_training(
            self.history_,
            start=self.start,
            n_queries=self.n_queries_,
            learned_weight=self.learned_weight,
            learning_rate=self.learning_rate_,
        )

    @property
    def only_same_words(self) -> bool:
        if not hasattr(self, "history_"):
            return False
        untrained = self.history_.best_epoch == 0 and self.start == remarks.WORD_MATCHING
        return untrained or self.learned_weight == 0

    def fitted_parameters(self) -> dict[str, NDArray[np.float32]] | None:
        """The scorer's parameters as they were fitted, to start from; None if they never were."""
        return self._unpack() if hasattr(self, "n_words_") else None

    def _pack(self, parameters: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """The fitted tensors by name, from the scorer's parameters."""
        return parameters

    def _unpack(self) -> dict[str, NDArray[np.float32]]:
        """The scorer's parameters by name, from the fitted tensors."""
        return {name: getattr(self, f"{name}_") for name in self.tensors}

    def _choose_rate(self, data: TrainingData, workers: Workers) -> float:
        """The rate of ``RATES`` with the lowest training loss on a twentieth of the pairs."""
        training = data.training
        n = min(len(training), max(len(training) // 20, 20 * self.batch_size))
        chosen = np.random.default_rng([self.seed, 5]).permutation(len(training))[:n]
        sample = training.pairs(np.sort(chosen))
        losses = []
        for rate in RATES:
            run = self.make_run(data, rate, workers, training=sample, validates=False)
            losses.append(run.training_loss(epochs=2))
        return RATES[int(np.nanargmin(losses))] if np.isfinite(losses).any() else RATES[0]

    def _fitted_header(self) -> dict[str, Any]:
        return {
            "epochs": [list(vars(epoch).values()) for epoch in self.history_.epochs],
            "best_epoch": self.history_.best_epoch,
            "validation_queries": self.validation_queries_.tolist(),
            "stopped": self.history_.stopped,
            "learning_rate": self.learning_rate_,
            "scale": self.scale_,
            "n_pairs": self.n_pairs_,
            "n_queries": self.n_queries_,
        }

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        epochs = [Epoch(*values) for values in fitted["epochs"]]
        self.history_ = History(epochs, fitted["best_epoch"], fitted.get("stopped", ""))
        self.n_pairs_, self.n_queries_ = fitted.get("n_pairs", 0), fitted.get("n_queries", 0)
        self.validation_queries_ = np.array(fitted["validation_queries"], dtype=np.int64)
        self.learning_rate_, self.scale_ = fitted["learning_rate"], fitted["scale"]

    def _fingerprint(
        self,
        data: TrainingData,
        groups: ArrayLike | None,
        parts: Sequence[NDArray[np.int64]] = (),
    ) -> str:
        """A digest of everything that the result depends on."""
        parameters = {k: v for k, v in self.get_params().items() if k != "threads"}
        preferences = data.preferences
        labels = np.zeros(0) if groups is None else np.asarray(groups)
        excluded = np.zeros(0, np.int64) if data.excluded is None else data.excluded
        lists = () if data.candidate_lists is None else data.candidate_lists.arrays
        start = (self.fitted_parameters() or {}) if self.warm_start else {}
        return digest_of(
            [self.name, *sorted(parameters.items())],
            (
                *start.values(),
                *arrays(data.Q), *arrays(data.D), preferences.query, preferences.document,
                preferences.grade, preferences.rejected_query, preferences.rejected_document,
                data.candidates, excluded, labels, *parts, *lists, *preferences.weights,
            ),
        )  # fmt: skip
