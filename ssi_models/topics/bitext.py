"""Pairs of queries and titles, grouped by query word, and EM of IBM Model 1 over them."""

from __future__ import annotations

import shutil
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models import persistence
from ssi_models.kernels.translation import count_translations
from ssi_models.matrices import arrays, as_tensors, check_csr, lengths_of, of_tensors, take_rows
from ssi_models.parallel import Executor, Workers
from ssi_models.parameters import digest_of
from ssi_models.stored_tensors import Tensor, matrix

_BITEXT, _TABLE = "bitext.safetensors", "table.safetensors"
#: Approximate number of pairs' query words whose translations another process counts at a time.
_PIECE = 1 << 18


class Bitext:
    """The pairs, grouped by query word.

    Args:
        queries: counts of the pairs' query words, times the weights of the pairs.
        D: counts of titles. document: int64 [n_pairs], rows of D.
        executor: counts translations in other processes, with the same results; None = this one.
    """

    def __init__(
        self,
        queries: sp.csr_matrix,
        D: sp.csr_matrix,
        document: NDArray[np.int64],
        executor: Executor | None = None,
    ) -> None:
        self.executor = executor
        self.D, self.document = D, document
        self.by_word = check_csr("Q", sp.csr_matrix(queries.T))
        lengths = lengths_of(D)[document]
        self.constant = float((lengths_of(queries) * np.log(lengths + 1)).sum())

    def uniform_table(self) -> sp.csr_matrix:
        """t(q|w) = 1 / number of query words that w occurs with: CSR [V, V + 1]."""
        queries = self.by_word.astype(np.int64, copy=True)
        queries.data[:] = 1
        # Only the pattern of the counts matters; NULL occurs in every title.
        titles = sp.csr_matrix(take_rows(self.D, self.document), dtype=np.int64, copy=True)
        titles.data[:] = 1
        null = sp.csr_matrix(np.ones((titles.shape[0], 1), np.int64))
        together = sp.csr_matrix(queries @ sp.hstack([titles, null], format="csr"))
        together.sort_indices()
        table = check_csr("table", together)
        partners = np.bincount(table.indices, minlength=table.shape[1])
        table.data[:] = 1 / partners[table.indices]
        return table

    def table_like(self, old: sp.csr_matrix) -> sp.csr_matrix:
        """The uniform table (1 %) mixed with the entries of ``old`` (99 %), normalised."""
        table = self.uniform_table()
        if old.shape != table.shape:
            raise ValueError(f"warm start: the fitted table is {old.shape}, not {table.shape}")
        mixed = check_csr("table", 0.01 * table + 0.99 * old.multiply(table > 0))
        _normalise(mixed, mixed.data.astype(np.float64))
        return mixed

    def iterate(self, table: sp.csr_matrix, workers: Workers) -> float:
        """One iteration of EM, in place; returns the log-likelihood before it."""
        expected, value = np.zeros(table.nnz), np.zeros(self.D.shape[1])
        if self.executor is None:
            cuts = self._cuts(workers.n_shares)
            workers.run(
                lambda i, _: self.count(table, expected, value, slice(cuts[i], cuts[i + 1]))
            )
        else:
            self._count_elsewhere(self.executor, table, expected, value)
        _normalise(table, expected)
        return float(value.sum()) - self.constant

    def count(
        self,
        table: sp.csr_matrix,
        expected: NDArray[np.float64],
        value: NDArray[np.float64],
        words: slice,
    ) -> None:
        """Write the expected counts, float64 [nnz of the table], of some query words, and their
        part of the log-likelihood, float64 [V]."""
        count_translations(
            arrays(self.by_word), arrays(self.D), self.document, self.D.shape[1], arrays(table),
            expected, value, words.start, words.stop,
        )  # fmt: skip

    def _cuts(self, n: int) -> list[int]:
        """Bounds of n ranges of query words with about equally many entries."""
        ends = self.by_word.indptr
        cuts = np.searchsorted(ends, np.linspace(0, ends[-1], n + 1)).tolist()
        return [0, *cuts[1:-1], len(ends) - 1]

    def _count_elsewhere(
        self,
        executor: Executor,
        table: sp.csr_matrix,
        expected: NDArray[np.float64],
        value: NDArray[np.float64],
    ) -> None:
        folder = executor.folder / f"wtm-{self._digest[:16]}"
        at = folder / digest_of([], arrays(table))[:16]
        at.mkdir(parents=True, exist_ok=True)
        widths = {"words": self.D.shape[1], "pairs": len(self.document)}
        if not (folder / _BITEXT).exists():
            persistence.save_tensors(folder / _BITEXT, widths, self.tensors)
        persistence.save_tensors(at / _TABLE, {}, as_tensors("t", table))
        cuts = self._cuts(1 + self.by_word.nnz // _PIECE)
        calls = ((str(folder), at.name, *words) for words in pairwise(cuts))
        for (first, last), path in zip(
            pairwise(cuts), executor.in_order(_count, calls), strict=True
        ):
            entries = slice(table.indptr[first], table.indptr[last])
            shapes = {"expected": expected[entries].shape, "value": value[first:last].shape}
            wanted = {name: Tensor(shape, "float64") for name, shape in shapes.items()}
            _, found = persistence.load_checked(path, wanted)
            expected[entries], value[first:last] = found["expected"], found["value"]
        shutil.rmtree(at)

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """All data of the bitext, as arrays of a file."""
        matrices = as_tensors("by_word", self.by_word) | as_tensors("D", self.D)
        return matrices | {"document": self.document}

    @cached_property
    def _digest(self) -> str:
        return digest_of([self.D.shape], self.tensors.values())

    def fingerprint(self, prune: float, table: sp.csr_matrix) -> str:
        """Identifies a run of EM from a table by everything that it depends on."""
        return digest_of(["wtm", prune, self._digest], arrays(table))


def _normalise(table: sp.csr_matrix, counts: NDArray[np.float64]) -> None:
    """t(q|w) = c(q|w) / sum_q' c(q'|w), in place."""
    totals = np.bincount(table.indices, counts, minlength=table.shape[1])
    table.data[:] = counts / np.maximum(totals, 1e-300)[table.indices]


def pruned(table: sp.csr_matrix, least: float) -> sp.csr_matrix:
    """The table without entries below ``least``, normalised again for each title word."""
    kept = table.data >= least
    indptr = np.concatenate([[0], np.cumsum(kept)])[table.indptr]
    parts = (table.data[kept], table.indices[kept], indptr)
    smaller = check_csr("table", sp.csr_matrix(parts, shape=table.shape))
    _normalise(smaller, smaller.data.astype(np.float64))
    return smaller


def _count(folder: str, at: str, first: int, last: int) -> str:
    """Write the expected counts of some query words, unless their file exists; returns the file."""
    path = Path(folder) / at / f"counts-{first:09}.safetensors"
    if not path.exists():
        bitext = _bitext(Path(folder) / _BITEXT)
        V = bitext.D.shape[1]
        expected = matrix("t", "words", "title words")
        table = path.with_name(_TABLE)
        _, found = persistence.load_checked(table, expected, words=V, **{"title words": V + 1})
        t = of_tensors("t", found, V + 1)
        counts, value = np.zeros(t.nnz), np.zeros(V)
        bitext.count(t, counts, value, slice(first, last))
        own = counts[t.indptr[first] : t.indptr[last]]
        persistence.save_tensors(path, {}, {"expected": own, "value": value[first:last]})
    return str(path)


@lru_cache(maxsize=1)
def _bitext(path: Path) -> Bitext:
    header = persistence.load_header(path)
    sizes = {name: persistence.count(header, name) for name in ("words", "pairs")}
    expected = {
        **matrix("by_word", "words", "pairs"),
        **matrix("D", "titles", "words"),
        "document": Tensor(("pairs",), "int64", below="titles"),
    }
    _, found = persistence.load_checked(path, expected, **sizes)
    queries = of_tensors("by_word", found, sizes["pairs"])
    D = of_tensors("D", found, sizes["words"])
    return Bitext(check_csr("queries", queries.T), D, found["document"])
