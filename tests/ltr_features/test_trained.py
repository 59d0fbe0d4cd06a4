"""Columns of trained models: what they score, and that no label leaks to its row."""

import sys
from dataclasses import replace
from importlib import import_module
from inspect import signature

import numpy as np
import pytest
import toys
from toys import all_pairs, toy

from letor.errors import InputError
from ltr_features.columns.fitted import FittedColumn
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.out_of_fold import fold_scores
from ltr_features.columns.term_space import TermSpace
from ltr_features.columns.trained import TrainedColumn
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Judgements, Pairs
from ssi_models.matrices import with_data
from ssi_models.parameters import model_class
from ssi_models.projections.baselines import VSM
from ssi_models.registry import get_model
from ssi_models.representation import Representation

N_QUERIES, N_DOCUMENTS = 24, 40
PARTS = [np.arange(p, 18, 3) for p in range(3)]  # queries 0..17 train, 18..23 do not


def asked(grade=1):
    """Query i speaks of topic i % 4 in words of its own; document j is of topic j % 4. Only query
    0 has the word "planted", and only document 3, of another topic, "sown"; ``grade`` judges
    them."""
    titles = [f"title{j % 4}x{j % 3} title{j % 4}x{j % 5} common" for j in range(N_DOCUMENTS)]
    titles[3] += " sown"
    titles[8] += " planted"
    queries = [f"query{i % 4}x{i % 2} query{i % 4}x{i % 3}" for i in range(N_QUERIES)]
    queries[0] += " planted"
    pairs = [(i, j, 1) for i in range(N_QUERIES) for j in range(N_DOCUMENTS) if i % 4 == j % 4]
    judged = np.array([*pairs, (0, 3, grade)], dtype=np.int64).T
    # Queries' words occur in the bodies, so that the index knows them.
    fields = {"title": titles, "body": [" ".join(queries), *[""] * (N_DOCUMENTS - 1)]}
    return toy(fields, queries, Judgements(*judged))


def context_of(collection, **index):
    return toys.context_of(collection, threads=1, **index)


PARAMS = {
    "wtm": {},
    "plsa": {"n_topics": 4, "seed": 1},
    "bltm": {"n_topics": 4, "seed": 1},
    "bltm-pr": {"n_topics": 4, "seed": 1},
    "bltm-pr-1v": {"n_topics": 4, "seed": 1},
    "ssi": {"rank": 8, "max_epochs": 3, "batch_size": 16, "n_negatives": 16},
    "diagonal": {"max_epochs": 3, "batch_size": 16, "n_negatives": 16},
    "opca": {"rank": 4},
    "lsi": {"rank": 4},
    "lsi-tfidf": {"rank": 4},
    "query-expansion": {},
    "popularity": {},
}


def column(context, model, folder, words=0.0, **options):
    weighs = {"word_weight", "lambda2"} & set(signature(get_model(model)).parameters)
    weight = words if weighs else None
    recipe = LearnedColumn(model, model, PARAMS[model], field="title", word_weight=weight)
    return TrainedColumn(context, recipe, folder, **options)


EVERY = all_pairs(asked())


def test_pairs_of_other_queries_are_not_learned_from_the_other_way_round(tmp_path):
    """Query i is made from document i, and what is relevant is so in both directions. Nor is it
    learned that a query's own document is relevant to it."""
    given = replace(asked(grade=0), query_sources=np.arange(N_QUERIES))
    learned = column(context_of(given), "opca", tmp_path).preferences(np.arange(18))
    same = [(i, j) for i in range(18) for j in range(N_DOCUMENTS) if i % 4 == j % 4]
    other = [(i, j) for i, j in same if i != j]
    expected = [(i, j) for i, j in other if j not in range(18, N_QUERIES)]
    assert [*zip(learned.query, learned.document, strict=True)] == expected
    judged = given.judgements
    one_way = judged.query < 18
    fewer = Judgements(*(x[one_way] for x in (judged.query, judged.document, judged.grade)))
    alone = column(context_of(replace(given, judgements=fewer)), "opca", tmp_path)
    assert len(alone.preferences(np.arange(18))) == len(other)
    assert alone.path(np.arange(18)) != column(context_of(given), "opca", tmp_path).path(
        np.arange(18)
    )


