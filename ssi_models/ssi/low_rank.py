"""SSI with a low-rank, diagonal-preserving matrix: W = U'V + I (Bai et al., section 2.2.1)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssi_models.base import MatchingModel, check_csr, check_rows
from ssi_models.kernels.ranking import average_precision, hinge_weights
from ssi_models.kernels.sparse import (
    adagrad_rows,
    embed_rows,
    lexical_products,
    pair_dots,
    pair_products,
    sgd_rows,
)
from ssi_models.parallel import Workers
from ssi_models.preferences import Preferences
from ssi_models.sampling import Batch, PairStream
from ssi_models.training import Epoch, History, Settings, train
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

OPTIMIZERS = ("adagrad", "sgd")


class LowRankSSI(MatchingModel):
    """f(q, d) = q' (U'V + I) d = (Uq) . (Vd) + q . d, trained by the margin ranking loss.

    Minimises sum over (q, d+, d-) of max(0, margin - f(q, d+) + f(q, d-)) (Bai et al., eq. 4, 5,
    8) by mini-batches: B relevant pairs against a pool of K uniformly drawn documents, every
    document embedded once and all B x K tuples scored by one matrix product.

    With ``init="identity"`` V starts at 0, so that training starts at f(q, d) = q . d exactly and
    early stopping can return to the word-matching model where the labels teach nothing; with
    ``init="normal"`` both start at N(0, init_scale^2) as in the paper (whose scale is 1).

    Args:
        rank: N, rows of U and V.
        margin: margin of the ranking loss (1 in the paper; q . d lies in [0, 1], so a smaller
            margin keeps the learned part from drowning the identity on small data).
        learning_rate: step size.
        optimizer: ``"adagrad"`` (one accumulator per word) or ``"sgd"`` (fixed rate, the paper).
        accumulator_start: initial value of AdaGrad's accumulators; larger values damp the first
            steps, above all those of rare words.
        init, init_scale: see above.
        scales: candidate factors of the learned part, f = s (Uq) . (Vd) + q . d. After every
            epoch the one with the best validation MAP is noted, and that of the epoch that is
            kept is folded into U. ``(1.0,)`` is the paper; smaller ones hold the model up by its
            identity where the learned part has little to say.
        batch_size: B. n_negatives: K.
        max_epochs, patience: an epoch is one pass over the relevant pairs; training stops after
            ``patience`` epochs without a better validation MAP.
        validation_share: share of the queries held out for early stopping, in (0, 1).
        seed: seed of initialisation, hold-out and sampling.
        threads: worker threads; the result does not depend on it. None = all cores.

    Attributes:
        U_, V_: float32 [V, N]; row j holds the embedding of word j (the paper's column j).
            U_ includes the chosen factor of ``scales``.
        history_: :class:`ssi_models.training.History`, validation measure = MAP.
        validation_queries_: int64, the rows of the queries held out for early stopping.

    Reference:
        Bai, Weston, Grangier, Collobert, Sadamasa, Qi, Chapelle, Weinberger: "Learning to rank
        with (a lot of) word features", Information Retrieval 13(3), 2010.
    """

    name: ClassVar[str] = "ssi"
    tensors: ClassVar[tuple[str, ...]] = ("U", "V")

    U_: NDArray[np.float32]
    V_: NDArray[np.float32]
    history_: History
    validation_queries_: NDArray[np.int64]

    def __init__(
        self,
        rank: int = 50,
        *,
        margin: float = 1.0,
        learning_rate: float = 0.03,
        optimizer: str = "adagrad",
        accumulator_start: float = 1e-3,
        init: str = "identity",
        init_scale: float = 0.1,
        scales: Sequence[float] = (1.0,),
        batch_size: int = 128,
        n_negatives: int = 256,
        max_epochs: int = 50,
        patience: int = 5,
        validation_share: float = 0.1,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.rank = rank
        self.margin = margin
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.accumulator_start = accumulator_start
        self.init = init
        self.init_scale = init_scale
        self.scales = scales
        self.batch_size = batch_size
        self.n_negatives = n_negatives
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_share = validation_share
        self.seed = seed
        self.threads = threads

    def fit(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        *,
        excluded: NDArray[np.int64] | None = None,
        candidates: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        vocabulary: Vocabulary | None = None,
        weighting: TfIdf | None = None,
        recipe: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Epoch], None] | None = None,
    ) -> LowRankSSI:
        """Learn U and V.

        Args:
            Q, D: unit tf-idf rows, [m, V] and [n, V].
            preferences: graded relevant pairs over the rows of Q and D.
            excluded: int64 [m], for each query a document row that is never its negative and
                never ranked in validation (the text that the query was drawn from), or -1.
            candidates: document rows that may serve as negatives; all by default.
            groups: a label per query row; queries of one group are held out together.
            vocabulary, weighting, recipe: what the columns stand for; saved with the model.
            checkpoint: file that keeps the state of a run that is killed.
            callback: called after each epoch (number 0 = the initial parameters).

        Raises:
            ValueError: a parameter outside its range; matrices of different width or with
                non-finite values; preferences made for other matrices; fewer than two queries
                (or groups) with relevant documents.
        """
        self._check_params()
        Q, D = check_csr("Q", Q), check_csr("D", D)
        if Q.shape[1] != D.shape[1]:
            raise ValueError(f"Q has {Q.shape[1]} columns, D has {D.shape[1]}")
        if (preferences.n_queries, preferences.n_documents) != (Q.shape[0], D.shape[0]):
            raise ValueError(
                f"preferences are over {preferences.n_queries} x {preferences.n_documents} rows, "
                f"Q and D have {Q.shape[0]} x {D.shape[0]}"
            )
        pool = np.arange(D.shape[0]) if candidates is None else candidates
        self.n_words_ = Q.shape[1]
        self.vocabulary_, self.weighting_, self.recipe_ = vocabulary, weighting, recipe
        held_out = _hold_out(preferences, groups, self.validation_share, self.seed)
        self.validation_queries_ = held_out
        if excluded is not None:
            excluded = check_rows("excluded + 1", np.asarray(excluded) + 1, D.shape[0] + 1) - 1
        with Workers(self.threads) as workers:
            run = _Run(self, Q, D, preferences, held_out, excluded, workers)
            stream = PairStream(
                preferences.only(np.setdiff1d(preferences.queries, held_out)),
                check_rows("candidates", pool, D.shape[0]),
                self.batch_size,
                self.n_negatives,
                self.seed,
            )
            path = None if checkpoint is None else Path(checkpoint)
            fingerprint = "" if path is None else self._fingerprint(Q, D, preferences)
            settings = Settings(self.max_epochs, self.patience, path, fingerprint, callback)
            self.history_ = train(run, stream.epoch, settings)
        self.U_, self.V_ = run.U * run.scale, run.V
        return self

    def embed_queries(self, Q: sp.csr_matrix) -> NDArray[np.float32]:
        """Uq of each row: float32 [m, N]."""
        self._check_fitted()
        return self._embed(self._check_matrix("Q", Q), self.U_)

    def embed_documents(self, D: sp.csr_matrix) -> NDArray[np.float32]:
        """Vd of each row: float32 [n, N]; cache it to score many queries."""
        self._check_fitted()
        return self._embed(self._check_matrix("D", D), self.V_)

    def nearest_words(self, word: int, n: int = 5) -> list[tuple[int, float]]:
        """The n document words t with the largest W_st = U_s . V_t + [s = t] for query word s.

        Returns:
            (row of t, W_st), descending (Grangier & Bengio style tables; PSI paper, Table 5).
        """
        self._check_fitted()
        weights = self.V_.astype(np.float64) @ self.U_[word].astype(np.float64)
        weights[word] += 1.0
        best = np.argsort(-weights, kind="stable")[:n]
        return [(int(t), float(weights[t])) for t in best]

    def _score(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
    ) -> NDArray[np.float32]:
        Eq, Ed = self._embed(Q, self.U_), self._embed(D, self.V_)
        out = np.zeros(len(query))

        def work(start: int, stop: int) -> None:
            dense = np.zeros(self.n_words_)
            pair_products(*_csr(Q), *_csr(D), query, document, dense, out, start, stop)
            pair_dots(Eq, Ed, query, document, out, start, stop)

        with Workers(self.threads) as workers:
            workers.split(work, len(query))
        return out.astype(np.float32)

    def _embed(self, X: sp.csr_matrix, M: NDArray[np.float32]) -> NDArray[np.float32]:
        out = np.empty((X.shape[0], M.shape[1]), np.float32)
        rows = np.arange(X.shape[0])
        with Workers(self.threads) as workers:
            workers.split(lambda a, b: embed_rows(*_csr(X), rows, M, out, a, b), X.shape[0])
        return out

    def _fitted_header(self) -> dict[str, Any]:
        return {
            "epochs": [list(vars(epoch).values()) for epoch in self.history_.epochs],
            "best_epoch": self.history_.best_epoch,
            "validation_queries": self.validation_queries_.tolist(),
        }

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        epochs = [Epoch(*values) for values in fitted["epochs"]]
        self.history_ = History(epochs, fitted["best_epoch"])
        self.validation_queries_ = np.array(fitted["validation_queries"], dtype=np.int64)

    def _check_params(self) -> None:
        at_least_one = ("rank", "batch_size", "n_negatives", "patience")
        for name in at_least_one:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
        for name in ("margin", "learning_rate", "accumulator_start", "init_scale"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if not self.scales or not all(0 < scale < np.inf for scale in self.scales):
            raise ValueError(f"scales must be positive and finite, got {self.scales}")
        if not 0 < self.validation_share < 1:
            raise ValueError(f"validation_share must be in (0, 1), got {self.validation_share}")
        if self.max_epochs < 0:
            raise ValueError(f"max_epochs must be 0 or more, got {self.max_epochs}")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer {self.optimizer!r} is unknown; use one of {OPTIMIZERS}")
        if self.init not in ("identity", "normal"):
            raise ValueError(f"init {self.init!r} is unknown; use 'identity' or 'normal'")

    def _fingerprint(self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences) -> str:
        parameters = {k: v for k, v in self.get_params().items() if k != "threads"}
        digest = hashlib.sha256(repr(sorted(parameters.items())).encode())
        arrays = [*_csr(Q), *_csr(D), preferences.query, preferences.document, preferences.grade]
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


class _Run:
    """The state of one training run: what the training loop steps and validates."""

    def __init__(
        self,
        model: LowRankSSI,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        held_out: NDArray[np.int64],
        excluded: NDArray[np.int64] | None,
        workers: Workers,
    ) -> None:
        self.model, self.workers = model, workers
        self.Q, self.D = _csr(Q), _csr(D)
        self.held_out = held_out
        n_words = Q.shape[1]
        rng = np.random.default_rng([model.seed, 1])
        shape = (n_words, model.rank)
        self.U = (model.init_scale * rng.standard_normal(shape, np.float32)).astype(np.float32)
        self.V = np.zeros(shape, np.float32)
        if model.init == "normal":
            self.V = (model.init_scale * rng.standard_normal(shape, np.float32)).astype(np.float32)
        self.U_accumulator = np.full(n_words, model.accumulator_start)
        self.V_accumulator = np.full(n_words, model.accumulator_start)
        self.scale = np.ones(1, np.float32)
        self.head = np.full(n_words, -1, np.int32)
        self.slot = np.full(D.shape[0], -1, np.int32)
        judged = preferences if excluded is None else _with_excluded(preferences, excluded)
        self.judged = (judged.offsets, judged.document, judged.grade)
        self.validation_lexical, self.relevant, self.hidden = self._prepare_validation(
            preferences, excluded
        )

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "U": self.U,
            "V": self.V,
            "U_accumulator": self.U_accumulator,
            "V_accumulator": self.V_accumulator,
            "scale": self.scale,
        }

    def step(self, batch: Batch) -> tuple[float, int, int]:
        documents = np.concatenate([batch.positive, batch.negatives])
        n_pairs = len(batch.query)
        Eq = self._embed(self.Q, batch.query, self.U)
        Ed = self._embed(self.D, documents, self.V)
        scores = np.zeros((n_pairs, len(documents)), np.float32)
        lexical_products(*self.Q, batch.query, *self.D, documents, self.head, scores)
        negative_score = scores[:, n_pairs:] + Eq @ Ed[n_pairs:].T
        positive_score = np.diagonal(scores) + np.einsum("bk,bk->b", Eq, Ed[:n_pairs])
        A = np.empty(negative_score.shape, np.float32)
        loss, violations, tuples = hinge_weights(
            positive_score,
            negative_score,
            batch.query,
            batch.grade,
            batch.negatives,
            self.slot,
            *self.judged,
            np.float32(self.model.margin),
            A,
        )
        # Steepest descent of the mean hinge: U += (V dd) q',  V += (U q) dd',  dd = d+ - d-.
        A /= A.shape[1]
        mass = A.sum(axis=1, keepdims=True)
        G_query = mass * Ed[:n_pairs] - A @ Ed[n_pairs:]
        G_documents = np.concatenate([mass * Eq, -(A.T @ Eq)])
        self._ascend(self.Q, batch.query, G_query, self.U, self.U_accumulator)
        self._ascend(self.D, documents, G_documents, self.V, self.V_accumulator)
        return loss, violations, tuples

    def validate(self) -> float:
        """MAP of the held-out queries over all documents, at the best of the scales."""
        Eq = self._embed(self.Q, self.held_out, self.U)
        Ed = self._embed(self.D, np.arange(len(self.D[0]) - 1), self.V)
        learned = Eq @ Ed.T
        values = []
        for scale in self.model.scales:
            out = np.empty(len(self.held_out))
            scores = self.validation_lexical + np.float32(scale) * learned
            average_precision(scores, self.relevant, self.hidden, out)
            values.append(float(np.nanmean(out)))
        best = int(np.argmax(values))
        self.scale[0] = self.model.scales[best]
        return values[best]

    def _prepare_validation(
        self, preferences: Preferences, excluded: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        shape = (len(self.held_out), preferences.n_documents)
        lexical = np.zeros(shape, np.float32)
        lexical_products(*self.Q, self.held_out, *self.D, np.arange(shape[1]), self.head, lexical)
        relevant, hidden = np.zeros(shape, bool), np.zeros(shape, bool)
        for i, q in enumerate(self.held_out):
            owned = slice(preferences.offsets[q], preferences.offsets[q + 1])
            relevant[i, preferences.document[owned]] = True
            if excluded is not None and excluded[q] >= 0:
                hidden[i, excluded[q]] = True
        return lexical, relevant, hidden

    def _embed(self, X: tuple[Any, ...], rows: NDArray[np.int64], M: NDArray[np.float32]) -> Any:
        out = np.empty((len(rows), M.shape[1]), np.float32)
        self.workers.split(lambda a, b: embed_rows(*X, rows, M, out, a, b), len(rows))
        return out

    def _ascend(
        self,
        X: tuple[Any, ...],
        rows: NDArray[np.int64],
        G: NDArray[np.float32],
        M: NDArray[np.float32],
        accumulator: NDArray[np.float64],
    ) -> None:
        rate = float(self.model.learning_rate)
        if self.model.optimizer == "adagrad":
            self.workers.run(lambda s, n: adagrad_rows(*X, rows, G, M, accumulator, rate, s, n))
        else:
            self.workers.run(lambda s, n: sgd_rows(*X, rows, G, M, rate, s, n))


def _csr(X: sp.csr_matrix) -> tuple[Any, ...]:
    return X.indptr, X.indices, X.data


def _with_excluded(preferences: Preferences, excluded: NDArray[np.int64]) -> Preferences:
    """Preferences in which the excluded document of each query has an unreachable grade."""
    has = np.flatnonzero(excluded >= 0)
    query = np.concatenate([has, preferences.query])
    document = np.concatenate([excluded[has], preferences.document])
    grade = np.concatenate([np.full(len(has), np.inf, np.float32), preferences.grade])
    order = np.argsort(query, kind="stable")
    return Preferences(
        query[order],
        document[order],
        grade[order],
        preferences.n_queries,
        preferences.n_documents,
    )


def _hold_out(
    preferences: Preferences, groups: ArrayLike | None, share: float, seed: int
) -> NDArray[np.int64]:
    """A seeded share of the queries (whole groups of them) for early stopping, at least one."""
    queries = preferences.queries
    label = np.arange(preferences.n_queries) if groups is None else np.asarray(groups)
    if len(label) != preferences.n_queries:
        raise ValueError(f"groups has {len(label)} entries for {preferences.n_queries} queries")
    distinct = np.unique(label[queries])
    if len(distinct) < 2:
        raise ValueError(
            f"{len(queries)} queries in {len(distinct)} group(s) have relevant documents; early "
            "stopping needs at least two"
        )
    rng = np.random.default_rng([seed, 2])
    n_held_out = min(max(1, round(share * len(distinct))), len(distinct) - 1)
    chosen = rng.permutation(distinct)[:n_held_out]
    return queries[np.isin(label[queries], chosen)]
