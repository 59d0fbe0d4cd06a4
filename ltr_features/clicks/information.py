"""Standard errors of models of whole pages, whose parameters depend on each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltr_features.clicks.base import Array, inside
from ltr_features.clicks.log import ClickLog, Pages
from ltr_features.kernels import clicks as kernels

#: For queries with more pairs the matrix would be too large; their pairs are taken one by one.
_MOST_PAIRS = 1_000
#: Smaller eigenvalues of a correlation matrix are taken to be 0.
_SINGULAR = 1e-10


@dataclass(frozen=True)
class PageScores:
    """Gradients of each page's log-likelihood with respect to its parameters.

    Attributes:
        pair: float64 [n], for the parameter of each row's pair.
        clicked: float64 [n], for the second parameter of each clicked row's pair, or None.
        shared: float64 [s, g], for the parameters that all pairs share.
    """

    pair: Array
    clicked: Array | None
    shared: Array


@dataclass(frozen=True)
class PairErrors:
    """float64 [pairs]: errors of the first and the second parameter (infinite if the data do not
    determine it) and their covariance; and remarks on them for users."""

    first: Array
    second: Array
    covariance: Array
    remarks: list[str]


def pair_errors(
    log: ClickLog,
    pages: Pages,
    scores: PageScores,
    prior: tuple[float, float],
    first: Array,
    second: Array | None,
) -> PairErrors:
    """Errors from the inverse of the information: the sum over pages of x x', with x the gradient
    of a page's log-likelihood (Berndt et al., 1974), plus the curvature of the prior. Pairs of
    different queries depend on each other only through the shared parameters, so that the matrix
    has a block for each query and a border.

    Args:
        prior: prior of both parameters. first, second: float64 [pairs], their estimates.
    """
    starts = pages.offsets[:-1]
    query = log.pair_query[pages.pair[starts]]
    bounds = np.flatnonzero(np.diff(query, prepend=-1, append=-1))
    n_shared = scores.shared.shape[1]
    clicked = np.zeros(len(pages.pair)) if scores.clicked is None else scores.clicked
    border = scores.shared.T @ (scores.shared * pages.count[:, None])
    parts: list[tuple[NDArray[np.int64], Array, Array, NDArray[np.bool_]]] = []
    n_large = 0
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = slice(pages.offsets[start], pages.offsets[stop])
        own_pairs, local = np.unique(pages.pair[rows], return_inverse=True)
        d = len(own_pairs)
        block, cross = np.zeros((2 * d, 2 * d)), np.zeros((2 * d, n_shared))
        kernels.add_information(
            0, stop - start, pages.offsets[start : stop + 1] - pages.offsets[start],
            pages.count[start:stop], local, scores.pair[rows], pages.click[rows], clicked[rows],
            scores.shared[start:stop], block, cross,
        )  # fmt: skip
        diagonal = np.diag_indices(d)
        block[:d, :d][diagonal] += _curvature(prior, first[own_pairs])
        if second is not None:
            block[d:, d:][diagonal] += _curvature(prior, second[own_pairs])
        if d > _MOST_PAIRS:
            n_large += 1
            block = np.diag(np.diag(block))
        inverse, unknown = _inverse(block)
        solved = inverse @ cross
        border -= cross.T @ solved
        parts.append((own_pairs, inverse, solved, unknown))
    return _gathered(log.n_pairs, parts, *_inverse(border), n_large)


def _gathered(
    n_pairs: int,
    parts: list[tuple[NDArray[np.int64], Array, Array, NDArray[np.bool_]]],
    shared: Array,
    lost: NDArray[np.bool_],
    n_large: int,
) -> PairErrors:
    """Errors from the inverse of each block and of the border's Schur complement, each with the
    parameters that it does not determine."""
    first, second = np.full(n_pairs, np.inf), np.full(n_pairs, np.inf)
    covariance = np.zeros(n_pairs)
    for pairs, inverse, solved, unknown in parts:
        d = len(pairs)
        variance = np.diag(inverse) + np.einsum("ij,jk,ik->i", solved, shared, solved)
        variance[unknown | (solved[:, lost] != 0).any(axis=1)] = np.inf
        first[pairs], second[pairs] = np.sqrt(variance[:d]), np.sqrt(variance[d:])
        covariance[pairs] = np.diag(inverse[:d, d:]) + np.einsum(
            "ij,jk,ik->i", solved[:d], shared, solved[d:]
        )
    remarks = []
    if n_large:
        remarks.append(
            f"standard errors of {n_large} queries with more than {_MOST_PAIRS:,} results are too "
            "small: they ignore that results of a page depend on each other"
        )
    return PairErrors(first, second, covariance, remarks)


def _curvature(prior: tuple[float, float], value: Array) -> Array:
    a, b = prior
    value = inside(value)
    return a / value**2 + b / (1 - value) ** 2


def _inverse(information: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The pseudo-inverse of a positive semidefinite matrix, and which parameters are not determined
    by it, alone or separately from others. Their rows count in a Schur complement like all."""
    scale = np.sqrt(np.maximum(np.diag(information), 0))
    empty = ~(scale > 0)
    scale[empty] = 1.0
    regular = information / np.outer(scale, scale)  # its diagonal is 1
    regular[empty, :] = regular[:, empty] = 0.0
    regular[empty, empty] = 1.0
    unknown = empty
    try:
        sound = bool((np.diag(np.linalg.cholesky(regular)) ** 2 > _SINGULAR).all())
    except np.linalg.LinAlgError:
        sound = False
    if sound:
        found = np.linalg.inv(regular)
    else:
        values, vectors = np.linalg.eigh(regular)
        lost = values < _SINGULAR
        kept = vectors[:, ~lost]
        found = (kept / values[~lost]) @ kept.T
        unknown = empty | (np.abs(vectors[:, lost]) > 1e-6).any(axis=1)
    found[empty, :] = found[:, empty] = 0.0
    return np.asarray(found / np.outer(scale, scale)), unknown
