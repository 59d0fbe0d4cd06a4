"""S2Net: a projection trained to rank a query's relevant documents above others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from ssi_models.matrices import take_rows
from ssi_models.parallel import Workers
from ssi_models.parameters import AUTO, check_choice, check_least, model_class
from ssi_models.persistence import numbers
from ssi_models.projections.cosine import (
    VOCABULARIES,
    CosineOfProjections,
    pair_matrix,
    split_words,
    stacked,
)
from ssi_models.projections.svd import singular_start
from ssi_models.remarks import WORD_MATCHING
from ssi_models.s2net.full_batch import FullBatchRun, ProjectionRun
from ssi_models.s2net.mini_batch import AveragedTable, CosineScorer, ProjectionTable
from ssi_models.s2net.torch_scorer import TorchScorer
from ssi_models.stored_tensors import Tensor
from ssi_models.training.choosing import Choices
from ssi_models.training.data import TrainingData
from ssi_models.training.diagonal import Identity
from ssi_models.training.loop import History, Settings
from ssi_models.training.options import TrainingOptions
from ssi_models.training.run import JointRun, TrainingRun
from ssi_models.training.trainable import TrainableModel
from ssi_models.word_weight import WORD_WEIGHTS, check_word_weight

SMALLEST_MARGIN = 0.025  # exponentials overflow with smaller ones


@dataclass(frozen=True, kw_only=True)
class S2NetOptions(TrainingOptions):
    """How S2Net is trained: :class:`ssi_models.TrainingOptions` with defaults of its own.

    Args:
        margin: 1 / gamma; gamma = 10 in the paper. "auto" tries the same values, but .1 first.
        negatives: by default documents of the batch's other pairs, which ranked held-out queries
            better on two of three collections; "uniform" (the paper) lowers the validation loss
            sooner, whose negatives are uniform too.
        n_negatives: K, the most that a batch shares. On seven collections, 64 ranked worse on two
            and 256 on one.
        optimizer: also "rmsprop" and "l-bfgs", see :class:`S2Net`.
        batch_size: largest number of pairs per batch; smaller if a pass had fewer than 8 batches.
        negatives_per_pair: random documents per relevant pair in full batches and in the
            validation loss (4 in the paper).
        pairs_per_epoch: approximate limit on the pairs of a mini-batch epoch, because with much
            data a whole pass is too long between validations; None = always a whole pass.
        validation_measure: also "loss": the mean loss of the held-out queries' pairs (the paper's
            0.5 % of the pairs: ``validation_share=0.005``).
    """

    margins: ClassVar[tuple[float, ...]] = (0.1, 0.3)
    optimizers: ClassVar[tuple[str, ...]] = ("rmsprop", *TrainingOptions.optimizers, "l-bfgs")
    whole_passes: ClassVar[tuple[str, ...]] = ("l-bfgs",)
    validation_measures: ClassVar[tuple[str, ...]] = (*TrainingOptions.validation_measures, "loss")

    loss: str = "logistic"
    negatives: str = "in-batch"
    learning_rate: float | Sequence[float] | str = (0.05, 0.02, 0.005)
    optimizer: str = "rmsprop"
    batch_size: int = 1024
    n_negatives: int = 128
    negatives_per_pair: int = 4
    pairs_per_epoch: int | None = 20_480

    def check(self) -> None:
        super().check()
        check_least(self, 1, "negatives_per_pair", "pairs_per_epoch")
        if self.margin != AUTO:
            check_least(self, SMALLEST_MARGIN, "margin")
        elif self.validation_measure == "loss":
            raise ValueError(
                "margin='auto' is chosen by how queries are ranked; with validation_measure='loss' "
                "give a number"
            )
        check_choice("loss", self.loss, ("logistic",))
        check_choice("rank_weight", self.rank_weight, ("uniform",))


@model_class
class S2Net(CosineOfProjections, TrainableModel):
    """f(q, d) = w q . d + (1 - w) g(q, d), g(q, d) = cos(A'q, A'd), with A trained on
    log(1 + exp(-gamma (g(q, d+) - g(q, d-)))).

    Training starts at the LSA matrix of the documents, and also of the training queries if these
    have words that no document has (with separate vocabularies, at the CL-LSA matrix of the
    training pairs), and never ends with a higher training loss than at the start.

    With ``optimizer="l-bfgs"`` an epoch is one iteration over all training pairs, each with
    ``negatives_per_pair`` random documents (the paper: L-BFGS, about 40 iterations), a share
    ``list_share`` of them from its query's list. The other options of batches, their negatives and
    their steps have no effect then, except ``negatives="given"``. With "rmsprop", "adagrad" or
    "sgd" it is one pass, or a part of it, in mini-batches that share their negatives, see
    :class:`TrainableModel`. RMSProp keeps an average of its latest iterates
    (:class:`ssi_models.s2net.mini_batch.AveragedTable`) and reaches the losses of L-BFGS in a
    fraction of the time.

    Args:
        rank: k. Above the default it may not exceed the numbers of words and documents.
        symmetric: one matrix for both sides (the paper), or A_q and A_d. "auto" trains both, and
            keeps two if they rank held-out queries better by more than 1.5 standard errors.
        vocabularies: "shared", or "separate" where queries and documents have words of their own
            (then with A_q and A_d in any case).
        training: :class:`S2NetOptions`.
        device: a PyTorch device ("cuda", "cpu") for the mini-batches' steps, with the same result
            within float32 rounding; None = the kernels of this package. Needs the extra ``torch``.
        word_weight: weight w, 0 to 1, of plain word matching: f = w q . d + (1 - w) cos(A'q, A'd),
            or "auto": the one that ranks the held-out queries best, chosen after every epoch as
            ``scales`` are. Training uses the cosines alone. 0 is the paper. Separate vocabularies
            have no words in common, and hence no such part.

    Attributes:
        word_weight_: the weight w that was chosen.
        symmetric_: whether A_q = A_d, as given or as chosen.
        training_loss_: mean loss per tuple of the training pairs, with ``negatives_per_pair``
            random documents each: (at the start, with the parameters that were kept).

    Reference:
        Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web search", SIGIR
        2011, section 4.2, eq. 21; Yih, Toutanova, Platt, Meek: "Learning discriminative
        projections for text similarity measures", CoNLL 2011.
    """

    name: ClassVar[str] = "s2net"
    tensors: ClassVar[Mapping[str, Tensor]] = {
        "A_q": Tensor(("query_words", "rank")),
        "A_d": Tensor(("words", "rank")),
    }
    scoring_params: ClassVar[tuple[str, ...]] = ("threads", "word_weight")

    rank: int = field(default=100, kw_only=False)
    symmetric: bool | str = AUTO
    vocabularies: str = "shared"
    word_weight: float | str = AUTO
    scales: Sequence[float] = (1.0,)
    training: S2NetOptions = S2NetOptions()
    device: str | None = None

    A_q_: NDArray[np.float32] = field(init=False)
    A_d_: NDArray[np.float32] = field(init=False)
    training_loss_: tuple[float, float] = field(init=False)
    word_weight_: float = field(init=False)
    symmetric_: bool = field(init=False)

    @property
    def in_pieces(self) -> bool:
        return self.training.optimizer == "l-bfgs"

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 1, "rank")
        if self.device is not None and self.in_pieces:
            raise ValueError("device: l-bfgs runs on the host; use rmsprop, or leave it out")
        check_choice("vocabularies", self.vocabularies, VOCABULARIES)
        check_word_weight(self.word_weight)
        if tuple(self.scales) != (1.0,):
            raise ValueError("scales: cosines are mixed with words by word_weight")
        if self.word_weight == AUTO and self.training.validation_measure == "loss":
            raise ValueError(
                "word_weight='auto' is chosen by how queries are ranked; with "
                "validation_measure='loss' give a number"
            )

    @property
    def same_words(self) -> bool:
        return self.vocabularies == "shared"

    def forms(self) -> Choices:
        shared = self._among("symmetric", (True, False)) if self.same_words else (False,)
        return {"symmetric": shared}

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> Any:
        scorer: CosineScorer
        start = self._lsa(data, workers)
        sides = split_words(start, data.Q.shape[1], self.vocabularies)
        query, document = (self._table(A.copy(), rate) for A in sides)
        if self.symmetric_:
            document = query
        given = data.Q, data.D, query, document, workers
        if self.device is None:
            scorer = CosineScorer(*given)
        else:
            scorer = TorchScorer(*given, device=self.device)
        if any(words for words, _ in self.mixtures):
            scorer.diagonal = Identity()
        return scorer

    def _table(self, values: NDArray[np.float32], rate: float) -> ProjectionTable:
        if self.training.optimizer == "rmsprop":
            return AveragedTable(values, rate)
        return ProjectionTable(values, rate, self.training.adagrad_start)

    def _run(
        self, scorer: Any, data: TrainingData, rate: float, workers: Workers, **options: Any
    ) -> TrainingRun:
        kind = FullBatchRun if self.in_pieces else ProjectionRun
        run = kind(scorer, data, self.training, workers, **options)
        run.executor = self.executor
        return run

    def _lsa(self, data: TrainingData, workers: Workers) -> NDArray[np.float32]:
        """The initial projection, scaled so that the mean squared length of a word's row is 1;
        [words, rank], with fewer columns if the texts have a lower rank."""
        how = self.rank, self.seed, workers
        if not self.same_words:
            texts = stacked(data.Q, data.D, "separate")
            factors = [pair_matrix(data.training, 1), texts]
            return data.cached(("lsa", data.part), lambda: singular_start(factors, *how))
        if np.isin(data.Q.indices, data.D.indices).all():
            return data.cached("lsa", lambda: singular_start([data.D], *how))
        queries = take_rows(data.Q, np.unique(data.training.query))
        both = stacked(queries, data.D, "shared")
        return data.cached(("lsa", data.part), lambda: singular_start([both], *how))

    def _learn(self, run: JointRun, settings: Settings) -> History:
        """Train, and return to the start if training raised the loss of the training pairs."""
        runs = cast(Sequence[ProjectionRun], run.runs)
        start = {name: values.copy() for name, values in run.parameters().items()}
        before = [part.mean_loss(part.training_tuples) for part in runs]
        history = super()._learn(run, settings)
        after = [part.mean_loss(part.training_tuples) for part in runs]
        if not after[0] <= before[0]:
            history.best_epoch, after = 0, before
            for name, values in run.parameters().items():
                values[...] = start[name]
            run.validate()  # sets the best mixture for the start
        for part, losses in zip(runs, zip(before, after, strict=True), strict=True):
            part.losses = losses
        return history

    @property
    def start(self) -> str:
        words = f" plus {WORD_MATCHING}" if self.weight_of_words else ""
        return f"{'LSA' if self.same_words else 'CL-LSA'}{words}"

    @property
    def learned_weight(self) -> float:
        return 1 - self.weight_of_words

    @property
    def weight_of_words(self) -> float:
        if not self.same_words:
            return 0.0
        return self.word_weight_ if self.word_weight == AUTO else float(self.word_weight)

    @property
    def mixtures(self) -> Sequence[tuple[float, float]]:
        weights = WORD_WEIGHTS if self.word_weight == AUTO else (float(self.word_weight),)
        return [(w, 1 - w) for w in weights] if self.same_words else [(0.0, 1.0)]

    def _adopt(self, run: TrainingRun) -> None:
        for name, values in self._pack(run.scorer.parameters()).items():
            setattr(self, f"{name}_", values)
        self.word_weight_ = float(run.mixture[0])
        self.training_loss_ = cast(ProjectionRun, run).losses

    def _pack(self, parameters: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        return {"A_q": parameters["A_q"], "A_d": parameters.get("A_d", parameters["A_q"])}

    def _fitted_header(self) -> dict[str, Any]:
        own = {"training_loss": list(self.training_loss_), "word_weight": self.word_weight_}
        return super()._fitted_header() | own

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        super()._restore(fitted)
        before, after = numbers(fitted["training_loss"])
        self.training_loss_ = (before, after)
        self.word_weight_ = fitted["word_weight"]
        check_word_weight(self.word_weight_)
