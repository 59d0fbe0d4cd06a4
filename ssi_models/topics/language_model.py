"""Language models of documents: the unigram model, and the base class of query likelihoods."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssi_models.base import LearnsFrom
from ssi_models.kernels.sparse import Csr
from ssi_models.kernels.translation import translation_probabilities
from ssi_models.matrices import arrays, check_rows, largest, lengths_of
from ssi_models.parallel import Workers
from ssi_models.parameters import AUTO, check_choice, check_positive, model_class
from ssi_models.representation import CachedDocuments
from ssi_models.stored_tensors import Tensor
from ssi_models.topics.state import Iteration
from ssi_models.training.preferences import Preferences, check_constraints, check_shapes
from ssi_models.vocabulary import Vocabulary, check_words
from ssi_models.weighting import TfIdf
from ssi_models.word_weight import WeighsWords

SMOOTHINGS = ("jelinek-mercer", "dirichlet")
_BLOCK = 2**20  # pairs whose term probabilities are held at a time
_TINY = 1e-12  # the probability of a word to which every part of the mixture gives 0


class Terms(NamedTuple):
    """The words of the query of each pair.

    Attributes:
        Q, D: counts. query, document: int64 [n_pairs], their rows.
        offsets: int64 [n_pairs + 1]; pair i owns terms ``offsets[i]:offsets[i + 1]``.
    """

    Q: sp.csr_matrix
    D: sp.csr_matrix
    query: NDArray[np.int64]
    document: NDArray[np.int64]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TermProbabilities:
    """The probability of each query term of each pair in each part of the mixture.

    Attributes:
        offsets: int64 [n_pairs + 1]; pair i owns terms ``offsets[i]:offsets[i + 1]``.
        counts: float32 [n_terms], n(w, q).
        background, unigram, model: float64 [n_terms]: P(w|C), n(w, d) / |d|, and P(w|d) of the
            topic or translation model.
    """

    offsets: NDArray[np.int64]
    counts: NDArray[np.float32]
    background: NDArray[np.float64]
    unigram: NDArray[np.float64]
    model: NDArray[np.float64]

    def mixed(self, lambda1: float, lambda2: float) -> NDArray[np.float64]:
        """P(w|d) = l1 P(w|C) + (1 - l1) (l2 P_uni(w|d) + (1 - l2) P_model(w|d)): float64 [n_terms]
        (Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web search",
        eq. 15, 16)."""
        document = lambda2 * self.unigram + (1 - lambda2) * self.model
        return lambda1 * self.background + (1 - lambda1) * document

    def log_likelihood(self, lambda1: float, lambda2: float) -> NDArray[np.float64]:
        """float64 [n_pairs]: log P(q|d) / |q| under the mixture, see :meth:`mean_log`."""
        return self.mean_log(self.mixed(lambda1, lambda2))

    def mean_log(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean log probability per query term, see :func:`log_of`; 0 for a query without words."""
        n_pairs = len(self.offsets) - 1
        owner = np.repeat(np.arange(n_pairs), np.diff(self.offsets))
        logs = self.counts * log_of(probabilities)
        sums = np.bincount(owner, logs, minlength=n_pairs)
        return sums / np.maximum(np.bincount(owner, self.counts, minlength=n_pairs), _TINY)


