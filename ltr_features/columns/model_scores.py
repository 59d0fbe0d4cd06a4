"""Columns that trained matching models score, and the tf-idf space that they work in."""

from __future__ import annotations

import hashlib
import json
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
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf


@dataclass(frozen=True, eq=False)
class TermSpace:
    """Queries and documents of a context as unit tf-idf rows over the words of enough documents.

    Attributes:
        vocabulary: the words, a subset of the index's.
        weighting: fitted on the documents' texts (document frequencies only, no labels).
        Q: float32 CSR [n_queries, V]. D: float32 CSR [n_documents, V].
    """

    vocabulary: Vocabulary
    weighting: TfIdf
    Q: csr_matrix
    D: csr_matrix

    @classmethod
    def of(
        cls, context: ColumnContext, min_document_frequency: int = 1, stream: str = WHOLE
    ) -> TermSpace:
        """The space of a context, computed once per context.

        Args:
            stream: the documents' stream, by default all of them together.
            min_document_frequency: words of fewer documents are left out: they match next to
                nothing, and their embeddings could only learn single documents by heart.
        """
        key = ("tf-idf space", min_document_frequency, stream)
        return context.once(key, lambda: cls._make(context, min_document_frequency, stream))

    @classmethod
    def _make(cls, context: ColumnContext, min_document_frequency: int, stream: str) -> TermSpace:
        index = context.index
        kept = np.flatnonzero(index.document_frequency(WHOLE) >= min_document_frequency)
        if not len(kept):
            raise InputError(
                f"no word occurs in {min_document_frequency} documents; lower "
                "min_document_frequency"
            )
        # Words of queries need not occur in the stream: their weights come from the whole text.
        weighting = TfIdf().fit(index.counts(WHOLE)[:, kept])
        return cls(
            Vocabulary(index.vocabulary[row] for row in kept.tolist()),
            weighting,
            weighting.transform(context.query_counts[:, kept]),
            weighting.transform(index.counts(stream)[:, kept]),
        )


class VectorSpace(ColumnFamily):
    """The cosine of tf-idf vectors: what SSI's identity alone would score.

    Args:
        min_document_frequency: see :class:`TermSpace`.
    """

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

    def __init__(self, min_document_frequency: int = 1) -> None:
        self.min_document_frequency = min_document_frequency

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        space = TermSpace.of(context, self.min_document_frequency)
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
        min_document_frequency: of the words that the models know, see :class:`TermSpace`.
        hold_out_groups: hold out whole query groups for early stopping (for splits by group).
        on_epoch: called with (model key, finished epoch).
    """

    def __init__(
        self,
        context: ColumnContext,
        params: dict[str, Any],
        folder: Path,
        *,
        min_document_frequency: int = 1,
        hold_out_groups: bool = False,
        on_epoch: Callable[[str, Epoch], None] | None = None,
    ) -> None:
        self.context = context
        self.params = params
        self.folder = folder
        self.min_document_frequency = min_document_frequency
        self.hold_out_groups = hold_out_groups
        self.on_epoch = on_epoch

    def __call__(self, train_queries: NDArray[np.int64], pairs: Pairs) -> NDArray[np.float32]:
        """f(q, d) of each pair by the model trained on the labels of ``train_queries`` only."""
        space = self.space
        return self.model(train_queries).score(space.Q, space.D, pairs.query, pairs.document)

    def model(self, train_queries: NDArray[np.int64]) -> LowRankSSI:
        """The model for a set of query rows: loaded if it is in the folder, else trained."""
        path = self.path(train_queries)
        if path.exists():
            return LowRankSSI.load(path)
        space, preferences = self.space, self.preferences(train_queries)
        key = path.stem
        self.folder.mkdir(parents=True, exist_ok=True)
        model = LowRankSSI(**self.params).fit(
            space.Q,
            space.D,
            preferences,
            excluded=self.context.collection.query_sources,
            candidates=np.unique(preferences.document),
            groups=self._groups,
            vocabulary=space.vocabulary,
            weighting=space.weighting,
            recipe=self.context.index.analyzer.fingerprint,
            checkpoint=self.folder / f"{key}.checkpoint",
            callback=None if self.on_epoch is None else lambda e: self.on_epoch(key, e),  # type: ignore[misc]
        )
        model.save(path)
        return model

    def preferences(self, train_queries: NDArray[np.int64]) -> Preferences:
        """The relevant pairs of the given query rows.

        Raises:
            InputError: there is none.
        """
        preferences = self._preferences.only(train_queries)
        if not len(preferences):
            raise InputError(
                f"none of the {len(train_queries)} training queries has a relevant document; "
                "a model cannot learn from them"
            )
        return preferences

    @property
    def space(self) -> TermSpace:
        """The tf-idf rows that the models are trained on and score."""
        return TermSpace.of(self.context, self.min_document_frequency)

    def path(self, train_queries: NDArray[np.int64]) -> Path:
        """The model's file: named by a digest of its training queries and its parameters."""
        rows = np.sort(np.asarray(train_queries, dtype=np.int64))
        params = {k: v for k, v in self.params.items() if k != "threads"}
        made_of = [
            [self.context.collection.query_ids[row] for row in rows.tolist()],
            sorted(params.items()),
            self.min_document_frequency,
            self.hold_out_groups,
            self.context.index.fingerprint,
        ]
        digest = hashlib.sha256(json.dumps(made_of, default=repr).encode()).hexdigest()
        return self.folder / f"ssi-{digest[:12]}.safetensors"

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
