"""Gradients of the losses against slow twins, and measures against scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
import ssi_twins as twins
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score, roc_auc_score

from ssi_models.kernels.pair_losses import judged_lists, ranking_measures
from ssi_models.parallel import Workers
from ssi_models.training.batches import Batch
from ssi_models.training.losses import LOSSES, RANK_WEIGHTS, PairwiseLoss
from ssi_models.training.preferences import Preferences

N_DOCUMENTS, POOL = 12, 40
# Query 0: document 3 of grade 2, 5 of grade 1, 8 rejected; query 1: 2; query 2: 4 and 6.
PREFERENCES = Preferences.from_pairs(
    [0, 0, 0, 1, 2, 2], [3, 5, 8, 2, 4, 6], [2, 1, 0, 1, 1, 3], n_queries=3, n_documents=12
)
BATCH = Batch(
    np.array([0, 0, 1, 2]),
    np.array([3, 5, 2, 4]),
    np.array([2, 1, 1, 1], np.float32),
    np.array([5, 8, 3, 2, 6, 0, 11]),
    own=np.array([[5, 9, 5], [8, -1, 1], [-1, -1, -1], [10, 11, 0]]),
    own_pool=np.array([20, 4, 0, 3]),
)
SHARED = replace(BATCH, own=np.zeros((4, 0), np.int64))


def gradients(loss, rank_weight, share=0.3, margin=0.8, threads=1, seed=0, batch=BATCH):
    rng = np.random.default_rng(seed)
    positive = rng.normal(size=4).astype(np.float32)
    negative = rng.normal(size=(4, 10)).astype(np.float32)[:, : 7 + batch.own.shape[1]]
    negative[:, 5] = positive  # equal scores, as of documents that share no word with the query
    slot = np.full(N_DOCUMENTS, -1, np.int32)
    with Workers(threads) as workers:
        result = PairwiseLoss(loss, rank_weight, margin, share).gradients(
            batch, (positive, negative), PREFERENCES.judged(), slot, POOL, workers
        )
    assert (slot == -1).all()
    return positive, negative, result


def allowed():
    """Which of BATCH's shared negatives may be one, from the grades above."""
    grades = [{3: 2, 5: 1, 8: 0}, {3: 2, 5: 1, 8: 0}, {2: 1}, {4: 1, 6: 3}]
    return np.array(
        [[grades[b].get(d, 0) < BATCH.grade[b] for d in BATCH.negatives.tolist()] for b in range(4)]
    )


