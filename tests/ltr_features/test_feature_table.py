"""Candidates, labels, column sets, and the rule that no row is scored by a model that saw its
labels: by hand, by a recording scorer, and by a planted word."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import all_pairs, context_of, toy

from letor.errors import InputError
from letor.folds import Fold, k_fold
from letor.missing import Missing
from ltr_features.candidates import choose_candidates
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.out_of_fold import fold_scores, keep_groups
from ltr_features.columns.registry import get_family
from ltr_features.columns.term_space import TermSpace, VectorSpace
from ltr_features.columns.trained import TrainedColumn
from ltr_features.feature_table import (
    build_columns,
    grades,
    learned_columns,
    missing_rows,
    table_pairs,
)
from ltr_features.text.collection import Collection, Judgements, Pairs
from ssi_models.projections.baselines import Popularity

N_TOPICS, PER_TOPIC = 12, 4


def topical(planted_grade: int = 1) -> Collection:
    """Twelve topics of four documents; query i asks for topic i // 2 by a word that misleads word
    matching to another topic, so that there is something to learn. Query 0 alone holds the word
    ``plantedquery``, and one document of another topic alone holds ``planteddocument``; with
    ``planted_grade`` the two are judged relevant."""
    bodies = []
    for t in range(N_TOPICS):
        for d in range(PER_TOPIC):
            extra = " planteddocument" if (t, d) == (N_TOPICS - 1, 0) else ""
            extra += f" ask{(t - 1) % N_TOPICS}" if d == 3 else ""
            bodies.append(f"topic{t} word{t}x{d} shared{d} filler{(t + d) % 5}{extra}")
    queries = [f"ask{i // 2} shared{i % 2} filler{i % 5}" for i in range(2 * N_TOPICS)]
    queries[0] += " plantedquery"
    bodies[1] += " plantedquery"
    query, document, grade = [], [], []
    for i in range(2 * N_TOPICS):
        for d in range(PER_TOPIC):
            query.append(i)
            document.append((i // 2) * PER_TOPIC + d)
            grade.append(1)
    query.append(0)
    document.append((N_TOPICS - 1) * PER_TOPIC)
    grade.append(planted_grade)
    judged = Judgements(*(np.array(x, dtype=np.int64) for x in (query, document, grade)))
    return toy({"body": bodies}, queries, judged)


PARTS = [np.arange(p, 18, 3) for p in range(3)]  # queries 0..17 train, 18..23 do not
PARAMS = {"rank": 8, "max_epochs": 8, "batch_size": 16, "n_negatives": 16, "seed": 3}


def ssi_scores(context: ColumnContext, folder, *, least: int = 1, **params) -> TrainedColumn:
    recipe = LearnedColumn("ssi", "ssi", {**PARAMS, **params}, min_document_frequency=least)
    return TrainedColumn(context, recipe, folder)


def test_a_planted_word_cannot_reach_its_own_row(tmp_path):
    """Whether (query 0, planted document) is judged relevant must not change any score of query 0,
    while a model that sees query 0's labels does give it away."""
    columns, leaky = [], []
    for grade in (0, 1):
        collection = topical(grade)
        context, pairs = context_of(collection), all_pairs(collection)
        scores_from = ssi_scores(context, tmp_path / str(grade))
        columns.append(fold_scores(scores_from, pairs, PARTS)[pairs.query == 0])
        leaky.append(scores_from(np.concatenate(PARTS), pairs)[pairs.query == 0])
    np.testing.assert_array_equal(columns[0], columns[1])
    planted = (N_TOPICS - 1) * PER_TOPIC
    assert leaky[1][planted] > leaky[0][planted] + 0.1
    assert not np.array_equal(leaky[0], leaky[1])


