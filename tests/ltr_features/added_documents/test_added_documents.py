"""Documents that are added to a pipeline: old ones keep their bits, new ones are as if they had
been there, statistics stay. (That each family keeps to this is in the contracts of columns.)"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from additions import N, news
from toys import refused, run, topics, toy

from letor.digests import changed_files
from letor.errors import InputError, LetorWarning
from letor.folds import k_fold
from letor.rankers import LambdaMART
from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline
from ltr_features.columns import Letor46
from ltr_features.columns.document_numbers import DocumentNumbers
from ltr_features.remarks import ColumnWarning
from ssi_models.registry import MODELS

QUICK = {
    "rank": 4, "max_epochs": 1, "n_topics": 3, "iterations": 2, "n_buckets": 50, "n_weights": 200,
    "threads": 1,
}  # fmt: skip


def columns(pipeline, queries, docnos):
    """float32 [queries, documents, columns]."""
    query = np.repeat(np.arange(len(queries)), len(docnos))
    values = pipeline.features.compute(queries, query, list(docnos) * len(queries))
    return values.reshape(len(queries), len(docnos), -1)


def test_all_other_documents_keep_their_columns_and_scores(pipeline, more, collection):
    old = [name for name in collection.document_ids if name != "d4"]
    texts = list(collection.query_texts)
    before = columns(pipeline, texts, old)
    mixed = columns(more, texts, [*old[:20], "copy", "d4", "odd", *old[20:]])
    np.testing.assert_array_equal(np.delete(mixed, [20, 21, 22], axis=1), before)
    for text in texts:
        np.testing.assert_array_equal(more.score(text, old), pipeline.score(text, old))
    assert pipeline.features.added_ is None
    with pytest.raises(InputError, match="has no document 'copy'"):
        pipeline.score(texts[0], ["copy"])


def test_a_copy_is_scored_as_the_document_but_for_its_links(pipeline, more, collection):
    names = pipeline.features.column_names
    of_places = [names.index(n) for n in ("pagerank", "inlinks", "outlinks", "child_pages")]
    there, copy = columns(more, list(collection.query_texts), ["d3", "copy"]).transpose(1, 0, 2)
    np.testing.assert_allclose(
        np.delete(copy, of_places, axis=1), np.delete(there, of_places, axis=1), rtol=1e-6
    )
    ranks = columns(pipeline, [""], collection.document_ids)[0, :, of_places[0]]
    assert copy[0, of_places].tolist() == [ranks.min(), 0, 0, 0]


def test_what_replaces_a_document_keeps_its_place_and_has_its_own_words(pipeline, more, collection):
    names = pipeline.features.column_names
    text = collection.query_texts[4]
    before, after = columns(pipeline, [text], ["d4"])[0, 0], columns(more, [text], ["d4"])[0, 0]
    for name in ("pagerank", "inlinks", "outlinks", "child_pages", "url_length"):
        assert after[names.index(name)] == before[names.index(name)]
    body = news(collection)[1]["body"][1]
    assert after[names.index("dl_body")] == len(body.split())
    assert after[names.index("tf_body")] == sum(body.split().count(w) for w in text.split())


def test_an_added_page_is_no_child_of_another(pipeline, collection):
    url = collection.fields["url"][4]
    fields = {"body": ["common1"] * 2, "url": [url, f"{url}/below"]}
    added = pipeline.with_documents(["d4", "below"], fields)
    place = added.features.column_names.index("child_pages")
    assert columns(added, [""], ["d4", "below"])[0, :, place].tolist() == [0, 0]


def test_letters_of_words_that_no_document_had_find_an_added_one():
    """As if it had been in the build, with idf of the build."""
    towns = ["petersburg", "springfield", "neustadt", "peterborough"]
    collection = toy({"body": towns}, ["springfield"])
    letters = {"source": "model", "model": "vsm", "terms": "letter-trigrams"}
    built = FeatureBuilder(["letters", "vsm"], candidates={"letters": letters}).fit(collection)
    assert built.best_documents("neupetersbrug")[0] == "d0"
    added = built.with_documents(["new"], {"body": ["neupetersburg"]})
    assert added.best_documents("neupetersbrug")[0] == "new"
    weights = {}
    for town in towns:
        marked = f"#{town}#"
        for trigram in {marked[i : i + 3] for i in range(len(town))}:
            weights[trigram] = weights.get(trigram, 0) + 1
    weights = {trigram: math.log(len(towns) / n) for trigram, n in weights.items()}
    rows = []
    for word in ("neupetersbrug", "neupetersburg"):
        marked = f"#{word}#"
        spelled = {marked[i : i + 3] for i in range(len(word))}
        row = np.array([w * (trigram in spelled) for trigram, w in weights.items()])
        rows.append(row / np.linalg.norm(row))
    (found,) = added.compute(["neupetersbrug"], np.zeros(1, np.int64), ["new"]).tolist()
    assert found == pytest.approx([rows[0] @ rows[1], 0], abs=1e-6)  # no word is the same


def test_unknown_words_count_in_lengths_alone(more, collection):
    """By the formulas, with the statistics of the build."""
    index = more.features.context_.index.field("body")
    word = more.features.context_.index.vocabulary.rows(["common1"])[0]
    idf = math.log(N / index.document_frequency[word])
    mean, p = index.lengths.mean(), index.collection_frequency[word] / index.lengths.sum()
    found = dict(
        zip(more.features.column_names, columns(more, ["common1 zzz"], ["odd"])[0, 0], strict=True)
    )
    family = more.features.families[0]
    saturation = family.k1 * (1 - family.b + family.b * 4 / mean)
    seen, delta, mu = (1 - family.delta) / 4, family.delta, family.mu
    expected = {
        "tf_body": 1,
        "idf_body": idf,
        "dl_body": 4,
        "bm25_body": idf * (family.k1 + 1) / (1 + saturation),
        "lmir_abs_body": math.log(seen + delta * 3 / 4 * p),
        "lmir_dir_body": math.log((1 + mu * p) / (4 + mu)),
        "lmir_jm_body": math.log((1 - family.lam) / 4 + family.lam * p),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-6)


def test_candidates_are_bm25_s_best_of_all_and_none_that_was_replaced(more, collection):
    """The candidates' BM25 as a column says which are best."""
    column = FeatureBuilder([Letor46(k1=1.2, b=0.75)]).fit(collection)
    column = column.with_documents(*news(collection))
    everything = [*(d for d in collection.document_ids if d != "d4"), "copy", "d4", "odd"]
    place = column.column_names.index("bm25_whole")
    for text in [*collection.query_texts, "zzz", "common1"]:
        values = column.compute([text], np.zeros(len(everything), int), everything)[:, place]
        scores = dict(zip(everything, values.tolist(), strict=True))
        best = more.features.best_documents(text)
        assert len(best) == len(set(best)) == min(12, sum(s > 0 for s in scores.values()))
        assert [scores[d] for d in best] == sorted((scores[d] for d in best), reverse=True)
        worst = min((scores[d] for d in best), default=0)
        assert all(scores[d] <= worst for d in everything if d not in best)
        assert set(more.rank(text, 99)["docno"]) == set(best)


