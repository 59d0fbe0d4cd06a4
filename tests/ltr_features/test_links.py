import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.errors import InputError
from ltr_features.columns.links import child_pages, document_columns, link_matrix, pagerank
from ltr_features.text.collection import Links


def links(pairs):
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Links(rows[:, 0], rows[:, 1])


def exact_pagerank(pairs, n, damping):
    """The stationary distribution of the dense transition matrix, by a linear solver."""
    A = np.zeros((n, n))
    for source, target in pairs:
        if source != target:
            A[source, target] = 1
    A[A.sum(axis=1) == 0] = 1
    G = damping * A / A.sum(axis=1, keepdims=True) + (1 - damping) / n
    system = np.vstack([G.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.append(np.zeros(n), 1), rcond=None)[0]


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40),
        )
    ),
    st.sampled_from([0.0, 0.5, 0.85, 0.99]),
)
@settings(deadline=None, max_examples=100)
def test_pagerank_equals_the_linear_solver(graph, damping):
    n, pairs = graph
    rank = pagerank(link_matrix(links(pairs), n), damping)
    np.testing.assert_allclose(rank, exact_pagerank(pairs, n, damping), atol=1e-9)
    assert rank.sum() == pytest.approx(1, abs=1e-12)
    assert (rank > 0).all()


def test_pagerank_equals_the_linear_solver_on_a_larger_graph():
    rng = np.random.default_rng(1)
    n = 300
    pairs = np.stack([rng.integers(0, n // 2, 1500), rng.integers(0, n, 1500)], axis=1)
    rank = pagerank(link_matrix(links(pairs), n))
    np.testing.assert_allclose(rank, exact_pagerank(pairs, n, 0.85), atol=1e-9)


def test_pagerank_without_links_is_uniform():
    np.testing.assert_allclose(pagerank(link_matrix(links([]), 4)), 0.25)


def test_repeated_and_own_links_do_not_count():
    graph = link_matrix(links([(0, 1), (0, 1), (1, 1), (2, 0)]), 3)
    assert graph.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"damping": 1.0}, "damping must lie between 0 and"), ({"tolerance": 0}, "tolerance must")],
)
def test_pagerank_refuses_parameters_out_of_range(parameters, message):
    with pytest.raises(InputError, match=message):
        pagerank(link_matrix(links([(0, 1)]), 2), **parameters)


def test_child_pages_by_nearest_ancestor():
    urls = [
        "http://ex.org/",  # children: 1, 5
        "https://EX.org/a/index.html",  # the page of the directory a; children: 2, 3
        "http://ex.org/a/b.html#part",
        "http://ex.org/a/c/d/e.html",  # a/c and a/c/d are not in the collection
        "http://other.org/a/b.html",
        "http://ex.org/f?path=/a/x",  # the query string belongs to the last segment
        "",
        "http://ex.org",  # the same page as row 0
    ]
    assert child_pages(urls).tolist() == [2, 2, 0, 0, 0, 0, 0, 2]


def test_children_of_long_urls_are_counted_in_time():
    """In a time that grows with the square of the length it would take hours."""
    assert child_pages(["a/" * 500_000, "b", "a/" * 500_001]).tolist() == [1, 0, 0]


def test_an_index_page_alone_is_its_host():
    assert child_pages(["http://ex.org/index.html", "http://ex.org/a"]).tolist() == [1, 0]
    assert child_pages([]).tolist() == []


def test_missing_sources_give_zeros():
    assert document_columns(None, None, 2, 0.85).tolist() == [[0] * 6, [0] * 6]
    with pytest.raises(InputError, match="1 URLs for 2 documents"):
        document_columns(["http://ex.org"], None, 2, 0.85)
