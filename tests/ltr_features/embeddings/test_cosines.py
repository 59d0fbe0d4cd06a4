import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from letor.errors import InputError
from ltr_features.embeddings.cosines import average_cosines, maximum_cosines, mean_vectors
from ltr_features.embeddings.vectors import unit_rows


def slow_cosines(query, document, units):
    """Average and maximum over all pairs of known members, one by one."""
    total, weight, best = 0.0, 0.0, None
    for i in np.flatnonzero(query):
        for j in np.flatnonzero(document):
            if units[i].any() and units[j].any():
                cosine = float(units[i].astype(float) @ units[j])
                total += query[i] * document[j] * cosine
                weight += query[i] * document[j]
                best = cosine if best is None else max(best, cosine)
    return (0.0, 0.0) if best is None else (total / weight, best)


def test_hand_computed_cosines():
    units = np.array([[1, 0], [0, 1], [0.6, 0.8], [0, 0]], dtype=np.float32)
    queries = csr_matrix([[2, 1, 0, 5], [0, 0, 0, 1], [0, 0, 0, 0]])
    documents = csr_matrix([[0, 0, 3, 1], [1, 1, 0, 0], [0, 0, 0, 2]])
    q, d = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    means = mean_vectors(queries, units), mean_vectors(documents, units)
    # The first query is twice (1, 0) and once (0, 1); the vector that is 0 is unknown.
    np.testing.assert_allclose(
        average_cosines(*means, q, d), [2 / 3 * 0.6 + 0.8 / 3, 0.5, 0] + [0] * 6, rtol=1e-6
    )
    np.testing.assert_allclose(
        maximum_cosines(queries, documents, units, q, d), [0.8, 1, 0] + [0] * 6, rtol=1e-6
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_cosines_equal_the_slow_twin(threads):
    rng = np.random.default_rng(1)
    units = unit_rows(rng.normal(size=(30, 5)).astype(np.float32))
    units[[3, 8]] = 0
    bags = [
        csr_matrix(np.round(random_array((n, 30), density=0.1, rng=rng).toarray() * 9))
        for n in (6, 12)
    ]
    q, d = rng.integers(0, 6, 200), rng.integers(0, 12, 200)
    got = (
        average_cosines(*(mean_vectors(b, units) for b in bags), q, d, threads),
        maximum_cosines(*bags, units, q, d, threads),
    )
    dense = [b.toarray() for b in bags]
    expected = [slow_cosines(dense[0][i], dense[1][j], units) for i, j in zip(q, d, strict=True)]
    np.testing.assert_allclose(np.transpose(got), expected, rtol=1e-5, atol=1e-6)


def test_negative_maxima_and_no_pairs():
    units = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    one, other = csr_matrix([[1, 0]]), csr_matrix([[0, 1]])
    zero = np.zeros(1, np.int64)
    assert maximum_cosines(one, other, units, zero, zero).tolist() == [-1]
    assert len(maximum_cosines(one, other, units, zero[:0], zero[:0])) == 0


def test_bags_of_other_members_are_refused():
    units = np.eye(3, dtype=np.float32)
    bags = csr_matrix((1, 2))
    with pytest.raises(InputError, match="bags over 2 members for 3 vectors"):
        maximum_cosines(bags, bags, units, np.zeros(1, int), np.zeros(1, int))
