"""Standard errors of click models of whole pages against the information matrix of all parameters
at once."""

import numpy as np
import pytest
from click_logs import log_of

from ltr_features.clicks.information import PageScores, pair_errors


def several_queries(rng):
    """40 pages of three queries with four results each, of which each page shows two or three."""
    pages = []
    for _ in range(40):
        query, n = int(rng.integers(3)), int(rng.integers(2, 4))
        documents = 4 * query + rng.permutation(4)[:n]
        pages.append((query, documents, np.arange(n), rng.random(n) < 0.5))
    return log_of(pages)


def dense(log, scores):
    """float64 [pages, 2 pairs + shared]: each page's gradient by all parameters."""
    pages, P = log.pages, log.n_pairs
    x = np.zeros((len(pages), 2 * P + scores.shared.shape[1]))
    for row, (page, pair) in enumerate(zip(pages.row_page, pages.pair, strict=True)):
        x[page, pair] += scores.pair[row]
        if pages.click[row]:
            x[page, P + pair] += scores.clicked[row]
    x[:, 2 * P :] = scores.shared
    return x


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("prior", [(0.0, 0.0), (0.5, 1.5)])
def test_errors_are_those_of_all_parameters_at_once(prior, together):
    """``together``: without a prior, two results of the first query are only told apart from the
    others, not from each other; so the block of their query has no inverse, yet what it says on
    the shared parameters and on the other results counts."""
    rng = np.random.default_rng(0)
    log = several_queries(rng)
    pages, P = log.pages, log.n_pairs
    n = len(pages.pair)
    scores = PageScores(rng.normal(size=n), rng.normal(size=n), rng.normal(size=(len(pages), 2)))
    if together:
        scores.clicked[:] = 0.0
        per_page = rng.normal(size=len(pages))
        scores.pair[pages.pair < 2] = per_page[pages.row_page[pages.pair < 2]]
        for page in range(len(pages)):  # shown alone, either would be determined
            rows = np.flatnonzero((pages.row_page == page) & (pages.pair < 2))
            if len(rows) == 1:
                scores.pair[rows] = 0.0
    first, second = rng.uniform(0.2, 0.8, (2, P))
    x = dense(log, scores)
    information = x.T @ (x * pages.count[:, None])
    curvature = [prior[0] / v**2 + prior[1] / (1 - v) ** 2 for v in (first, second)]
    information[np.diag_indices(2 * P)] += np.concatenate(curvature)
    values, vectors = np.linalg.eigh(information)
    lost = (np.abs(vectors[:, values < 1e-9]) > 1e-6).any(axis=1)
    assert lost.any() == (together and prior == (0, 0))
    covariance = np.linalg.pinv(information, rcond=1e-12, hermitian=True)
    expected = np.where(lost, np.inf, np.sqrt(np.diag(covariance)))
    found = pair_errors(log, pages, scores, prior, first, second)
    np.testing.assert_allclose(found.first, expected[:P], rtol=1e-6)
    np.testing.assert_allclose(found.second, expected[P : 2 * P], rtol=1e-6)
    both = np.isfinite(found.first) & np.isfinite(found.second)
    np.testing.assert_allclose(
        found.covariance[both], np.diag(covariance[:P, P : 2 * P])[both], rtol=1e-6, atol=1e-12
    )
