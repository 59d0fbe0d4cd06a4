"""Documents that are added to a pipeline: old ones keep their bits, new ones are as if they had
been there, statistics stay. (That each family keeps to this is in the contracts of columns.)"""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from toys import done, refused, run, topics

from letor.digests import changed_files, written_digests
from letor.errors import InputError, LetorWarning
from letor.folds import k_fold
from letor.lock import locked
from letor.rankers import LambdaMART
from ltr_base.machine import temporary_paths
from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline, added_documents
from ltr_features.columns import Letor46
from ltr_features.columns.document_numbers import DocumentNumbers
from ltr_features.remarks import ColumnWarning
from ssi_models.registry import MODELS

N = 60
QUICK = {
    "rank": 4, "max_epochs": 1, "n_topics": 3, "iterations": 2, "n_buckets": 50, "n_weights": 200,
    "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def collection():
    return topics()


@pytest.fixture(scope="module")
def pipeline(collection):
    models = [
        LearnedColumn("lsa", "lsi", {"rank": 4}, terms="both"),
        LearnedColumn("unigram", "unigram"),
        LearnedColumn(
            "ssi", "ssi", {"rank": 4, "max_epochs": 1}, min_document_frequency=2, heaviest=6
        ),
    ]
    builder = FeatureBuilder(["letor46", "vsm"], models, depth=12, threads=1)
    folds = k_fold(collection.query_ids, 4, seed=0)
    train, vali, _ = builder.folds(collection, folds)[0]
    ranker = LambdaMART(n_estimators=10, min_data_in_leaf=5, normalise="none").fit(train, vali)
    return ScoringPipeline(builder.fit(collection, folds[0].train, folds=folds), ranker)


#: A copy of d3 under another id; one that replaces d4; one of unknown words.
def news(collection):
    body, title, url = (collection.fields[s] for s in ("body", "title", "url"))
    return ["copy", "d4", "odd"], {
        "body": [body[3], f"{body[10]} common1", "common1 zzz zzz yyy"],
        "title": [title[3], title[10], ""],
        "url": [url[3], url[4], ""],
    }


@pytest.fixture(scope="module")
def more(pipeline, collection):
    return pipeline.with_documents(*news(collection))


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


def test_saved_pipelines_have_their_added_documents(pipeline, more, collection, tmp_path):
    everything = [*collection.document_ids, "copy", "odd"]
    text = collection.query_texts[3]
    pipeline.save(tmp_path / "p")
    index = tmp_path / "p" / "features" / "workspace" / "index" / "whole.counts.npy"
    written = index.stat().st_mtime_ns
    more.save_added(tmp_path / "p")
    assert index.stat().st_mtime_ns == written
    more.save(tmp_path / "whole")
    for folder in ("p", "whole"):
        assert changed_files(tmp_path / folder) == []
        assert changed_files(tmp_path / folder / "features") == []
        again = ScoringPipeline.load(tmp_path / folder)
        np.testing.assert_array_equal(again.score(text, everything), more.score(text, everything))
        assert again.features.added_.drift() == more.features.added_.drift()
    path = tmp_path / "p" / "features" / "features.json"
    assert json.loads(path.read_text())["version"] == 3  # earlier programs refuse it
    (tmp_path / "p" / "features" / "added" / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match=r"corpus\.jsonl"):
        ScoringPipeline.load(tmp_path / "p")


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


def test_no_program_loses_what_another_one_added(pipeline, more, tmp_path):
    pipeline.save(tmp_path / "p")
    first, second = (ScoringPipeline.load(tmp_path / "p") for _ in range(2))
    first = first.with_documents(["one"], {"body": ["common1"]})
    first.save_added(tmp_path / "p")
    second = second.with_documents(["two"], {"body": ["common2"]})
    lost = r"p/features: documents were added there since .*; load it again and add to that"
    for other in (second, more):
        with pytest.raises(InputError, match=lost):
            other.save_added(tmp_path / "p")
    further = first.with_documents(["three"], {"body": ["common2"]})
    further.save_added(tmp_path / "p")
    with pytest.raises(InputError, match=lost):
        first.save_added(tmp_path / "p")
    again = ScoringPipeline.load(tmp_path / "p").with_documents(["two"], {"body": ["common2"]})
    again.save(tmp_path / "elsewhere")
    again.save_added(tmp_path / "p")
    assert ScoringPipeline.load(tmp_path / "p").features.n_documents == N + 3
    assert ScoringPipeline.load(tmp_path / "elsewhere").features.n_documents == N + 3


def test_a_pipeline_is_loaded_while_documents_are_added(pipeline, more, tmp_path, monkeypatch):
    pipeline.save(tmp_path / "p")

    def read_then_added(folder):
        found = written_digests(folder)
        monkeypatch.undo()
        more.save_added(tmp_path / "p")
        return found

    monkeypatch.setattr("ltr_features.feature_files.written_digests", read_then_added)
    assert ScoringPipeline.load(tmp_path / "p").features.n_documents == N + 2


def test_a_held_pipeline_is_not_written(pipeline, more, tmp_path):
    pipeline.save(tmp_path / "p")
    (tmp_path / "more.csv").write_text("id,body\nodd,common1\n")
    before = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*.json")}
    with locked(tmp_path / "p"):
        assert changed_files(tmp_path / "p") == []
        for write in (more.save_added, pipeline.save):
            with pytest.raises(InputError, match=r"p: a run is going on there \(process \d+ on"):
                write(tmp_path / "p")
        add = ("pipeline", "add", tmp_path / "p", tmp_path / "more.csv")
        assert "a run is going on there" in refused(*add)
    assert {path: path.read_bytes() for path in (tmp_path / "p").rglob("*.json")} == before
    assert changed_files(tmp_path / "p") == []
    more.save_added(tmp_path / "p")
    more.save(tmp_path / "p")
    assert changed_files(tmp_path / "p") == []


def test_an_interrupt_leaves_what_was_there_before(
    pipeline, more, collection, tmp_path, monkeypatch
):
    pipeline.save(tmp_path / "p")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ltr_features.added_documents.read_json", interrupted)
        with pytest.raises(KeyboardInterrupt):
            more.save_added(tmp_path / "p")
    text = collection.query_texts[3]
    again = ScoringPipeline.load(tmp_path / "p")
    np.testing.assert_array_equal(again.score(text, ["d4"]), pipeline.score(text, ["d4"]))
    more.save_added(tmp_path / "p")
    again = ScoringPipeline.load(tmp_path / "p")
    np.testing.assert_array_equal(again.score(text, ["d4"]), more.score(text, ["d4"]))


@pytest.mark.parametrize("name", ["corpus.jsonl", "removed.json"])
def test_damaged_added_documents_are_refused(more, tmp_path, name):
    """With a file cut after a line, or lost, documents would be missing, or come back."""
    more.without_documents(["d0"]).save(tmp_path / "p")
    path = tmp_path / "p" / "features" / "added" / name
    if name == "removed.json":
        path.unlink()
    else:
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match=rf"{name}.* restore it"):
        ScoringPipeline.load(tmp_path / "p")