def test_labels_of_test_queries_reach_no_score(tmp_path):
    collection = topical()
    j = collection.judgements
    kept = j.query < 18
    judged = Judgements(j.query[kept], j.document[kept], j.grade[kept])
    stripped = replace(collection, judgements=judged)
    with_labels, without = (
        fold_scores(ssi_scores(context_of(c), tmp_path / name), all_pairs(c), PARTS)
        for name, c in (("with", collection), ("without", stripped))
    )
    np.testing.assert_array_equal(with_labels, without)


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_no_row_is_scored_by_a_model_that_saw_its_query(n_parts, seed):
    rng = np.random.default_rng(seed)
    part_of = rng.integers(0, n_parts + 1, size=30)  # the last value: not a training query
    part_of[: n_parts + 1] = np.arange(n_parts + 1)
    parts = [np.flatnonzero(part_of == p) for p in range(n_parts)]
    train = set(np.concatenate(parts).tolist())
    pairs = Pairs(rng.integers(0, 30, size=200), rng.integers(0, 9, size=200))
    trainings = []

    def scores_from(seen, asked):
        trainings.append(seen)
        assert not set(asked.query.tolist()) & set(seen.tolist())
        assert set(seen.tolist()) <= train
        # As many training queries as the rule leaves: all, or all but the part of the query.
        for query in np.unique(asked.query):
            lost = len(parts[part_of[query]]) if query in train else 0
            assert len(seen) == len(train) - lost
        return (asked.query * 100 + asked.document).astype(np.float32)

    scores = fold_scores(scores_from, pairs, parts)
    np.testing.assert_array_equal(scores, pairs.query * 100 + pairs.document)
    assert len(trainings) <= n_parts + 1


def test_parts_are_checked():
    pairs = Pairs(np.array([0]), np.array([0]))
    for parts, message in (
        ([np.array([0])], r"at least two .* give 4 or more folds \(one part tests,"),
        ([np.array([0]), np.array([], dtype=np.int64)], "1 of 2 parts of the training .* empty"),
        ([np.array([0, 1]), np.array([1])], "share a query"),
    ):
        with pytest.raises(InputError, match=message):
            fold_scores(lambda seen, asked: np.zeros(len(asked)), pairs, parts)


def test_models_are_kept_and_loaded_again(tmp_path):
    collection = topical()
    context, pairs = context_of(collection), all_pairs(collection)
    first = ssi_scores(context, tmp_path)
    scores = first(PARTS[0], pairs)
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files == [first.path(PARTS[0]).name]
    written = first.path(PARTS[0]).stat().st_mtime_ns
    np.testing.assert_array_equal(ssi_scores(context, tmp_path)(PARTS[0], pairs), scores)
    assert first.path(PARTS[0]).stat().st_mtime_ns == written
    # Other parameters are another model, in the same folder too.
    other = ssi_scores(context, tmp_path, rank=4)
    assert other.model(PARTS[0]).U_.shape[1] == 4
    unlabelled = ssi_scores(context, tmp_path)
    with pytest.raises(InputError, match=r"none of its training queries has a rel.*\(0 in all\)"):
        unlabelled(np.array([], dtype=np.int64), pairs)


def test_an_untrained_model_is_the_cosine_column(tmp_path):
    context = context_of(topical())
    pairs = all_pairs(context.collection)
    cosine = VectorSpace(min_document_frequency=2).compute(context, pairs)[:, 0]
    start = {"max_epochs": 0, "init": "identity"}
    untrained = ssi_scores(context, tmp_path, least=2, **start)(PARTS[0], pairs)
    np.testing.assert_array_equal(untrained, cosine)
    space = TermSpace.of(context, 2)
    expected = (space.Q @ space.D.T).toarray()[pairs.query, pairs.document]
    np.testing.assert_allclose(cosine, expected, rtol=1e-5, atol=1e-7)
    assert "plantedquery" not in space.vocabulary  # one document has it
    with pytest.raises(InputError, match="no word occurs in 999 documents"):
        TermSpace.of(context, 999)


