"""How texts of queries are compared, and ids that are made from them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, triu

from letor.dataset import distinct
from letor.errors import InputError
from ltr_base.slices import slices
from ltr_features.text.analyzer import case_folded

#: Characters by which a text is recognised within a longer one.
_BEGINNING = 50
#: Different words of a long text, the share of all words of two texts that makes them nearly equal
#: if they have it in common, and the number of long texts that are compared.
_LONG, _NEARLY, _COMPARED = 20, 0.8, 3_000


def normalised(query: str) -> str:
    """The normalised text of a query: Unicode NFKC, case folded (the Turkish İ to i, as in words),
    spaces at the ends removed and spaces within merged."""
    return " ".join(case_folded(unicodedata.normalize("NFKC", query)).split())


def begins_within(query: str, texts: Iterable[str]) -> bool:
    """Whether the first 50 characters of a query (all of a shorter one) occur in one of the texts,
    normalised; False for an empty query."""
    beginning = normalised(query[: 10 * _BEGINNING])[:_BEGINNING]
    return bool(beginning) and any(beginning in normalised(text) for text in texts)


def connected(kinds: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """int64 [n]: a label for each query, the same for queries that share a name of some kind, or
    are connected by others that do.

    Args:
        kinds: for each kind, such as texts and groups, the name of each query.
    """
    # Imported late: with scipy.linalg it takes a fifth of the time of ``columns list``.
    from scipy.sparse.csgraph import connected_components

    # A graph of queries and their names.
    n = len(kinds[0])
    query = np.tile(np.arange(n), len(kinds))
    name = np.concatenate([distinct(kind)[1] + i * n for i, kind in enumerate(kinds, start=1)])
    size = n * (1 + len(kinds))
    graph = coo_matrix((np.ones(len(query)), (query, name)), shape=(size, size))
    return connected_components(graph, directed=False)[1][:n].astype(np.int64)


def nearly_equal(counts: csr_matrix) -> NDArray[np.int64]:
    """Pairs of long texts that have most of their words in common, versions of one text: int64
    [n, 2], the smaller row first. Of many texts some spread over all are looked at.

    Pairs are found by prefixes: two sets of which the share t is in common (Jaccard's coefficient)
    share one of the |x| - ceil(t |x|) + 1 rarest words of x, too (Chaudhuri, Ganti, Kaushik, ICDE
    2006; Bayardo, Ma, Srikant, WWW 2007).

    Args:
        counts: CSR [n_texts, n_words], counts of words.
    """
    n_words = np.diff(counts.indptr)
    long = np.flatnonzero(n_words >= _LONG)
    if len(long) > _COMPARED:
        long = long[np.linspace(0, len(long) - 1, _COMPARED).astype(np.int64)]
    X = counts[long].astype(bool).astype(np.int32)
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    rows, n_words = np.repeat(np.arange(len(long)), n_words[long]), n_words[long]
    order = np.lexsort((X.indices, frequency[X.indices], rows))
    place = np.arange(len(rows)) - np.repeat(X.indptr[:-1], n_words)
    rare = order[place < np.repeat(n_words - np.ceil(_NEARLY * n_words) + 1, n_words)]
    prefixes = csr_matrix(
        (np.ones(len(rare), np.int32), (rows[rare], X.indices[rare])), shape=X.shape
    )
    found = triu(prefixes @ prefixes.T, k=1).tocoo()
    first, second = found.row.astype(np.int64), found.col.astype(np.int64)
    common = np.zeros(len(first))
    for some in slices(len(first), _COMPARED):
        common[some] = X[first[some]].multiply(X[second[some]]).sum(axis=1).A1
    near = common >= _NEARLY * (n_words[first] + n_words[second] - common)
    return np.sort(np.stack([long[first[near]], long[second[near]]], axis=1), axis=1)


def ids_of_texts(texts: Iterable[str]) -> list[str]:
    """An id for each of some distinct query texts, the same in every collection: q (so that no
    program takes it for a number) and 16 hexadecimal digits of its SHA-256.

    Raises:
        InputError: two texts have the same id (by chance, one in a million for 6 million texts).
    """
    ids = [f"q{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}" for text in texts]
    if len(set(ids)) < len(ids):
        raise InputError("two query texts happen to have the same id; give queries ids of your own")
    return ids


def same_text_remark(labels: Sequence[str] | NDArray[np.int64]) -> str:
    """How many queries have the same text as another one, given labels that queries of the same
    text share; the beginning of a remark."""
    _, code, sizes = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    n = int((sizes[code] > 1).sum())
    return (
        f"{n:,} of {len(code):,} queries have the same text as another one, up to case and spaces"
    )
