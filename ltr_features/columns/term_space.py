"""The tf-idf space that matching models work in, and the column of its cosine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.collection import Pairs
from ltr_features.columns.registry import ColumnContext, ColumnFamily, ColumnSpec
from ltr_features.index import WHOLE
from ltr_features.term_counts import renumbered
from ssi_models.kernels.sparse import pair_products
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf


@dataclass(frozen=True, eq=False)
class TermSpace:
    """Queries and documents of a context as unit tf-idf rows over the words of enough documents.

    Attributes:
        vocabulary: the words, a subset of the index's.
        weighting: fitted on the documents' whole text (document frequencies only, no labels).
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
        """The space of a context, computed once per context (its documents' part once for all
        contexts of the same documents).

        Args:
            stream: the documents' stream, by default all of them together.
            min_document_frequency: words of fewer documents are left out: they match next to
                nothing, and their embeddings could only learn single documents by heart.
        """
        key = ("tf-idf space", min_document_frequency, stream)
        columns, vocabulary, weighting, D = context.once(
            key, lambda: _document_space(context, min_document_frequency, stream)
        )

        def of_queries() -> csr_matrix:
            return weighting.transform(renumbered(context.query_counts, columns, len(vocabulary)))

        Q = context.once_for_queries(key, of_queries)
        return cls(vocabulary, weighting, Q, D)


def check_document_frequency(least: int) -> None:
    """Raise InputError unless words can be asked to occur in so many documents."""
    if least < 1:
        raise InputError(f"min_document_frequency must be 1 or more, got {least}")


def _document_space(
    context: ColumnContext, min_document_frequency: int, stream: str
) -> tuple[NDArray[np.int64], Vocabulary, TfIdf, csr_matrix]:
    """Each index word's column, or -1; the words kept, their weights, and the documents' rows."""
    index = context.index
    frequent = index.document_frequency(WHOLE) >= min_document_frequency
    kept = np.flatnonzero(frequent)
    if not len(kept):
        raise InputError(
            f"no word occurs in {min_document_frequency} documents; lower min_document_frequency"
        )
    columns = np.where(frequent, np.cumsum(frequent) - 1, -1)
    # Words of queries need not occur in the stream: their weights come from the whole text.
    weighting = TfIdf().fit(renumbered(index.counts(WHOLE), columns, len(kept)))
    vocabulary = Vocabulary(index.vocabulary[row] for row in kept.tolist())
    counts = renumbered(index.counts(stream), columns, len(kept))
    return columns, vocabulary, weighting, weighting.transform(counts)


class VectorSpace(ColumnFamily):
    """The cosine of tf-idf vectors: what SSI's identity alone would score.

    Args:
        min_document_frequency: 1 or more, see :class:`TermSpace`.

    Raises:
        InputError: min_document_frequency is below 1.
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
        check_document_frequency(min_document_frequency)
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
