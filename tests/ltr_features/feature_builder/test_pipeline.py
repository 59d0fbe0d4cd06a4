"""Scoring one query at a time: the numbers of the batch path, to the bit."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

from letor.digests import write_digests
from letor.errors import InputError, LetorWarning
from letor.rankers.base import NotFittedError
from letor.rankers.lambdamart import LambdaMART
from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline
from ltr_features.columns import Letor46, VectorSpace
from ssi_models.ssi.low_rank import LowRankSSI


def test_a_pipeline_keeps_its_fit_when_builder_and_ranker_are_fitted_again(collection, folds):
    builder = FeatureBuilder([VectorSpace()], [LearnedColumn("ssi", LowRankSSI(rank=4))])
    ranker = LambdaMART(n_estimators=5, min_data_in_leaf=5)
    pipelines = []
    for fold, (train, valid, _) in zip(folds, builder.folds(collection, folds), strict=True):
        builder.fit(collection, fold.train, folds=folds)
        pipeline = ScoringPipeline(builder, ranker.fit(train, valid))
        pipelines.append((pipeline, pipeline.rank(collection.query_texts[0])))
    assert len({tuple(found["score"]) for _, found in pipelines}) > 1
    for pipeline, found in pipelines:
        pd.testing.assert_frame_equal(pipeline.rank(collection.query_texts[0]), found)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_fitted_builders_and_pipelines_can_be_copied(builder, pipeline, collection, copied):
    """Also to other processes, as joblib does."""
    query = collection.query_texts[0]
    expected = pipeline.rank(query)
    pd.testing.assert_frame_equal(copied(pipeline).rank(query), expected)
    assert copied(builder).column_names == builder.column_names


def test_pipelines_need_fitted_rankers(builder):
    with pytest.raises(NotFittedError, match="LambdaMART is not fitted: call fit first"):
        ScoringPipeline(builder, LambdaMART())


def test_one_query_is_scored_as_in_the_batch(pipeline, collection, parts):
    test = parts[2]
    expected = pipeline.ranker.predict(test)
    for row, query in enumerate(test.query_ids[:4]):
        mine = np.flatnonzero(test.query_index == row)
        text = collection.query_texts[collection.query_ids.index(query)]
        docnos = [test.document_ids[i] for i in mine]
        np.testing.assert_array_equal(pipeline.score(text, docnos), expected[mine])


def test_a_ranker_of_some_columns_gets_these(builder, collection, parts):
    names = parts[0].column_names[::-2]
    train, _, test = (part.select_columns(names) for part in parts)
    ranker = LambdaMART(n_estimators=5, min_data_in_leaf=5).fit(train)
    mine = np.flatnonzero(test.query_index == 0)
    text = collection.query_texts[collection.query_ids.index(test.query_ids[0])]
    found = ScoringPipeline(builder, ranker).score(text, [test.document_ids[i] for i in mine])
    np.testing.assert_array_equal(found, ranker.predict(test)[mine])


def test_ranking_takes_its_candidates_from_bm25(pipeline, collection, parts):
    query = parts[2].query_ids[0]
    text = collection.query_texts[collection.query_ids.index(query)]
    best = pipeline.rank(text, 5)
    assert best["rank"].tolist() == [1, 2, 3, 4, 5]
    assert best["score"].is_monotonic_decreasing
    mine = parts[2].select_queries([query])
    order = np.argsort(-pipeline.ranker.predict(mine), kind="stable")[:5]
    assert best["docno"].tolist() == [mine.document_ids[i] for i in order]
    assert pipeline.rank("wordless").empty
    given = pipeline.rank(text, docnos=["d3", "d4"])
    assert set(given["docno"]) == {"d3", "d4"}
    series = pd.Series(["d3", "d4"], index=[1, 0])
    pd.testing.assert_frame_equal(pipeline.rank(text, docnos=series), given)


def test_contributions_of_columns_explain_the_scores(pipeline, collection):
    query = collection.query_texts[3]
    given = pipeline.features.best_documents(query)[::-1]
    ranking = pipeline.rank(query, 1000, docnos=given)
    found = pipeline.explain(query, 4, docnos=given)
    assert found.groupby("rank")["docno"].unique().str[0].tolist() == ranking["docno"].tolist()[:4]
    sums = found.groupby("rank")["contribution"].sum()
    scores = ranking["score"].astype(float)
    np.testing.assert_allclose(sums, scores[:4] - scores.mean(), atol=1e-6)
    sizes = found["contribution"].abs().to_numpy().reshape(4, -1)
    assert (np.diff(sizes, axis=1) <= 0).all()
    assert sizes.max() > 0.01
    docnos = ranking["docno"].tolist()
    table = pipeline.features.transform(pd.DataFrame({"qid": "1", "query": query, "docno": docnos}))
    for row in found.itertuples():
        assert table.loc[row.rank - 1, row.column] == row.value
    of_three = pipeline.explain(query, 1, docnos=docnos[:3], excluded=docnos[:1])
    assert of_three["docno"].unique().tolist() == [
        pipeline.rank(query, docnos=docnos[1:3]).docno[0]
    ]
    assert len(pipeline.explain("unheard")) == 0
    assert list(pipeline.explain("unheard")) == list(found)


def test_an_excluded_document_is_no_candidate(collection, pipeline):
    """As in training on queries that were made from documents: the others are one more, and are
    scored among themselves."""
    text, depth = collection.query_texts[0], pipeline.features.depth
    best = pipeline.features.best_documents(text)
    assert len(best) == depth
    left = pipeline.features.best_documents(text, excluded=best[:1])
    assert left[: depth - 1] == best[1:]
    assert len(left) == depth
    for wrong in (best[0], [7]):  # of which nothing would be excluded
        with pytest.raises(InputError, match="excluded must be"):
            pipeline.features.best_documents(text, excluded=wrong)
        with pytest.raises(InputError, match="excluded must be"):
            pipeline.rank(text, docnos=best, excluded=wrong)
    found = pipeline.rank(text, depth, excluded=best[:1])
    pd.testing.assert_frame_equal(found, pipeline.rank(text, depth, docnos=left))
    among = pipeline.rank(text, docnos=best[:5], excluded=[best[2], "none"])
    assert set(among["docno"]) == {*best[:2], *best[3:5]}


def test_a_family_whose_package_has_changed_is_told(pipeline, tmp_path, monkeypatch):
    codes = {VectorSpace: "as it was"}  # as if another package had it
    monkeypatch.setattr("ltr_features.feature_files.code_of_others", lambda kind: codes.get(kind))
    pipeline.save(tmp_path / "p")
    with warnings.catch_warnings(record=True) as caught:
        ScoringPipeline.load(tmp_path / "p")
    assert not caught
    codes[VectorSpace] = "is"
    with pytest.warns(LetorWarning, match="p/features: the package of column family 'vsm' has"):
        ScoringPipeline.load(tmp_path / "p")


def test_saved_pipelines_score_the_same_bits(pipeline, collection, tmp_path):
    pipeline.save(tmp_path / "p")
    again = ScoringPipeline.load(tmp_path / "p")
    docnos = list(collection.document_ids[:40])
    text = collection.query_texts[3]
    np.testing.assert_array_equal(again.score(text, docnos), pipeline.score(text, docnos))
    assert again.features.families == [Letor46(mu=500.0), VectorSpace()]
    path = tmp_path / "p" / "features" / "features.json"
    described = json.loads(path.read_text())
    described |= {"version": 1, "families": {"letor46": {"mu": 500.0}, "vsm": {}}}
    path.write_text(json.dumps(described))  # as earlier versions wrote it
    write_digests(path.parent)
    again = ScoringPipeline.load(tmp_path / "p")
    np.testing.assert_array_equal(again.score(text, docnos), pipeline.score(text, docnos))
    for path in (tmp_path / "p").rglob("*"):
        assert path.suffix not in (".pkl", ".pickle", ".joblib")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("precious")
    for save in (pipeline.save, pipeline.features.save):
        with pytest.raises(InputError, match="is not empty"):
            save(tmp_path / "mine")
    with pytest.raises(InputError, match="holds no saved pipeline"):
        ScoringPipeline.load(tmp_path / "mine")


def test_parts_of_two_pipelines_are_never_taken_for_one(
    builder, pipeline, collection, folds, parts, tmp_path, monkeypatch
):
    """Neither put together by hand, nor where one replaces the other while it is loaded."""
    other = ScoringPipeline(builder, LambdaMART(n_estimators=3).fit(parts[0]))
    for name, made in (("p", pipeline), ("q", other)):
        made.save(tmp_path / name)
    shutil.rmtree(tmp_path / "q" / "ranker")
    shutil.copytree(tmp_path / "p" / "ranker", tmp_path / "q" / "ranker")
    with pytest.raises(InputError, match=r"q/ranker/digests\.json is damaged: it is not the file"):
        ScoringPipeline.load(tmp_path / "q")

    pipeline.save(tmp_path / "r")
    shutil.rmtree(tmp_path / "r" / "features")
    copy.copy(builder).fit(collection, folds[1].train, folds=folds).save(
        tmp_path / "r" / "features"
    )
    with pytest.raises(InputError, match=r"r/features is not what was saved with the rest of"):
        ScoringPipeline.load(tmp_path / "r")

    load, replacements = FeatureBuilder.load, [other]

    def replaced(*args, **options):
        found = load(*args, **options)
        while replacements:
            replacements.pop().save(tmp_path / "p")
        return found

    monkeypatch.setattr(FeatureBuilder, "load", replaced)
    found, text = ScoringPipeline.load(tmp_path / "p"), collection.query_texts[3]
    expected = other.score(text, collection.document_ids)
    np.testing.assert_array_equal(found.score(text, collection.document_ids), expected)


@pytest.mark.filterwarnings("error::letor.errors.LetorWarning")
def test_models_of_another_fold_than_the_rankers_are_told(
    builder, collection, folds, parts, tmp_path
):
    ranker = LambdaMART(n_estimators=3).fit(parts[0])
    for train, given, fold in (
        (folds[1].train, folds, "Fold2"), (folds[0].train, (), "none"), (None, (), "none"),
    ):  # fmt: skip
        fitted = copy.copy(builder).fit(collection, train, folds=given)
        which = rf"2 columns \(ssi, wtm\) made in another way .* fold = '{fold}' instead of 'Fold1'"
        with pytest.warns(LetorWarning, match=which):
            pipeline = ScoringPipeline(fitted, ranker)
        pipeline.save(tmp_path / "p")
        with pytest.warns(LetorWarning, match=which):
            ScoringPipeline.load(tmp_path / "p")
    ScoringPipeline(builder, ranker).save(tmp_path / "p")
    ScoringPipeline.load(tmp_path / "p")


def test_candidates_at_serving_are_those_of_training_or_it_is_told(collection, folds, tmp_path):
    builder = FeatureBuilder(["vsm"], candidates={"bm25": {"depth": 7}})
    train, _, _ = builder.folds(collection, folds)[0]
    ScoringPipeline(builder.fit(collection), LambdaMART().fit(train)).save(tmp_path / "p")
    query = int(train.query_ids[0].removeprefix("q"))
    again = ScoringPipeline.load(tmp_path / "p")
    found = again.rank(collection.query_texts[query], 100)["docno"]
    assert set(found) == set(train.document_ids[train.query_index == 0])
    wide = FeatureBuilder(["vsm"], candidates={"judged": {}, "first": {"source": "bm25"}})
    with pytest.warns(LetorWarning, match="candidates of first, not those of judged, on"):
        ScoringPipeline(wide.fit(collection), again.ranker)
    with pytest.raises(InputError, match="depth=7: candidates give BM25 the depth 100; leave"):
        FeatureBuilder(["vsm"], depth=7, candidates=wide.candidates)
    assert FeatureBuilder(["vsm"], depth=7, candidates={"judged": {}}).depth == 7


def test_damaged_files_of_a_pipeline_are_named(pipeline, tmp_path):
    """Also where they could be read, and would give other scores."""
    pipeline.save(tmp_path / "p")
    digests = tmp_path / "p" / "features" / "digests.json"
    model = next((tmp_path / "p" / "features" / "models").glob("*.safetensors"))
    described = tmp_path / "p" / "features" / "features.json"
    for path, damage in (
        (model, lambda whole: whole[:-1] + bytes([whole[-1] ^ 1])),
        (described, lambda whole: whole.replace(b"letor46", b"letter6")),
        (described, lambda whole: whole.replace(b"500.0", b"501.0")),
    ):
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        with pytest.raises(InputError, match=rf"{path.name} is damaged: it is not the file that"):
            ScoringPipeline.load(tmp_path / "p")
        path.write_bytes(whole)
    model.write_bytes(b"no model")
    digests.unlink()
    with pytest.raises(InputError, match=r"not a readable model file .*; fit it again$"):
        ScoringPipeline.load(tmp_path / "p")
    model.unlink()
    with pytest.raises(InputError, match=r"no such model file$"):
        ScoringPipeline.load(tmp_path / "p")


class OwnRanker(LambdaMART):
    name = "own-ranker"


def test_a_pipeline_with_a_ranker_of_one_s_own_is_loaded_with_its_class(pipeline, tmp_path):
    ranker = OwnRanker(**pipeline.ranker.get_params())
    ranker.__dict__.update(pipeline.ranker.__dict__)
    ScoringPipeline(pipeline.features, ranker).save(tmp_path / "p")
    with pytest.raises(InputError, match=r"no ranker 'own-ranker'.*load\(folder, ranker=MyRanker"):
        ScoringPipeline.load(tmp_path / "p")
    again = ScoringPipeline.load(tmp_path / "p", ranker=OwnRanker)
    assert type(again.ranker) is OwnRanker
