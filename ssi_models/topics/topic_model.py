"""TopicModel: the base class of PLSA and the bilingual topic models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.checkpoint import Checkpoint
from ssi_models.kernels.expectation import Texts, fold_in, word_probabilities
from ssi_models.matrices import arrays, take_rows
from ssi_models.parallel import Workers
from ssi_models.parameters import check_least, digest_of, model_class
from ssi_models.stored_tensors import Tensor
from ssi_models.topics.em import BLOCK, Blocks, EStep, PosteriorConstraint, Prior, iterate
from ssi_models.topics.em_model import EMModel
from ssi_models.topics.language_model import Terms
from ssi_models.topics.online import OnlineEM
from ssi_models.topics.shared_e_step import SharedEStep
from ssi_models.topics.state import Iteration, State
from ssi_models.training.preferences import Preferences
from ssi_models.vocabulary import Vocabulary

MOST_FOLD_IN_ITERATIONS = 10_000


@model_class
class TopicModel(EMModel):
    """Topics of pairs by MAP estimation (Gao et al., section 3), and of new titles by folding-in.

    P_model(w|d) = sum_z phi^q_zw theta_dz, with theta_d folded in by phi^d. A query word that is
    unseen in training has P_model = 0; a title without known words has uniform theta. Pairs with an
    empty side are left out of training (``n_left_out_``).

    Args:
        n_topics: K; reduced if there are fewer pairs, or fewer words on a side, to learn from,
            which ``remarks`` report. The paper has 100; with a chosen ``lambda2``, 200 rank better.
        alpha, beta: Dirichlet parameters of theta and phi, 1 or more.
        iterations: passes of EM in training. fold_in_iterations: the same for a new title.
        jitter: phi starts as 1 + jitter U(0, 1), normalised; 0 would be a stationary point.
        step_power: kappa of the online steps (t + 2)^-kappa of :meth:`partial_fit`, in (.5, 1].
        warm_start: a further ``fit`` starts from the fitted phi.
        seed: seed of the initial phi.
        memory_limit: GiB that theta (and the multipliers of posterior regularisation) of all
            training pairs may take in memory. If they need more, they are kept in a temporary file
            without a name, in the folder TMPDIR, and memory holds no more than phi, its sums and
            one block of pairs besides the given matrices. The results do not depend on it.

    Attributes:
        phi_q_, phi_d_: float32 [V, K], P(w|z) of query and title words; 0 for unseen words.
        theta_: float32 [n, K], topics of the pairs trained on (not saved); see memory_limit.
        pairs_: int64 [n, 2], rows of these pairs (not saved).
        n_topics_: K, after the reduction.
    """

    tensors: ClassVar[Mapping[str, Tensor]] = {
        "phi_q": Tensor(("words", "topics")),
        "phi_d": Tensor(("words", "topics")),
        "background": Tensor(("words",)),
    }
    #: Whether queries and titles share one phi.
    shared: ClassVar[bool] = False

    n_topics: int = 200
    alpha: float = 1.1
    beta: float = 1.01
    iterations: int = 20
    fold_in_iterations: int = 20
    jitter: float = 1.0
    step_power: float = 0.7
    warm_start: bool = False
    seed: int = 0
    memory_limit: float = 2.0

    phi_q_: NDArray[np.float32] = field(init=False)
    phi_d_: NDArray[np.float32] = field(init=False)
    theta_: NDArray[np.float32] = field(init=False)
    pairs_: NDArray[np.int64] = field(init=False)
    n_topics_: int = field(init=False)

    @property
    def remarks(self) -> list[str]:
        found = super().remarks
        if hasattr(self, "n_topics_") and self.n_topics_ < self.n_topics:
            found.append(
                f"has {self.n_topics_} topics instead of {self.n_topics}: there are only that many "
                "pairs, or words on one side, to learn from"
            )
        return found

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 1, "n_topics", "fold_in_iterations")
        check_least(self, 0, "iterations")
        if self.fold_in_iterations > MOST_FOLD_IN_ITERATIONS:
            raise ValueError(
                f"fold_in_iterations must be {MOST_FOLD_IN_ITERATIONS:,} or fewer, got "
                f"{self.fold_in_iterations}"
            )
        for name in ("alpha", "beta"):
            if not 1 <= getattr(self, name) < np.inf:
                raise ValueError(
                    f"{name} must be 1 or more and finite, got {getattr(self, name)}: below 1 the "
                    "posterior has no mode inside the simplex"
                )
        if not 0 < self.jitter < np.inf:
            raise ValueError(f"jitter must be positive: equal topics stay equal; got {self.jitter}")
        if not self.memory_limit >= 0:
            raise ValueError(f"memory_limit must be 0 GiB or more, got {self.memory_limit}")
        if not 0.5 < self.step_power <= 1:
            raise ValueError(f"step_power must be in (0.5, 1], got {self.step_power}")

    def _learn(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences | None,
        checkpoint: Path | None,
        callback: Callable[[Iteration], None] | None,
    ) -> None:
        """Estimate the topics."""
        pairs = self._training_pairs(Q, D, preferences)
        state = self._start(self._seen(pairs), len(pairs.query))
        totals = state.zeros()
        with Workers(self.threads) as workers:
            e_step = self._e_step(pairs, state, checkpoint, workers)
            history = e_step.resume()
            for number in range(len(history) + 1, self.iterations + 1):
                found = e_step.shards(number)
                history.append(iterate(found, state, self._prior, totals, workers, number))
                e_step.save(history)
                if callback is not None:
                    callback(history[-1])
            e_step.finish(history)
        vars(self).pop("_stream", None)
        self.phi_q_, self.phi_d_, self.theta_ = state.phi_q, state.phi_d, state.theta
        self.pairs_, self.history_ = np.stack([pairs.query, pairs.document], axis=1), history

    def partial_fit(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences | None = None,
        *,
        inner_iterations: int = 10,
        vocabulary: Vocabulary | None = None,
        recipe: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from the next pairs of a stream that does not fit in memory (stepwise EM).

        The theta of a block's pairs takes ``inner_iterations`` under the current phi; the running
        expected counts then take a step of (t + 2)^-step_power towards the block's. Every column
        counts as a known word, since later parts of the stream may contain it.

        Args:
            checkpoint: file that keeps the running counts between calls, so that a new process can
                continue with the next part (``len(history_)`` blocks have been learned).
            others: as :meth:`fit`.

        Raises:
            ValueError: as :meth:`fit`; also for the checkpoint of another model.

        Reference:
            Liang, Klein: "Online EM for unsupervised models", NAACL 2009.
        """
        Q, D = self._begin(Q, D, preferences)
        pairs = self._training_pairs(Q, D, preferences)
        if not hasattr(self, "_stream"):
            fitted = hasattr(self, "n_words_")
            if fitted and D.shape[1] != self.n_words_:
                raise ValueError(f"D has {D.shape[1]} columns, the model knows {self.n_words_}")
            every = np.ones(D.shape[1], bool)
            self.n_topics_ = self.n_topics
            state = self._start((every, every), 1, warm=fitted)
            self._stream = OnlineEM(
                state, fitted=fitted, prior=self._prior, step_power=self.step_power
            )
            if checkpoint is not None and Path(checkpoint).exists():
                self._stream.load(Path(checkpoint), self._stream_identity())
        with Workers(self.threads) as workers:
            for block in pairs:
                self._stream.learn(block, inner_iterations, workers)
        self._stream.occurrences += np.asarray(D.sum(axis=0, dtype=np.float64)).ravel()
        if checkpoint is not None:
            self._stream.save(Path(checkpoint), self._stream_identity())
        self._finish(sp.csr_matrix(self._stream.occurrences[None]), vocabulary, recipe)
        self.phi_q_, self.phi_d_ = self._stream.state.phi_q, self._stream.state.phi_d
        self.history_ = self._stream.history
        return self

    def document_topics(
        self, D: sp.csr_matrix, *, iterations: int | None = None
    ) -> NDArray[np.float32]:
        """theta of each title by folding-in with phi^d: float32 [n, K], rows sum to 1.

        Args:
            iterations: of EM; by default ``fold_in_iterations``.
        """
        self._check_fitted()
        D = self.check_documents(D)
        n = self.fold_in_iterations if iterations is None else iterations
        K = self.phi_d_.shape[1]
        theta = np.full((D.shape[0], K), 1 / K, np.float32)
        with Workers(self.threads) as workers:
            for start in range(0, D.shape[0], BLOCK):
                rows = np.arange(start, min(start + BLOCK, D.shape[0]))
                block = take_rows(D, rows)
                part, ratio = theta[start : start + len(rows)], np.empty(block.nnz, np.float32)
                texts = Texts(*arrays(block), self.phi_d_, part, ratio)
                workers.split(partial(fold_in, texts, self.alpha - 1, n), len(rows))
        return theta

    def explain(self, n: int = 10) -> list[dict[str, list[tuple[int, float]]]]:
        """The n words with the highest P(w|z) in each topic: per topic {"query": [(row, P)],
        "title": [(row, P)]}, descending, with words instead of rows if ``fit`` was given them."""
        self._check_fitted()
        name = (lambda row: row) if self.vocabulary_ is None else self.vocabulary_.words.__getitem__

        def top(column: NDArray[np.float32]) -> list[tuple[Any, float]]:
            rows = np.argsort(-column, kind="stable")[:n]
            return [(name(int(row)), float(column[row])) for row in rows]

        return [
            {"query": top(self.phi_q_[:, z]), "title": top(self.phi_d_[:, z])}
            for z in range(self.phi_d_.shape[1])
        ]

    def _e_step(
        self, pairs: Blocks, state: State, checkpoint: Path | None, workers: Workers
    ) -> EStep:
        """E-steps in the executor's processes, if there is one, or in this process."""
        given = pairs, state, self._prior
        if self.executor is not None:
            run = self._fingerprint(pairs, state)
            return SharedEStep(*given, self.executor, run, self.iterations)
        if checkpoint is None:
            return EStep(*given, workers)
        return EStep(*given, workers, (Checkpoint(checkpoint), self._fingerprint(pairs, state)))

    @property
    def _prior(self) -> Prior:
        return Prior(self.alpha, self.beta, self._constraint)

    @property
    def _constraint(self) -> PosteriorConstraint | None:
        return None

    def _training_pairs(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences | None
    ) -> Blocks:
        """The pairs to learn from."""
        return Blocks(Q, D, *self._both_sides(Q, D, preferences))

    def _seen(self, pairs: Blocks) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The words on each side of the training pairs, bool [V] each; limits ``n_topics_``."""
        sides = [np.zeros(pairs.D.shape[1], bool) for _ in "qd"]
        of_sides = (pairs.Q, pairs.query), (pairs.D, pairs.document)
        for known, (M, rows) in zip(sides, of_sides, strict=True):
            for start in range(0, len(rows), BLOCK):
                known[take_rows(M, rows[start : start + BLOCK]).indices] = True
        if self.shared:
            sides = [sides[0] | sides[1]] * 2
        limits = {"pairs": len(pairs.query), "title words": int(np.count_nonzero(sides[1]))}
        if not self.shared:
            limits["query words"] = int(np.count_nonzero(sides[0]))
        self.n_topics_ = min(self.n_topics, *limits.values())
        return sides[0], sides[1]

    def _start(
        self,
        seen: tuple[NDArray[np.bool_], NDArray[np.bool_]],
        n_pairs: int,
        warm: bool | None = None,
    ) -> State:
        rng = np.random.default_rng([self.seed, 1])
        K = self.n_topics_
        warm = self._goes_on if warm is None else warm
        if warm and self.phi_d_.shape != (len(seen[1]), K):
            raise ValueError(
                f"warm start: the fitted phi is {self.phi_d_.shape}, this fit needs "
                f"{(len(seen[1]), K)}"
            )
        phis = []
        for known, name in zip(seen[: 1 if self.shared else 2], ("phi_q_", "phi_d_"), strict=False):
            phi = 1 + self.jitter * rng.random((len(known), K), np.float32)
            phi *= known[:, None]
            phi /= phi.sum(axis=0, dtype=np.float64)
            if warm:
                old = getattr(self, name)
                phi = np.where(known[:, None] & (old[:, :1] > 0), old, phi)
                phi /= phi.sum(axis=0, dtype=np.float64)
            phis.append(np.ascontiguousarray(phi, np.float32))
        regularised = self._constraint is not None
        on_disk = n_pairs * K * 4 * (1 + regularised) > self.memory_limit * 2**30
        return State.of_pairs(n_pairs, phis[0], phis[-1], regularised=regularised, on_disk=on_disk)

    def _document_side(self, D: sp.csr_matrix) -> NDArray[np.float32]:
        return self.document_topics(D)

    def _model_probabilities(self, terms: Terms, side: NDArray[np.float32]) -> NDArray[np.float64]:
        Q, _, query, document, offsets = terms
        out = np.empty(offsets[-1])
        given = Q.indptr, Q.indices, self.phi_q_, side, query, document, offsets, out
        with Workers(self.threads) as workers:
            workers.split(partial(word_probabilities, *given), len(query))
        return out

    def _stream_identity(self) -> str:
        """The model and the parameters that online EM depends on."""
        return f"{self.name} {self._params_but('warm_start')}"

    def _fingerprint(self, pairs: Blocks, state: State) -> str:
        pieces: list[NDArray[Any]] = [*arrays(pairs.Q), *arrays(pairs.D)]
        pieces += [pairs.query, pairs.document]
        pieces += [] if pairs.weight is None else [pairs.weight]
        return digest_of([self.name, self._params_but()], [*pieces, state.phi_q, state.phi_d])

    def _params_but(self, *others: str) -> dict[str, Any]:
        """The parameters, except ``others``, that the state of training depends on."""
        ignored = {"iterations", "fold_in_iterations", "memory_limit", *self.scoring_params}
        return {k: v for k, v in self.get_params().items() if k not in ignored.union(others)}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        super()._restore(fitted)
        if self.shared:
            self.phi_d_ = self.phi_q_
        self.n_topics_ = self.phi_d_.shape[1]