@pytest.mark.parametrize("words", [0.0, 0.5])
@pytest.mark.parametrize("name", PARAMS)
def test_a_planted_label_cannot_reach_its_own_row(name, words, tmp_path):
    columns = []
    for grade in (0, 1):
        scores = column(context_of(asked(grade)), name, tmp_path / str(grade), words)
        columns.append(fold_scores(scores, EVERY, PARTS)[EVERY.query == 0])
    assert np.isfinite(columns[0]).all()
    assert np.ptp(columns[0]) > 0
    np.testing.assert_array_equal(columns[0], columns[1])


@pytest.mark.parametrize("name", ["bltm", "bltm-pr", "bltm-pr-1v", "wtm"])
def test_models_rank_titles_that_share_no_word_with_the_query(name, tmp_path):
    scores = column(context_of(asked()), name, tmp_path)
    found = scores(np.concatenate(PARTS), EVERY).reshape(N_QUERIES, N_DOCUMENTS)[18:]
    best = found.argsort(axis=1)[:, -5:] % 4
    assert (best == np.arange(18, 24)[:, None] % 4).mean() > 0.8


def test_the_text_that_a_query_was_drawn_from_is_not_fed_back_to_it(tmp_path):
    plain, sources = asked(), np.full(N_QUERIES, -1)
    plain = replace(plain, query_texts=[plain.fields["title"][5], *plain.query_texts[1:]])
    sources[0] = 5
    drawn = replace(plain, query_sources=sources)
    found = []
    for collection in (plain, drawn):
        context = context_of(collection)
        recipe = LearnedColumn("qe", "query-expansion", {"beta": 1.0, "n_expansion": 2}, "title")
        trained = TrainedColumn(context, recipe, tmp_path / str(len(found)))
        found.append(trained(np.arange(6), EVERY).reshape(N_QUERIES, N_DOCUMENTS))
    space = TermSpace.of(context, 1, "title")
    cosines = (space.Q[0] @ space.D.T).toarray()[0]
    best = np.argsort(-cosines, kind="stable")
    assert best[0] == 5
    expected = cosines + (space.D @ space.D[best[1:3]].mean(axis=0).T).A1
    np.testing.assert_allclose(found[1][0], expected, atol=1e-5)
    assert found[0][0, 5] > found[1][0, 5]
    np.testing.assert_array_equal(found[0][1:], found[1][1:])


@pytest.mark.parametrize("name", ["bltm", "opca"])
def test_the_mixed_column_shares_the_model_file(name, tmp_path):
    context = context_of(asked())
    seen = []
    alone = column(context, name, tmp_path)
    mixed = column(context, name, tmp_path, 0.5, on_progress=lambda key, line: seen.append(key))
    train = np.concatenate(PARTS)
    first = alone(train, EVERY)
    assert not np.array_equal(mixed(train, EVERY), first)
    assert seen == []
    np.testing.assert_array_equal(alone(train, EVERY), first)
    assert [path.suffix for path in tmp_path.iterdir()] == [".safetensors"]


def of_notebook(sign):
    """A class as a cell of a notebook defines it."""

    @model_class
    class Signed(VSM):
        def query_representation(self, Q, words):
            return Representation(sparse=with_data(Q, Q.data * np.float32(sign)))

    Signed.__module__ = "__main__"
    return Signed


def of_file(folder, text):
    (folder / "their_model.py").write_text(f"from {VSM.__module__} import VSM\n{text}")
    sys.modules.pop("their_model", None)
    return import_module("their_model").Their


