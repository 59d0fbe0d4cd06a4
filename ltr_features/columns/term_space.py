"""The terms that matching models count, their tf-idf space, and the columns of its cosine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from letor.errors import InputError
from ltr_base.arrays import read_only
from ltr_features.columns.base import ColumnFamily, ColumnSpec
from ltr_features.columns.context import ColumnContext
from ltr_features.parameters import check_choice, check_range
from ltr_features.text.collection import Pairs
from ltr_features.text.index import WHOLE
from ltr_features.text.letter_ngrams import (
    KINDS,
    Kind,
    LetterTrigrams,
    Terms,
    described,
    rows_of_word,
    side_by_side,
)
from ltr_features.text.term_counts import renumbered
from ssi_models.base import MatchingModel
from ssi_models.kernels.sparse import Csr, pair_products
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf, heaviest


def document_counts(context: ColumnContext, kind: Kind, field: str = WHOLE) -> csr_matrix:
    """int32 [n_documents, T], columns sorted: how often each term occurs in the field. Words of
    added documents that no other has contribute those of their trigrams that others have."""
    if kind == "words":
        return context.index.counts(field)
    words, counts = context.index.every_word(field)
    return _product(counts, _trigrams(context).of_words(words))


def query_counts(context: ColumnContext, kind: Kind) -> csr_matrix:
    """int32 [n_queries, T], columns sorted: how often each term occurs in the queries. Words that
    occur in no document contribute those of their trigrams that occur in some document."""
    if kind == "words":
        return context.query_counts
    words, counts = context.query_words
    return _product(counts, _trigrams(context).of_words(words))


def term_vocabulary(context: ColumnContext, kind: Kind) -> Vocabulary:
    """The terms that the columns of the counts stand for."""
    return context.index.vocabulary if kind == "words" else _trigrams(context).vocabulary


@dataclass(frozen=True, eq=False)
class TermSpace:
    """Queries and documents of a context as rows over terms: :meth:`of` makes unit tf-idf rows over
    the terms of enough documents, :meth:`counts` makes int32 counts of all terms.

    With words and trigrams together, the unit rows of both are concatenated and scaled to unit
    length, so that q . d is the mean of the two cosines. The unit row of a query's words also
    includes words that occur in no document: the fewer of its words are known, the more its
    trigrams count.

    Attributes:
        vocabulary: the words, a subset of the index's, or the trigrams, or both.
        weighting: each term's idf, fitted on the documents' whole text (document frequencies only,
            no labels). With both kinds of terms, its ``transform`` does not reproduce the rows.
            None for counts.
        Q: float32 or int32 CSR [n_queries, V]. D: likewise [n_documents, V].
    """

    vocabulary: Vocabulary
    weighting: TfIdf | None
    Q: csr_matrix
    D: csr_matrix

    @classmethod
    def of(
        cls,
        context: ColumnContext,
        min_document_frequency: int = 1,
        field: str = WHOLE,
        terms: Terms = "words",
        n_heaviest: int | None = None,
    ) -> TermSpace:
        """The tf-idf space of a context, computed once per context (the documents' part once for
        all contexts of the same documents).

        Args:
            field: the document field; by default all fields together.
            min_document_frequency: leave out terms that occur in fewer documents: they match
                hardly anything, and their embeddings could only memorise single documents.
            terms: words, letter trigrams, or both.
            n_heaviest: number of terms of the largest weights that a row keeps; by default all.
        """
        key = ("tf-idf space", min_document_frequency, field, terms, n_heaviest)

        def of_documents(docs: ColumnContext) -> tuple[list[_Kept], Vocabulary, TfIdf, csr_matrix]:
            kept: list[_Kept] = []
            rows: list[csr_matrix] = []
            if (base := docs.base) is not None:
                kept, vocabulary, weighting, _ = base.cached(key, lambda: of_documents(base))
                rows = [part.unit_rows(document_counts(docs, part.kind, field)) for part in kept]
                return kept, vocabulary, weighting, heaviest(_joined_rows(rows), n_heaviest)
            for kind in KINDS[terms]:
                # Query terms need not occur in the field, so whole documents give the idf.
                whole = document_counts(docs, kind)
                kept.append(_Kept.of(docs, kind, whole, min_document_frequency))
                counts = whole if field == WHOLE else document_counts(docs, kind, field)
                rows.append(kept[-1].unit_rows(counts))
            vocabulary = _joined_words([part.vocabulary for part in kept])
            weighting = TfIdf.from_idf(np.concatenate([part.weighting.idf_ for part in kept]))
            return kept, vocabulary, weighting, heaviest(_joined_rows(rows), n_heaviest)

        kept, vocabulary, weighting, D = context.cached(key, lambda: of_documents(context))

        def of_queries() -> csr_matrix:
            if terms == "both":
                words, trigrams = kept
                of_trigrams = trigrams.unit_rows(query_counts(context, "letter-trigrams"))
                rows = _joined_rows([words.part_of_queries(context), of_trigrams])
            else:
                (part,) = kept
                rows = part.unit_rows(query_counts(context, part.kind))
            return heaviest(rows, n_heaviest)

        return cls(vocabulary, weighting, context.cached_for_queries(key, of_queries), D)

    @classmethod
    def counts(
        cls, context: ColumnContext, field: str = WHOLE, terms: Terms = "words"
    ) -> TermSpace:
        """The term counts of a context, words before trigrams, computed once like the rows of
        :meth:`of`, which explains the arguments."""
        kinds, key = KINDS[terms], ("term counts", field, terms)

        def of_documents() -> tuple[Vocabulary, csr_matrix]:
            vocabulary = _joined_words([term_vocabulary(context, kind) for kind in kinds])
            return vocabulary, _hstack([document_counts(context, kind, field) for kind in kinds])

        vocabulary, D = context.cached(key, of_documents)
        Q = context.cached_for_queries(
            key, lambda: _hstack([query_counts(context, kind) for kind in kinds])
        )
        return cls(vocabulary, None, Q, D)


def query_row(vocabulary: Vocabulary, weighting: TfIdf | None, words: Sequence[str]) -> csr_matrix:
    """float32 [1, V]: the row that :meth:`TermSpace.of` makes of a query with these words, from the
    vocabulary and the weighting that a model keeps.

    Beside trigrams, words that the vocabulary lacks weigh as much as its rarest term.
    """
    distinct, often = np.unique(words, return_counts=True)
    terms = [rows_of_word(vocabulary, str(word)) for word in distinct]
    known = np.array([own[0] if len(own) else -1 for own, _ in terms], dtype=np.int64)
    n_spelled = [len(spelled) for _, spelled in terms]
    spelled = np.concatenate([spelled for _, spelled in terms])
    counts = np.repeat(often, n_spelled).astype(np.float32)
    trigrams = csr_matrix((counts, ([0] * len(spelled), spelled)), (1, len(vocabulary)))
    if weighting is None:
        weighting = TfIdf.from_idf(np.ones(len(vocabulary), np.float32))
    rarest = float(weighting.idf_.max())
    own_words = _known_part(weighting, known, csr_matrix(often[None]), rarest)
    return _unit(own_words + weighting.transform(trigrams))


def nearest_terms(
    model: MatchingModel, vocabulary: Vocabulary, words: Sequence[str], terms: Sequence[int], n: int
) -> list[tuple[int, float]]:
    """(Row, score) of the n document terms that match a query of some words best, descending.

    Args:
        vocabulary: the model's. terms: the rows of the query's terms in it; a single one has the
            weight 1, several weigh as when the model scores the query.

    Raises:
        TypeError, ValueError: the model cannot score single terms, or several.
    """
    if len(terms) == 1:
        return model.nearest_words(terms[0], n)
    query = query_row(vocabulary, model.weighting_, words)
    return model.nearest_words_of_text(query, n)


def row_products(Q: csr_matrix, D: csr_matrix, pairs: Pairs) -> NDArray[np.float64]:
    """float64 [len(pairs)]: inner products of the rows of ``Q`` and ``D``, which have the same
    columns."""
    products, spread = np.zeros(len(pairs)), np.zeros(Q.shape[1])
    q, d = (Csr(*map(read_only, (X.indptr.astype(np.int64), X.indices, X.data))) for X in (Q, D))
    pair_products(q, d, pairs.query, pairs.document, spread, products, 0, len(pairs))
    return products


@dataclass(frozen=True, eq=False)
class _Kept:
    """The terms of one kind that occur in enough documents.

    Attributes:
        columns: int64, the column of each counted term among the kept ones, or -1.
        vocabulary: the kept terms. weighting: their idf.
    """

    kind: Kind
    columns: NDArray[np.int64]
    vocabulary: Vocabulary
    weighting: TfIdf

    @classmethod
    def of(cls, context: ColumnContext, kind: Kind, counts: csr_matrix, least: int) -> _Kept:
        """Keep the terms of the counts [n_documents, T] that occur in ``least`` documents."""
        every = term_vocabulary(context, kind)
        frequent = np.bincount(counts.indices, minlength=len(every)) >= least
        kept = np.flatnonzero(frequent)
        if not len(kept):
            raise InputError(
                f"no {_NAMED[kind]} occurs in {least} documents; lower min_document_frequency"
            )
        columns = np.where(frequent, np.cumsum(frequent) - 1, -1)
        weighting = TfIdf().fit(renumbered(counts, columns, len(kept)))
        return cls(kind, columns, Vocabulary(every[row] for row in kept.tolist()), weighting)

    def unit_rows(self, counts: csr_matrix) -> csr_matrix:
        """Unit tf-idf rows, float32 [n, V], of counts [n, T]."""
        return self.weighting.transform(renumbered(counts, self.columns, len(self.vocabulary)))

    def part_of_queries(self, context: ColumnContext) -> csr_matrix:
        """float32 [n_queries, V]: the kept words' part of unit rows over all words of the queries,
        in which other words weigh as much as one that occurs in a single document."""
        words, counts = context.query_words
        rows = self.vocabulary.rows(words)
        unknown = np.log(context.learned_from.index.n_documents)
        return _known_part(self.weighting, rows, counts, unknown)


def _known_part(
    weighting: TfIdf, rows: NDArray[np.int64], counts: csr_matrix, unknown: float
) -> csr_matrix:
    """float32 [n, V]: the part that weighted words have of unit rows over all words, whose counts
    are given; ``rows`` has the weighting's row of each, or -1, which has the idf ``unknown``."""
    idf = np.where(rows >= 0, weighting.idf_[rows], unknown)
    return renumbered(TfIdf.from_idf(idf).transform(counts), rows, len(weighting.idf_))