def test_documents_added_during_loading_are_read_as_a_whole(pipeline, more, tmp_path, monkeypatch):
    """Texts of one version with the removed ids of another would make a document empty."""
    gone = more.without_documents(["d0"])
    gone.save(tmp_path / "p")
    text = next(iter(pipeline.features.context_.collection.fields.values()))[0]
    before, again = ScoringPipeline.load(tmp_path / "p"), added_documents.load_collection

    def loaded(folder):
        found = again(folder)
        if before.features.unknown_documents(["d0"]):
            monkeypatch.setattr(added_documents, "load_collection", again)
            before.with_documents(["d0"], {"body": [text]}).save_added(tmp_path / "p")
        return found

    monkeypatch.setattr(added_documents, "load_collection", loaded)
    found = ScoringPipeline.load(tmp_path / "p")
    expected = before.with_documents(["d0"], {"body": [text]})
    np.testing.assert_array_equal(found.score(text, ["d0"]), expected.score(text, ["d0"]))


def test_what_a_killed_process_left_is_no_part_of_the_pipeline(pipeline, more, tmp_path):
    pipeline.save(tmp_path / "p")
    for target in (tmp_path / "p" / "digests.json", tmp_path / "p" / "features" / "added"):
        left, _ = temporary_paths(target)
        left.mkdir()
        (left / "corpus.jsonl").touch()
    more.save_added(tmp_path / "p")
    assert changed_files(tmp_path / "p") == []
    assert [path for path in (tmp_path / "p").rglob(".*") if path.name != ".locked"] == []


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