def test_a_class_that_was_changed_is_trained_anew(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    context = context_of(asked())

    def path_of(kind):
        return TrainedColumn(context, LearnedColumn("x", kind()), tmp_path).path(PARTS[0])

    words = "class Their(VSM):\n    strength = {}\n"
    first, second, third = (path_of(of_file(tmp_path, words.format(n))) for n in (1, 2, 1))
    assert first == third != second
    mine = of_notebook(1)
    assert path_of(mine) == path_of(mine)
    assert len({path_of(of_notebook(1)) for _ in range(3)}) == 3, "changes of a cell leave no trace"


def test_models_are_kept_by_all_parameters_so_that_another_default_is_another_model(tmp_path):
    """Whether a parameter is given or, in this version, the default."""
    context, default = context_of(asked()), get_model("ssi").default_params()["margin"]

    def path_of(**params):
        return TrainedColumn(context, LearnedColumn("x", "ssi", params), tmp_path).path(PARTS[0])

    assert path_of() == path_of(margin=default) != path_of(margin=0.3)


def test_models_are_kept_by_all_that_they_are_made_from(tmp_path):
    given, recipe = asked(), LearnedColumn("x", "ssi", field="title")

    def path_of(change, recipe=recipe, analyzer=None, **options):
        context = context_of(replace(given, **change), analyzer=analyzer)
        return TrainedColumn(context, recipe, tmp_path, **options).path(PARTS[0])

    def graded(query):
        """The same judgements, but those of a query one grade higher."""
        judged = given.judgements
        grade = judged.grade + (judged.query == query)
        return {"judgements": Judgements(judged.query, judged.document, grade)}

    groups = {"query_groups": [f"g{i // 2}" for i in range(N_QUERIES)]}
    others = [
        path_of(graded(0)),
        path_of({"query_texts": ["title1x1", *given.query_texts[1:]]}),
        path_of({"query_sources": np.arange(N_QUERIES)}),
        path_of(groups, hold_out_groups=True),
        path_of({"fields": {**given.fields, "title": given.fields["title"][::-1]}}),
        path_of({}, replace(recipe, field="body")),
        path_of({}, replace(recipe, terms="letter-trigrams")),
        path_of({}, analyzer=Analyzer(stemmer="english")),
    ]
    assert len({path_of({}), *others}) == 1 + len(others)
    # What it does not learn from makes it no other model.
    assert path_of(graded(1)) == path_of(groups) == path_of({"name": "y"}) == path_of({})


@pytest.mark.parametrize("fixed_first", [True, False])
def test_a_weight_that_is_chosen_is_not_taken_from_a_column_whose_weight_was_given(
    fixed_first, tmp_path
):
    context, train = context_of(asked()), np.concatenate(PARTS)
    alone = column(context, "opca", tmp_path / "alone", None)(train, EVERY)
    given = column(context, "opca", tmp_path / "both", 0.3)
    chosen = column(context, "opca", tmp_path / "both", None)
    for one in (given, chosen) if fixed_first else (chosen, given):
        one.model(train)
    assert given.path(train) != chosen.path(train)
    np.testing.assert_array_equal(chosen(train, EVERY), alone)


def test_mixed_scores_are_weighted_sums(tmp_path):
    context = context_of(asked())
    alone, half, words = (column(context, "lsi", tmp_path, w)(PARTS[0], EVERY) for w in (0, 0.5, 1))
    np.testing.assert_allclose(half, (alone + words) / 2, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["plsa", "lsi"])
def test_models_of_documents_look_at_no_label(name, tmp_path):
    scores = column(context_of(asked()), name, tmp_path)
    assert scores.path(PARTS[0]) == scores.path(PARTS[1])
    assert scores.recipe.provenance["trained on"].endswith("no judgements")
    none = np.zeros(0, np.int64)
    np.testing.assert_array_equal(scores(none, EVERY), scores(PARTS[1], EVERY))


def test_progress_is_reported(tmp_path):
    seen = []
    scores = column(context_of(asked()), "ssi", tmp_path, on_progress=lambda k, e: seen.append(e))
    scores.model(PARTS[0])
    assert [epoch.number for epoch in seen][:2] == [0, 1]


def test_impossible_recipes_are_refused(tmp_path):
    context = context_of(asked())
    with pytest.raises(InputError, match="column 'x': there is no model 'lda'; "):
        LearnedColumn("x", "lda")
    with pytest.raises(InputError, match="model 'ssi' has no parameter 'rnk'; did you mean 'rank'"):
        LearnedColumn("x", "ssi", {"rnk": 3})
    with pytest.raises(InputError, match="lambda2 is given twice"):
        LearnedColumn("x", "wtm", {"lambda2": 0.5}, word_weight=0.3)
    with pytest.raises(InputError, match=r"word_weight must lie between 0 and 1, got 2"):
        LearnedColumn("x", "wtm", word_weight=2)
    with pytest.raises(InputError, match="model 'ssi' has no word_weight"):
        LearnedColumn("x", "ssi", word_weight=0.3)
    with pytest.raises(InputError, match="no field 'keywords'; it has"):
        TrainedColumn(context, LearnedColumn("x", "ssi", field="keywords"), tmp_path)
    with pytest.raises(InputError, match=r"none of its training queries has .*\(0 in all\)"):
        column(context, "bltm", tmp_path)(np.zeros(0, np.int64), EVERY)


def test_queries_that_come_later_get_the_batch_s_scores_to_the_bit(tmp_path):
    context = context_of(asked())
    texts, ids = context.collection.query_texts, context.collection.query_ids
    for name in ("ssi", "bltm", "lsi", "query-expansion"):
        fitted = column(context, name, tmp_path, 0.3).fitted(np.arange(18))
        batch = fitted.compute(context, EVERY)
        for query in (20, 3):
            alone = context.for_queries([texts[query]], [ids[query]])
            pairs = Pairs(np.zeros(N_DOCUMENTS, np.int64), np.arange(N_DOCUMENTS))
            np.testing.assert_array_equal(fitted.compute(alone, pairs), batch[EVERY.query == query])


def test_a_text_keeps_the_terms_of_the_largest_weights(tmp_path):
    """The column of an untrained model is the cosine of what texts keep, of later queries, too."""
    context, space = context_of(asked()), TermSpace.of(context_of(asked()))
    rows = []
    for X in (space.Q.toarray(), space.D.toarray()):
        best = np.argsort(-X, axis=1, kind="stable")[:, :2]
        kept = np.zeros_like(X)
        np.put_along_axis(kept, best, np.take_along_axis(X, best, axis=1), axis=1)
        rows.append(kept / np.linalg.norm(kept, axis=1, keepdims=True))
    expected = rows[0] @ rows[1].T
    recipe = LearnedColumn("ssi", "ssi", {"max_epochs": 0, "init": "identity"})
    fewer = replace(recipe, heaviest=2)
    whole, cut = (
        TrainedColumn(context, r, tmp_path).fitted(np.arange(18)) for r in (recipe, fewer)
    )
    assert np.abs(whole.compute(context, EVERY) - cut.compute(context, EVERY)).max() > 0.1
    scores = cut.compute(context, EVERY).reshape(expected.shape)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    alone = context.for_queries([context.collection.query_texts[3]])
    pairs = Pairs(np.zeros(N_DOCUMENTS, np.int64), np.arange(N_DOCUMENTS))
    np.testing.assert_array_equal(cut.compute(alone, pairs)[:, 0], scores[3])
    settings = whole.settings(context)
    assert settings["heaviest"] == "all"
    assert cut.settings(context) == settings | {"heaviest": 2}


def test_models_of_other_texts_are_refused(tmp_path):
    context = context_of(asked())
    fitted = column(context, "ssi", tmp_path).fitted(np.arange(18))
    stemmed = context_of(asked(), analyzer=Analyzer(stemmer="english"))
    with pytest.raises(InputError, match="analysed by another recipe"):
        fitted.compute(stemmed, EVERY)
    with pytest.raises(InputError, match="needs a model 'lsi', got 'ssi'"):
        FittedColumn(LearnedColumn("x", "lsi"), fitted.model)


def test_provenance_of_a_fitted_model_has_its_own_parameters_not_present_defaults(tmp_path):
    """As those of a model that was saved when the defaults were others."""
    context = context_of(asked())
    fitted = column(context, "plsa", tmp_path, 0.3).fitted(np.arange(18))
    later = FittedColumn(LearnedColumn("plsa", "plsa", PARAMS["plsa"], field="title"), fitted.model)
    assert later.settings(context)["lambda2"] == 0.3
    assert later.settings(context) == fitted.settings(context)
    assert "no judgements" in later.trained_on


def test_lists_of_candidates_are_learned_from_where_a_recipe_asks(tmp_path):
    context = context_of(asked())
    share = LearnedColumn("ssi", "ssi", {**PARAMS["ssi"], "list_share": 0.5}, field="title")
    plain = LearnedColumn("ssi", "ssi", PARAMS["ssi"], field="title")
    few = Pairs(EVERY.query[::3], EVERY.document[::3])
    queries = np.arange(12)

    def model_and_path(recipe, candidates):
        made = TrainedColumn(context, recipe, tmp_path, candidates=candidates)
        return made.model(queries), made.path(queries)

    every, path = model_and_path(share, EVERY)
    some, other = model_and_path(share, few)
    assert path != other
    assert every.history_.epochs[-1].loss != some.history_.epochs[-1].loss
    shifted = Pairs(few.query, (few.document + 1) % N_DOCUMENTS)
    assert TrainedColumn(context, share, tmp_path, candidates=shifted).path(queries) != other
    paths = [TrainedColumn(context, plain, tmp_path, candidates=c).path(queries)
             for c in (None, EVERY)]  # fmt: skip
    assert paths[0] == paths[1]
    with pytest.raises(InputError, match="column 'ssi': list_share needs candidates"):
        TrainedColumn(context, share, tmp_path)
