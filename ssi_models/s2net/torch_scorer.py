"""S2Net's steps on a PyTorch device; the only module that imports PyTorch, which is optional."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr_base.quiet import ignored
from ssi_models.kernels.pair_losses import Judged
from ssi_models.kernels.projections import CosineLoss, batch_gradients
from ssi_models.matrices import arrays, take_rows
from ssi_models.s2net.mini_batch import AveragedTable, BatchTexts, CosineScorer, ProjectionTable
from ssi_models.training.batches import Batch
from ssi_models.training.embedding_table import TextMatrix


class TorchScorer(CosineScorer):
    """A :class:`CosineScorer` whose embeddings, products and steps run in PyTorch.

    The tables are copied to the device when an epoch begins, and back to the host when the training
    loop asks for the state. Results equal those of the kernels within float32 rounding.

    Args:
        device: a PyTorch device, such as "cpu" or "cuda".

    Raises:
        ValueError: PyTorch is not installed, or does not have the device.
    """

    def __init__(self, *given: Any, device: str) -> None:
        super().__init__(*given)
        try:
            import torch
        except ImportError:
            raise ValueError(
                f"device {device!r} needs PyTorch, which is not installed; install "
                "ltr-features[torch], or leave device out"
            ) from None
        self._torch = torch
        try:
            self._device = torch.zeros(1, device=device).device
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"device {device!r}: {str(error).splitlines()[0]}") from None
        # PyTorch warns once per process that its sparse matrices are in beta state.
        with ignored("Sparse "):
            self._csr(np.zeros(2), np.zeros(0), np.zeros(0, np.float32), (1, 1))
        self._stepped = False
        self.begin_epoch()

    def begin_epoch(self) -> None:
        if self._stepped:
            return  # the device has newer values than the host
        super().begin_epoch()
        self._results = {id(t): self._to(t.result.copy()) for t in self.tables.values()}
        self._values = {id(t): self._to(t.values.copy()) for t in self.tables.values()}
        self._sums_of = {id(t): self._to(t.accumulator.copy()) for t in self.tables.values()}

    def state(self) -> dict[str, NDArray[Any]]:
        for table in self.tables.values() if self._stepped else ():
            table.values[...] = self._values[id(table)].cpu().numpy()
            if isinstance(table, AveragedTable):
                table.average[...] = self._results[id(table)].cpu().numpy()
            table.accumulator[...] = self._sums_of[id(table)].cpu().numpy()
        self._stepped = False
        return super().state()

    def step(
        self, batch: Batch, loss: CosineLoss, judged: Judged, slot: NDArray[np.int32]
    ) -> tuple[float, int, int]:
        self._stepped = True
        texts = BatchTexts.of(batch)
        Hq, inverse_q = self._project(self.query, self.Q, texts.queries)
        Hd, inverse_d = self._project(self.document, self.D, texts.documents)
        query_of = self._to(texts.query_of_place)
        # Any document will do where a pair has no such negative.
        places = self._to(np.maximum(texts.places, 0).ravel())
        Hn = Hd[: texts.n_negatives]
        paired = (Hq[query_of] * Hd[places]).sum(1).reshape(texts.places.shape).cpu().numpy()
        negative = (Hq @ Hn.T).cpu().numpy()
        C, out = np.empty_like(negative), texts.empty_gradients()
        slot[batch.negatives] = np.arange(len(batch.negatives), dtype=np.int32)
        pairs = texts.pairs(batch, judged, slot)
        batch_gradients(paired, negative, pairs, loss, out, C, 0, len(C))
        slot[batch.negatives] = -1
        gradients = self._to(C)
        pulls = out.pull.ravel()
        G_q = self._pairs(*texts.by_query(), texts.places.ravel(), pulls, len(Hd)) @ Hd
        G_q += gradients @ Hn
        G_d = self._pairs(*texts.by_document(), texts.query_of_place, pulls, len(Hq)) @ Hq
        G_d[: texts.n_negatives] += gradients.T @ Hq
        for table, space, rows, G, H, inverse in (
            (self.query, self.Q, texts.queries, G_q, Hq, inverse_q),
            (self.document, self.D, texts.documents, G_d, Hd, inverse_d),
        ):
            G = (G - (G * H).sum(1, keepdim=True) * H) * inverse
            self._step(table, space, rows, G)
        for table in self.tables.values():
            if weight := table.next_weight():
                result = self._results[id(table)]
                result += weight * (self._values[id(table)] - result)
        return out.sums()

    def _step(
        self, table: ProjectionTable, space: TextMatrix, rows: NDArray[np.int64], G: Any
    ) -> None:
        """The table's ``step_share`` for all threads at once."""
        with_words = space.rows(rows)
        words, starts, owner, value = with_words.by_term
        shape = len(words), len(rows)
        g = self._csr(starts, owner, value, shape) @ G
        at = self._to(words.astype(np.int64))
        values, step = self._values[id(table)], table.learning_rate
        if table.adaptive:
            squares = (G.double() ** 2).mean(1, keepdim=True)
            sums = self._sums_of[id(table)]
            weights = self._csr(starts, owner, value.astype(np.float64) ** 2, shape)
            square, before = (weights @ squares)[:, 0], sums[at]
            mixed = self._torch.where(
                before > 0, table.kept * before + table.added * square, square
            )
            after = self._torch.where(square > 0, mixed, before)
            sums[at] = after
            rate = table.learning_rate / after.sqrt()
            step = self._torch.where(square > 0, rate, 0.0).float()[:, None]
        values[at] += step * g
        with_words.close()

    def _project(
        self, table: ProjectionTable, space: TextMatrix, rows: NDArray[np.int64]
    ) -> tuple[Any, Any]:
        X = take_rows(space.X, rows)
        U = self._csr(*arrays(X), X.shape) @ self._values[id(table)]
        squares = (U.double() ** 2).sum(1, keepdim=True)
        inverse = self._torch.where(squares > 0, squares.rsqrt(), squares).float()
        return U * inverse, inverse

    def _pairs(
        self,
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
        place: NDArray[np.int64],
        weight: NDArray[np.float32],
        width: int,
    ) -> Any:
        return self._csr(starts, place[order], weight[order], (len(starts) - 1, width))

    def _csr(self, starts: Any, columns: Any, values: Any, shape: tuple[int, int]) -> Any:
        return self._torch.sparse_csr_tensor(
            self._to(np.asarray(starts, np.int64)),
            self._to(np.asarray(columns, np.int64)),
            self._to(values),
            size=shape,
            check_invariants=False,
        )

    def _to(self, array: NDArray[Any]) -> Any:
        # A copy of what is read-only, of which torch would warn.
        return self._torch.from_numpy(np.require(array, requirements=["C", "W"])).to(self._device)
