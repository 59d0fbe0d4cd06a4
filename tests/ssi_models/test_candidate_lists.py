"""Lists of documents by query: what is drawn from them, and what training makes of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ssi_models.s2net.model import S2Net
from ssi_models.s2net.tuples import draw_negatives
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.training.batches import OwnNegatives, PairStream
from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.preferences import Preferences

# Query 0: documents 1 and 2 of grades 2 and 1, 3 rejected; query 1: 4; query 3: 0.
PREFERENCES = Preferences.from_pairs(
    [0, 0, 0, 1, 3], [1, 2, 3, 4, 0], [2, 1, 0, 1, 1], n_queries=4, n_documents=9
)


def lists(*documents, n_documents=9):
    """The list of each query."""
    query = np.repeat(np.arange(len(documents)), [len(list_) for list_ in documents])
    return CandidateLists.from_pairs(
        query,
        np.concatenate(documents).astype(int),
        n_queries=len(documents),
        n_documents=n_documents,
    )


def test_pairs_are_grouped_in_their_order():
    made = CandidateLists.from_pairs([2, 0, 2, 0, 2], [5, 1, 3, 0, 5], n_queries=4, n_documents=9)
    assert [made.documents_of(q).tolist() for q in range(4)] == [[1, 0], [], [5, 3], []]
    assert made.query.tolist() == [0, 0, 2, 2]
    assert made.n_queries == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": [0, 4]}, r"query\[1\] is row 4, outside 0..3"),
        ({"document": [9, 0]}, r"document\[0\] is row 9, outside 0..8"),
        ({"document": [0]}, "query, document have lengths 2, 1"),
    ],
)
def test_bad_pairs_are_refused(change, message):
    good = {"query": [0, 1], "document": [0, 1], "n_queries": 4, "n_documents": 9}
    with pytest.raises(ValueError, match=message):
        CandidateLists.from_pairs(**{**good, **change})


def test_documents_judged_as_high_as_the_best_are_no_negatives():
    """Nor is the excluded one; one of a lower grade is, for pairs of a higher one."""
    given_lists = lists([1, 2, 3, 7], [4, 5, 8], [6], [])
    own = OwnNegatives.of(given_lists, PREFERENCES, np.array([7, 8, -1, -1]))
    assert [own.lists.documents_of(q).tolist() for q in range(4)] == [[2, 3], [5], [], []]
    assert own.grade.tolist() == [1, 0, 0]
    query, grade = np.array([0, 0, 1, 3]), np.array([2, 1, 1, 1], np.float32)
    drawn = own.draw(query, grade, 2, np.random.default_rng(0))
    assert drawn.tolist() == [[2, 3], [-1, 3], [5, 5], [-1, -1]]
    assert own.sizes(query).tolist() == [2, 2, 1, 0]


def test_an_excluded_document_may_be_judged_as_well():
    own = OwnNegatives.of(lists([2], [], [], []), PREFERENCES, np.array([2, -1, -1, -1]))
    assert not len(own.grade)


def test_a_query_without_preferences_has_no_negatives():
    assert not len(OwnNegatives.of(lists([], [], [6, 7], []), PREFERENCES).grade)


def test_draws_are_spread_over_the_list_and_uniform():
    own = OwnNegatives.of(lists(np.arange(5, 9), [0, 1, 2, 3, 5, 6, 7], [], []), PREFERENCES)
    rng = np.random.default_rng(0)
    query, grade = np.zeros(1, np.int64), np.full(1, 2, np.float32)
    assert own.draw(query, grade, 4, rng).tolist() == [[5, 6, 7, 8]]
    counts = np.zeros(9)
    for _ in range(4000):
        drawn = own.draw(query + 1, grade, 3, rng)[0]
        assert len(set(drawn.tolist())) == 3
        counts[drawn] += 1
    assert counts[[4, 8]].tolist() == [0, 0]
    np.testing.assert_allclose(counts[[0, 1, 2, 3, 5, 6, 7]] / 12_000, 1 / 7, atol=0.015)


@st.composite
def problems(draw):
    m, n = draw(st.integers(1, 5)), draw(st.integers(2, 8))
    cells = st.lists(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)), max_size=25)
    judged = draw(st.dictionaries(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)),
                                  st.integers(0, 3), max_size=20))  # fmt: skip
    judged[0, 0] = 1
    pairs = np.array(list(judged), np.int64)
    preferences = Preferences.from_pairs(
        *pairs.T, list(judged.values()), n_queries=m, n_documents=n
    )
    listed = np.array(draw(cells), np.int64).reshape(-1, 2)
    made = CandidateLists.from_pairs(*listed.T, n_queries=m, n_documents=n)
    excluded = np.array([draw(st.integers(-1, n - 1)) for _ in range(m)])
    return preferences, judged, made, excluded


@settings(max_examples=80, deadline=None)
@given(problems(), st.integers(1, 5), st.sampled_from(["pairs", "queries"]))
def test_no_document_as_relevant_is_ever_an_own_negative(problem, k, shuffle):
    preferences, judged, made, excluded = problem
    own = OwnNegatives.of(made, preferences, excluded)
    stream = PairStream(
        preferences, np.arange(preferences.n_documents), 4, 3, 0, shuffle=shuffle, own=own, n_own=k
    )
    listed = {q: set(made.documents_of(q).tolist()) for q in range(made.n_queries)}
    for batch in stream.epoch(0):
        assert batch.own.shape == (len(batch.query), k)
        for q, grade, row in zip(batch.query.tolist(), batch.grade, batch.own, strict=True):
            for d in row[row >= 0].tolist():
                assert d in listed[q]
                assert judged.get((q, d), 0) < grade
                assert d != excluded[q]
            usable = {d for d in listed[q] if judged.get((q, d), 0) < grade and d != excluded[q]}
            if usable and k >= len(made.document):
                assert (row >= 0).any()


def test_batches_depend_on_seed_and_epoch_alone():
    own = OwnNegatives.of(lists(*[np.arange(5, 9)] * 4), PREFERENCES)

    def drawn(seed, number):
        stream = PairStream(PREFERENCES, np.arange(9), 2, 3, seed, own=own, n_own=2)
        return [batch.own.tolist() for batch in stream.epoch(number)]

    assert drawn(0, 1) == drawn(0, 1)
    assert len({str(drawn(seed, number)) for seed in (0, 1) for number in (0, 1)}) == 4


def test_lists_without_negatives_change_nothing():
    own = OwnNegatives.of(lists([1], [4], [], [0]), PREFERENCES)
    stream = PairStream(PREFERENCES, np.arange(9), 2, 3, 0, own=own, n_own=2)
    assert all((batch.own == -1).all() for batch in stream.epoch(0))


def test_tuples_are_of_the_lists_by_their_share():
    own = OwnNegatives.of(lists([7, 8], [], [], [7, 8]), PREFERENCES)
    drawn = draw_negatives(PREFERENCES, np.array([5, 6]), 4000, 0, None, own, 0.25)
    share = np.isin(drawn[:, 1:], [7, 8]).mean(axis=1)
    query = PREFERENCES.query
    np.testing.assert_allclose(share[query != 1], 0.25, atol=0.03)
    assert (share[query == 1] == 0).all()
    assert (drawn >= 0).all()


def problem(seed=0, n=60, width=40):
    """Queries whose relevant documents and whose list share a topic; only the words 20..24 tell
    them apart."""
    rng = np.random.default_rng(seed)
    topic = np.arange(n) % 4
    good = np.arange(n) // 4 % 2
    Q, D = np.zeros((n, width), np.float32), np.zeros((n, width), np.float32)
    for i in range(n):
        Q[i, topic[i] * 3 + rng.integers(3, size=2)] = 1
        D[i, topic[i] * 3 + rng.integers(3, size=2)] = 1
        D[i, (20 if good[i] else 25) + rng.integers(5)] = 1
        D[i, 30 + rng.integers(10)] = 1
    Q, D = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (Q, D))
    query, document = np.nonzero((topic[:, None] == topic) & (good == 1))
    pairs = Preferences.from_pairs(query, document, n_queries=n, n_documents=n)
    listed = CandidateLists.from_pairs(
        *np.nonzero(topic[:, None] == topic), n_queries=n, n_documents=n
    )
    return sp.csr_matrix(Q), sp.csr_matrix(D), pairs, listed


def ssi(**more):
    quick = {"rank": 6, "batch_size": 32, "n_negatives": 20, "max_epochs": 8, "threads": 1}
    quick |= {"diagonal": "none", "init": "normal", "unit_documents": False}
    return LowRankSSI(**{**quick, "margin": 1.0, "scales": (1.0,), **more})


def s2net(**more):
    return S2Net(**{"rank": 6, "batch_size": 32, "max_epochs": 6, "threads": 1, **more})


def order_within_lists(model, Q, D, pairs, listed):
    """Share of (relevant, irrelevant) pairs of a list that the model orders well."""
    scores = model.cache(D).scores(Q)
    relevant = np.zeros(scores.shape, bool)
    relevant[pairs.query, pairs.document] = True
    right = []
    for q in range(len(scores)):
        documents = listed.documents_of(q)
        s, y = scores[q, documents], relevant[q, documents]
        right.append((s[y][:, None] > s[~y][None, :]).mean())
    return np.mean(right)


@pytest.mark.parametrize("rank_weight", ["uniform", "warp", "ndcg", "map"])
def test_lists_teach_what_random_documents_do_not(rank_weight):
    Q, D, pairs, listed = problem()
    # The random ones are of other topics: they teach the topic.
    other = np.flatnonzero(np.arange(60) // 4 % 2 == 1)
    fitted = [
        ssi(rank_weight=rank_weight, learning_rate=0.1, list_share=share).fit(
            Q, D, pairs, candidates=other, candidate_lists=listed
        )
        for share in (0.0, 0.5)
    ]
    without, with_lists = (order_within_lists(m, Q, D, pairs, listed) for m in fitted)
    assert with_lists > 0.95
    assert without < 0.8


def test_lists_teach_s2net():
    Q, D, pairs, listed = problem()
    fitted = [
        s2net(list_share=share, max_epochs=1).fit(Q, D, pairs, candidate_lists=listed)
        for share in (0.0, 0.5)
    ]
    without, with_lists = (order_within_lists(m, Q, D, pairs, listed) for m in fitted)
    assert with_lists > 0.95
    assert without < 0.85


def test_lists_without_a_share_change_nothing():
    Q, D, pairs, listed = problem()
    with_lists = ssi(list_share=0).fit(Q, D, pairs, candidate_lists=listed)
    without = ssi().fit(Q, D, pairs)
    assert with_lists.U_.tobytes() == without.U_.tobytes()
    assert repr(with_lists.history_) == repr(without.history_)


@pytest.mark.parametrize("make", [ssi, s2net])
def test_hogwild_learns_from_lists(make):
    Q, D, pairs, listed = problem()
    fitted = make(hogwild=True, threads=2, learning_rate=0.1).fit(
        Q, D, pairs, candidate_lists=listed
    )
    assert order_within_lists(fitted, Q, D, pairs, listed) > 0.85


def test_pytorch_learns_the_same_from_lists():
    pytest.importorskip("torch", reason="PyTorch (the extra torch) is not installed")
    Q, D, pairs, listed = problem()
    kernels, torch = (
        s2net(max_epochs=2, device=device).fit(Q, D, pairs, candidate_lists=listed)
        for device in (None, "cpu")
    )
    np.testing.assert_allclose(torch.A_q_, kernels.A_q_, atol=2e-3)
    assert torch.history_.epochs[-1].loss == pytest.approx(kernels.history_.epochs[-1].loss, 1e-4)


def test_whole_passes_learn_from_lists():
    Q, D, pairs, listed = problem()
    fitted = s2net(optimizer="l-bfgs", max_epochs=15).fit(Q, D, pairs, candidate_lists=listed)
    assert order_within_lists(fitted, Q, D, pairs, listed) > 0.9


@pytest.mark.parametrize("make", [ssi, s2net])
def test_given_negatives_are_the_querys_own(make):
    """What is rejected for one query is relevant to others of the same topic's words."""
    Q, D, pairs, listed = problem()
    rejected = OwnNegatives.of(listed, pairs).lists
    judged = Preferences.from_pairs(
        np.concatenate([pairs.query, rejected.query]),
        np.concatenate([pairs.document, rejected.document]),
        np.repeat([1, 0], [len(pairs), len(rejected.query)]),
        n_queries=60,
        n_documents=60,
    )
    fitted = make(negatives="given", learning_rate=0.1).fit(Q, D, judged)
    assert order_within_lists(fitted, Q, D, pairs, listed) > 0.9
    with pytest.raises(ValueError, match="no document is judged below a relevant one"):
        make(negatives="given").fit(Q, D, pairs)
    with pytest.raises(ValueError, match="negatives='given' takes those that are judged"):
        make(negatives="given").fit(Q, D, judged, candidate_lists=listed)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"list_share": -0.1}, r"list_share must be in \[0, 1\], got -0.1"),
        ({"list_share": 1.5}, r"list_share must be in \[0, 1\], got 1.5"),
        ({"n_list_negatives": 0}, "n_list_negatives must be 1 or more, got 0"),
    ],
)
def test_bad_parameters_are_refused_by_name(params, message):
    with pytest.raises(ValueError, match=message):
        ssi(**params).fit(*problem()[:3])
