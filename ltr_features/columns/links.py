"""Columns of the document alone: its place in the link graph, and its URL."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.parameters import check_range
from ltr_features.text.collection import Links

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_INDEX_PAGE = re.compile(r"^index\.\w+$", re.IGNORECASE)


def link_matrix(links: Links, n_documents: int) -> csr_matrix:
    """float64 [n, n], 1 where the row's document links to the column's. Repeated links count once;
    links of a document to itself do not count."""
    foreign = links.source != links.target
    source, target = links.source[foreign], links.target[foreign]
    ones = np.ones(len(source))
    matrix = csr_matrix((ones, (source, target)), shape=(n_documents, n_documents))
    matrix.data[:] = 1.0
    return matrix


def pagerank(
    graph: csr_matrix, damping: float = 0.85, tolerance: float = 1e-10
) -> NDArray[np.float64]:
    """PageRank by power iteration (Brin and Page 1998; Langville and Meyer 2004, section 3).

    p = damping (A' p + dangling mass / n) + (1 - damping) / n, where A is the link matrix with rows
    divided by their sums; a document without links shares its mass among all documents.

    Args:
        graph: [n, n], from ``link_matrix``.
        damping: probability of following a link, at least 0 and less than 1.
        tolerance: greatest L1 distance to the exact solution.

    Returns:
        float64 [n], positive, sum 1.

    Raises:
        InputError: a parameter is outside its range.
    """
    check_range("damping", damping, 0.0, 1.0 - 1e-6)
    check_range("tolerance", tolerance, 1e-14, 1.0)
    n = graph.shape[0]
    out_degree = np.asarray(graph.sum(axis=1)).ravel()
    dangling = np.flatnonzero(out_degree == 0)
    share = 1.0 / np.maximum(out_degree, 1.0)
    incoming = graph.T.tocsr()
    rank = np.full(n, 1.0 / n)
    # A step shortens the L1 distance to the fixed point by the factor `damping`, so the distance
    # is at most damping / (1 - damping) times the last change, and the steps needed are bounded.
    for _ in range(1 + math.ceil(math.log(tolerance / 2) / math.log(max(damping, 1e-9)))):
        following = incoming @ (rank * share)
        following += rank[dangling].sum() / n
        following *= damping
        following += (1.0 - damping) / n
        following /= following.sum()
        change = np.abs(following - rank).sum()
        rank = following
        if change * damping <= tolerance * (1.0 - damping):
            break
    return rank


def child_pages(urls: Sequence[str]) -> NDArray[np.int64]:
    """Number of child pages of each document in the tree that the URLs form.

    The parent of a page is the page of the collection with the longest URL that is a proper prefix
    of its own, by whole path segments. Scheme, fragment, letter case of the host and a trailing
    ``/`` or ``/index.*`` do not matter; a query string belongs to the last segment. Pages with
    equal URLs have the same children; a document without URL has none.

    Returns:
        int64 [n].
    """
    paths = [_url_path(url) for url in urls]
    children = dict.fromkeys(paths, 0)
    way: list[tuple[str, ...]] = [()]  # to the page, over all pages above it
    for path in sorted(paths):  # each page comes right before those below it
        while path[: len(way[-1])] != way[-1]:
            way.pop()
        if path != way[-1]:
            way.append(path)
        if len(way) > 2:
            children[way[-2]] += 1
    return np.array([children[path] for path in paths], dtype=np.int64)


def _url_path(url: str) -> tuple[str, ...]:
    """Host and path segments of a URL; empty for an empty URL."""
    address = _SCHEME.sub("", url.strip().partition("#")[0])
    path, mark, query = address.partition("?")
    segments = [segment for segment in path.split("/") if segment]
    if len(segments) > 1 and _INDEX_PAGE.match(segments[-1]) and not mark:
        segments.pop()
    if not segments:
        return ()
    if mark:
        segments[-1] += mark + query
    return (segments[0].lower(), *segments[1:])


def document_columns(
    urls: Sequence[str] | None, links: Links | None, n_documents: int, damping: float
) -> NDArray[np.float64]:
    """float64 [n, 6]: PageRank, in-links, out-links, slashes in the URL, length of the URL in
    characters, child pages; 0 where the source is None."""
    values = np.zeros((n_documents, 6))
    if links is not None:
        graph = link_matrix(links, n_documents)
        values[:, 0] = pagerank(graph, damping)
        values[:, 1] = np.asarray(graph.sum(axis=0)).ravel()
        values[:, 2] = np.asarray(graph.sum(axis=1)).ravel()
    if urls is not None:
        if len(urls) != n_documents:
            raise InputError(f"{len(urls)} URLs for {n_documents} documents")
        values[:, 3] = [url.count("/") for url in urls]
        values[:, 4] = [len(url) for url in urls]
        values[:, 5] = child_pages(urls)
    return values
