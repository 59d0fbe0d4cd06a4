import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from letor.errors import InputError
from ltr_features.embeddings.cosines import Bags, cosines
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
    asked, stored = (Bags.over(bags, units) for bags in (queries, documents))
    average, maximum = cosines(asked, [stored], q, d).T
    # The first query is twice (1, 0) and once (0, 1); the vector that is 0 is unknown.
    np.testing.assert_allclose(average, [2 / 3 * 0.6 + 0.8 / 3, 0.5, 0] + [0] * 6, rtol=1e-6)
    np.testing.assert_allclose(maximum, [0.8, 1, 0] + [0] * 6, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_cosines_equal_the_slow_twin(threads):
    rng = np.random.default_rng(1)
    units = unit_rows(rng.normal(size=(30, 5)).astype(np.float32))
    units[[3, 8]] = 0
    bags = [
        csr_matrix(np.round(random_array((n, 30), density=density, rng=rng).toarray() * 9))
        for n, density in ((6, 0.3), (12, 0.1), (12, 0.05))
    ]
    q, d = rng.integers(0, 6, 200), rng.integers(0, 12, 200)
    asked = Bags.over(bags[0], units)
    stored = [Bags.over(part, units) for part in bags[1:]]
    got = cosines(asked, stored, q, d, threads)
    dense = [b.toarray() for b in bags]
    for position in (1, 2):
        expected = [
            slow_cosines(dense[0][i], dense[position][j], units) for i, j in zip(q, d, strict=True)
        ]
        part = got[:, 2 * position - 2 : 2 * position]
        np.testing.assert_allclose(part, expected, rtol=1e-5, atol=1e-6)
    alone = cosines(asked, stored, q[7:8], d[7:8], threads)
    np.testing.assert_array_equal(alone[0], got[7])
    many = cosines(asked, stored, np.tile(q, 100), np.tile(d, 100), threads)
    np.testing.assert_array_equal(many, np.tile(got, (100, 1)))


def test_a_vector_of_both_is_known_to_be_the_closest():
    rng = np.random.default_rng(2)
    units = unit_rows(rng.normal(size=(20, 7)).astype(np.float32))
    units[4] = 0
    documents = random_array((9, 20), density=0.2, rng=rng).tocsr()
    queries = random_array((5, 8), density=0.5, rng=rng).tocsr()
    same = np.array([3, 4, -1, 5, 19, -1, 7, 0])
    own = np.where(same[:, None] >= 0, units[same], unit_rows(np.ones((8, 7), np.float32)))
    q, d = np.repeat(np.arange(5), 9), np.tile(np.arange(9), 5)
    stored = [Bags.over(documents, units)]
    plain = cosines(Bags.over(queries, own), stored, q, d)
    told = cosines(Bags.over(queries, own, same), stored, q, d)
    np.testing.assert_allclose(told, plain, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(told[:, 0], plain[:, 0])
    pairs = zip(queries.toarray()[q], documents.toarray()[d], strict=True)
    shared = [np.intersect1d(same[np.flatnonzero(a)], np.flatnonzero(b)) for a, b in pairs]
    known = np.array([bool(set(rows) - {4}) for rows in shared])
    assert (told[known, 1] == 1).all()
    assert 0 < known.sum() < len(known)


def test_negative_maxima_and_no_pairs():
    units = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    one, other = (Bags.over(csr_matrix([row]), units) for row in ([1, 0], [0, 1]))
    zero = np.zeros(1, np.int64)
    assert cosines(one, [other], zero, zero).tolist() == [[-1, -1]]
    assert cosines(one, [other], zero[:0], zero[:0]).shape == (0, 2)
    assert cosines(one, [], zero, zero).shape == (1, 0)


def test_bags_of_other_members_are_refused():
    with pytest.raises(InputError, match="bags over 2 members for 3 vectors"):
        Bags.over(csr_matrix((1, 2)), np.eye(3, dtype=np.float32))
