"""Correlated feature hashing: rare words share the weights of frequent words that they occur with
(Bai et al., section 2.2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.checkpoint import checkpoint_of
from ssi_models.matrices import check_csr, check_rows, take_columns
from ssi_models.mixing import choose_alpha
from ssi_models.parallel import Workers
from ssi_models.parameters import check_least, digest_of, model_class
from ssi_models.representation import Representation, joined, scaled
from ssi_models.ssi.low_rank import LowRankSSI, frequent_columns
from ssi_models.stored_tensors import Tensor
from ssi_models.training.choosing import checkpoints
from ssi_models.training.data import TrainingData
from ssi_models.training.diagonal import weigh
from ssi_models.training.embedding_table import embedded
from ssi_models.training.run import TrainingRun
from ssi_models.training.towers import TowerScorer

_BLOCK = 2**24  # co-occurrence counts held at a time


@model_class
class CorrelatedHashSSI(LowRankSSI):
    """SSI in the space of the F most frequent words: every word is replaced by the k frequent
    words with the largest DICE coefficients, DICE(i, j) = 2 cooc(i, j) / (occ(i) + occ(j)), where
    occ(i) is the number of texts with the word i (the paper counts all its occurrences).

    Follows Algorithm 1 of the paper: with T the 0/1 matrix of the replacements, q and d become
    Tq / sqrt(k) and Td / sqrt(k), and W = U'V + I is learned there. (Eq. 6 of the paper keeps
    fewer terms for k > 1.) A word that occurs with no frequent word is dropped.

    Args:
        n_features: F.
        bins: k.
        mixture: f = (1 - a) f_A + a f_B, where A is (U'V)_F + I on the original words and B is the
            hashed model on all words but the F frequent ones (the paper's best model); a is
            chosen by the rank loss of training triples.

    ``fit`` takes two more options: ``cooccurrence``, a matrix [units, V] whose rows (sentences, or
    a larger collection's documents) say which words occur together, D by default; and ``words``,
    bool [V], the columns that may become frequent words, all by default (with n-grams as further
    columns, name the single words there).

    Attributes:
        frequent_: int64 [F], ascending: the frequent words, which span the space.
        matches_: int64 [V, k], the k best frequent words (columns) for each word, or -1;
            dice_: float32 [V, k], their coefficients.
        alpha_: float32 [1], the factor a (1 without mixture).
        A_U_, A_V_, A_diagonal_: parameters of model A (empty without mixture).

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", Algorithm 1 and Tables 7, 8.
    """

    name: ClassVar[str] = "correlated-hash"
    mixed_by: ClassVar[tuple[str, ...]] = ("alpha_",)
    tensors: ClassVar[Mapping[str, Tensor]] = {
        **LowRankSSI.tensors,
        "frequent": Tensor(("embedded",), "int64", below="words", ascending=True),
        "matches": Tensor(("words", "bins"), "int64", below="words", least=-1),
        "dice": Tensor(("words", "bins")),
        "alpha": Tensor((1,)),
        "A_U": Tensor(("embedded?", "rank")),
        "A_V": Tensor(("embedded?", "rank")),
        "A_diagonal": Tensor(("words?",)),
    }

    n_features: int = 30_000
    bins: int = 1
    mixture: bool = False

    frequent_: NDArray[np.int64] = field(init=False)
    matches_: NDArray[np.int64] = field(init=False)
    dice_: NDArray[np.float32] = field(init=False)
    alpha_: NDArray[np.float32] = field(init=False)
    A_U_: NDArray[np.float32] = field(init=False)
    A_V_: NDArray[np.float32] = field(init=False)
    A_diagonal_: NDArray[np.float32] = field(init=False)

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 1, "n_features", "bins")
        if self.n_frequent is not None:
            raise ValueError("n_frequent: n_features limits the words of a hashed model")

    @property
    def _space(self) -> int:
        return len(self.frequent_)

    def _check_restored(self) -> None:
        super()._check_restored()
        if not np.isin(self.matches_[self.matches_ >= 0], self.frequent_).all():
            raise ValueError("array matches holds a word that is not among the frequent ones")
        n, wanted = len(self.A_U_), self.n_words_ if self.diagonal == "learned" else 0
        if len(self.A_V_) != n or len(self.A_diagonal_) != (wanted if n else 0):
            raise ValueError("arrays A_U, A_V and A_diagonal do not match")

    def _fit_jointly(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        *given: Any,
        cooccurrence: sp.csr_matrix | None = None,
        words: NDArray[np.bool_] | None = None,
        **options: Any,
    ) -> list[Self]:
        """Learn the replacements from unlabelled text, then U and V from preferences."""
        D = check_csr("D", D)
        units = D if cooccurrence is None else check_csr("cooccurrence", cooccurrence)
        if units.shape[1] != D.shape[1]:
            raise ValueError(f"cooccurrence has {units.shape[1]} columns, D has {D.shape[1]}")
        mask = np.ones(D.shape[1], bool) if words is None else np.asarray(words)
        if mask.dtype != bool or mask.shape != (D.shape[1],):
            raise ValueError(
                f"words must be bool [{D.shape[1]}], a mask of the columns, got {mask.dtype} "
                f"{list(mask.shape)}"
            )
        allowed = np.flatnonzero(mask)
        if not len(allowed):
            raise ValueError("words: no column may become a frequent word")
        chosen = frequent_columns(take_columns(units, allowed), self.n_features)
        frequent = allowed[chosen]
        warm = self.warm_start and hasattr(self, "n_words_")
        if warm and not np.array_equal(frequent, self.frequent_):
            raise ValueError("warm_start: the frequent words are others than those of the last fit")
        self.frequent_ = frequent
        self.matches_, self.dice_ = top_dice(units, self.frequent_, self.bins)
        files = checkpoints(options.get("checkpoint"), self.choices())
        copies = super()._fit_jointly(Q, D, *given, **options)
        for model in (self, *copies):
            model.alpha_ = np.ones(1, np.float32)
            model.A_U_ = model.A_V_ = np.zeros((0, self.rank), np.float32)
            model.A_diagonal_ = np.zeros(0, np.float32)
        if self.mixture:
            self._mix(copies, Q, D, *given, **options)
            super()._delete_checkpoints(files)
        for model in (self, *copies):
            del model._data
        return copies

    def top_matches(self, word: int) -> list[tuple[int, float]]:
        """(frequent word, DICE coefficient) of the words that stand for ``word``, best first.

        Raises:
            ValueError: no such word.
        """
        self._check_fitted()
        row = int(check_rows("word", [word], self.n_words_)[0])
        pairs = zip(self.matches_[row].tolist(), self.dice_[row].tolist(), strict=True)
        return [(j, dice) for j, dice in pairs if j >= 0]

    def hash(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Tx / sqrt(k) for each row x: checked CSR [n, F]. In a mixture, x is taken without the
        frequent words, which model A covers."""
        found = self.matches_ >= 0
        if self.mixture:
            found[self.frequent_] = False
        columns = np.searchsorted(self.frequent_, self.matches_[found])
        indptr = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
        ones = np.full(len(columns), 1 / np.sqrt(self.bins), np.float32)
        T = sp.csr_matrix((ones, columns, indptr), shape=(len(found), len(self.frequent_)))
        return check_csr("hashed rows", X @ T)

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> TowerScorer:
        hashed = replace(data, Q=self.hash(data.Q), D=self.hash(data.D))
        return super().make_scorer(hashed, rate, workers)

    def _adopt(self, run: TrainingRun) -> None:
        super()._adopt(run)
        self._data = run.data

    def _delete_checkpoints(self, files: Sequence[Path | None]) -> None:
        # If model A is trained next, a fit that is killed there must not start from scratch.
        if not self.mixture:
            super()._delete_checkpoints(files)

    def _fingerprint(self, *given: Any) -> str:
        return digest_of([super()._fingerprint(*given)], (self.frequent_, self.matches_))

    def _mix(self, copies: Sequence[Self], *given: Any, **options: Any) -> None:
        """Train model A, and its copies for the parts, and choose each one's mixing factor."""
        own = {f.name for f in fields(LowRankSSI) if f.init}
        parameters = {name: getattr(self, name) for name in own}
        parameters |= {"n_frequent": None, "warm_start": False}
        on_words = _OnWords(**{**parameters, "unit_documents": self.unit_documents_})
        on_words.words = self.frequent_
        own_path = checkpoint_of(options.get("checkpoint"), "frequent")
        others = on_words._fit_jointly(*given, **{**options, "checkpoint": own_path})
        for model, A in zip((self, *copies), (on_words, *others), strict=True):
            model.A_U_, model.A_V_, model.A_diagonal_ = A.U_, A.V_, A.diagonal_
            choose_alpha(model, model._data, model._data.training)

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        own = super().query_representation(self.hash(Q), words)
        if not len(self.A_U_):
            return own
        diagonal = Q if self.diagonal == "identity" else None
        if self.diagonal == "learned":
            diagonal = weigh(Q, self.A_diagonal_)
        alpha = float(self.alpha_[0])
        frequent = Representation(self._embed_frequent(Q, self.A_U_), diagonal)
        return joined(scaled(frequent, 1 - alpha), scaled(own, alpha))

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        own = super().document_representation(self.hash(D))
        if not len(self.A_U_):
            return own
        diagonal = None if self.diagonal == "none" else D
        R = self._represents.represent([self._embed_frequent(D, self.A_V_)])
        return joined(Representation(R, diagonal), own)

    def _embed_frequent(self, X: sp.csr_matrix, M: NDArray[np.float32]) -> NDArray[np.float32]:
        return embedded(take_columns(X, self.frequent_), M, self.threads)


class _OnWords(LowRankSSI):
    """(U'V)_F + I over the given words."""

    words: NDArray[np.int64]

    def _words(self, D: sp.csr_matrix) -> NDArray[np.int64]:
        return self.words

    def _fingerprint(self, *given: Any) -> str:
        return digest_of([super()._fingerprint(*given)], (self.words,))


def top_dice(
    units: sp.csr_matrix, frequent: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """For each word, the k ``frequent`` words with the largest DICE coefficients.

    Args:
        units: checked CSR [units, V]; an entry means that the word occurs in the unit.
        frequent: int64 [F], ascending columns.

    Returns:
        columns int64 [V, k] and coefficients float32 [V, k], best first, ties to the lower column;
        -1 and 0 where fewer than k frequent words occur with the word.
    """
    present = sp.csr_matrix(units, dtype=np.int32, copy=True)
    present.data[:] = units.data != 0
    present.eliminate_zeros()
    occurrences = np.bincount(present.indices, minlength=units.shape[1])
    by_word, frequent_units = present.T.tocsr(), present[:, frequent]
    columns = np.full((units.shape[1], k), -1, np.int64)
    values = np.zeros((units.shape[1], k), np.float32)
    size = max(1, _BLOCK // len(frequent))
    for start in range(0, units.shape[1], size):
        together = (by_word[start : start + size] @ frequent_units).tocoo()
        row, column = together.row, together.col
        total = occurrences[start + row] + occurrences[frequent[column]]
        dice = 2.0 * together.data / total
        order = np.lexsort((column, -dice, row))
        row, column, dice = row[order], column[order], dice[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        best = rank < k
        columns[start + row[best], rank[best]] = frequent[column[best]]
        values[start + row[best], rank[best]] = dice[best]
    return columns, values