def log_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithms; probabilities below 1e-12 count as 1e-12."""
    return np.log(np.maximum(probabilities, _TINY))


@model_class
class LanguageModel(WeighsWords):
    """Ranks documents by P(q|d) = prod_w P(w|d) (Gao et al., eq. 14-17), where

        P(w|d) = lambda1 P(w|C) + (1 - lambda1) (lambda2 n(w,d)/|d| + (1 - lambda2) P_model(w|d)).

    Queries and titles are CSR matrices of counts over one vocabulary. P(w|C) is the relative
    frequency in the titles of ``fit``, with half an occurrence added to every word, so that no
    word has the probability 0. A score is log P(q|d) / |q|; a query without words scores 0.

    Args:
        lambda1: weight of the collection. lambda2: weight of the title's own words; 0 = the
            model alone, 1 = the unigram model, "auto" = chosen in ``fit`` by how held-out queries
            are ranked, see :class:`ssi_models.word_weight.WeighsWords`.
            :func:`ssi_models.mixing.chosen_by_others` chooses both by labels of other queries.
        threads: worker threads; the results do not depend on it. None = all cores.
    """

    inputs = "counts"
    scoring_params: ClassVar[tuple[str, ...]] = ("threads", "lambda1", "lambda2")

    weight_parameter: ClassVar[str] = "lambda2"

    lambda1: float = 0.2
    lambda2: float | str = AUTO
    threads: int | None = None

    background_: NDArray[np.float32] = field(init=False)

    def check_params(self) -> None:
        super().check_params()
        if not 0 <= self.lambda1 <= 1:
            raise ValueError(f"lambda1 must be in 0..1, got {self.lambda1}")

    def _log_likelihood(self, probabilities: TermProbabilities, d: NDArray[np.float64]) -> Any:
        return probabilities.log_likelihood(self.lambda1, self.weight_of_words)

    def probabilities(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, query: ArrayLike, document: ArrayLike
    ) -> TermProbabilities:
        """The parts of the mixture for each term of each pair, for tuning its weights.

        Raises:
            NotFittedError, ValueError: as :meth:`score`.
        """
        Q, D, q, d = self._checked_pairs(Q, D, query, document)
        return self._probabilities(Q, D, q, d, self._document_side(D))

    def _probabilities(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
        side: Any,
    ) -> TermProbabilities:
        lengths = Q.indptr[query + 1] - Q.indptr[query]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.repeat(Q.indptr[query] - offsets[:-1], lengths) + np.arange(offsets[-1])
        terms = Terms(Q, D, query, document, offsets)
        own = np.arange(D.shape[1] + 1), np.arange(D.shape[1], dtype=np.int32)
        unigram = self._translated(terms, Csr(*own, np.ones(D.shape[1], np.float32)))
        model = self._model_probabilities(terms, side)
        background = self.background_[Q.indices[entries]].astype(np.float64)
        return TermProbabilities(
            offsets, Q.data[entries], background, unigram, unigram if model is None else model
        )

    def _translated(self, terms: Terms, table: Csr) -> NDArray[np.float64]:
        """sum_w' t(w|w') n(w', d) / |d| for each term of each pair, t being a CSR table."""
        Q, D, query, document, offsets = terms
        out = np.empty(offsets[-1])
        sizes = lengths_of(D)

        def work(start: int, stop: int) -> None:
            translation_probabilities(
                arrays(Q), arrays(D), sizes, query, document, offsets, table, D.shape[1], out,
                start, stop,
            )  # fmt: skip

        with Workers(self.threads) as workers:
            workers.split(work, len(query))
        return out

    def fit_alone(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        recipe: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Iteration], None] | None = None,
        **constraints: Any,
    ) -> Self:
        """Count the words of the collection D, and learn from the pairs.

        Args:
            Q, D: counts, [m, V] and [n, V].
            preferences: the pairs: those of positive grade, each counted once (grades do not
                matter), or as often as its weight says.
            vocabulary, recipe: what the columns stand for; saved with the model.
            checkpoint: file for the state, from which a killed run resumes with the same results.
            callback: called after each iteration of EM, if the model has any.
            constraints: excluded, candidates and groups of :meth:`TrainableModel.fit`, which a
                model without negatives satisfies anyway; candidate_lists and a weighting are
                refused.

        Raises:
            ValueError: a parameter out of its range, matrices of different width, a negative
                count, no word at all, or, for models that learn from pairs, no pair with words on
                both sides.
        """
        Q, D = self._begin(Q, D, preferences, **constraints)
        check_words(vocabulary, None, D.shape[1])
        path = None if checkpoint is None else Path(checkpoint)
        self._learn(Q, D, preferences, path, callback)
        self._finish(D, vocabulary, recipe)
        return self

    def _learn(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences | None,
        checkpoint: Path | None,
        callback: Callable[[Iteration], None] | None,
    ) -> None:
        """Learn from checked counts; nothing by default."""

    def mixtures(self, Q: sp.csr_matrix, D: sp.csr_matrix) -> Iterator[NDArray[np.float32]]:
        # log P(w|d) once for each distinct query word: queries share words.
        words, column = np.unique(Q.indices, return_inverse=True)
        counts = sp.csr_matrix((Q.data, column, Q.indptr), (Q.shape[0], len(words)))
        one = np.ones(len(words), np.float32), words, np.arange(len(words) + 1)
        of_word = sp.csr_matrix(one, (len(words), Q.shape[1]))
        shape = len(words), D.shape[0]
        word, document = (a.ravel() for a in np.indices(shape))
        parts = self._probabilities(of_word, D, word, document, self._document_side(D))
        lengths = np.maximum(counts.sum(axis=1, dtype=np.float64), 1e-12)
        for weight in self.word_weights:
            logs = log_of(parts.mixed(self.lambda1, weight)).reshape(shape)
            yield np.asarray((counts @ logs) / lengths, np.float32)

    def _document_side(self, D: sp.csr_matrix) -> Any:
        """What the model precomputes for each document."""
        return None

    def _model_probabilities(self, terms: Terms, side: Any) -> NDArray[np.float64] | None:
        """P_model(w|d) for each term of each pair; None where the model is the title itself."""
        return None

    def _ready(self, D: sp.csr_matrix) -> CachedTitles:
        return CachedTitles(self, D)

    def embed_documents(self, D: sp.csr_matrix) -> NDArray[np.float32]:
        """float32 [n, K]: what the model infers about each title; K = 0 if nothing."""
        self._check_fitted()
        D = self.check_documents(D)
        side = self._document_side(D)
        return np.zeros((D.shape[0], 0), np.float32) if side is None else side

    def nearest_words(self, word: int, n: int = 5) -> list[tuple[int, float]]:
        """The n title words t with the highest probability P_model(word|t) that the title "t"
        generates the query word: (row, probability), descending; fewer than n if no other
        word has a probability above 0.

        Warns:
            FitWarning: see :meth:`MatchingModel.nearest_words`.
        """
        self._check_fitted()
        self._warn_of_same_words()
        row = check_rows("word", [word], self.n_query_words_)
        Q = sp.csr_matrix((np.ones(1), ([0], row)), shape=(1, self.n_query_words_))
        D = sp.identity(self.n_words_, np.float32, format="csr")
        every = np.arange(self.n_words_)
        weights = self.probabilities(Q, D, np.zeros_like(every), every).model
        return largest(weights, n)

    def nearest_words_of_text(self, q: sp.csr_matrix, n: int = 5) -> list[tuple[int, float]]:
        raise TypeError(f"{type(self).__name__} explains single words; use nearest_words")

    def _begin(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences | None,
        *,
        weighting: TfIdf | None = None,
        **constraints: Any,
    ) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Check the arguments of ``fit``."""
        if weighting is not None:
            raise ValueError(f"weighting: {self.name} reads counts, which are not weighted")
        self.check_params()
        Q, D = self._check_spaces(Q, D)
        if preferences is not None:
            check_shapes(Q, D, preferences)
            check_constraints(self.name, preferences, weighs_pairs=self.weighs_pairs, **constraints)
        elif given := [name for name, value in constraints.items() if value is not None]:
            raise ValueError(f"{', '.join(given)}: of no use without preferences")
        return Q, D

    def _finish(self, D: sp.csr_matrix, vocabulary: Vocabulary | None, recipe: str | None) -> None:
        self.n_words_ = self.n_query_words_ = D.shape[1]
        self.vocabulary_, self.recipe_ = vocabulary, recipe
        occurrences = np.asarray(D.sum(axis=0, dtype=np.float64)).ravel() + 0.5
        self.background_ = (occurrences / occurrences.sum()).astype(np.float32)


class CachedTitles(CachedDocuments):
    """Titles ready to be ranked; a query is scored against all of them."""

    def __init__(self, model: LanguageModel, D: sp.csr_matrix) -> None:
        self._language_model, self._D = model, D
        self._side = model._document_side(D)
        self._lengths = lengths_of(D)
        self.n_documents = D.shape[0]

    def probabilities(
        self, Q: sp.csr_matrix, query: NDArray[np.int64], document: NDArray[np.int64]
    ) -> TermProbabilities:
        """:meth:`LanguageModel.probabilities` of rows of checked queries and the titles."""
        return self._language_model._probabilities(Q, self._D, query, document, self._side)

    def pairs(
        self,
        Q: sp.csr_matrix,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
        *,
        excluded: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """log P(q|d) / |q| of each pair of rows of checked queries and the titles: float32
        [n_pairs].

        Raises:
            ValueError: a weight of the mixture outside 0..1.
        """
        model = self._language_model
        model.check_params()
        Q = model.expanded(Q, excluded)
        out = np.empty(len(query), np.float32)
        for start in range(0, len(query), _BLOCK):
            q, d = query[start : start + _BLOCK], document[start : start + _BLOCK]
            parts = self.probabilities(Q, q, d)
            out[start : start + _BLOCK] = model._log_likelihood(parts, self._lengths[d])
        return out

    def scores(self, Q: sp.csr_matrix, *, excluded: ArrayLike | None = None) -> NDArray[np.float32]:
        """log P(q|d) / |q| of every query with every title: float32 [m, n_documents]."""
        model, every = self._language_model, np.arange(self.n_documents)
        Q = model.expanded(model.check_queries(Q), excluded)
        rows = [self.pairs(Q, np.full_like(every, i), every) for i in range(Q.shape[0])]
        return np.stack(rows) if rows else np.empty((0, self.n_documents), np.float32)


@model_class
class UnigramLM(LanguageModel):
    """The title's own words, smoothed by the collection (the paper's UM). Queries and preferences
    teach this model nothing.

    Args:
        smoothing: "jelinek-mercer": lambda1 P(w|C) + (1 - lambda1) n(w,d)/|d|; "dirichlet":
            (n(w,d) + mu P(w|C)) / (|d| + mu), without lambda1.
        mu: see smoothing; in words.
        lambda2: has no effect: the title's own words are all of the model.

    Reference:
        Zhai, Lafferty: "A study of smoothing methods for language models applied to information
        retrieval", TOIS 22(2), 2004.
    """

    name: ClassVar[str] = "unigram"
    learns_from: ClassVar[LearnsFrom] = "documents"
    scoring_params = (*LanguageModel.scoring_params, "smoothing", "mu")
    tensors: ClassVar[Mapping[str, Tensor]] = {"background": Tensor(("words",))}

    lambda2: float | str = 1.0
    smoothing: str = "jelinek-mercer"
    mu: float = 100.0

    @property
    def only_same_words(self) -> bool:
        return True

    def check_params(self) -> None:
        super().check_params()
        check_choice("smoothing", self.smoothing, SMOOTHINGS)
        check_positive(self, "mu")

    def _log_likelihood(self, probabilities: TermProbabilities, d: NDArray[np.float64]) -> Any:
        if self.smoothing == "jelinek-mercer":
            return super()._log_likelihood(probabilities, d)
        length = np.repeat(d, np.diff(probabilities.offsets))
        counts = probabilities.unigram * length
        smoothed = (counts + self.mu * probabilities.background) / (length + self.mu)
        return probabilities.mean_log(smoothed)
