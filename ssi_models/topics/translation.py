"""IBM Model 1: words of titles translate into words of queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models import persistence
from ssi_models.checkpoint import Checkpoint
from ssi_models.kernels.sparse import Csr
from ssi_models.matrices import arrays, check_csr, take_rows
from ssi_models.parallel import Workers
from ssi_models.parameters import check_least, model_class
from ssi_models.stored_tensors import Tensor
from ssi_models.topics.bitext import Bitext, pruned
from ssi_models.topics.em_model import EMModel
from ssi_models.topics.language_model import Terms
from ssi_models.topics.state import Iteration, resumed
from ssi_models.training.preferences import Preferences


@model_class
class IBMModel1(EMModel):
    """WTM: P_model(w|d) = sum_w' t(w|w') n(w', d) / |d|, mixed with the title's own words.

    Each query word is the translation of one title word, or of NULL, which every title has once:
    P(q|d) ~ prod_i sum_j t(q_i|w_j). A query word that is unseen in training has P_model = 0.
    Model 1 underestimates t(w|w), which ``lambda2`` makes up for (the self-translation control).

    Args:
        iterations: passes of EM; the likelihood is concave, so the uniform start is as good as
            any.
        prune: entries t(q|w) below this are dropped after each iteration from the third, and the
            others of w scaled to the sum 1; 0 keeps all, and then the likelihood never falls.
        warm_start: a further ``fit`` starts from the fitted table, for the entries that it has.

    Attributes:
        table_indptr_: int64 [V + 1], table_indices_: int32 [nnz], table_values_: float32 [nnz]:
            t(q|w) as CSR by query word q; column V is NULL.
        history_: the objective is log prod P(q|d) before the iteration, without the constant
            epsilon.

    Reference:
        Brown, Della Pietra, Della Pietra, Mercer: "The mathematics of statistical machine
        translation", Computational Linguistics 19(2), 1993; the ranking is that of Gao, Toutanova,
        Yih: "Clickthrough-based latent semantic models for web search", SIGIR 2011, table 1.
    """

    name: ClassVar[str] = "wtm"
    tensors: ClassVar[Mapping[str, Tensor]] = {
        "table_indptr": Tensor(("words + 1",), "int64", ends="entries"),
        "table_indices": Tensor(("entries",), "int32", below="words + 1"),
        "table_values": Tensor(("entries",)),
        "background": Tensor(("words",)),
    }

    iterations: int = 10
    prune: float = 1e-4
    warm_start: bool = False

    table_indptr_: NDArray[np.int64] = field(init=False)
    table_indices_: NDArray[np.int32] = field(init=False)
    table_values_: NDArray[np.float32] = field(init=False)

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 0, "iterations")
        if not 0 <= self.prune < 1:
            raise ValueError(f"prune must be in [0, 1), got {self.prune}")

    def _learn(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences | None,
        checkpoint: Path | None,
        callback: Callable[[Iteration], None] | None,
    ) -> None:
        """Estimate the table from pairs of queries and titles."""
        query, document, weight = self._both_sides(Q, D, preferences)
        queries = take_rows(Q, query)
        if weight is not None:
            queries.data *= np.repeat(weight, np.diff(queries.indptr))
        bitext = Bitext(queries, D, document, self.executor)
        table = bitext.table_like(self._table()) if self._goes_on else bitext.uniform_table()
        run = "" if checkpoint is None else bitext.fingerprint(self.prune, table)
        history = resumed(checkpoint, run)
        if checkpoint is not None and history:
            _, saved = persistence.load_tensors(checkpoint)
            parts = (saved["values"], saved["indices"], saved["indptr"])
            table = check_csr("checkpoint", sp.csr_matrix(parts, shape=table.shape))
        file = Checkpoint(checkpoint)
        with Workers(self.threads) as workers:
            for number in range(len(history) + 1, self.iterations + 1):
                objective = bitext.iterate(table, workers)
                if number >= 3 and self.prune > 0:
                    table = pruned(table, self.prune)
                history.append(Iteration(number, objective, 0.0))
                header = {"fingerprint": run, "history": [vars(line) for line in history]}
                tensors = {
                    "indptr": table.indptr, "indices": table.indices, "values": table.data,
                }  # fmt: skip
                file.save(header, tensors)
                if callback is not None:
                    callback(history[-1])
        self.table_indptr_, self.table_indices_, self.table_values_ = arrays(table)
        self.history_ = history

    def explain(self, n: int = 10) -> dict[Any, list[tuple[Any, float]]]:
        """For each title word (and NULL) that has translations, its n likeliest query words and
        t(q|w), descending; as words if ``fit`` was given them, otherwise as rows (NULL is V)."""
        self._check_fitted()
        V = self.n_words_
        words: list[Any] = list(range(V + 1))
        if self.vocabulary_ is not None:
            words = [*self.vocabulary_.words, "NULL"]
        by_title = sp.csr_matrix(self._table().T)
        found = {}
        for w in np.flatnonzero(np.diff(by_title.indptr)).tolist():
            row = slice(by_title.indptr[w], by_title.indptr[w + 1])
            values, targets = by_title.data[row], by_title.indices[row]
            best = np.argsort(-values, kind="stable")[:n]
            found[words[w]] = [(words[targets[i]], float(values[i])) for i in best]
        return found

    def _table(self) -> sp.csr_matrix:
        parts = (self.table_values_, self.table_indices_, self.table_indptr_)
        return sp.csr_matrix(parts, shape=(self.n_words_, self.n_words_ + 1))

    def _model_probabilities(self, terms: Terms, side: Any) -> NDArray[np.float64]:
        table = Csr(self.table_indptr_, self.table_indices_, self.table_values_)
        return self._translated(terms, table)
