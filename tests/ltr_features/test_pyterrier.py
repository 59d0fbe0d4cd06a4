"""The real PyTerrier (no Java): columns in pipelines with >>, ** and a LightGBM learner."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pt = pytest.importorskip("pyterrier", reason="the extra pyterrier is not installed")

import lightgbm  # noqa: E402
from toys import topics as six_topics  # noqa: E402

from letor.errors import InputError  # noqa: E402
from letor.folds import k_fold  # noqa: E402
from letor.rankers.lambdamart import LambdaMART  # noqa: E402
from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline  # noqa: E402
from ltr_features.pyterrier import (  # noqa: E402
    ColumnReranker,
    LtrArtifact,
    LtrFeatures,
    PipelineReranker,
)


@pytest.fixture(scope="module")
def collection():
    return six_topics()


@pytest.fixture(scope="module")
def builder(collection):
    ssi = LearnedColumn("ssi", "ssi", {"rank": 4, "max_epochs": 2, "batch_size": 16})
    return FeatureBuilder(["letor46", "vsm"], [ssi]).fit(collection, collection.query_ids[:12])


@pytest.fixture(scope="module")
def topics(collection):
    return pd.DataFrame({"qid": collection.query_ids, "query": collection.query_texts})


@pytest.fixture(scope="module")
def qrels(collection):
    j = collection.judgements
    ids, docs = np.array(collection.query_ids), np.array(collection.document_ids)
    return pd.DataFrame({"qid": ids[j.query], "docno": docs[j.document], "label": j.grade})


@pytest.fixture(scope="module")
def first_stage(collection):
    """Every fifth document, as a retriever without an index would give them."""

    def retrieve(topics):
        docnos = collection.document_ids[::5]
        rows = topics.loc[topics.index.repeat(len(docnos))].reset_index(drop=True)
        rows["docno"] = list(docnos) * len(topics)
        rows["score"] = np.tile(np.arange(len(docnos), 0.0, -1), len(topics))
        return pt.model.add_ranks(rows)

    return pt.apply.generic(retrieve)


def test_features_are_the_builder_s_columns(builder, first_stage, topics):
    found = (first_stage >> LtrFeatures(builder)).transform(topics.iloc[12:14])
    expected = builder.matrix(found)
    np.testing.assert_array_equal(np.stack(found["features"]), expected)
    assert {"qid", "query", "docno", "score", "rank"} <= set(found.columns)


def test_named_and_chosen_columns(builder, first_stage, topics):
    chosen = LtrFeatures(builder, ["ssi", "bm25_body"], named=True)
    found = (first_stage >> chosen).transform(topics.iloc[:1])
    assert np.stack(found["features"]).shape == (12, 2)
    np.testing.assert_array_equal(found["ssi"], np.stack(found["features"])[:, 0])
    assert chosen.transform_outputs(["qid", "query", "docno"])[-3:] == [
        "features", "ssi", "bm25_body",
    ]  # fmt: skip


def test_feature_unions(builder, first_stage, topics):
    two = LtrFeatures(builder, ["vsm"]) ** ColumnReranker(builder, "ssi")
    found = (first_stage >> two).transform(topics.iloc[:2])
    expected = builder.transform(found[["qid", "query", "docno"]])[["vsm", "ssi"]]
    np.testing.assert_array_equal(np.stack(found["features"]), expected)
    fused = (LtrFeatures(builder, ["vsm"]) ** LtrFeatures(builder, ["ssi"])).compile()
    assert isinstance(fused, LtrFeatures)
    assert fused.columns == ["vsm", "ssi"]


def test_a_learner_on_the_features(builder, first_stage, topics, qrels):
    learner = lightgbm.LGBMRanker(n_estimators=15, min_child_samples=5, verbose=-1, num_threads=1)
    pipeline = (
        first_stage >> LtrFeatures(builder) >> pt.ltr.apply_learned_model(learner, form="ltr")
    )
    pipeline.fit(topics.iloc[:12], qrels, topics.iloc[12:18], qrels)
    table = pt.Experiment(
        [first_stage, pipeline], topics.iloc[18:], qrels, ["ndcg_cut_10"], names=["first", "ltr"]
    ).set_index("name")["ndcg_cut_10"]
    assert table["ltr"] > table["first"] + 0.05


@pytest.fixture(scope="module")
def pipeline(builder, collection):
    folds = builder.folds(collection, k_fold(collection.query_ids, 4, seed=0))[0]
    ranker = LambdaMART(n_estimators=10, min_data_in_leaf=5).fit(folds[0], folds[1])
    return ScoringPipeline(builder, ranker)


def test_pipelines_are_artifacts(pipeline, first_stage, topics, tmp_path):
    found = (first_stage >> PipelineReranker(pipeline)).transform(topics.iloc[:2])
    one = found[found["qid"] == "q1"]
    np.testing.assert_array_equal(
        one["score"].to_numpy(np.float32),
        pipeline.score(topics["query"][1], one["docno"].tolist()),
    )
    assert found["rank"].max() == 11
    LtrArtifact.make(pipeline, tmp_path / "artifact")
    twice = pd.concat([found, found.iloc[::-1]])  # an index with repeated labels
    np.testing.assert_array_equal(
        PipelineReranker(pipeline).transform(twice)["score"], twice["score"]
    )
    loaded = pt.Artifact.load(str(tmp_path / "artifact"))
    again = (first_stage >> loaded.reranker()).transform(topics.iloc[:2])
    pd.testing.assert_frame_equal(again, found)
    assert loaded.features(["ssi"]).columns == ["ssi"]


def test_rows_without_a_query_in_words_are_refused(builder, pipeline, first_stage, topics):
    rows = first_stage.transform(topics.iloc[:2])
    for query, message in (
        (None, "row 3 of the frame has no query"),
        ("applypipeline:off ship^1.0 sea^0.3", "Terrier's query language.*pt.rewrite.reset"),
        ("ship #combine:0=0.1(#1(ship sea))", "Terrier's query language"),
    ):
        rows.loc[3, "query"] = query
        for transformer in (
            LtrFeatures(builder), ColumnReranker(builder, "ssi"), PipelineReranker(pipeline)
        ):  # fmt: skip
            with pytest.raises(InputError, match=message):
                transformer.transform(rows)


def test_words_that_only_look_like_terrier_s_language_are_words(builder, first_stage, topics):
    rows = first_stage.transform(topics.iloc[:1]).assign(query="issue #12: a ship")
    assert len(LtrFeatures(builder).transform(rows)) == len(rows)


def test_empty_frames_and_unknown_columns(builder):
    empty = pd.DataFrame({"qid": [], "query": [], "docno": []}, dtype=object)
    assert LtrFeatures(builder).transform(empty)["features"].tolist() == []
    assert len(ColumnReranker(builder, "ssi").transform(empty)) == 0
    with pytest.raises(InputError, match="the builder has no column nothing; it has"):
        LtrFeatures(builder, ["nothing"])
    with pytest.raises(Exception, match="query"):
        LtrFeatures(builder).transform(empty.drop(columns="query"))