def test_documents_of_a_table_are_added_by_the_command(pipeline, collection, tmp_path):
    pipeline.save(tmp_path / "p")
    ids, fields = news(collection)
    lines = [
        {"_id": name, "text": body, "title": title, "url": url}
        for name, body, title, url in zip(ids, *fields.values(), strict=True)
    ]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = done("pipeline", "add", tmp_path / "p", corpus)
    assert "3 documents of " in said
    assert "by their usual names: id '_id', body 'text', title 'title', url 'url'\n" in said
    assert "no column for" not in said
    assert "60 documents of the build, 1 of them replaced, 2 new" in said
    assert done("validate", tmp_path / "p")
    table = tmp_path / "more.csv"
    table.write_text("sku,words\nodd,common1\nlast,common2\n")
    said = run(
        "pipeline", "add", tmp_path / "p", table, "--column", "id=sku", "--column", "body=words"
    ).stderr
    assert "more.csv has no column for title, url, empty in its documents: name one by" in said
    again = ScoringPipeline.load(tmp_path / "p")
    assert again.features.n_documents == N + 3
    wanted = pipeline.with_documents(ids, fields).with_documents(
        ["odd", "last"], {"body": ["common1", "common2"]}
    )
    text, docnos = collection.query_texts[3], ["d3", "d4", "copy", "odd", "last"]
    np.testing.assert_array_equal(again.score(text, docnos), wanted.score(text, docnos))
    table.write_text("sku,text,hue\nnew,common1,x\nnew,common2,y\n")
    assert "pipeline add: --on-other-text)" in refused("pipeline", "add", tmp_path / "p", table)
    said = done("pipeline", "add", tmp_path / "p", table, "--on-other-text", "first")
    assert "rows of documents that were there, with other texts; the first taken: 1" in said
    assert """left out: 'hue'; to read 'hue' too, name all columns: --column body='["te""" in said
    table.write_text("sku,words\nodd,common1\n")
    for arguments, message in (
        ((table,), r"more.csv: the columns are 'sku', 'words'; say which is the id"),
        ((table, "--column", "id=sku", "--column", "body=wrods"), "wrods"),
        ((table, "--column", "id=sku", "--column", "anchor=words"), "have no field anchor"),
    ):
        assert re.search(message, refused("pipeline", "add", tmp_path / "p", *arguments))


def test_ids_that_are_only_written_otherwise_are_told(pipeline, tmp_path):
    """Of a spreadsheet, say, whose ids have lost leading zeros."""
    pipeline.save(tmp_path / "p")
    table = tmp_path / "new.csv"
    table.write_text("id,body\nD3,common1\nd4,common1\nother,common1\n d5,common2\n")
    told = run("pipeline", "add", tmp_path / "p", table).stderr
    assert "2 new documents beside one whose id differs in case, blanks" in told
    assert "such as 'D3' beside 'd3': if it is to replace that" in told
    (tmp_path / "gone.txt").write_text("D3\nD6\n")
    told = run("pipeline", "remove", tmp_path / "p", tmp_path / "gone.txt").stderr
    assert "has no document 'D6'; for 'D6' there is 'd6'" in told
    table.write_text("id,body\nnewer,common1\n")
    assert "beside" not in run("pipeline", "add", tmp_path / "p", table).stderr


@pytest.mark.parametrize("stripped", [True, False])
def test_html_is_stripped_from_added_documents_as_from_those_of_the_build(
    pipeline, collection, tmp_path, stripped
):
    if stripped:
        collection = replace(collection, description={"HTML in documents": "stripped"})
        builder = FeatureBuilder(["vsm"], depth=12).fit(collection)
        rows = builder.folds(collection, k_fold(collection.query_ids, 4, seed=0))[0][0]
        ranker = LambdaMART(n_estimators=2, min_data_in_leaf=5).fit(rows)
        pipeline = ScoringPipeline(builder, ranker)
    pipeline.save(tmp_path / "p")
    table = tmp_path / "more.csv"
    table.write_text("id,body,title,url\na,<b>common1</b>,t,u\n")
    added = ScoringPipeline.load(tmp_path / "p")
    for options, kept in ((), not stripped), (("--markup", "keep"), True):
        done("pipeline", "add", tmp_path / "p", table, *options)
        added = ScoringPipeline.load(tmp_path / "p").features.added_.context.collection
        assert added.fields["body"][0] == ("<b>common1</b>" if kept else "common1")


def test_what_was_told_of_a_pipeline_is_not_told_again(collection):
    builder = FeatureBuilder(["letor46"], candidates={"bm25": {}, "judged": {}}, threads=1)
    folds = k_fold(collection.query_ids, 4, seed=0)
    train, vali, _ = builder.folds(collection, folds)[0]
    ranker = LambdaMART(n_estimators=5, min_data_in_leaf=5).fit(train, vali)
    fitted = builder.fit(collection, folds[0].train, folds=folds)
    with pytest.warns(LetorWarning, match="not those of judged"):
        pipeline = ScoringPipeline(fitted, ranker)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LetorWarning)
        more = pipeline.with_documents(*news(collection))
        assert more.without_documents(["copy"]).features.added_ is not None
