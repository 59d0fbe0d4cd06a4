"""MatchingModel: the interface of every model that scores a query against a document."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ltr_base.blas import one_blas_thread
from ltr_base.user_warning import warn_user
from ssi_models.checkpoint import checkpoint_of
from ssi_models.matrices import (
    check_counts,
    check_csr,
    check_has_words,
    check_rows,
    check_unit_rows,
    check_width,
    kept_from_changes,
    largest,
)
from ssi_models.parallel import Executor
from ssi_models.remarks import FitWarning
from ssi_models.representation import CachedDocuments, Representation
from ssi_models.stored_model import StoredModel
from ssi_models.training.preferences import Preferences, check_excluded, check_parts

LearnsFrom = Literal["preferences", "documents"]


class MatchingModel(StoredModel):
    """Base class of all models. The constructor stores parameters as given; ``fit`` resolves them.

    Queries and documents are CSR matrices [n, V] of weighted words (see
    :class:`ssi_models.weighting.TfIdf`); pairs are two parallel arrays of row numbers.

    A subclass defines how queries and documents are represented (``query_representation`` and
    ``document_representation``); the score is the inner product of the representations. By default
    a text is represented by its words, and the score is q . d.

    Attributes:
        n_words_: number of columns of the document matrices that the model was fitted on.
        n_query_words_: number of columns of the query matrices.
        vocabulary_, weighting_, recipe_: what the columns stand for, if given to ``fit``: the
            words, the fitted weighting, and the fingerprint of the text analysis.
    """

    #: What the matrices hold: unit rows of tf-idf weights, or word counts.
    inputs: ClassVar[Literal["tf-idf", "counts"]] = "tf-idf"
    #: What ``fit`` learns from: judged pairs, or the texts of D alone (see ``looks_at_labels``).
    learns_from: ClassVar[LearnsFrom] = "preferences"
    #: Constructor parameters that only scoring reads: models that differ in nothing else have the
    #: same fitted parameters.
    scoring_params: ClassVar[tuple[str, ...]] = ("threads",)

    #: Whether the model uses the weights of preferences; if not, it rejects them.
    weighs_pairs: ClassVar[bool] = False
    #: Whether the sparse part of a query's representation may be non-zero for every word.
    expands_queries: ClassVar[bool] = False
    #: Whether the model can only score the documents that it was fitted on, identified by row.
    of_its_documents: ClassVar[bool] = False
    #: What :meth:`fit_parts` chooses once for the model and its copies, for notes; "" for nothing.
    shared_by_parts: ClassVar[str] = ""
    #: Fitted attributes that say how scores are mixed; copies for parts have those of the model.
    mixed_by: ClassVar[tuple[str, ...]] = ()
    #: Number of threads for scoring; the scores do not depend on it.
    threads: int | None = None
    #: Runs the pieces of a fit, if it has any, in other processes; the results do not depend on
    #: it. Set only while ``fit`` runs.
    executor: Executor | None = None

    @property
    def in_pieces(self) -> bool:
        """Whether ``fit`` consists of pieces that an :attr:`executor` can run."""
        return False

    def fit(self, *args: Any, **options: Any) -> Self:
        """Learn from Q [m, V], D [n, V] and the :class:`Preferences` over their rows.

        Every model accepts the keywords of :meth:`TrainableModel.fit`. A model that draws no
        negatives satisfies any ``candidates``, and one that holds out no queries any ``groups``;
        an argument that the model would have to ignore raises an error.
        """
        raise TypeError(f"{type(self).__name__} does not define fit")

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """A fit that fails or is interrupted leaves the model as it was before."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def check_for_parts(self) -> None:
        """Raise ValueError if a parameter says something else than :meth:`fit_parts` does."""

    def fit_parts(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        parts: Sequence[NDArray[np.int64]],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> list[Self]:
        """Fit on all preferences and, for each part of the queries, a copy on the other queries,
        so that training queries can be scored by models that have not seen their labels.

        Choices that depend on held-out queries (when to stop, the weight of word matching) are
        made once for the model and all copies, so that their scores are comparable: each copy
        ranks the part that is held out of it, and the rankings of all parts are pooled. A factor
        that is chosen by training triples is that of the model.

        Args:
            Q, D, preferences, options: as for ``fit``.
            parts: two or more disjoint int64 arrays of query rows.

        Returns:
            The copies, in the order of the parts.

        Raises:
            ValueError: as ``fit``; or parts that share a query, or leave nothing to learn from.
        """
        sources = check_parts(parts, preferences, options.get("excluded"))
        copies = []
        for number, part in enumerate(parts, start=1):
            path = checkpoint_of(checkpoint, f"part{number}")
            others = preferences.without(part, sources)
            copies.append(self.copy().fit(Q, D, others, checkpoint=path, **options))
        self.fit(Q, D, preferences, checkpoint=checkpoint, **options)
        return self._mixed_alike(copies)

    def _mixed_alike(self, copies: list[Self]) -> list[Self]:
        """The copies, which mix scores as the model does."""
        for other in copies:
            for name in self.mixed_by:
                setattr(other, name, getattr(self, name))
        return copies

    @property
    def remarks(self) -> list[str]:
        """What the user should know about the fit, as sentences without their subject ("kept its
        start ..."); empty if all is well."""
        return []

    @property
    def only_same_words(self) -> bool:
        """Whether each query word matches only itself: the model can have no other matches, or it
        learned none, and ``remarks`` say why."""
        return False

    @property
    def looks_at_labels(self) -> bool:
        """Whether the fit depends on judgements; if so, the judgements of rows to be scored must
        be withheld from it."""
        return self.learns_from == "preferences"

    @property
    def holds_out_queries(self) -> bool:
        """Whether ``fit`` holds out queries, or groups of them, to stop or to choose settings."""
        return False

    def copy(self) -> Self:
        """A shallow copy: the same parameters and fitted attributes, with shared arrays."""
        return copy.copy(self)

    def score(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: ArrayLike,
        document: ArrayLike,
        *,
        excluded: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """f(q, d) of each pair (query[i], document[i]) of rows of Q [m, V] and D [n, V].

        Args:
            excluded: int64 [m], see :meth:`expanded`.

        Returns:
            float32 [n_pairs]; accumulated in float64. A zero row scores 0 with everything, except
            a document of language models and a query of :class:`ssi_models.Popularity`. The score
            of a pair does not depend on the other pairs of the call.

        Raises:
            NotFittedError: the model is not fitted.
            ValueError: wrong number of columns, or row numbers outside the matrices.
        """
        Q, D, q, d = self._checked_pairs(Q, D, query, document)
        return self._ready(D).pairs(Q, q, d, excluded=excluded)

    def _checked_pairs(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, query: ArrayLike, document: ArrayLike
    ) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64], NDArray[np.int64]]:
        """The checked arguments of :meth:`score`."""
        self._check_fitted()
        Q, D = self.check_queries(Q), self.check_documents(D)
        q = check_rows("query", query, Q.shape[0])
        d = check_rows("document", document, D.shape[0])
        if len(q) != len(d):
            raise ValueError(f"{len(q)} query rows for {len(d)} document rows")
        return Q, D, q, d

    def expanded(self, Q: sp.csr_matrix, excluded: ArrayLike | None = None) -> sp.csr_matrix:
        """The queries to be scored: Q itself, unless the model feeds documents back into them.

        Args:
            Q: checked queries.
            excluded: int64 [m], for each query the row, among the documents of ``fit``, of the
                document that it was drawn from, which must not be fed back; -1 for none.

        Raises:
            ValueError: ``excluded`` does not hold a row, or -1, for each query.
        """
        check_excluded(excluded, Q.shape[0])
        return Q

    def cache(self, D: sp.csr_matrix) -> CachedDocuments:
        """Compute the document side of the score once, to score queries against all documents.

        Raises:
            NotFittedError: the model is not fitted.
            ValueError: wrong number of columns.
        """
        self._check_fitted()
        return self._ready(self.check_documents(D))

    def _ready(self, D: sp.csr_matrix) -> CachedDocuments:
        """Prepare checked documents for scoring."""
        return CachedDocuments(self, D)

    def embed_queries(self, Q: sp.csr_matrix) -> NDArray[np.float32]:
        """The dense part of each query's representation: float32 [m, N] (N = 0 if it has none)."""
        self._check_fitted()
        Q = self.expanded(self.check_queries(Q))
        dense = self.query_representation(Q, np.arange(self.n_words_)).dense
        return np.zeros((Q.shape[0], 0), np.float32) if dense is None else dense

    def embed_documents(self, D: sp.csr_matrix) -> NDArray[np.float32]:
        """The dense part of each document's representation: float32 [n, N]; cache it to score
        many queries."""
        self._check_fitted()
        D = self.check_documents(D)
        dense = self.document_representation(D).dense
        return np.zeros((D.shape[0], 0), np.float32) if dense is None else dense

    def nearest_words(self, word: int, n: int = 5) -> list[tuple[int, float]]:
        """The n document words t with the largest f(s, t) for query word s, each word being a text
        of its own with weight 1; for models q'Wd this is W_st.

        Returns:
            (row of t, f(s, t)), descending (as in Tables 7 and 8 of Bai et al., "Learning to rank
            with (a lot of) word features"); fewer than n if other words do not match, f(s, t) = 0.

        Warns:
            FitWarning: the model matches the query word with itself only.

        Raises:
            ValueError: no such query word.
        """
        self._check_fitted()
        row = check_rows("word", [word], self.n_query_words_)
        one = np.ones(1, np.float32)
        Q = sp.csr_matrix((one, ([0], row)), shape=(1, self.n_query_words_))
        return self.nearest_words_of_text(Q, n)

    @one_blas_thread()
    def nearest_words_of_text(self, q: sp.csr_matrix, n: int = 5) -> list[tuple[int, float]]:
        """:meth:`nearest_words` for a query of several words, a row q [1, V]."""
        self._check_fitted()
        self._warn_of_same_words()
        D = check_csr("words", sp.identity(self.n_words_, np.float32, format="csr"))
        words = np.arange(self.n_words_)
        # q need not have unit length: only the order of the words matters.
        q = check_width("q", check_csr("q", q), self.n_query_words_)
        if q.shape[0] != 1:
            raise ValueError(f"q must be one row [1, {self.n_query_words_}], got {q.shape[0]}")
        query = self.query_representation(self.expanded(q), words)
        documents = self.document_representation(D)
        weights = np.zeros(self.n_words_)
        if query.dense is not None and documents.dense is not None:
            weights += documents.dense.astype(np.float64) @ query.dense[0].astype(np.float64)
        if query.sparse is not None and documents.sparse is not None:
            weights += (documents.sparse @ query.sparse.T).toarray()[:, 0]
        return largest(weights, n)

    def _warn_of_same_words(self) -> None:
        """Warn if query words match only themselves."""
        if self.only_same_words:
            remarks = [*self.remarks, "matches each query word with itself only"]
            warn_user(f"{self.name}: {'; '.join(remarks)}", FitWarning)

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        """The representation of :meth:`expanded` queries, as far as documents with the given words
        need it; by default the words themselves."""
        return Representation(sparse=Q)

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        """The representation of documents; by default the words themselves."""
        return Representation(sparse=D)

    def check_queries(self, Q: sp.csr_matrix) -> sp.csr_matrix:
        return check_width("Q", self._check_rows("Q", Q), self.n_query_words_)

    def check_documents(self, D: sp.csr_matrix) -> sp.csr_matrix:
        return check_width("D", self._check_rows("D", D), self.n_words_)

    @property
    def same_words(self) -> bool:
        """Whether column j must stand for the same word in queries and in documents."""
        return True

    def _check_spaces(
        self, Q: sp.csr_matrix, D: sp.csr_matrix
    ) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Check the matrices that a model is to be fitted on.

        Raises:
            ValueError: also if D has no word, or if they must be over the same words but differ in
                width.
        """
        Q, D = self._check_rows("Q", Q), check_has_words(self._check_rows("D", D))
        if self.same_words and Q.shape[1] != D.shape[1]:
            separate = "model 'cross-language'"
            if hasattr(self, "vocabularies"):
                separate = f"vocabularies='separate', or {separate}"
            raise ValueError(
                f"Q has {Q.shape[1]} columns, D has {D.shape[1]}: column j must be the same word "
                f"in both; for two vocabularies use {separate}"
            )
        return Q, D

    def _check_rows(self, name: str, X: sp.csr_matrix) -> sp.csr_matrix:
        check = check_counts if self.inputs == "counts" else check_unit_rows
        return kept_from_changes(check(name, X))  # others have models of the same rows
