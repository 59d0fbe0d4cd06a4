"""The 46 columns of LETOR 4.0, from text, links and URLs.

Numbering and names follow Qin and Liu, "Introducing LETOR 4.0 Datasets" (arXiv:1306.2597). The
paper does not print the parameters of BM25 and of the language models; the defaults here are the
ones in common use, and columns 21 to 40 do not claim to reproduce the published values.

Rules (field s of document d, query q):

- A query term that occurs in s of no document is left out: its factor would be the same for all
  documents (log 0 in the language models).
- TF, IDF and TF*IDF count each distinct term of q once; BM25 weighs repetitions by k3; the language
  models count each repetition.
- BM25 is the sum over the distinct terms t of q of
  ``ln(N / df(t)) c (k1 + 1) / (c + k1 (1 - b + b |d| / avgdl)) (k3 + 1) n / (k3 + n)``, where n is
  the count of t in q and avgdl the mean length of s over all N documents, those without s included.
- p(t|C) = occurrences of t in s over all tokens of s, in the whole collection.
- Where s is empty in d, |d|_u / |d| counts as 1 and c / |d| as 0, so all values are finite.
- A query without known terms has 0 in all term columns except DL.
- The columns of a field that the collection lacks are 0 (``absent`` names them).
- Repeated links count once, links of a document to itself do not count. In PageRank a document
  without links shares its mass among all documents.
- The parent of a page is the page of the collection with the longest URL that is a proper prefix of
  its own, by whole path segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ltr_base.parallel import map_blocks
from ltr_base.slices import slices
from ltr_features.columns.base import ColumnFamily, ColumnSpec
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.links import document_columns
from ltr_features.kernels.ranking import FieldTerms, QueryTerms, term_columns
from ltr_features.parameters import check_range
from ltr_features.text.bm25 import BM25, inverse_document_frequency
from ltr_features.text.collection import Pairs
from ltr_features.text.id_rows import rows_of
from ltr_features.text.index import WHOLE

#: The fields in LETOR's order, and their names in column descriptions.
LETOR_FIELDS = {
    "body": "body",
    "anchor": "anchor texts",
    "title": "title",
    "url": "URL",
    WHOLE: "whole document",
}

_LETOR = "Qin and Liu 2013, arXiv:1306.2597"
_OKAPI = "Robertson et al. 1994, Okapi at TREC-3"
_LMIR = "Zhai and Lafferty 2001, SIGIR"

#: Prefix, description, unit, value range, reference; each for all fields, in LETOR's order.
_TERM_COLUMNS = (
    ("tf", "sum over distinct query terms of c(t, d)", "tokens", ">= 0", _LETOR),
    ("idf", "sum over distinct query terms of ln(N / df(t))", "nats", ">= 0", _LETOR),
    ("tfidf", "sum over distinct query terms of c(t, d) ln(N / df(t))", "nats", ">= 0", _LETOR),
    ("dl", "length of the document", "tokens", ">= 0", _LETOR),
    ("bm25", "BM25 with the idf ln(N / df(t))", "nats", ">= 0", _OKAPI),
    (
        "lmir_abs",
        "sum over query tokens of ln(max(c - delta, 0)/|d| + delta |d|_u/|d| p(t|C))",
        "nats",
        "<= 0",
        _LMIR,
    ),
    (
        "lmir_dir",
        "sum over query tokens of ln((c + mu p(t|C)) / (|d| + mu))",
        "nats",
        "<= 0",
        _LMIR,
    ),
    (
        "lmir_jm",
        "sum over query tokens of ln((1 - lambda) c/|d| + lambda p(t|C))",
        "nats",
        "<= 0",
        _LMIR,
    ),
)

_DOCUMENT_COLUMNS = (
    ColumnSpec(
        "pagerank", "PageRank; the sum over all documents is 1", "probability", "0 to 1",
        "Brin and Page 1998, Computer Networks 30", None, 41,
    ),
    ColumnSpec("inlinks", "other documents that link to it", "links", ">= 0", _LETOR, None, 42),
    ColumnSpec("outlinks", "other documents that it links to", "links", ">= 0", _LETOR, None, 43),
    ColumnSpec("url_slashes", "slashes in the URL", "characters", ">= 0", _LETOR, "url", 44),
    ColumnSpec("url_length", "length of the URL", "characters", ">= 0", _LETOR, "url", 45),
    ColumnSpec(
        "child_pages", "pages right below it in the tree of URLs", "pages", ">= 0", _LETOR,
        "url", 46,
    ),
)  # fmt: skip


def _declared() -> tuple[ColumnSpec, ...]:
    columns: list[ColumnSpec] = []
    for name, description, unit, value_range, reference in _TERM_COLUMNS:
        for field, called in LETOR_FIELDS.items():
            columns.append(
                ColumnSpec(
                    f"{name}_{field}",
                    f"{description}; {called}",
                    unit,
                    value_range,
                    reference,
                    field,
                    len(columns) + 1,
                )
            )
    return (*columns, *_DOCUMENT_COLUMNS)


#: All 46 columns in LETOR's order.
LETOR46_COLUMNS = _declared()

#: Pairs per block of work.
_BLOCK = 4096


@dataclass(frozen=True)
class Letor46(ColumnFamily):
    """The 46 columns of LETOR 4.0.

    Attributes:
        k1, b, k3: parameters of BM25 (see ``text.bm25``); 2.5, 0.8 and 0 are the values that
            users of LETOR 3.0 hand down.
        delta: absolute discount of LMIR.ABS, greater than 0, at most 1.
        mu: Dirichlet prior of LMIR.DIR, in tokens, greater than 0.
        lam: weight of the collection in LMIR.JM (lambda), greater than 0, at most 1.
        damping: PageRank's probability of following a link.

    Raises:
        InputError: a parameter is outside its range.
    """

    k1: float = 2.5
    b: float = 0.8
    k3: float = 0.0
    delta: float = 0.7
    mu: float = 2000.0
    lam: float = 0.1
    damping: float = 0.85

    knows_added: ClassVar[bool] = True
    name: ClassVar[str] = "letor46"
    description: ClassVar[str] = "The 46 columns of LETOR 4.0"
    reference: ClassVar[str] = _LETOR

    def __post_init__(self) -> None:
        BM25(self.k1, self.b, self.k3)
        check_range("delta", self.delta, 1e-6, 1.0)
        check_range("mu", self.mu, 1e-6, 1e12)
        check_range("lam", self.lam, 1e-6, 1.0)
        check_range("damping", self.damping, 0.0, 1.0 - 1e-6)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return LETOR46_COLUMNS

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        queries = np.ascontiguousarray(pairs.query, dtype=np.int64)
        documents = np.ascontiguousarray(pairs.document, dtype=np.int64)
        values = np.zeros((len(pairs), len(LETOR46_COLUMNS)), dtype=np.float32)
        for position, field in enumerate(LETOR_FIELDS):
            if field in context.index:
                part = self._term_columns(context, field, queries, documents)
                values[:, position : 5 * part.shape[1] : 5] = part
        values[:, 40:] = self._document_columns(context)[documents]
        return values

    def absent(self, context: ColumnContext) -> dict[str, str]:
        missing = super().absent(context)
        if context.collection.links is None:
            for name in ("pagerank", "inlinks", "outlinks"):
                missing[name] = "0: the collection has no links"
        return missing

    def _term_columns(
        self,
        context: ColumnContext,
        field: str,
        queries: NDArray[np.int64],
        documents: NDArray[np.int64],
    ) -> NDArray[np.float32]:
        """float32 [n, 8]: the term columns of one field."""
        counts = context.index.field(field)
        asked = context.query_counts
        terms = asked.indices.astype(np.int32)
        idf = inverse_document_frequency(counts, terms)
        background = counts.collection_frequency[terms] / max(counts.n_tokens, 1)
        log_background = np.log(np.where(background > 0, background, 1.0))
        asked_terms = QueryTerms(
            asked.indptr.astype(np.int64), terms, asked.data.astype(np.int32), idf, background,
            log_background,
        )  # fmt: skip
        field_terms = FieldTerms(
            counts.ends, counts.terms, counts.counts, counts.lengths, counts.distinct,
            counts.mean_length,
        )  # fmt: skip
        parameters = np.array([self.k1, self.b, self.k3, self.delta, self.mu, self.lam])
        values = np.empty((len(queries), len(_TERM_COLUMNS)), dtype=np.float32)

        def compute(block: slice) -> None:
            term_columns(
                queries[block], documents[block], asked_terms, field_terms, parameters,
                values[block],
            )  # fmt: skip

        for _ in map_blocks(compute, slices(len(queries), _BLOCK), context.threads):
            pass
        return values

    def _document_columns(self, context: ColumnContext) -> NDArray[np.float64]:
        return context.cached(
            (self.name, "document columns", self.damping), lambda: self._of_documents(context)
        )

    def _of_documents(self, context: ColumnContext) -> NDArray[np.float64]:
        """float64 [n, 6]. Added documents do not change the link graph and the URL tree: documents
        that are in them keep their values, new ones have no links, no child pages, and the least
        PageRank."""
        collection = context.collection
        urls, n = collection.fields.get("url"), collection.n_documents
        if context.base is None:
            return document_columns(urls, collection.links, n, self.damping)
        known = self._document_columns(context.base)
        row = rows_of(collection.document_ids, context.base.collection.document_ids)
        values = document_columns(urls, None, n, self.damping)
        for column in (0, 1, 2, 5):  # PageRank, in-links, out-links, child pages
            default = known[:, column].min() if column == 0 else 0.0
            values[:, column] = np.where(row >= 0, known[row, column], default)
        return values