def test_titles_are_those_of_the_current_documents(pipeline, more, collection):
    titles = collection.fields["title"]
    assert pipeline.features.title("d4") == titles[4]
    assert [more.features.title(one) for one in ("d4", "d5")] == [titles[10], titles[5]]
    assert more.features.title("odd") == "common1 zzz zzz yyy"  # no title, but a body
    assert more.features.title("nobody") == ""


def test_drift_is_counted(more, collection):
    drift = more.features.added_.drift()
    bodies = [len(b.split()) for b in news(collection)[1]["body"]]
    index = more.features.added_.context.index.field("whole")
    assert (drift.n_built, drift.n_new, drift.n_replaced) == (N, 2, 1)
    assert drift.share == 3 / (N + 2)
    assert drift.unknown == pytest.approx(3 / index.lengths.sum())
    assert drift.mean_length == pytest.approx(index.lengths.mean())
    assert index.lengths[2] == bodies[2] == 4
    assert str(drift).startswith("60 documents of the build, 1 of them replaced, 2 new: 4.8% are")


def test_html_that_the_build_does_not_have_is_told(pipeline, more):
    assert "HTML" not in str(more.features.added_.drift())
    texts = {"body": ["<b>common1</b>", "common2", "caf&eacute; common3", "common4 < common5"]}
    with_html = pipeline.with_documents(list("abcd"), texts)
    fewer = with_html.without_documents([f"d{row}" for row in range(50)])
    assert fewer.features.added_.drift().html == 0.5
    drift = with_html.features.added_.drift()
    assert (drift.html, drift.html_built) == (0.5, 0)
    assert "50.0% of the added documents contain HTML, 0.0% of the build's" in str(drift)
    assert str(drift).endswith("add these again without (pipeline add: --markup strip)")


def test_what_is_added_later_joins_what_was_added_before(more, collection):
    later = more.with_documents(["odd", "d5"], {"body": ["common1 common2", "common3"]})
    added = later.features.added_
    assert list(added.context.collection.document_ids) == ["copy", "d4", "odd", "d5"]
    assert list(added.context.collection.fields["title"])[2:] == ["", ""]
    assert (added.drift().n_new, added.drift().n_replaced) == (2, 2)
    text = collection.query_texts[3]
    np.testing.assert_allclose(later.score(text, ["copy"]), more.score(text, ["copy"]))
    assert later.features.n_documents == N + 2
    tf = later.features.column_names.index("tf_body")
    assert columns(later, ["common1 zzz"], ["odd"])[0, 0, tf] == 1
    again = later.with_documents(["odd"], {"body": ["zzz"]})
    assert columns(again, ["common1 zzz"], ["odd"])[0, 0, tf] == 0