@pytest.mark.parametrize("rank_weight", RANK_WEIGHTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_the_twins(loss, rank_weight):
    given = loss, rank_weight, np.float32(0.8)
    ok, own = allowed(), BATCH.own >= 0
    share = np.where(own.any(axis=1), 0.3, 0.0)[:, None]
    for seed in range(5):
        positive, negative, (A, total, violations, tuples) = gradients(loss, rank_weight, seed=seed)
        shared, shared_loss = twins.pair_gradients(*given, positive, negative[:, :7], ok, POOL)
        listed, own_loss = twins.pair_gradients(
            *given, positive, negative[:, 7:], own, POOL, BATCH.own_pool
        )
        expected = np.hstack([(1 - share) * shared, share * listed])
        np.testing.assert_allclose(A, expected, rtol=2e-5, atol=1e-6)
        assert total == pytest.approx(shared_loss + own_loss, rel=1e-5)
        every = np.hstack([ok, own])
        assert tuples == every.sum()
        assert violations == (every & (positive[:, None] - negative < np.float32(0.8))).sum()


def test_gradients_of_own_negatives_by_hand():
    """Two shared negatives, of which one violates, and three own ones, of which one is none."""
    batch = Batch(
        np.array([1]),
        np.array([2]),
        np.ones(1, np.float32),
        np.array([0, 1]),
        own=np.array([[3, -1, 4]]),
        own_pool=np.array([10]),
    )
    scores = np.array([0.5], np.float32), np.array([[0.2, -0.9, 0.6, 9.0, 0.4]], np.float32)

    def weights(rank_weight, share, given=batch):
        with Workers(1) as workers:
            A, *_ = PairwiseLoss("margin", rank_weight, 1.0, share).gradients(
                given, scores, PREFERENCES.judged(), np.full(12, -1, np.int32), 40, workers
            )
        return A[0]

    np.testing.assert_allclose(weights("uniform", 0.25), [0.375, 0, 0.125, 0, 0.125])
    np.testing.assert_allclose(weights("uniform", 1.0), [0, 0, 0.5, 0, 0.5])
    # Rank 20 of 40, by 1 of 2; rank 10 of 10, by 2 of 2.
    phi = [sum(1 / j for j in range(1, rank + 1)) for rank in (20, 10)]
    np.testing.assert_allclose(
        weights("warp", 0.5), [phi[0] / 2, 0, phi[1] / 4, 0, phi[1] / 4], rtol=1e-6
    )
    # Ranks 1 against 2; in the list 6 (one of two is above) against 1 and against 7.
    gains = 40 / 2 * np.array([1 - 1 / 2, 1 - 1 / 6, 1 / 6 - 1 / 7]) / 2
    np.testing.assert_allclose(weights("map", 0.5), [gains[0], 0, gains[1], 0, gains[2]], rtol=1e-5)
    without = replace(batch, own=np.full((1, 3), -1))
    np.testing.assert_allclose(weights("uniform", 0.25, without), [0.5, 0, 0, 0, 0])


@pytest.mark.parametrize("rank_weight", RANK_WEIGHTS)
def test_own_negatives_have_their_share_of_the_weight(rank_weight):
    """Whatever their number, of the weight that the same scores would have among all."""
    _, _, (all_shared, *_) = gradients("logistic", rank_weight, batch=SHARED)
    _, _, (A, *_) = gradients("logistic", rank_weight, share=0.3)
    own = (BATCH.own >= 0).any(axis=1)
    np.testing.assert_allclose(A[own, :7], 0.7 * all_shared[own], rtol=1e-6)
    np.testing.assert_array_equal(A[~own, :7], all_shared[~own])


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_derivatives_of_the_loss(loss):
    positive, negative, (A, *_) = gradients(loss, "uniform", batch=SHARED)
    ok = allowed()

    def total():
        return twins.pair_gradients(loss, "uniform", 0.8, positive64, negative, ok, POOL)[1]

    positive64 = positive.astype(np.float64)
    gradient = twins.difference_gradient(total, positive64, 1e-5)
    np.testing.assert_allclose(A.sum(axis=1) * 7, -gradient, atol=1e-4)


@pytest.mark.parametrize("rank_weight", RANK_WEIGHTS)
def test_gradients_do_not_depend_on_threads(rank_weight):
    one, two = (gradients("logistic", rank_weight, threads=n)[2] for n in (1, 2))
    assert one[0].tobytes() == two[0].tobytes()
    assert one[1:] == two[1:]


def test_emphasis_favours_tuples_near_the_top():
    """A positive that one of many negatives outranks: measures care more about that one."""
    batch = Batch(np.array([1]), np.array([2]), np.ones(1, np.float32), np.array([0, 1, 3, 4]))
    scores = np.array([0.5], np.float32), np.array([[0.9, 0.4, 0.3, 0.2]], np.float32)
    with Workers(1) as workers:
        for rank_weight in ("ndcg", "map"):
            A, *_ = PairwiseLoss("margin", rank_weight, 1.0).gradients(
                batch, scores, PREFERENCES.judged(), np.full(12, -1, np.int32), 4, workers
            )
            assert A[0, 0] == A[0].max()


def measures(scores, relevant, excluded=None, tied=1.0):
    scores = np.atleast_2d(np.asarray(scores, np.float32))
    relevant = np.atleast_2d(np.asarray(relevant, bool))
    hidden = np.zeros_like(relevant) if excluded is None else np.atleast_2d(excluded)
    precision, loss = np.empty(len(scores)), np.empty(len(scores))
    ranking_measures(scores, *judged_lists(relevant, hidden), precision, loss, tied)
    return precision, loss


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 30).flatmap(
        lambda n: st.tuples(
            hnp.arrays(np.bool_, n),
            st.permutations(list(range(n))),
        )
    )
)
def test_measures_agree_with_scikit_learn_without_ties(case):
    relevant, order = case
    scores = np.array(order, np.float32)
    precision, loss = measures(scores, relevant)
    if not relevant.any():
        assert np.isnan(precision[0])
        return
    assert precision[0] == pytest.approx(average_precision_score(relevant, scores))
    if relevant.all():
        assert np.isnan(loss[0])
    else:
        assert loss[0] == pytest.approx(1 - roc_auc_score(relevant, scores))


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float32, 8, elements=st.sampled_from([0.0, 0.5, 1.0])),
    hnp.arrays(np.bool_, 8),
)
def test_ties_count_against_the_model(scores, relevant):
    relevant[0] = True
    precision, loss = measures(scores, relevant)
    assert precision[0] == pytest.approx(twins.average_precision(scores, relevant))
    if not relevant.all():
        wrong = [a <= b for a in scores[relevant] for b in scores[~relevant]]
        assert loss[0] == pytest.approx(np.mean(wrong))


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float32, 8, elements=st.sampled_from([0.0, 0.5, 1.0])),
    hnp.arrays(np.bool_, 8),
)
def test_ties_may_count_half(scores, relevant):
    """As in the area under the curve; and a single relevant document has its mean rank."""
    relevant[0], relevant[1] = True, False
    _, loss = measures(scores, relevant, tied=0.5)
    assert loss[0] == pytest.approx(1 - roc_auc_score(relevant, scores))
    alone = np.arange(8) == 0
    precision, _ = measures(scores, alone, tied=0.5)
    others = scores[1:]
    mean_rank = 1 + (others > scores[0]).sum() + (others == scores[0]).sum() / 2
    assert precision[0] == pytest.approx(1 / mean_rank)


def test_excluded_documents_are_not_ranked():
    scores, relevant = [4.0, 3.0, 2.0, 1.0], [False, True, False, True]
    hidden = np.array([True, False, False, False])
    precision, loss = measures(scores, relevant, hidden)
    assert precision[0] == pytest.approx((1 + 2 / 3) / 2)
    assert loss[0] == pytest.approx(1 / 2)