_NAMED: dict[Kind, str] = {"words": "word", "letter-trigrams": "letter trigram"}


def _trigrams(context: ColumnContext) -> LetterTrigrams:
    """The letter trigrams of the index's words."""
    words = context.index.vocabulary
    return context.learned_from.cached("trigrams", lambda: LetterTrigrams.of(words))


def _product(counts: csr_matrix, trigrams: csr_matrix) -> csr_matrix:
    """Turn counts of words [n, V] into counts of trigrams, given those of each word [V, T]."""
    product = (counts @ trigrams).tocsr()
    product.sort_indices()
    return product


def _joined_words(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    return vocabularies[0] if len(vocabularies) == 1 else side_by_side(*vocabularies)


def _hstack(matrices: Sequence[csr_matrix]) -> csr_matrix:
    return matrices[0] if len(matrices) == 1 else hstack(matrices, format="csr")


def _joined_rows(rows: Sequence[csr_matrix]) -> csr_matrix:
    """Concatenate the rows of each kind of terms, and scale them to unit length."""
    if len(rows) == 1:
        return rows[0]
    return _unit(_hstack(rows))


def _unit(rows: csr_matrix) -> csr_matrix:
    """Scale rows to unit length."""
    return TfIdf.from_idf(np.ones(rows.shape[1], np.float32)).transform(rows)


@dataclass(frozen=True)
class VectorSpace(ColumnFamily):
    """Cosine of tf-idf vectors: the score of SSI with W = I.

    Attributes:
        min_document_frequency: 1 or more, see :class:`TermSpace`.
        terms: ``"words"``, ``"letter-trigrams"`` or ``"both"``, see
            :mod:`ltr_features.text.letter_ngrams`.

    Raises:
        InputError: min_document_frequency is below 1, or ``terms`` is unknown.
    """

    knows_added: ClassVar[bool] = True
    name: ClassVar[str] = "vsm"
    description: ClassVar[str] = (
        "vector space model: cosine of the query's and the document's tf-idf vectors"
    )
    reference: ClassVar[str] = "Salton, Wong, Yang, CACM 18(11), 1975"

    min_document_frequency: int = 1
    terms: Terms = "words"

    def __post_init__(self) -> None:
        check_range("min_document_frequency", self.min_document_frequency, 1)
        check_choice("terms", self.terms, KINDS)

    @property
    def columns(self) -> tuple[ColumnSpec]:
        description, reference = described(
            self.terms, "q . d of unit tf-idf vectors over all fields together", self.reference
        )
        return (ColumnSpec(self.name, description, "cosine", "0 to 1", reference),)

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        space = TermSpace.of(context, self.min_document_frequency, terms=self.terms)
        return row_products(space.Q, space.D, pairs).astype(np.float32)[:, None]


@dataclass(frozen=True)
class LetterSpace(VectorSpace):
    """Cosine of letter trigrams: words with similar spelling, such as plurals, compounds and
    misspellings, have trigrams in common. It is ``VectorSpace(terms="letter-trigrams")`` under
    another name, so that both cosines can be columns of one feature set.

    Attributes and errors are those of :class:`VectorSpace`.
    """

    name: ClassVar[str] = "letters"
    description: ClassVar[str] = (
        "cosine of the query's and the document's letter trigrams: what is spelled alike matches"
    )

    terms: Terms = "letter-trigrams"