def test_removed_documents_are_unknown_and_change_no_score(pipeline, more, collection, tmp_path):
    text = collection.query_texts[3]
    gone = [*pipeline.features.best_documents(text)[:2], "copy"]
    left = [name for name in more.features.document_ids if name not in gone]
    fewer = more.without_documents(gone)
    fewer.save(tmp_path / "whole")
    more.save(tmp_path / "p")
    lines = [f"{gone[0]} \t", *gone[1:], "nobody", gone[0]]  # blanks that an editor leaves
    (tmp_path / "gone.txt").write_text("\n".join(lines))
    remove = ("pipeline", "remove", tmp_path / "p", tmp_path / "gone.txt")
    said = run(*remove)
    assert "3 documents of" in said.stdout
    assert "60 documents of the build, 1 of them" in said.stdout
    assert "2 removed, 1 new" in said.stdout
    assert "has no document 'nobody'" in said.stderr
    again = run(*remove).stdout
    assert f"3 documents of {tmp_path / 'gone.txt'} had been removed before" in again
    (tmp_path / "gone.txt").write_text("nobody")
    assert "gone.txt names no document of" in refused(*remove)
    assert changed_files(tmp_path / "p") == []
    ranked = more.rank(text, 100, docnos=more.features.document_ids)["docno"]
    for made in (fewer, *(ScoringPipeline.load(tmp_path / name) for name in ("whole", "p"))):
        assert (made.features.document_ids, made.features.n_documents) == (left, len(left))
        np.testing.assert_array_equal(made.score(text, left), more.score(text, left))
        assert made.features.unknown_documents(gone) == gone
        with pytest.raises(InputError, match=f"has no document '{gone[0]}'"):
            made.score(text, gone)
        found = made.features.best_documents(text)
        assert len(found) == 12
        assert not set(found) & set(gone)
        again = made.rank(text, 100, docnos=left)["docno"]
        assert list(again) == [name for name in ranked if name not in gone]
        texts = {field: texts[:1] for field, texts in news(collection)[1].items()}
        back = made.with_documents(["copy"], texts)
        np.testing.assert_array_equal(back.score(text, ["copy"]), more.score(text, ["copy"]))
        assert back.features.unknown_documents(gone) == gone[:2]
        assert str(made.features.added_.drift()) in said.stdout
    path = tmp_path / "p" / "features" / "features.json"
    assert json.loads(path.read_text())["version"] == 4  # earlier programs refuse it
    with pytest.raises(InputError, match=r"documents were added there since"):
        more.save_added(tmp_path / "p")
    (tmp_path / "p" / "features" / "added" / "digests.json").unlink()  # of an earlier version
    (tmp_path / "p" / "features" / "added" / "removed.json").write_text('["nobody"]')
    with pytest.raises(InputError, match=r"removed\.json: .*; it is damaged"):
        ScoringPipeline.load(tmp_path / "p")
    with pytest.raises(InputError, match="no document would be left; make a new build"):
        fewer.without_documents(left)
    with pytest.raises(InputError, match="has no document 'copy'"):
        fewer.without_documents(["copy"])


def test_candidates_are_found_below_many_that_were_removed(collection):
    everything = FeatureBuilder(["vsm"], depth=N).fit(collection)
    few = FeatureBuilder(["vsm"], depth=3).fit(collection)
    order = everything.best_documents(collection.query_texts[3])
    assert len(order) > 20
    for n in (1, 7, 19, len(order) - 1, len(order)):
        found = few.without_documents(order[:n]).best_documents(collection.query_texts[3])
        assert found == order[n : n + 3]