def test_candidates_leave_out_the_source_and_keep_the_depth():
    collection = topical()
    sources = np.array([(i // 2) * PER_TOPIC for i in range(collection.n_queries)])
    sources[-1] = -1
    with_sources = replace(collection, query_sources=sources)
    pairs = choose_candidates(context_of(with_sources), 3).pairs
    plain = choose_candidates(context_of(collection), 4).pairs
    for query in range(collection.n_queries):
        documents = pairs.document[pairs.query == query].tolist()
        assert len(documents) == 3
        assert sources[query] not in documents
        expected = [d for d in plain.document[plain.query == query] if d != sources[query]][:3]
        assert documents == expected


def test_queries_that_are_all_without_candidates_are_refused():
    collection = topical()
    lonely = replace(collection, query_texts=["zebra"] * collection.n_queries)
    with pytest.raises(InputError, match=r"none of the 24 queries has a candidate.*'q0' \('zebra'"):
        choose_candidates(context_of(lonely), 3)


def test_a_collection_without_queries_is_refused():
    collection = replace(
        topical(),
        query_ids=[],
        query_texts=[],
        query_sources=None,
        query_groups=None,
        judgements=Judgements.none(),
    )
    with pytest.raises(InputError, match="has no queries"):
        choose_candidates(context_of(collection), 3)


def test_rows_carry_labels_names_and_provenance():
    collection = topical()
    context = context_of(collection)
    pairs = Pairs(np.array([2, 0, 2]), np.array([5, 44, 0]))
    families = [get_family("letor46"), VectorSpace()]
    data = build_columns(context, pairs, families)
    assert data.y.tolist() == [1, 1, 0]
    assert [data.query_ids[i] for i in data.query_index] == ["q2", "q0", "q2"]
    assert list(data.document_ids) == ["d5", "d44", "d0"]
    assert len(data.column_names) == 47
    assert data.provenance["vsm"]["family"] == "vsm"
    assert "absent" in data.provenance["tf_title"]
    assert "absent" not in data.provenance["tf_body"]
    begun = []
    with pytest.raises(InputError, match="two columns are called vsm; rename one"):
        build_columns(
            context, pairs, [VectorSpace()] * 2, on_progress=lambda *family: begun.append(family)
        )
    assert not begun


class Mine(VectorSpace):
    """A family that computes what it is given."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def compute(self, context, pairs):
        return self.values(len(pairs)) if callable(self.values) else self.values


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (lambda n: np.ones(n, np.float32), r"'vsm' computed float32 \[3\].* float32 \[3, 1\]"),
        (lambda n: np.ones((n, 2), np.float32), r"computed float32 \[3, 2\]"),
        (lambda n: np.ones((n, 1)), r"computed float64 \[3, 1\]"),
        ([[1.0]] * 3, "computed list"),
        (np.array([[1], [np.nan], [1]], np.float32), "column 'vsm': query q0 and .* d44 .* nan"),
    ],
)
def test_what_a_family_computes_is_checked(values, said):
    context, pairs = context_of(topical()), Pairs(np.array([2, 0, 2]), np.array([5, 44, 0]))
    with pytest.raises(InputError, match=said):
        build_columns(context, pairs, [Mine(values)])


@pytest.mark.parametrize(
    "hook", ["check", "compute", "n_missing", "absent", "settings", "remarks_on"]
)
def test_errors_of_a_family_name_it(hook, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError

    context, pairs = context_of(topical()), Pairs(np.array([2]), np.array([5]))
    monkeypatch.setattr(Mine, hook, fails)
    with pytest.raises(ZeroDivisionError) as raised:
        build_columns(context, pairs, [Mine(np.ones((1, 1), np.float32))])
    assert raised.value.__notes__ == ["in column family 'vsm'"]


@pytest.mark.parametrize(
    "change",
    [
        lambda context, pairs: pairs.query.sort(),
        lambda context, pairs: pairs.document.fill(0),
        lambda context, pairs: context.query_words[1].data.fill(1),
        lambda context, pairs: context.query_counts.data.fill(1),
        lambda context, pairs: context.index.counts("body").data.fill(1),
        lambda context, pairs: context.index.field("body").lengths.fill(1),
    ],
)
def test_families_cannot_change_what_all_read(change, monkeypatch):
    context, pairs = context_of(topical()), Pairs(np.array([2, 0]), np.array([5, 44]))
    monkeypatch.setattr(Mine, "compute", lambda self, *given: change(*given))
    with pytest.raises(ValueError, match="read-only"):
        build_columns(context, pairs, [Mine(None)])


def test_families_see_no_judgements(monkeypatch):
    def labels(self, context, pairs):
        return grades(context.collection, pairs).astype(np.float32)[:, None]

    context, pairs = context_of(topical()), Pairs(np.array([2, 0]), np.array([5, 44]))
    monkeypatch.setattr(Mine, "compute", labels)
    data = build_columns(context, pairs, [Mine(None)])
    assert (data.y.tolist(), data.column("vsm").tolist()) == ([1, 1], [0, 0])


def test_small_integers_do_not_overflow():
    """Codes of pandas' categories are int8: row 9 of 50 documents is beyond it."""
    wide = topical()
    judged = wide.judgements
    small = Judgements(
        *(getattr(judged, n).astype(np.int8) for n in ("query", "document", "grade"))
    )
    narrow = replace(wide, judgements=small)
    pairs = Pairs(*(a.ravel() for a in np.mgrid[:24, :50]))
    small_pairs = Pairs(pairs.query.astype(np.int8), pairs.document.astype(np.int8))
    np.testing.assert_array_equal(grades(narrow, small_pairs), grades(wide, pairs))
    with pytest.raises(InputError, match=r"pairs\.query must be an int64 array, got list"):
        Pairs([0], [1])


def test_remarks_are_sentences(monkeypatch):
    context, pairs = context_of(topical()), Pairs(np.array([2]), np.array([5]))
    monkeypatch.setattr(Mine, "remarks", "one remark")
    with pytest.raises(InputError, match="'vsm': remarks must be a list of sentences, got 'one"):
        build_columns(context, pairs, [Mine(np.ones((1, 1), np.float32))])


def test_grades_by_hand():
    collection = topical(planted_grade=2)
    pairs = Pairs(np.array([0, 0, 0, 23]), np.array([44, 0, 4, 0]))
    assert grades(collection, pairs).tolist() == [2, 1, 0, 0]


@pytest.mark.parametrize(
    ("place", "row", "again"),
    [
        ("text", 0, True),
        ("text", 23, False),  # of a query that is not trained on
        ("grade", 0, True),
        ("grade", -2, False),
        ("document", 5, True),
        ("group", 0, True),
        ("group", 23, False),
        ("source", 0, True),
        ("source", 23, False),
    ],
)
def test_kept_models_are_those_of_the_same_texts_and_judgements(tmp_path, place, row, again):
    """Names stay, vocabulary and index too: what a kept model is known by is what it learns."""
    whole = topical()
    judged = whole.judgements
    known = {
        "query_texts": list(whole.query_texts),
        "query_groups": [f"g{i // 2}" for i in range(whole.n_queries)],
        "query_sources": np.full(whole.n_queries, -1),
        "fields": {"body": list(whole.fields["body"])},
        "judgements": judged,
    }
    first = replace(whole, **known)
    changed = copy.deepcopy(known)
    if place == "text":
        changed["query_texts"][row] += " shared0"
    elif place == "group":
        changed["query_groups"][row] = changed["query_groups"][row - 3]
    elif place == "source":
        changed["query_sources"][row] = 4  # not judged for it
    elif place == "document":
        changed["fields"]["body"][row] += " shared0"
    else:
        grade = judged.grade.copy()
        grade[row] += 1
        changed["judgements"] = Judgements(judged.query, judged.document, grade)
    recipe = LearnedColumn("ssi", "ssi", PARAMS)
    train = np.arange(18)
    paths = [
        TrainedColumn(context_of(collection), recipe, tmp_path, hold_out_groups=True).path(train)
        for collection in (first, replace(whole, **changed))
    ]
    assert (paths[0] != paths[1]) == again


def test_a_kept_model_of_documents_is_that_of_their_texts(tmp_path):
    recipe = LearnedColumn("lsa", "lsa", {"rank": 2})
    whole = topical()
    bodies = list(whole.fields["body"])
    bodies[3], bodies[4] = bodies[4], bodies[3]
    others = [
        replace(whole, fields={"body": bodies}),
        replace(whole, query_texts=["shared0"] * whole.n_queries),
    ]
    paths = [
        TrainedColumn(context_of(c), recipe, tmp_path).path(PARTS[0]) for c in (whole, *others)
    ]
    assert paths[0] != paths[1]
    assert paths[0] == paths[2]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [2]])
def test_every_judged_pair_has_its_grade(order):
    """The first and the last of the judged pairs too, in whatever order they are given."""
    query, document = np.array([0, 0, 1, 1]), np.array([0, 3, 1, 3])
    grade = np.array([3, -1, 2, 4])
    judged = Judgements(query[order], document[order], grade[order])
    collection = toy({"body": ["word"] * 4}, ["word", "word"], judged)
    expected = np.zeros((2, 4), np.int64)
    expected[query[order], document[order]] = np.maximum(grade[order], 0)  # -1 as 0
    np.testing.assert_array_equal(grades(collection, all_pairs(collection)), expected.ravel())


def small(query_groups=None) -> Collection:
    """Four queries; q3 has a relevant document of each grade, and one of grade 0."""
    judged = Judgements(
        np.array([0, 1, 1, 3, 3, 3]), np.array([0, 0, 1, 0, 1, 2]), np.array([1, 2, 0, 0, 1, 2])
    )
    collection = toy({"body": ["x"] * 3}, ["x"] * 4, judged)
    return replace(collection, query_groups=query_groups)


def test_what_has_no_row_is_counted_by_grade() -> None:
    pairs = Pairs(np.array([0, 1, 2, 3]), np.array([1, 0, 0, 2]))
    found = missing_rows(small(), pairs)
    assert found == Missing({"q0": {1: 1}, "q3": {1: 1}}, frozenset(["q2"]))
    none = missing_rows(small(), Pairs(np.array([0]), np.array([0])))
    assert none == Missing({"q1": {2: 1}, "q3": {1: 1, 2: 1}}, frozenset())


@pytest.mark.parametrize(
    ("groups", "kept"),
    [("aabb", True), ("abab", False), ("abcd", False), ("aaab", False), (None, False)],
)
def test_folds_that_keep_groups_together(groups, kept) -> None:
    """Folds of q0, q1 and q2, q3; groups of one query each have nothing to keep."""
    folds = [Fold("1", [], [], ["q0", "q1"]), Fold("2", [], [], ["q2", "q3"])]
    assert keep_groups(small(groups and list(groups)), folds) is kept
    assert keep_groups(small(groups and list(groups)), []) is False


def test_a_fold_is_row_numbers_and_its_own_columns(tmp_path):
    """And a planted label of a training query reaches no row of the query, in no fold."""
    found = []
    for grade in (0, 1):
        context = context_of(topical(grade))
        queries = context.collection.query_ids
        folds = k_fold(queries, 4, seed=2)
        table = build_columns(context, all_pairs(context.collection), [VectorSpace()])
        column = LearnedColumn(
            "popular", Popularity()
        )  # counts labels, and chooses nothing by them
        folder = tmp_path / str(grade)
        found.append(list(learned_columns(context, table, [column], folds, folder=folder)))
        for made, fold in zip(found[-1], folds, strict=True):
            assert made.table is table  # shared, not copied
            assert made.values.shape == (len(table), 1)
            n_parts = sum(made.has(part).astype(int) for part in ("train", "validation", "test"))
            assert (n_parts == 1).all()
            for part, data in zip(("train", "validation", "test"), made.parts(), strict=True):
                at = made.has(part)
                assert set(data.query_ids) == set(getattr(fold, part))
                assert data.column_names == ["vsm", "popular"]
                np.testing.assert_array_equal(data.X[:, 0], table.X[at, 0])
                np.testing.assert_array_equal(data.X[:, 1], made.values[at, 0])
                assert list(data.document_ids) == list(table.document_ids[at])
            assert data.provenance["popular"]["fold"] == fold.name
    of_query_0 = found[0][0].table.query_index == 0
    for without, planted in zip(*found, strict=True):
        np.testing.assert_array_equal(without.values[of_query_0], planted.values[of_query_0])
    assert any(
        not np.array_equal(without.values, planted.values)
        for without, planted in zip(*found, strict=True)
    )


def test_tables_of_other_collections_are_refused():
    context = context_of(topical())
    table = build_columns(context, all_pairs(context.collection), [VectorSpace()])
    other = replace(context.collection, document_ids=[f"x{i}" for i in range(48)], name="other")
    with pytest.raises(InputError, match=r"the table is not of collection 'other', .* no 'd0'"):
        table_pairs(other, table)
    with pytest.raises(InputError, match="the table has no document ids"):
        table_pairs(other, replace(table, document_ids=None))
