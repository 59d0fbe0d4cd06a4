"""Weights of preferences: how much each pair counts in training."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from pair_data import killing, paired, planted_pairs

from ssi_models.parallel import Workers
from ssi_models.registry import get_model
from ssi_models.training.batches import PairStream
from ssi_models.training.losses import PairwiseLoss
from ssi_models.training.preferences import Preferences

MODELS = ("ssi", "diagonal", "hash", "full", "s2net")
OF_COUNTS = ("bltm", "bltm-pr", "bltm-pr-1v", "wtm")
GIVEN = {"query": [2, 0, 0, 2], "document": [1, 4, 3, 0], "n_queries": 4, "n_documents": 5}


def planted():
    Q, D, topics = planted_pairs(120, 3)
    Q, D = (sp.csr_matrix(X / sp.linalg.norm(X, axis=1)[:, None], dtype=np.float32) for X in (Q, D))
    return Q, D, paired(120), topics


def counts():
    """Queries and titles of 60 pairs."""
    texts = planted_pairs(60, 3)[:2]
    return (sp.csr_matrix(np.round(3 * X / X.max()), dtype=np.float32) for X in texts)


def test_weights_are_sorted_and_chosen_with_their_pairs():
    kept = Preferences.from_pairs(**GIVEN, grade=[1, 2, 1, 0], weight=[0.5, 2, 3, 7])
    assert kept.weight.tolist() == [3, 2, 0.5]
    assert kept.weight.dtype == np.float32
    assert kept.only(np.array([2])).weight.tolist() == [0.5]
    assert kept.without(np.array([2])).weight.tolist() == [3, 2]
    assert kept.pairs(np.array([1, 2])).weight.tolist() == [2, 0.5]
    assert Preferences.from_pairs(**GIVEN).weight is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"weight": [1, 1]}, r"weight has shape \(2,\) for 4 pairs"),
        ({"weight": [1, 1, 0, 1]}, "preference 2: weight is 0.0, must be above 0"),
        ({"weight": [1, np.inf, 1, 1]}, "preference 1: weight is inf"),
        ({"query": [2, 0, 0, 2], "document": [1, 4, 4, 0], "weight": [1, 2, 3, 1]},
         "two different weights"),
    ],
)  # fmt: skip
def test_weights_that_cannot_be_are_refused(more, message):
    with pytest.raises(ValueError, match=message):
        Preferences.from_pairs(**{**GIVEN, **more})


def test_gradients_and_losses_are_multiplied():
    rng = np.random.default_rng(0)
    pairs = Preferences.from_pairs(np.arange(20), np.arange(20), n_queries=20, n_documents=40,
                                   weight=rng.uniform(0.2, 3, 20))  # fmt: skip
    for emphasis in ("uniform", "warp", "ndcg"):
        loss = PairwiseLoss("margin", emphasis, 1.0)
        stream = PairStream(pairs, np.arange(40), 8, 10, 0)
        slot = np.full(40, -1, np.int32)
        for batch in stream.epoch(0):
            assert batch.weight.tolist() == pairs.weight[batch.query].tolist()
            scores = (
                rng.random(len(batch.query), dtype=np.float32),
                rng.random((len(batch.query), 10), dtype=np.float32),
            )
            given = scores, pairs.judged(), slot, 40, Workers(1)
            A, total, *_ = loss.gradients(batch, *given)
            plain, _, *_ = loss.gradients(replace(batch, weight=None), *given)
            np.testing.assert_allclose(A, plain * batch.weight[:, None], rtol=1e-6)
            single = [
                loss.gradients(one, (scores[0][i : i + 1], scores[1][i : i + 1]), *given[1:])[1]
                for i in range(len(batch.query))
                for one in [replace(batch, query=batch.query[i : i + 1], weight=None,
                                    positive=batch.positive[i : i + 1],
                                    grade=batch.grade[i : i + 1], own=np.zeros((0, 0), np.int64))]
            ]  # fmt: skip
            assert total == pytest.approx(np.dot(single, batch.weight), rel=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_one_change_nothing(name):
    Q, D, pairs, _ = planted()
    one = replace(pairs, weight=np.ones(120, np.float32))
    a, b = (get_model(name)(max_epochs=3).fit(Q, D, p) for p in (pairs, one))
    query = np.arange(120)
    np.testing.assert_array_equal(a.score(Q, D, query, query[::-1]),
                                  b.score(Q, D, query, query[::-1]))  # fmt: skip


def test_weights_of_one_change_nothing_in_full_batches():
    Q, D, pairs, _ = planted()
    one = replace(pairs, weight=np.ones(120, np.float32))
    make = get_model("s2net")
    a, b = (make(max_epochs=3, optimizer="l-bfgs").fit(Q, D, p) for p in (pairs, one))
    np.testing.assert_array_equal(a.A_q_, b.A_q_)


@pytest.mark.parametrize("name", OF_COUNTS)
def test_a_pair_of_weight_3_is_three_pairs(name):
    """Three queries of the same words with the same title, for a model that learns from counts."""
    rng = np.random.default_rng(0)
    Q, D = counts()
    times = rng.integers(1, 4, 60)
    rows, again = np.arange(60), np.repeat(np.arange(60), times)
    own = {"lambda2": 0.5} | ({"n_topics": 4, "iterations": 8} if name != "wtm" else {})
    weight = times.astype(np.float32)
    weighted = get_model(name)(**own).fit(Q, D, replace(paired(60), weight=weight))
    repeated = get_model(name)(**own).fit(
        sp.csr_matrix(Q[again]), D,
        Preferences.from_pairs(
            np.arange(len(again)), again, n_queries=len(again), n_documents=60
        ),
    )  # fmt: skip
    assert weighted.history_[-1].objective == pytest.approx(
        repeated.history_[-1].objective, rel=1e-5
    )
    for tensor in weighted.tensors:
        found, expected = (getattr(model, f"{tensor}_") for model in (weighted, repeated))
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-6)
    plain = get_model(name)(**own).fit(Q, D, paired(60))
    scores = [m.score(Q, D, rows, rows[::-1]) for m in (weighted, plain)]
    assert np.abs(scores[0] - scores[1]).max() > 1e-3


def test_a_killed_fit_goes_on_with_its_own_weights_alone(tmp_path):
    Q, D = counts()
    weight = np.linspace(1, 2, 60, dtype=np.float32)
    own, other = (replace(paired(60), weight=w) for w in (weight, weight[::-1]))
    model, path = get_model("bltm")(n_topics=3, iterations=4, lambda2=0.5), tmp_path / "checkpoint"
    for pairs, iterations in ((own, [3, 4]), (other, [1, 2, 3, 4])):
        with pytest.raises(KeyboardInterrupt):
            model.fit(Q, D, own, checkpoint=path, callback=killing(2))
        seen = []
        model.fit(Q, D, pairs, checkpoint=path, callback=lambda line: seen.append(line.number))  # noqa: B023
        assert seen == iterations


def test_a_stream_counts_pairs_by_their_weights():
    Q, D = counts()
    pairs = paired(60)
    heavy = replace(pairs, weight=np.full(60, 3, np.float32))
    a, b = (get_model("bltm")(n_topics=3, beta=1.0).partial_fit(Q, D, p) for p in (pairs, heavy))
    np.testing.assert_allclose(a.phi_d_, b.phi_d_, rtol=1e-4, atol=1e-7)
    some = replace(heavy, weight=np.repeat(np.float32([9, 1]), 30))
    c = get_model("bltm")(n_topics=3, beta=1.0).partial_fit(Q, D, some)
    assert np.abs(a.phi_d_ - c.phi_d_).max() > 1e-3


@pytest.mark.parametrize("name", ["ssi", "s2net"])
def test_heavier_pairs_are_learned_more(name):
    """Each query has two relevant documents without a word in common; one of them weighs more."""
    Q, D, _, topics = planted()
    rng = np.random.default_rng(1)
    other = np.array([rng.choice(np.flatnonzero(topics == (t + 1) % 3)) for t in topics])
    query = np.repeat(np.arange(120), 2)
    document = np.stack([np.arange(120), other], axis=1).ravel()
    means = []
    for heavy in (0, 1):
        weight = np.where(np.arange(240) % 2 == heavy, 10.0, 0.1)
        both = Preferences.from_pairs(
            query, document, n_queries=120, n_documents=120, weight=weight
        )
        more = {"word_weight": 0.0} if name == "s2net" else {"learning_rate": 0.3}
        model = get_model(name)(rank=10, **more).fit(Q, D, both)
        scores = model.score(Q, D, query, document).reshape(-1, 2)
        means.append((scores[:, 0] - scores[:, 1]).mean())
    assert means[0] > 0 > means[1]


@pytest.mark.parametrize("name", ["lsi", "opca", "cl-lsa", "plsa", "unigram", "popularity"])
def test_models_that_do_not_weigh_pairs_refuse_weights(name):
    Q, D, pairs, _ = planted()
    model = get_model(name)()
    if model.inputs == "counts":
        Q, D = (sp.csr_matrix((X > 0).astype(np.float32)) for X in (Q, D))
    with pytest.raises(ValueError, match="learns alike from all pairs"):
        model.fit(Q, D, replace(pairs, weight=np.ones(120, np.float32)))
