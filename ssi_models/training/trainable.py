"""TrainableModel: the base class of models trained on preferences."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ltr_base.blas import one_blas_thread
from ssi_models import remarks
from ssi_models.base import MatchingModel
from ssi_models.checkpoint import delete_checkpoint
from ssi_models.matrices import check_rank
from ssi_models.parallel import Workers
from ssi_models.parameters import AUTO, digest_of, model_class
from ssi_models.persistence import count, numbers
from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.choosing import ChoosesParameters, checkpoints, choose, usual
from ssi_models.training.data import TrainingData, training_data
from ssi_models.training.held_out import N_PARTS, holds_out_parts, split_queries
from ssi_models.training.loop import Epoch, History, Settings, train
from ssi_models.training.options import TrainingOptions
from ssi_models.training.preferences import Preferences, check_parts, check_preferences
from ssi_models.training.run import (
    JointRun,
    TrainingRun,
    begin_at_best_scale,
    best_rate,
    start_from,
)
from ssi_models.training.towers import Scorer
from ssi_models.vocabulary import Vocabulary, check_words
from ssi_models.weighting import TfIdf


@model_class
class TrainableModel(ChoosesParameters, MatchingModel):
    """A model trained by mini-batches on pairwise preferences.

    Args:
        training: :class:`ssi_models.TrainingOptions`. The constructor also takes each option by
            its own name: ``LowRankSSI(margin=0.5)`` changes the class's options in the margin only.
        scales: candidate factors of the learned part, f = s g(q, d) + q . d. After every epoch the
            one with the best validation measure is recorded, and that of the epoch that is kept
            becomes part of the parameters. ``(1.0,)`` is the paper; smaller factors let the model
            rely on word matching where the learned part contributes little, and 0 where it
            contributes nothing. Ties go to the first. Without q . d in the score they do nothing.
        warm_start: a further ``fit`` starts from the fitted parameters; ``hold_out="auto"`` then
            holds out a share of the queries, the same in each fit.
        seed: seed of initialisation, hold-out and sampling.
        threads: worker threads; the result does not depend on it. None = all cores.

    Attributes:
        history_: :class:`ssi_models.training.loop.History`.
        validation_queries_: int64, the rows of the queries with held-out pairs.
        learning_rate_, margin_: those that were chosen.
        scale_: the factor chosen from ``scales``, already part of the parameters.
        n_pairs_, n_queries_: relevant pairs that were learned from, and queries that have them.
    """

    former_params: ClassVar[Mapping[str, str]] = {"emphasis": "rank_weight"}
    weighs_pairs: ClassVar[bool] = True
    shared_by_parts: ClassVar[str] = (
        "the epoch at which they stop and their weight of word matching"
    )
    training: TrainingOptions = TrainingOptions()
    scales: Sequence[float] = (1.0, 0.0, 0.1, 0.3, 3.0, 10.0)
    warm_start: bool = False
    seed: int = 0
    threads: int | None = None

    history_: History = field(init=False)
    validation_queries_: NDArray[np.int64] = field(init=False)
    learning_rate_: float = field(init=False)
    margin_: float = field(init=False)
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
                or -1. Pairs that are held-out ones the other way round are not learned from.
            candidates: document rows that may serve as negatives of all queries; None = all;
                "relevant" = those that are relevant to a training query.
            candidate_lists: for each query, the documents that the model is to rank. Those that are
                not judged as high as the relevant one are negatives of their own query, see
                ``list_share``. Held-out queries still rank all documents.
            vocabulary, weighting, recipe: what the columns stand for; saved with the model.
            checkpoint: file for the state of training, from which a killed run resumes.
            callback: called after each epoch (number 0 = the initial parameters), for each of the
                ``choices`` that are tried.

        Raises:
            ValueError: a parameter outside its range or a rank beyond what the texts can use;
                matrices of different width or with non-finite values; preferences or lists made for
                other matrices; with negatives "given", any lists, or no judged negative; fewer than
                two queries (or groups) with relevant documents.
        """
        self.check_params()
        check_preferences(preferences)
        held_out, few = self.training.hold_out, holds_out_parts(preferences, groups)
        in_parts = held_out == "parts" or (held_out == AUTO and few and not self.warm_start)
        parts = split_queries(preferences, groups, N_PARTS, self.seed) if in_parts else []
        with self._unchanged_on_error():
            self._fit_jointly(Q, D, preferences, groups, parts, **options)
        return self

    def check_for_parts(self) -> None:
        self.training.check_for_parts()
        if self.warm_start:
            raise ValueError("warm_start: a part's model would start from one that saw its labels")

    def fit_parts(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        parts: Sequence[NDArray[np.int64]],
        **options: Any,
    ) -> list[Self]:
        self.check_params()
        self.check_for_parts()
        check_parts(parts, preferences)
        with self._unchanged_on_error():
            return self._mixed_alike(self._fit_jointly(Q, D, preferences, None, parts, **options))

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
        """Fit the model on all preferences and, for each part, a copy on those of the other
        queries. Returns the copies, which have the same epoch and factor as the model.

        BLAS is limited to one thread: its own would slow the steps of the worker threads 4 to 15
        times, and wait busily between them.
        """
        every = self._prepared(
            Q, D, preferences, groups=groups, in_parts=bool(parts), excluded=excluded,
            candidates=candidates, lists=candidate_lists,
        )  # fmt: skip
        if self.same_words:
            check_words(vocabulary, weighting, D.shape[1])
        data = [every, *(every.without(part, i) for i, part in enumerate(parts, start=1))]
        models = [self, *(self.copy() for _ in parts)]
        with Workers(self.threads) as workers, ExitStack() as stack:
            stack.enter_context(one_blas_thread())
            choices = self.choices()
            if self.training.learning_rate == AUTO:
                choices["learning_rate"] = (best_rate(self, every, workers),)
            fingerprint = "" if checkpoint is None else self._fingerprint(every, groups, parts)
            settings = Settings(self.training, fingerprint, callback)

            def trained(chosen: Mapping[str, Any], file: Path | None) -> tuple[JointRun, History]:
                joint = JointRun.of(models, data, chosen, workers, stack)
                if self.starts_from_texts and not self.warm_start:
                    begin_at_best_scale(joint)
                rate = chosen["learning_rate"]
                return joint, self._learn(
                    joint, replace(settings, learning_rate=rate, checkpoint=file)
                )

            files = checkpoints(checkpoint, choices)
            thorough = self.always_thorough or holds_out_parts(preferences, groups)
            joint, history, chosen = choose(choices, files, trained, thorough=thorough)
        held_out = np.unique(np.concatenate([part.validating.queries for part in data]))
        for model, run in zip(models, joint.runs, strict=True):
            model.n_query_words_, model.n_words_ = Q.shape[1], D.shape[1]
            model.vocabulary_, model.weighting_, model.recipe_ = vocabulary, weighting, recipe
            model.history_, model.validation_queries_ = history, held_out
            model._take(chosen)
            model._note(run)
            model._adopt(run)
        self._delete_checkpoints(files)
        return models[1:]

    def _delete_checkpoints(self, files: Sequence[Path | None]) -> None:
        """Called when a fit is complete."""
        for file in files:
            delete_checkpoint(file)

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> Scorer:
        """The trainable form of the model, initialised by ``seed``."""
        raise TypeError(f"{type(self).__name__} does not define make_scorer")

    def make_run(
        self,
        data: TrainingData,
        rate: float,
        workers: Workers,
        *,
        chosen: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> TrainingRun:
        """Create a training run, which on a warm start begins at the fitted parameters.

        Args:
            chosen: values of the parameters in :meth:`choices`; by default the first of each.
            options: ``training``, ``validates``: see :class:`ssi_models.training.run.TrainingRun`.
        """
        self._take(usual(self.choices()) if chosen is None else chosen)
        scorer = self.make_scorer(data, rate, workers)
        fitted = self.fitted_parameters() if self.warm_start else None
        if fitted is not None:
            for name, words in self._words_of(data).items():
                if not np.array_equal(words, getattr(self, f"{name}_")):
                    raise ValueError(f"warm_start: other words have weights now ({name}_)")
            for name, values in scorer.parameters().items():
                start_from(name, values, fitted.get(name))
        options |= {"seed": self.seed, "mixtures": self.mixtures, "margin": self.margin_}
        return self._run(scorer, data, rate, workers, **options)

    def _run(
        self, scorer: Any, data: TrainingData, rate: float, workers: Workers, **options: Any
    ) -> TrainingRun:
        return TrainingRun(scorer, data, self.training, workers, **options)

    def check_params(self) -> None:
        kind = type(type(self).training)
        if not isinstance(self.training, kind):
            raise TypeError(
                f"training: {self.name} takes {kind.__name__}, got {type(self.training).__name__}"
            )
        super().check_params()
        self.training.check()
        if not self.scales or not all(0 <= scale < np.inf for scale in self.scales):
            raise ValueError(f"scales must be numbers of 0 or more, got {self.scales!r}")
        if self.warm_start and self.training.hold_out == "parts":
            raise ValueError("warm_start: the fitted model saw all parts; use hold_out='queries'")

    def _prepared(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences, **given: Any
    ) -> TrainingData:
        """The checked training data; ``given`` as for :func:`training_data`."""
        Q, D = self._check_spaces(Q, D)
        if not self.warm_start:
            self.check_rank(Q, D)
        return training_data(self.training, self.seed, Q, D, preferences, **given)

    def check_rank(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> None:
        """Raise ValueError if embeddings are wider than by default and than the texts can use."""
        if (usual := self.default_params().get("rank")) is not None:
            check_rank(getattr(self, "rank", usual), usual, Q, D)

    def _learn(self, run: JointRun, settings: Settings) -> History:
        return train(run, settings)

    @property
    def starts_from_texts(self) -> bool:
        """Whether training starts at embeddings computed from texts, whose scale is arbitrary."""
        return False

    @property
    def mixtures(self) -> Sequence[tuple[float, float]]:
        """(Factor of the diagonal part, factor of the learned part) of scores to compare."""
        scales = self.scales if self.matches_words else (1.0,)
        return [(1.0, float(scale)) for scale in scales]

    @property
    def holds_out_queries(self) -> bool:
        return self.training.hold_out != "pairs"

    @property
    def matches_words(self) -> bool:
        """Whether the score has both a diagonal and a learned part, so that a factor matters."""
        return True

    def _note(self, run: TrainingRun) -> None:
        """Record the amount of training data and the chosen factor."""
        training = run.data.training
        self.n_pairs_, self.n_queries_ = len(training), len(training.queries)
        diagonal, learned = run.mixture.tolist()
        self.scale_ = learned / diagonal if diagonal else np.inf

    def _adopt(self, run: TrainingRun) -> None:
        """Store the trained parameters, the first of them multiplied by :meth:`_factor`."""
        parameters = dict(run.scorer.parameters())
        first = next(iter(parameters))
        if run.mixture[1] != 1:
            parameters[first] = parameters[first] * self._factor(run.mixture[1])
        for name, values in (self._words_of(run.data) | self._pack(parameters)).items():
            setattr(self, f"{name}_", values)

    def _words_of(self, data: TrainingData) -> dict[str, NDArray[np.int64]]:
        """Fitted tensors, by name, that say which words the rows of the others stand for."""
        return {}

    def _factor(self, scale: np.float32) -> np.float32:
        """What multiplies the first parameter, so that the learned scores have the chosen scale."""
        return scale

    @property
    def start(self) -> str:
        """Describes the model before training, for remarks."""
        return remarks.WORD_MATCHING

    @property
    def learned_weight(self) -> float:
        """Factor of the learned part in the scores, relative to word matching."""
        return self.scale_

    @property
    def remarks(self) -> list[str]:
        if not hasattr(self, "history_"):
            return []
        of_training = remarks.of_training(
            self.history_, start=self.start, n_queries=self.n_queries_,
            learned_weight=self.learned_weight, learning_rate=self.learning_rate_,
        )  # fmt: skip
        return remarks.of_amount(self.n_queries_, self.n_pairs_) + of_training

    @property
    def only_same_words(self) -> bool:
        if not hasattr(self, "history_"):
            return False
        untrained = self.history_.best_epoch == 0 and self.start == remarks.WORD_MATCHING
        return untrained or self.learned_weight == 0

    def fitted_parameters(self) -> dict[str, NDArray[np.float32]] | None:
        """The scorer's fitted parameters, for a warm start; None if the model is not fitted."""
        return self._unpack() if hasattr(self, "n_words_") else None

    def _pack(self, parameters: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """The fitted tensors by name, from the scorer's parameters."""
        return parameters

    def _unpack(self) -> dict[str, NDArray[np.float32]]:
        """The scorer's parameters by name, from the fitted tensors."""
        return {name: getattr(self, f"{name}_") for name in self.tensors}

    def _fitted_header(self) -> dict[str, Any]:
        return {
            **self.history_.header(),
            "validation_queries": self.validation_queries_.tolist(),
            **{name: getattr(self, f"{name}_") for name in self.choices()},
            "scale": self.scale_,
            "n_pairs": self.n_pairs_,
            "n_queries": self.n_queries_,
        }

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self.history_ = History.from_header(fitted)
        amounts = {"n_pairs": 0, "n_queries": 0, **fitted}
        self.n_pairs_, self.n_queries_ = count(amounts, "n_pairs"), count(amounts, "n_queries")
        self.validation_queries_ = np.array(fitted["validation_queries"], dtype=np.int64)
        (self.scale_,) = numbers([fitted["scale"]])
        # Older models had nothing to choose.
        for name, value in usual(self.choices()).items():
            found = fitted.get(name, value)
            if isinstance(value, float):
                (found,) = numbers([found])
            elif type(found) is not type(value):
                raise ValueError(f"{name} is {found!r}, must be of the type of {value!r}")
            self._take({name: found})

    def _fingerprint(
        self, data: TrainingData, groups: ArrayLike | None, parts: Sequence[NDArray[np.int64]]
    ) -> str:
        """A digest of everything that the result depends on."""
        parameters = {k: v for k, v in self.get_params().items() if k != "threads"}
        labels = np.unique([] if groups is None else np.asarray(groups), return_inverse=True)[1]
        start = (self.fitted_parameters() or {}) if self.warm_start else {}
        return digest_of(
            [self.name, *sorted(parameters.items())],
            (*start.values(), *data.arrays, labels, *parts),
        )
