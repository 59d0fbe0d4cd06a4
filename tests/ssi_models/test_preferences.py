"""Preferences, batches, held-out queries and triples."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ssi_models.parallel import Workers
from ssi_models.training.batches import PairStream, alternate
from ssi_models.training.held_out import (
    Validation,
    hold_out_pairs,
    hold_out_queries,
    holds_out_parts,
    n_validated,
    sample_triples,
    split_queries,
)
from ssi_models.training.preferences import Preferences


def preferences(**more):
    given = {"query": [2, 0, 0, 2], "document": [1, 4, 3, 0], "n_queries": 4, "n_documents": 5}
    return Preferences.from_pairs(**{**given, **more})


def test_pairs_are_sorted_and_counted():
    kept = preferences(grade=[1, 2, 1, 0])
    assert kept.query.tolist() == [0, 0, 2]
    assert kept.document.tolist() == [3, 4, 1]
    assert kept.grade.tolist() == [1, 2, 1]
    assert kept.rejected_query.tolist() == [2]
    assert kept.rejected_document.tolist() == [0]
    assert kept.offsets.tolist() == [0, 2, 2, 3, 3]
    assert kept.queries.tolist() == [0, 2]
    assert len(kept.only(np.array([2]))) == 1
    sizes = "4 query rows, 5 document rows"
    assert repr(kept) == f"<Preferences: 3 relevant pairs of 2 queries; {sizes}>"
    one = kept.only(np.array([2]))
    assert repr(one) == f"<Preferences: 1 relevant pair of 1 query; {sizes}>"


def test_a_pair_given_twice_counts_once():
    assert len(preferences(query=[1, 1], document=[2, 2])) == 1


def test_judged_documents_have_grades_and_a_bar():
    offsets, document, grade = preferences(grade=[1, 2, 1, -3]).judged(np.array([-1, 2, 3, -1]))
    of = {
        q: dict(zip(document[a:b].tolist(), grade[a:b].tolist(), strict=True))
        for q, (a, b) in enumerate(pairwise(offsets))
    }
    assert of == {0: {3: 1, 4: 2}, 1: {2: np.inf}, 2: {3: np.inf, 1: 1, 0: 0}, 3: {}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": [2, 0, 0, 4]}, r"query\[3\] is row 4, outside 0..3"),
        ({"document": [1, 4, -1, 0]}, r"document\[2\] is row -1, outside 0..4"),
        ({"query": [2, 0, 0]}, r"have shapes \(3,\), \(4,\), \(3,\)"),
        ({"grade": [[1], [1], [1], [1]]}, r"have shapes \(4,\), \(4,\), \(4, 1\)"),
        ({"grade": [1, 1, np.nan, 1]}, "preference 2: grade is nan"),
        ({"grade": [0, 0, -1, 0]}, "nothing to learn from"),
        ({"query": [0, 0, 0, 0], "document": [4, 4, 3, 0], "grade": [1, 2, 1, 1]}, "two different"),
        ({"query": [0.5, 0, 0, 2]}, "whole row numbers"),
        ({"query": [], "document": []}, "nothing to learn from"),
    ],
)
def test_bad_pairs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        preferences(**change)


def stream(negatives="uniform", **more):
    pairs = Preferences.from_pairs(
        np.arange(90) // 5,
        np.arange(90) * 7 % 30,
        np.tile([1, 1, 0, 1, 0], 18),
        n_queries=20,
        n_documents=30,
    )
    return PairStream(pairs, np.arange(5, 30), 8, 6, 1, negatives, **more)


def test_an_epoch_meets_every_pair_once():
    batches = list(stream().epoch(3))
    met = sorted((q, d) for b in batches for q, d in zip(b.query, b.positive, strict=True))
    wanted = stream().preferences
    assert met == sorted(zip(wanted.query, wanted.document, strict=True))
    for batch in batches:
        assert len(set(batch.negatives.tolist())) == 6
        assert batch.negatives.min() >= 5


def test_shuffled_queries_come_with_all_their_pairs():
    by_query = stream(shuffle="queries")
    batches = list(by_query.epoch(0))
    assert sum(len(b.query) for b in batches) == len(by_query.preferences)
    homes = [set(b.query.tolist()) for b in batches]
    assert sum(len(home) for home in homes) == len(set.union(*homes)) == 18
    # About 8 pairs each: a batch ends with the query that reaches it.
    assert all(6 <= len(b.query) <= 10 for b in batches[:-1])
    assert [b.query.tolist() for b in by_query.epoch(0)] == [b.query.tolist() for b in batches]
    assert homes[0] != set(next(iter(by_query.epoch(1))).query.tolist())


def test_shuffled_pairs_fill_their_batches_and_leave_their_query():
    by_pair = stream(shuffle="pairs")
    batches = list(by_pair.epoch(0))
    assert {len(b.query) for b in batches[:-1]} == {by_pair.batch_size}
    homes = [set(b.query.tolist()) for b in batches]
    assert sum(len(home) for home in homes) > len(set.union(*homes))


def test_epochs_depend_on_their_number_alone():
    def order(number):
        return [b.positive.tolist() + b.negatives.tolist() for b in stream().epoch(number)]

    assert order(2) == order(2)
    assert order(2) != order(3)


def test_negatives_of_the_batch_and_of_the_labels():
    for batch in stream("in-batch").epoch(0):
        assert set(batch.negatives.tolist()) <= set(batch.positive.tolist())
        assert len(batch.negatives) == min(stream().n_negatives, len(set(batch.positive.tolist())))
    for batch in replace(stream("in-batch"), n_negatives=1000).epoch(0):
        assert batch.negatives.tolist() == sorted(set(batch.positive.tolist()))
    for batch in stream("given").epoch(0):
        assert not len(batch.negatives)


def test_alternating_streams_take_turns():
    short = [1, 2]
    turns = alternate(lambda number: iter("abcde"), lambda number: iter(short), 0)
    assert list(turns) == ["a", 1, "b", 2, "c", 1, "d", 2, "e", 1]


def test_groups_are_held_out_together():
    rng = np.random.default_rng(0)
    pairs = Preferences.from_pairs(
        np.arange(60), rng.integers(9, size=60), n_queries=60, n_documents=9
    )
    group = np.arange(60) // 6
    kept, held_out = hold_out_queries(pairs, group, 0.3, 0)
    assert len(held_out) == 18
    assert len(kept) == 42
    assert not set(group[held_out.query]) & set(group[kept.query])
    with pytest.raises(ValueError, match="needs at least two"):
        hold_out_queries(pairs, np.zeros(60), 0.3, 0)
    with pytest.raises(ValueError, match=r"groups has shape \(2,\) for 60"):
        hold_out_queries(pairs, [0, 1], 0.3, 0)
    for missing in (None, np.nan):
        with pytest.raises(ValueError, match=r"groups: query 7 has none; give"):
            hold_out_queries(pairs, [missing if i == 7 else "one" for i in range(60)], 0.3, 0)


def test_pairs_are_held_out_of_any_query():
    given = preferences(grade=[1, 2, 1, 0])
    kept, held_out = hold_out_pairs(given, 0.3, 0)
    pairs = [(q, d) for p in (kept, held_out) for q, d in zip(p.query, p.document, strict=True)]
    assert sorted(pairs) == [*zip(given.query, given.document, strict=True)]
    assert len(held_out) == 1
    with pytest.raises(ValueError, match="1 relevant pair; early stopping needs at least two"):
        hold_out_pairs(held_out, 0.3, 0)


def test_pairs_whose_reverse_is_held_out_are_left_out_with_it():
    """Query 0 was made from document 1, query 1 from 0 and query 3 from 2; query 2 from none."""
    sources = np.array([1, 0, -1, 2])
    query, document = [0, 0, 1, 1, 2, 3, 3], [0, 2, 1, 2, 1, 0, 1]
    given = Preferences.from_pairs(query, document, n_queries=4, n_documents=3)
    kept = given.without(np.array([0, 2]), sources)
    assert [*zip(kept.query, kept.document, strict=True)] == [(1, 2), (3, 0)]
    assert len(given.without(np.array([0, 2]))) == 4
    kept = given.without_reversed(given.only(np.array([1, 2])), sources)
    assert [*zip(kept.query, kept.document, strict=True)] == [
        (0, 2), (1, 1), (1, 2), (2, 1), (3, 1)
    ]  # fmt: skip


def test_rejected_pairs_whose_reverse_is_held_out_are_left_out_with_it():
    """As negatives, they would give away that the reverse is not relevant."""
    sources = np.array([0, 1, -1])
    query, document, grade = [0, 0, 1, 1, 2], [1, 2, 0, 2, 0], [0, 1, 0, 1, 0]
    given = Preferences.from_pairs(query, document, grade, n_queries=3, n_documents=3)
    kept = given.without(np.array([1]), sources)
    assert [*zip(kept.rejected_query, kept.rejected_document, strict=True)] == [(2, 0)]
    assert [*zip(kept.query, kept.document, strict=True)] == [(0, 2)]
    kept = given.without(np.array([1]))
    assert [*zip(kept.rejected_query, kept.rejected_document, strict=True)] == [(0, 1), (2, 0)]


def test_validation_draws_documents_where_there_are_many():
    pairs = Preferences.from_pairs(
        np.repeat(np.arange(4), 2), np.arange(8) * 100, n_queries=4, n_documents=1000
    )
    excluded = np.array([5, 100, -1, -1])
    odd, even = pairs.only(np.array([1, 3])), pairs.only(np.array([0, 2]))
    validation = Validation(even, odd, excluded, 50, seed=0)
    assert {0, 100, 400, 500} <= set(validation.documents.tolist())
    assert len(validation.documents) <= 54
    assert validation.relevant.sum(axis=1).tolist() == [2, 2]
    assert 5 not in validation.documents
    assert not validation.hidden.any()
    scores = np.where(validation.relevant, 1, 0).astype(np.float32)
    with Workers(2) as workers:
        assert validation.measure("map", scores, workers) == 1
        assert validation.measure("rank_loss", -scores, workers) == -1
    everything = Validation(even, odd, excluded, 1000, seed=0)
    assert everything.hidden[0].nonzero()[0].tolist() == [5]
    first = Validation(odd, even, np.array([-1, 0, -1, -1]), 1000, seed=0)
    assert first.hidden[0].nonzero()[0].tolist() == [0]


def test_few_queries_or_groups_are_held_out_in_parts():
    n = 2001
    pairs = Preferences.from_pairs(np.arange(n), np.zeros(n, int), n_queries=n, n_documents=1)
    assert holds_out_parts(pairs.only(np.arange(1999)), None)
    assert not holds_out_parts(pairs.only(np.arange(2000)), None)
    assert not holds_out_parts(pairs, None)
    assert holds_out_parts(pairs, np.arange(n) // 2)


def test_validation_ranks_for_a_thousand_queries_at_most():
    every = np.arange(1200)
    pairs = Preferences.from_pairs(every, every % 7, n_queries=1200, n_documents=7)
    none = pairs.only(np.zeros(0, np.int64))
    validation = Validation(pairs, none, None, 10, seed=0)
    assert len(np.unique(validation.queries)) == len(validation.queries) == 1000
    others = Validation(pairs, none, None, 10, seed=1)
    assert others.queries.tolist() != validation.queries.tolist()


def test_parts_of_a_joint_fit_share_what_is_ranked_in_validation():
    every = np.arange(1500)
    pairs = Preferences.from_pairs(every, every % 7, n_queries=1500, n_documents=7)
    sizes = [n_validated(part, 1500) for part in (every[:900], every[900:])]
    assert sizes == [600, 400]
    held_out = pairs.only(every[900:])
    validation = Validation(held_out, pairs.only(every[:900]), None, 10, 0, sizes[1])
    assert len(validation.queries) == 400
    assert n_validated(every[:30], 90) >= 30


def test_mixtures_are_measured_as_one_by_one():
    rng = np.random.default_rng(0)
    pairs = Preferences.from_pairs(np.arange(40), np.arange(40), n_queries=40, n_documents=90)
    none = pairs.only(np.zeros(0, np.int64))
    validation = Validation(pairs, none, None, 90, 0)
    words, learned = rng.random((2, 40, 90), np.float32)
    mixtures = [(1.0, 0.0), (0.5, 2.0)]
    with Workers(2) as workers:
        found = validation.mixture_values("map", mixtures, words, learned, workers)
        expected = [
            validation.values("map", np.float32(a) * words + np.float32(b) * learned, workers)
            for a, b in mixtures
        ]
    np.testing.assert_array_equal(found, expected)


def test_known_pairs_are_not_ranked_in_validation():
    pairs = Preferences.from_pairs([0, 0, 0, 1], [1, 3, 4, 2], n_queries=2, n_documents=6)
    held_out, known = pairs.pairs(np.array([1])), pairs.pairs(np.array([0, 2, 3]))
    validation = Validation(held_out, known, np.array([5, -1]), 10, seed=0)
    assert validation.queries.tolist() == [0]
    assert validation.hidden[0].nonzero()[0].tolist() == [1, 4, 5]
    assert validation.relevant[0].nonzero()[0].tolist() == [3]


def test_triples_never_put_a_relevant_document_below():
    pairs = preferences(grade=[1, 2, 1, 1])
    query, positive, negative = sample_triples(pairs, np.arange(5), 500, seed=0)
    grade = {(0, 3): 1, (0, 4): 2, (2, 0): 1, (2, 1): 1}
    assert len(query) > 100
    for q, p, n in zip(query.tolist(), positive.tolist(), negative.tolist(), strict=True):
        assert grade[q, p] > grade.get((q, n), 0)
    own = np.array([1, -1, 2])  # the texts that queries were drawn from are no negatives
    query_, _, without = sample_triples(pairs, np.arange(5), 500, 0, own)
    assert len(query_) > 50
    assert not (without == own[query_]).any()
    # Of the last query too, whose unjudged documents come behind all judged pairs.
    last = query == query.max()
    assert (negative[last] > 1).any()


@pytest.mark.parametrize(("n", "share", "size"), [(2, 0.9, 1), (2, 0.01, 1), (30, 0.01, 1),
                                                  (30, 0.1, 3), (30, 0.99, 29)])  # fmt: skip
def test_one_is_held_out_at_least_and_one_is_left(n, share, size):
    """Of queries, groups of them, and pairs."""
    pairs = Preferences.from_pairs(np.arange(n), np.zeros(n, int), n_queries=n, n_documents=1)
    for kept, held_out in (
        hold_out_queries(pairs, None, share, 0),
        hold_out_pairs(pairs, share, 0),
    ):
        assert (len(held_out), len(kept)) == (size, n - size)
    twice = Preferences.from_pairs(
        np.arange(2 * n), np.zeros(2 * n, int), n_queries=2 * n, n_documents=1
    )
    kept, held_out = hold_out_queries(twice, np.arange(2 * n) // 2, share, 0)
    assert (len(held_out), len(kept)) == (2 * size, 2 * (n - size))


def test_the_same_seed_deals_the_same_parts_in_every_release():
    preferences = Preferences.from_pairs(*[np.arange(9)] * 2, n_queries=9, n_documents=9)
    parts = [part.tolist() for part in split_queries(preferences, None, 3, 0)]
    assert parts == [[1, 2, 8], [0, 5, 6], [3, 4, 7]]
    held_out = hold_out_pairs(preferences, 0.34, 0)[1]
    assert held_out.query.tolist() == [1, 2, 8]
    triples = sample_triples(preferences, np.arange(9), 4, 0)
    assert [rows.tolist() for rows in triples] == [[4, 7, 4, 2], [4, 7, 4, 2], [7, 3, 5, 4]]