def test_what_cannot_be_added_is_named(pipeline, collection, tmp_path):
    for arguments, message in (
        ((["a"], {"anchor": ["x"]}), "have no field anchor; they have body, title, url"),
        ((["a"], {}), "added documents need one of the fields body, title, url"),
        (([], {"body": []}), "has no documents"),
        ((["a", "a"], {"body": ["x", "y"]}), "document id 'a' occurs twice"),
        ((["a"], {"body": ["x", "y"]}), "field 'body' has 2 texts for 1 documents"),
        ((["a"], {"body": [None]}), "body of document 'a' is None, not text"),
        (([7], {"body": ["x"]}), "document ids must be text, got 7"),
    ):
        with pytest.raises(InputError, match=message):
            pipeline.with_documents(*arguments)
    with pytest.raises(InputError, match="no documents were added"):
        pipeline.save_added(tmp_path)
    frame = pd.DataFrame({"title": ["x"], "body": ["y"]}, index=[7])
    added = pipeline.with_documents(["a"], frame).features.added_.context.collection
    assert (added.fields["title"][0], added.fields["body"][0]) == ("x", "y")
    more = pipeline.with_documents(["a"], {"body": ["x"]})
    with pytest.raises(InputError, match="it holds no saved pipeline"):
        more.save_added(tmp_path / "none")
    other = FeatureBuilder().fit(topics(N - 1))
    other.save(tmp_path / "other" / "features")
    with pytest.raises(InputError, match="built from other documents than these were added to"):
        more.save_added(tmp_path / "other")
    with pytest.raises(InputError, match="an index of added documents cannot be stored"):
        more.features.added_.context.index.save(tmp_path / "index")


def test_a_family_that_does_not_say_so_is_refused(collection):
    class Mine(Letor46):
        name = "mine"
        knows_added = False

    builder = FeatureBuilder([Mine()]).fit(collection)
    with pytest.raises(InputError, match="column family mine: it does not say that it can compute"):
        builder.with_documents(["a"], {"body": ["x"]})


def test_added_documents_have_the_numbers_of_the_table(collection, tmp_path):
    """As replacements have; what it lacks is told, and documents can be removed."""
    path = tmp_path / "n.csv"
    path.write_text("id,price\nd0,5\nd1,7\nlater,9\n")
    builder = FeatureBuilder([DocumentNumbers(path, missing=-1)]).fit(collection)
    told = "price: 1 of 3 added documents have no number in .*n.csv and get -1; a new build"
    with pytest.warns(ColumnWarning, match=told):
        more = builder.with_documents(["d1", "later", "new"], {"body": ["x", "y", "z"]})
    fewer = more.without_documents(["d0", "new"])
    ids = ["d1", "later", "d2"]
    for one, names in ((more, ["d0", *ids, "new"]), (fewer, ids)):
        found = one.compute(["x"], np.zeros(len(names), np.int64), names)
        price = {"d0": 5, "d1": 7, "later": 9}
        assert found[:, 0].tolist() == [price.get(name, -1) for name in names]
    more = builder.with_documents(["later"], {"body": ["y"]})  # alone, and nothing to tell
    assert more.compute(["x"], np.zeros(1, np.int64), ["later"]).tolist() == [[9]]
    with pytest.warns(ColumnWarning, match="1 of 1 added documents"):  # none of them is known
        builder.with_documents(["zz"], {"body": ["y"]})


@pytest.mark.parametrize("name", MODELS)
def test_every_model_scores_copies_as_the_documents_or_is_refused(collection, name):
    kind = MODELS[name]
    if name in ("cross-language", "opca", "cl-lsa"):
        pytest.skip("needs settings of its own")
    params = {key: value for key, value in QUICK.items() if key in kind.default_params()}
    builder = FeatureBuilder([], [LearnedColumn("column", name, params)], threads=1)
    builder.fit(collection)
    copies = (["a", "b"], {s: [texts[7], texts[3]] for s, texts in collection.fields.items()})
    if kind.of_its_documents:
        with pytest.raises(InputError, match="column family column: it does not say"):
            builder.with_documents(*copies)
        return
    more, texts = builder.with_documents(*copies), list(collection.query_texts)
    query = np.repeat(np.arange(len(texts)), 4)
    found = more.compute(texts, query, ["a", "b", "d7", "d3"] * len(texts)).reshape(-1, 4)
    np.testing.assert_allclose(found[:, :2], found[:, 2:], rtol=1e-5, atol=1e-6)
    there = builder.compute(texts, query[: 2 * len(texts)], ["d7", "d3"] * len(texts))
    again = more.compute(texts, query[: 2 * len(texts)], ["d7", "d3"] * len(texts))
    np.testing.assert_array_equal(there, again)
    assert np.ptp(found) > 0


@pytest.mark.filterwarnings("error::letor.errors.LetorWarning")
def test_what_was_told_of_a_pipeline_is_not_told_again(collection):
    builder = FeatureBuilder(["letor46"], candidates={"bm25": {}, "judged": {}}, threads=1)
    folds = k_fold(collection.query_ids, 4, seed=0)
    train, vali, _ = builder.folds(collection, folds)[0]
    ranker = LambdaMART(n_estimators=5, min_data_in_leaf=5).fit(train, vali)
    fitted = builder.fit(collection, folds[0].train, folds=folds)
    with pytest.warns(LetorWarning, match="not those of judged"):
        pipeline = ScoringPipeline(fitted, ranker)
    more = pipeline.with_documents(*news(collection))
    assert more.without_documents(["copy"]).features.added_ is not None
