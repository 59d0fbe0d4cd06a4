"""SSI between two vocabularies: f(q, d) = q'U'Vd (Bai et al., section 2.4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.matrices import arrays, take_rows
from ssi_models.parallel import Workers
from ssi_models.parameters import (
    AUTO,
    check_choice,
    check_least,
    check_positive,
    digest_of,
    model_class,
)
from ssi_models.projections.cosine import pair_matrix, stacked
from ssi_models.projections.svd import singular_start
from ssi_models.representation import Representation
from ssi_models.stored_tensors import Tensor
from ssi_models.training.batches import Batch, alternate, own_negatives
from ssi_models.training.choosing import Choices
from ssi_models.training.data import TrainingData
from ssi_models.training.embedding_table import EmbeddingTable, embedded
from ssi_models.training.options import TrainingOptions
from ssi_models.training.preferences import Preferences, check_shapes
from ssi_models.training.run import TrainingRun, replica
from ssi_models.training.towers import Polynomial, TowerScorer, UnitLength
from ssi_models.training.trainable import TrainableModel

SHARING = ("both", "documents")
INITS = ("cl-lsa", "normal")


@model_class
class CrossLanguageSSI(TrainableModel):
    """f(q, d) = (Uq) . (Vd) / |Vd| where queries and documents have different words, so that no
    diagonal makes sense: another language, or other kinds of text (a page and an advertisement).

    The paper's (Uq) . (Vd), with ``unit_documents=False``, prefers documents with many common
    words, whose Vd are long, whatever the query, and ranks much worse, above all after a start at
    cross-language LSA.

    With ``init="cl-lsa"`` the embeddings start at the leading singular vectors of the training
    pairs, where each pair is a text with the words of both sides, and training continues from
    cross-language LSA; with "normal" they start at N(0, init_scale^2), as in the paper, and need
    larger steps (``learning_rate=0.1``). "auto" tries both and keeps the second if it ranks
    held-out queries better. Words that are in no training pair start at 0, so that they add
    nothing to scores.

    ``fit`` takes one more option, ``monolingual``: queries [m_E, V_d] in the documents' language
    and preferences over them and the rows of D. Each step is then followed by one for this task.

    Args:
        rank: N; higher ranks help more than in other models, as there is no word matching.
            Above the default it may not exceed the numbers of words and documents.
        sharing: how a monolingual task shares the documents' embeddings: "both":
            f(q_E, d_E) = q_E'V'V d_E (eq. 10); "documents": q_E'U_E'V d_E, with its own query
            embeddings.
        unit_documents: whether scores are divided by |Vd|.
        init, init_scale: see above. With "cl-lsa" the rows have the root mean square length
            init_scale; those of V have 1 if scores are divided by |Vd|, so that a step turns them
            less.

    Attributes:
        init_: where training started, as given or as chosen.
        U_: float32 [V_q, N], V_: float32 [V_d, N].

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", eq. 9 and 10.
    """

    name: ClassVar[str] = "cross-language"
    tensors: ClassVar[Mapping[str, Tensor]] = {
        "U": Tensor(("query_words", "rank")),
        "V": Tensor(("words", "rank")),
    }

    before_params: ClassVar[dict[str, Any]] = {"unit_documents": False}

    rank: int = field(default=200, kw_only=False)
    unit_documents: bool = True
    sharing: str = "both"
    training: TrainingOptions = TrainingOptions(margin=1.0)
    init: str = "cl-lsa"
    init_scale: float = 0.1

    init_: str = field(init=False)
    U_: NDArray[np.float32] = field(init=False)
    V_: NDArray[np.float32] = field(init=False)
    #: During a fit: queries and preferences of the monolingual task.
    _monolingual: tuple[sp.csr_matrix, Preferences] | None = field(init=False, default=None)

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 1, "rank")
        check_positive(self, "init_scale")
        check_choice("sharing", self.sharing, SHARING)
        check_choice("init", self.init, (*INITS, AUTO))

    def forms(self) -> Choices:
        return {"init": self._among("init", INITS)}

    def _fit_jointly(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        *given: Any,
        monolingual: tuple[sp.csr_matrix, Preferences] | None = None,
        **options: Any,
    ) -> list[Self]:
        self._monolingual = None
        if monolingual is not None:
            Q_E, preferences = monolingual
            Q_E = self._check_rows("monolingual", Q_E)
            if Q_E.shape[1] != D.shape[1]:
                raise ValueError(f"monolingual has {Q_E.shape[1]} columns, D has {D.shape[1]}")
            check_shapes(Q_E, D, preferences)
            self._monolingual = (Q_E, preferences)
        models = [self]
        try:
            models += super()._fit_jointly(Q, D, *given, **options)
        finally:
            for model in models:
                model._monolingual = None
        return models[1:]

    @property
    def start(self) -> str:
        return "cross-language LSA" if self.init_ == "cl-lsa" else "random embeddings"

    @property
    def matches_words(self) -> bool:
        return False

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> TowerScorer:
        rng = np.random.default_rng([self.seed, 1])
        widths = data.Q.shape[1], data.D.shape[1]
        starts = [self.init_scale * rng.standard_normal((n, self.rank), np.float32) for n in widths]
        if self.init_ == "cl-lsa":
            A = data.cached(("cl-lsa", data.part), lambda: self._cl_lsa(data, workers))
            U_0, V_0 = np.split(A, [widths[0]])
            if self.unit_documents:
                V_0 = V_0 / np.float32(self.init_scale)
            for start, part in zip(starts, (U_0, V_0), strict=True):
                start[:, : A.shape[1]] = part
                start[:, A.shape[1] :] = 0  # few pairs give fewer dimensions
        else:
            for start, texts in zip(starts, self._paired(data), strict=True):
                start[np.bincount(texts.indices, minlength=len(start)) == 0] = 0
        U, V = (EmbeddingTable(start, rate, self.training.adagrad_start) for start in starts)
        return TowerScorer(
            data.Q, data.D, ("U", U), [("V", V)], None, workers, polynomial=self._polynomial
        )

    def _paired(self, data: TrainingData) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """The texts of relevant pairs that U and V learn from: the random embedding of a word in
        none of them would stay as it is, and add noise to every score."""
        pairs = data.training
        queries = take_rows(data.Q, np.unique(pairs.query))
        documents = [take_rows(data.D, np.unique(pairs.document))]
        if self._monolingual is not None:
            Q_E, own = self._monolingual
            documents.append(take_rows(Q_E, np.unique(own.query)))
            documents.append(take_rows(data.D, np.unique(own.document)))
        return queries, sp.vstack(documents, format="csr")

    @property
    def _polynomial(self) -> Polynomial:
        return UnitLength() if self.unit_documents else Polynomial()

    def _cl_lsa(self, data: TrainingData, workers: Workers) -> NDArray[np.float32]:
        """float32 [V_q + V_d, r]: the singular vectors of the training pairs."""
        texts = stacked(data.Q, data.D, "separate")
        factors = [pair_matrix(data.training, 1), texts]
        return singular_start(factors, self.rank, self.seed, workers, self.init_scale)

    def _run(
        self, scorer: TowerScorer, data: TrainingData, rate: float, workers: Workers, **options: Any
    ) -> TrainingRun:
        if self._monolingual is None:
            return super()._run(scorer, data, rate, workers, **options)
        Q_E, preferences = self._monolingual
        V = scorer.tables["V"]
        query = ("V", V)
        if self.sharing == "documents":
            rng = np.random.default_rng([self.seed, 6])
            start = self.init_scale * rng.standard_normal(V.values.shape, np.float32)
            query = ("U_E", EmbeddingTable(start, rate, self.training.adagrad_start))
        other = TowerScorer(
            Q_E, data.D, query, [("V", V)], None, workers, polynomial=self._polynomial
        )
        options |= {"other": other, "monolingual": preferences}
        return _TwoTasks(scorer, data, self.training, workers, **options)

    def _fingerprint(self, *given: Any) -> str:
        own = super()._fingerprint(*given)
        if self._monolingual is None:
            return own
        Q_E, preferences = self._monolingual
        task = (*arrays(Q_E), preferences.query, preferences.document, preferences.grade)
        return digest_of([own], (*task, *preferences.weights))

    @property
    def same_words(self) -> bool:
        return False

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        return Representation(embedded(Q, self.U_, self.threads))

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        E = [embedded(D, self.V_, self.threads)]
        return Representation(self._polynomial.represent(E))


class _TwoTasks(TrainingRun):
    """A run that takes a step for a monolingual task after each step for its main task."""

    def __init__(
        self, *given: Any, other: TowerScorer, monolingual: Preferences, **options: Any
    ) -> None:
        super().__init__(*given, **options)
        self._other, self._other_judged = other, monolingual.judged()
        own, _ = own_negatives(self.options.negatives, 0.0, None, monolingual)
        self._other_stream = self.pair_stream(monolingual, own, task=1)

    def batches(self, number: int) -> Iterator[Batch]:
        return alternate(self.stream.epoch, self._other_stream.epoch, number)

    def replica(self) -> Self:
        twin = super().replica()
        twin._other = replica(self._other)
        return twin

    def state(self) -> dict[str, NDArray[Any]]:
        return self._other.state() | super().state()

    def step(self, batch: Batch) -> tuple[float, int, int]:
        if batch.task == 0:
            return super().step(batch)
        self._step(batch, self._other, self._other_judged, self._other_stream.pool)
        return 0.0, 0, 0
