"""Polynomial semantic indexing: products of document embeddings (Bai et al., NIPS 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.parallel import Workers
from ssi_models.parameters import check_least, check_positive, model_class
from ssi_models.representation import Representation
from ssi_models.ssi.low_rank import EmbeddingModel
from ssi_models.stored_tensors import Tensor
from ssi_models.training.choosing import Choices
from ssi_models.training.data import TrainingData
from ssi_models.training.towers import Polynomial, SeparatePolynomial, TowerScorer


@model_class
class PSI(EmbeddingModel):
    """f(q, d) = sum_(t = 2..k) sum_i (Uq)_i (Vd)_i (Yd)_i ... + q . d, with t - 1 embeddings of d
    in the term of degree t; degree 2 is U'V + I.

    The embeddings of degree 2 start as in :class:`ssi_models.ssi.low_rank.LowRankSSI`, the further
    ones of documents at N(0, higher_init_scale^2), which is also the spread of each dimension of a
    unit text. With a fifth of the default scale, terms of third degree change the scores so little
    that training stays at the model of degree 2 for many epochs and over-fits words meanwhile; with
    twice the default, they blur the start of degree 2. If degrees are separate, the further query
    embeddings start at 0, and the model at that of degree 2.

    Args:
        degree: k, 2 or more.
        separate: each degree has its own query and document embeddings. By default they are
            shared: the term of degree t multiplies that of degree t - 1 by one more embedding.
        higher_init_scale: see above. With ``init="normal"`` it is not used: all embeddings start
            at N(0, init_scale^2), as in the paper.

    Attributes:
        U_: float32 [V, N], or [V, N (k - 1)] if separate.
        V_: float32 [T, V, N], the T = k - 1 (or k (k - 1) / 2) document embeddings; the first is
            ``U_`` where symmetric.

    Reference:
        Bai, Weston, Grangier, Collobert, Sadamasa, Qi, Cortes, Mohri: "Polynomial semantic
        indexing", NIPS 2009, section 2.
    """

    name: ClassVar[str] = "psi"
    tensors: ClassVar[Mapping[str, Tensor]] = {
        **EmbeddingModel.tensors,
        "U": Tensor(("embedded", "query rank")),
        "V": Tensor(("tables", "embedded", "rank")),
    }

    degree: int = 3
    separate: bool = False
    higher_init_scale: float = 0.5

    V_: NDArray[np.float32] = field(init=False)

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 2, "degree")
        check_positive(self, "higher_init_scale")
        if self.separate and self.symmetric is True:
            raise ValueError("symmetric: separate degrees have query embeddings of their own")

    def check_rank(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> None:
        if self.degree == 2:  # products of three embeddings or more can use more dimensions
            super().check_rank(Q, D)

    def forms(self) -> Choices:
        found = super().forms()
        return {**found, "symmetric": (False,)} if self.separate else found

    def _check_restored(self) -> None:
        super()._check_restored()
        k, n = self.degree, len(self.V_)
        width = n * self.V_.shape[2] * 2 // k if self.separate else self.V_.shape[2]
        if n != self._n_tables or self.U_.shape[1] != width:
            raise ValueError(f"arrays U {self.U_.shape} and V {self.V_.shape}: not of degree {k}")

    @property
    def _n_tables(self) -> int:
        k = self.degree
        return k * (k - 1) // 2 if self.separate else k - 1

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> TowerScorer:
        k = self.degree
        rng = np.random.default_rng([self.seed, 1])
        U, V0 = self._towers(rng, data, workers)
        paper = self.init == "normal"
        scale = np.float32(self.init_scale if paper else self.higher_init_scale)
        V = [V0]
        V += [scale * rng.standard_normal(V0.shape, np.float32) for _ in range(self._n_tables - 1)]
        if self.separate:
            shape = (len(U), self.rank * (k - 2))
            U = np.hstack([U, self._normal(rng, shape) if paper else np.zeros(shape, np.float32)])
        query = "U", self._table(U, rate)
        documents = [(f"V{i}", self._table(V[i], rate)) for i in range(self._n_tables)]
        tables = query, [query, *documents[1:]] if self.symmetric_ else documents
        return self._tower(data, rate, workers, tables)

    @property
    def _polynomial(self) -> Polynomial:
        return SeparatePolynomial() if self.separate else Polynomial()

    def _pack(self, parameters: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        tables = [v for name, v in parameters.items() if name.startswith("V")]
        if self.symmetric_:
            tables.insert(0, parameters["U"])
        rest = {name: v for name, v in parameters.items() if not name.startswith("V")}
        return rest | {"V": np.stack(tables)}

    def _unpack(self) -> dict[str, NDArray[np.float32]]:
        parameters = super()._unpack()
        return parameters | {f"V{i}": table for i, table in enumerate(parameters["V"])}

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        return self._represented(D, self.V_)
