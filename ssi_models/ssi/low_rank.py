"""SSI with a low-rank matrix: W = U'V + I and its relatives (Bai et al., section 2.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.matrices import take_columns
from ssi_models.parallel import Workers
from ssi_models.parameters import AUTO, check_choice, check_least, check_positive, model_class
from ssi_models.projections.svd import singular_start
from ssi_models.remarks import WORD_MATCHING
from ssi_models.representation import Representation
from ssi_models.stored_tensors import Tensor
from ssi_models.training.choosing import Choices
from ssi_models.training.data import TrainingData
from ssi_models.training.diagonal import Diagonal, Identity, weigh
from ssi_models.training.embedding_table import EmbeddingTable, embedded
from ssi_models.training.run import TrainingRun
from ssi_models.training.towers import Polynomial, TowerScorer, UnitLength
from ssi_models.training.trainable import TrainableModel

DIAGONALS = ("identity", "learned", "none")
INITS = ("identity", "normal", "lsi")


@model_class
class EmbeddingModel(TrainableModel):
    """Base class of models with word embeddings.

    With ``init="identity"`` the documents' embeddings start at 0, so that training starts at
    f(q, d) = q . d exactly and early stopping can return to the word-matching model if the labels
    teach nothing; with ``init="normal"`` all start at N(0, init_scale^2) as in the paper (whose
    scale is 1). With ``init="lsi"`` the embeddings of queries and documents start at A, the leading
    singular vectors of D: W = s AA' + I is a mixture of latent semantic indexing and word matching
    that uses no queries or labels, and training continues from there. If there are few labels, or
    they tell nothing about the documents to be found, that start is most of what can be known.

    Args:
        rank: N, the width of the embeddings. Above the default it may not exceed the numbers of
            words and documents, beyond which W = U'V gains nothing.
        diagonal: "identity": f contains q . d; "learned": q'Dd with learned weights D (W = U'V +
            D); "none": embeddings alone.
        n_frequent: number of words with embeddings, those of the highest document frequency; the
            diagonal part keeps all words ((U'V)_n + I). None = all.
        init, init_scale: see above. With "lsi" the rows of A have the root mean square length
            init_scale, times the best factor of ``scales``.
        symmetric: U = V, W = U'U + I, which has half the weights to learn. Embeddings then start at
            N(0, init_scale^2) or at "lsi", because 0 is a stationary point. "auto" trains U'V + I
            and, unless init is "identity", U'U + I, which is kept if it ranks held-out queries
            better by more than 1.5 standard errors.
        unit_documents: whether embedded documents are divided by their lengths, as (Uq) . (Vd) /
            |Vd|. Without, as in the paper, those with many common words are preferred, whatever the
            query. Which is better depends on the collection; "auto" trains both and keeps the
            division if it ranks held-out queries better by more than 1.5 standard errors (with init
            "identity", which starts without lengths, it is never made).
        dropout: share of a text's words, in [0, 1), that a training step leaves out at random;
            models with many words and few labels then over-fit later.

    Attributes:
        embedded_words_: int64, ascending: the words (columns) that have embeddings, if
            ``n_frequent`` limits them, otherwise empty. Row i of an embedding array is then that of
            word ``embedded_words_[i]``.
        diagonal_: float32 [V], the weights D; empty unless learned.
        symmetric_, unit_documents_: as given or as chosen.
    """

    rank: int = field(default=100, kw_only=False)
    diagonal: str = "identity"
    n_frequent: int | None = None
    init: str = "lsi"
    init_scale: float = 0.1
    symmetric: bool | str = AUTO
    unit_documents: bool | str = AUTO
    dropout: float = 0.0

    before_params: ClassVar[dict[str, Any]] = {"unit_documents": False}

    symmetric_: bool = field(init=False)
    unit_documents_: bool = field(init=False)
    U_: NDArray[np.float32] = field(init=False)
    embedded_words_: NDArray[np.int64] = field(init=False)
    diagonal_: NDArray[np.float32] = field(init=False)

    tensors: ClassVar[Mapping[str, Tensor]] = {
        "U": Tensor(("embedded", "rank")),
        "V": Tensor(("embedded", "rank")),
        "diagonal": Tensor(("space?",)),
        "embedded_words": Tensor(("embedded?",), "int64", below="words", ascending=True),
    }

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 1, "rank", "n_frequent")
        check_positive(self, "init_scale")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}")
        check_choice("diagonal", self.diagonal, DIAGONALS)
        check_choice("init", self.init, INITS)
        if self.init == "identity" and self.unit_documents is True:
            raise ValueError(
                "unit_documents: embeddings that start at 0 (init='identity') have no length; use "
                "init='lsi'"
            )

    def forms(self) -> Choices:
        forms = {name: self._among(name, (False, True)) for name in ("symmetric", "unit_documents")}
        if self.init == "identity":
            forms = {name: values[:1] for name, values in forms.items()}
        return forms

    @property
    def start(self) -> str:
        words = "" if self.diagonal == "none" else f" plus {WORD_MATCHING}"
        if self.init == "lsi":
            return f"latent semantic indexing{words}"
        random = self.init == "normal" or getattr(self, "symmetric_", False)
        return f"random embeddings{words}" if random or not words else WORD_MATCHING

    @property
    def matches_words(self) -> bool:
        return self.diagonal != "none"

    @property
    def starts_from_texts(self) -> bool:
        return self.init == "lsi"

    def _words(self, D: sp.csr_matrix) -> NDArray[np.int64] | None:
        if self.n_frequent is None or self.n_frequent >= D.shape[1]:
            return None
        return frequent_columns(D, self.n_frequent)

    def _normal(self, rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float32]:
        return (self.init_scale * rng.standard_normal(shape, np.float32)).astype(np.float32)

    def _towers(
        self, rng: np.random.Generator, data: TrainingData, workers: Workers
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The embeddings of queries and documents that training starts from, [words, rank]."""
        words = self._words(data.D)
        shape = (data.D.shape[1] if words is None else len(words), self.rank)
        U = self._normal(rng, shape)
        if self.init == "normal":
            return U, self._normal(rng, shape)
        V = np.zeros(shape, np.float32)
        if self.init == "lsi":
            D = data.D if words is None else take_columns(data.D, words)
            given = [D], self.rank, self.seed, workers, self.init_scale
            A = data.cached("lsi", lambda: singular_start(*given))
            # Dimensions beyond the rank of the texts start as with "identity".
            U[:, : A.shape[1]] = V[:, : A.shape[1]] = A
        return U, V

    def _table(self, values: NDArray[np.float32], rate: float) -> EmbeddingTable:
        return EmbeddingTable(values, rate, self.training.adagrad_start)

    def _tower(
        self,
        data: TrainingData,
        rate: float,
        workers: Workers,
        tables: tuple[tuple[str, EmbeddingTable], Sequence[tuple[str, EmbeddingTable]]],
    ) -> TowerScorer:
        """The scorer with the given tables of queries and documents."""
        return TowerScorer(
            data.Q,
            data.D,
            *tables,
            self._diagonal_part(data.D.shape[1], rate),
            workers,
            polynomial=self._represents,
            words=self._words(data.D),
            dropout=self.dropout,
            seed=self.seed,
        )

    @property
    def _polynomial(self) -> Polynomial:
        """How embeddings make up a document before it may be scaled to unit length."""
        return Polynomial()

    @property
    def _represents(self) -> Polynomial:
        return UnitLength(self._polynomial) if self.unit_documents_ else self._polynomial

    def _diagonal_part(self, n_words: int, rate: float) -> Identity | None:
        if self.diagonal == "none":
            return None
        if self.diagonal == "identity":
            return Identity()
        return Diagonal(np.ones(n_words, np.float32), rate, self.training.adagrad_start)

    def _adopt(self, run: TrainingRun) -> None:
        self.diagonal_ = np.zeros(0, np.float32)
        super()._adopt(run)

    def _words_of(self, data: TrainingData) -> dict[str, NDArray[np.int64]]:
        words = self._words(data.D)
        return {"embedded_words": np.zeros(0, np.int64) if words is None else words}

    def _factor(self, scale: np.float32) -> np.float32:
        # (sU)'(sU) would have the factor s^2, unless documents are scaled to unit length.
        return np.sqrt(scale) if self.symmetric_ and not self.unit_documents_ else scale

    @property
    def _space(self) -> int:
        """Width of the matrices that are embedded."""
        return self.n_words_

    def _check_restored(self) -> None:
        if not len(self.embedded_words_) and len(self.U_) != self._space:
            raise ValueError(f"array U has {len(self.U_)} rows, must have {self._space}")
        wanted = self._space if self.diagonal == "learned" else 0
        if len(self.diagonal_) != wanted:
            raise ValueError(f"array diagonal has {len(self.diagonal_)} values, not {wanted}")

    def _embed(self, X: sp.csr_matrix, M: NDArray[np.float32]) -> NDArray[np.float32]:
        if len(self.embedded_words_):
            X = take_columns(X, self.embedded_words_)
        return embedded(X, M, self.threads)

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        diagonal = None if self.diagonal == "none" else Q
        if self.diagonal == "learned":
            diagonal = weigh(Q, self.diagonal_)
        return Representation(self._embed(Q, self.U_), diagonal)

    def _represented(
        self, D: sp.csr_matrix, tables: Iterable[NDArray[np.float32]]
    ) -> Representation:
        R = self._represents.represent([self._embed(D, table) for table in tables])
        return Representation(R, None if self.diagonal == "none" else D)


@model_class
class LowRankSSI(EmbeddingModel):
    """f(q, d) = q' (U'V + I) d = (Uq) . (Vd) + q . d, or (Uq) . (Vd) / |Vd| + q . d.

    Minimises sum over (q, d+, d-) of max(0, margin - f(q, d+) + f(q, d-)) (Bai et al., eq. 4 and
    8); :class:`TrainableModel` describes the training and its parameters,
    :class:`EmbeddingModel` the diagonal and the limit on words.

    Attributes:
        U_, V_: float32 [V, N]; row j holds the embedding of word j (the paper's column j).
            U_ includes the chosen factor of ``scales``. ``V_`` is ``U_`` if symmetric.

    Reference:
        Bai, Weston, Grangier, Collobert, Sadamasa, Qi, Chapelle, Weinberger: "Learning to rank
        with (a lot of) word features", Information Retrieval 13(3), 2010.
    """

    name: ClassVar[str] = "ssi"
    V_: NDArray[np.float32] = field(init=False)

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> TowerScorer:
        start, other = self._towers(np.random.default_rng([self.seed, 1]), data, workers)
        U = self._table(start, rate)
        V = U if self.symmetric_ else self._table(other, rate)
        name = "U" if self.symmetric_ else "V"
        return self._tower(data, rate, workers, (("U", U), [(name, V)]))

    def _pack(self, parameters: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        return parameters | {"V": parameters["U"]} if self.symmetric_ else parameters

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        return self._represented(D, [self.V_])


def frequent_columns(D: sp.csr_matrix, n: int) -> NDArray[np.int64]:
    """The n columns with the most non-zero rows, ascending; ties go to the lower column."""
    frequency = np.bincount(D.indices[D.data != 0], minlength=D.shape[1])
    return np.sort(np.argsort(-frequency, kind="stable")[:n])
