"""Columns that trained matching models score, and the tf-idf space that they work in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.collection import Pairs
from ltr_features.columns.registry import ColumnContext, ColumnFamily, ColumnSpec
from ltr_features.index import WHOLE
from ssi_models.kernels.sparse import pair_products
from ssi_models.preferences import Preferences
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.training import Epoch
from ssi_models.weighting import TfIdf


@dataclass(frozen=True, eq=False)
class TermSpace:
    """Queries and documents of a context as unit tf-idf rows.

    Attributes:
        weighting: fitted on the documents' whole text (document frequencies only, no labels).
        Q: float32 CSR [n_queries, V]. D: float32 CSR [n_documents, V].
    """

    weighting: TfIdf
    Q: csr_matrix
    D: csr_matrix

    @classmethod
    def of(cls, context: ColumnContext) -> TermSpace:
        """The space of a context, computed once per context."""
        return context.once("tf-idf space", lambda: cls._make(context))

    @classmethod
    def _make(cls, context: ColumnContext) -> TermSpace:
        documents = context.index.counts(WHOLE)
        weighting = TfIdf().fit(documents)
        return cls(
            weighting, weighting.transform(context.query_counts), weighting.transform(documents)
        )


class VectorSpace(ColumnFamily):
    """The cosine of tf-idf vectors: what SSI's identity alone would score."""

    name = "vsm"
    description = "vector space model: cosine of the query's and the document's tf-idf vectors"
    reference = "Salton, Wong, Yang, CACM 18(11), 1975"
    columns = (
        ColumnSpec(
            name="vsm",
            description="q . d of unit tf-idf vectors over all streams together",
            unit="cosine",
            value_range="0 to 1",
            reference=reference,
        ),
    )

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        space = TermSpace.of(context)
        out = np.zeros(len(pairs))
        pair_products(
            space.Q.indptr.astype(np.int64),
            space.Q.indices,
            space.Q.data,
            space.D.indptr.astype(np.int64),
            space.D.indices,
            space.D.data,
            pairs.query,
            pairs.document,
            np.zeros(space.Q.shape[1]),
            out,
            0,
            len(pairs),
        )
        return out.astype(np.float32)[:, None]


class TrainedScores:
    """Scores of SSI models, one model per set of training queries, trained once and kept on disk.

    Only judgements of the training queries are used; negatives are documents that are relevant to
    some training query, so that a document without any label is never pushed down for lacking one.

    Args:
        context: collection, index and queries.
        params: constructor parameters of :class:`ssi_models.ssi.low_rank.LowRankSSI`.
        folder: where fitted models are kept; a model that is there is loaded, not trained again.
        hold_out_groups: hold out whole query groups for early stopping (for splits by group).
        on_epoch: called with (model key, finished epoch).
    """

    def __init__(
        self,
        context: ColumnContext,
        params: dict[str, Any],
        folder: Path,
        *,
        hold_out_groups: bool = False,
        on_epoch: Callable[[str, Epoch], None] | None = None,
    ) -> None:
        self.context = context
        self.params = params
        self.folder = folder
        self.hold_out_groups = hold_out_groups
        self.on_epoch = on_epoch

    def __call__(self, train_queries: NDArray[np.int64], pairs: Pairs) -> NDArray[np.float32]:
        """f(q, d) of each pair by the model trained on the labels of ``train_queries`` only."""
        space = TermSpace.of(self.context)
        return self.model(train_queries).score(space.Q, space.D, pairs.query, pairs.document)

    def model(self, train_queries: NDArray[np.int64]) -> LowRankSSI:
        """The model for a set of query rows: loaded if it is in the folder, else trained."""
        path = self.path(train_queries)
        if path.exists():
            return LowRankSSI.load(path)
        space, preferences = TermSpace.of(self.context), self._preferences.only(train_queries)
        if not len(preferences):
            raise InputError(
                f"none of the {len(train_queries)} training queries has a relevant document; "
                "a model cannot learn from them"
            )
        key = path.stem
        self.folder.mkdir(parents=True, exist_ok=True)
        model = LowRankSSI(**self.params).fit(
            space.Q,
            space.D,
            preferences,
            excluded=self.context.collection.query_sources,
            candidates=np.unique(preferences.document),
            groups=self._groups,
            vocabulary=self.context.index.vocabulary,
            weighting=space.weighting,
            recipe=self.context.index.analyzer.fingerprint,
            checkpoint=self.folder / f"{key}.checkpoint",
            callback=None if self.on_epoch is None else lambda e: self.on_epoch(key, e),  # type: ignore[misc]
        )
        model.save(path)
        return model

    def path(self, train_queries: NDArray[np.int64]) -> Path:
        """The model's file: named by a digest of its training queries."""
        rows = np.sort(np.asarray(train_queries, dtype=np.int64))
        ids = "\n".join(self.context.collection.query_ids[row] for row in rows.tolist())
        return self.folder / f"ssi-{hashlib.sha256(ids.encode()).hexdigest()[:12]}.safetensors"

    @cached_property
    def _preferences(self) -> Preferences:
        collection = self.context.collection
        return Preferences.from_pairs(
            collection.judgements.query,
            collection.judgements.document,
            collection.judgements.grade,
            n_queries=collection.n_queries,
            n_documents=collection.n_documents,
        )

    @cached_property
    def _groups(self) -> NDArray[np.int64] | None:
        labels = self.context.collection.query_groups
        if not self.hold_out_groups or labels is None:
            return None
        return np.unique(np.array(labels, dtype=str), return_inverse=True)[1]
