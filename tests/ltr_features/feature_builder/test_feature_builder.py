"""Columns of frames, and what a builder tells and refuses."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from builders import MODELS, N_QUERIES, frame_of, two_documents
from sklearn.base import clone
from toys import toy

from letor.errors import InputError
from letor.folds import k_fold
from letor.rankers.base import NotFittedError
from letor.svmlight import read_letor
from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline, read_collection
from ltr_features.columns import ColumnSpec, VectorSpace
from ltr_features.text.collection import Judgements, Pairs
from ssi_models.ssi.low_rank import LowRankSSI


def test_families_are_checked_before_models_are_trained(collection, tmp_path):
    (tmp_path / "other.run").write_text("strange Q0 document 1 1.0 engine\n")
    scores = {"scores": {"files": {"engine": str(tmp_path / "other.run")}}}
    made = FeatureBuilder(scores, MODELS, models_folder=tmp_path / "models")
    with pytest.raises(InputError, match=r"other\.run: none of its 1 query ids \('strange'\)"):
        made.fit(collection)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_query_words_that_no_document_has_are_told(collection):
    texts = [f"{text} sofa" for text in collection.query_texts]
    strange = replace(collection, query_texts=texts)
    message = r"\d+ % of the words in queries occur in no document \(most often sofa, wordless\)"
    with pytest.warns(UserWarning, match=message):
        FeatureBuilder([VectorSpace()]).fit(strange)


def test_ids_of_frames_may_be_numbers_as_those_of_collections():
    words = {"text": ["a car", "a train"]}
    known = read_collection(
        "table",
        documents=pd.DataFrame({"id": [7, 8], **words}),
        queries=pd.DataFrame({"id": [1, 2], "text": ["car", "train"]}),
        judgements=pd.DataFrame({"query": [1, 2], "document": [7, 8], "grade": 1}),
    )
    frame = pd.DataFrame({"qid": [1, 1], "query": "car", "docno": [7, 8]})
    found = FeatureBuilder(["vsm"]).fit(known).transform(frame)["vsm"]
    assert found[0] > found[1] == 0


def test_collections_have_short_names(collection):
    assert repr(collection).startswith("<Collection 'topics': ")
    assert len(repr(collection)) < 100


def test_a_frame_gets_the_batch_s_columns_to_the_bit(builder, collection, parts):
    """Test rows were scored by the model of all training queries, as ``fit`` trained it."""
    frame = frame_of(collection, parts[2]).assign(extra=1.5)
    shuffled = frame.sample(frac=1, random_state=3)
    found = builder.transform(shuffled)
    pd.testing.assert_frame_equal(
        builder.transform(pa.Table.from_pandas(shuffled, preserve_index=False)),
        found.reset_index(drop=True),
    )
    assert list(found.columns[:4]) == ["docno", "query", "qid", "extra"]
    assert found.index.equals(shuffled.index)
    np.testing.assert_array_equal(
        found.loc[frame.index, builder.column_names].to_numpy(np.float32), parts[2].X
    )


def test_wrong_requests_are_named(builder, pipeline, collection, parts):
    frame = frame_of(collection, parts[2])
    with pytest.raises(InputError, match="has no column query"):
        builder.transform(frame.drop(columns="query"))
    with pytest.raises(InputError, match="collection 'topics' has no document 'd999'"):
        builder.transform(frame.assign(docno="d999"))
    for name in ("qid", "query", "docno"):
        values = [*frame[name][:2], None, float("nan"), *frame[name][4:]]
        with pytest.raises(InputError, match=f"row 2 of the frame has no {name}"):
            builder.transform(frame.assign(**{name: values}))
    for places, found in (([0.7], "float64"), (["0"], "<U1")):
        with pytest.raises(InputError, match=f"query must be an array of integers, got {found}"):
            builder.compute(["word"], places, ["d1"])
    with pytest.raises(InputError, match=r"queries must be a list of texts, such as \['word'\]"):
        builder.compute("word", [0], ["d1"])
    with pytest.raises(InputError, match="has two different texts"):
        builder.transform(frame.assign(qid="q", query=[f"x{i % 2}" for i in range(len(frame))]))
    with pytest.raises(InputError, match="the frame has columns vsm already"):
        builder.transform(frame.assign(vsm=1.0))
    with pytest.raises(InputError, match="the collection has no query 'q999'"):
        FeatureBuilder().fit(collection, ["q999"])
    with pytest.raises(NotFittedError, match="call fit or load"):
        FeatureBuilder().transform(frame)
    with pytest.raises(InputError, match="a builder needs a family or a model"):
        FeatureBuilder([])
    with pytest.raises(InputError, match="the ranker needs the columns ssi, vsm, wtm"):
        ScoringPipeline(FeatureBuilder().fit(collection), pipeline.ranker)


def test_numbers_of_numpy_are_options_and_can_be_saved(collection, tmp_path):
    doc2vec = {"dimension": 4, "min_count": 1, "epochs": 1, "folder": tmp_path / "vectors"}
    frame = pd.DataFrame({"qid": ["q0"], "query": collection.query_texts[:1], "docno": ["d3"]})
    columns = []
    for whole, number in ((int, float), (np.int64, np.float32)):
        families = {"d2v-word": {**doc2vec, "dimension": whole(4)}}
        params = {"rank": whole(2), "max_epochs": whole(1), "margin": number(0.25)}
        builder = FeatureBuilder(families, [LearnedColumn("ssi", "ssi", params)]).fit(collection)
        builder.save(tmp_path / whole.__name__)
        columns.append(FeatureBuilder.load(tmp_path / whole.__name__).transform(frame))
    pd.testing.assert_frame_equal(*columns)
    assert len(list((tmp_path / "vectors").iterdir())) == 1


def test_columns_of_a_frame_are_texts_by_their_position(collection):
    backwards = np.arange(max(collection.n_documents, collection.n_queries))[::-1]

    def series(values):
        return pd.Series(list(values), index=backwards[: len(values)])

    same = replace(
        collection,
        document_ids=series(collection.document_ids),
        fields={name: series(texts) for name, texts in collection.fields.items()},
        query_ids=series(collection.query_ids),
        query_texts=series(collection.query_texts),
    )
    families = {"vsm": {}, "d2v-word": {"dimension": 4, "min_count": 1, "epochs": 1}}
    folds = k_fold(collection.query_ids, 3, seed=0)
    ours, theirs = (
        FeatureBuilder(families, depth=5).folds(given, folds)[0][0] for given in (collection, same)
    )
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.document_ids, theirs.document_ids)


@pytest.mark.parametrize("name", ["", " ", None, 3, "a\nb", "a#b"])
def test_names_that_files_cannot_hold_are_refused(name):
    with pytest.raises(InputError, match="the name must be text, not empty"):
        ColumnSpec(name, "description", "unit", "any", "reference")
    with pytest.raises(InputError, match="the name must be text, not empty"):
        LearnedColumn(name, "vsm")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fields": {"body": "ab"}}, "field 'body' must be a list of texts, got the text 'ab'"),
        ({"query_texts": [None]}, "the text of query 'q0' is None, not text"),
        ({"document_ids": np.array([1, 2])}, "document ids must be text, got"),
        (
            {"judgements": Judgements(*np.array([[0, 0], [1, 1], [1, 2]]))},
            "query 'q0' and document 'd1' are judged twice, by different grades",
        ),
    ],
)
def test_collections_of_other_sources_are_checked(changed, said):
    two = toy({"body": ["word", "words"]}, ["word"])
    with pytest.raises(InputError, match=said):
        replace(two, **changed)


def test_two_columns_of_one_name_and_no_depth_are_refused():
    with pytest.raises(InputError, match="two columns are called vsm; rename one"):
        FeatureBuilder(["vsm"], [LearnedColumn("vsm", "tfidf")])
    for depth in (0, True, 1.5, "1"):
        with pytest.raises(InputError, match="depth must be a whole number, 1 or more, got"):
            FeatureBuilder(["vsm"], depth=depth)


def test_models_that_some_systems_would_write_into_one_file_are_refused():
    made = FeatureBuilder([], [LearnedColumn("LSA", "lsa"), LearnedColumn("lsa", "lsa")])
    with pytest.raises(InputError, match="differ in case alone: 'lsa'; rename one"):
        made.fit(two_documents("a", "b"))


def test_a_builder_that_is_fitted_again_knows_the_new_documents():
    made = FeatureBuilder(["vsm"]).fit(two_documents("a", "b"))
    rows = pd.DataFrame({"qid": "1", "query": "red", "docno": ["b", "a"]})
    first = made.transform(rows)["vsm"].tolist()
    second = made.fit(two_documents("b", "a")).transform(rows)["vsm"].tolist()
    assert second == first[::-1]
    with pytest.raises(InputError, match="no document 'b'"):
        made.fit(two_documents("a", "c")).transform(rows)


def test_a_model_scores_no_documents_of_other_words():
    column = LearnedColumn("x", "vsm")
    fitted = FeatureBuilder([], [column]).fit(two_documents("a", "b")).fitted_[0]
    other = FeatureBuilder(["vsm"]).fit(two_documents("a", "b", texts=("red cap", "green hat")))
    pairs = Pairs(np.zeros(2, np.int64), np.arange(2))
    with pytest.raises(InputError, match="its model knows 4 words, the collection has 4 others"):
        fitted.compute(other.context_, pairs)


def test_other_things_than_folds_candidates_and_models_are_named(builder, collection):
    for folds in (5, k_fold(collection.query_ids, 3, seed=0)[0]):
        for call in (builder.folds, FeatureBuilder().fit):
            with pytest.raises(InputError, match="folds must be a list of folds, as k_fold makes"):
                call(collection, folds=folds)
    with pytest.raises(InputError, match="folds: give one or more"):
        builder.folds(collection, [])
    with pytest.raises(InputError, match="candidates must be sources with their options"):
        FeatureBuilder(candidates=["bm25"])
    for model in (None, dict, {"rank": 5}):
        with pytest.raises(InputError, match="column 'x': model must be the name of a model, or"):
            LearnedColumn("x", model)
    with pytest.raises(InputError, match=r"params must be parameters by name, .*, got \['rank'\]"):
        LearnedColumn("x", "ssi", ["rank"])


def test_wrong_arguments_are_named(builder, pipeline, collection):
    with pytest.raises(InputError, match="families must be a list of names"):
        FeatureBuilder("vsm")
    with pytest.raises(InputError, match="models must be a list of columns"):
        FeatureBuilder(["vsm"], ["ssi"])
    with pytest.raises(InputError, match="models must be a list of columns"):
        FeatureBuilder(["vsm"], LearnedColumn("ssi", "ssi"))
    for n in (-1, 1.5, "3"):
        with pytest.raises(InputError, match=f"n must be a whole number, 0 or more, got {n!r}"):
            pipeline.rank("t1w1", n)
    with pytest.raises(InputError, match="analyzer must be an Analyzer, such as"):
        builder.fit(collection, analyzer="english")
    with pytest.raises(InputError, match="collection must be a Collection, got DataFrame; read"):
        FeatureBuilder(["vsm"]).fit(pd.DataFrame({"docno": ["d1"], "title": ["red cap"]}))
    unjudged = replace(
        collection,
        judgements=replace(collection.judgements, grade=0 * collection.judgements.grade),
    )
    with pytest.raises(InputError, match="column 'mine': none of its training queries has a rel"):
        FeatureBuilder([], [LearnedColumn("mine", "ssi")]).fit(unjudged)
    others = k_fold([f"x{q}" for q in range(N_QUERIES)], 4, seed=0)
    with pytest.raises(InputError, match=r"'x.*' is not in collection 'topics'"):
        builder.folds(collection, others)


def test_a_clone_is_unfitted_and_computes_the_same(collection):
    builder = FeatureBuilder(["vsm"], [LearnedColumn("ssi", LowRankSSI(4, max_epochs=1))], depth=9)
    builder.fit(collection)
    again = clone(builder)
    assert "not fitted" in repr(again)
    assert ", fitted>" in repr(builder)
    assert again.depth == 9
    rows = (collection.query_texts[:3], np.arange(3), collection.document_ids[:3])
    np.testing.assert_array_equal(again.fit(collection).compute(*rows), builder.compute(*rows))


def test_builders_and_pipelines_are_shown_in_short(pipeline, collection):
    builder = FeatureBuilder(["vsm"], [LearnedColumn("mine", "lsa")])
    assert repr(builder) == "<FeatureBuilder: 2 columns (vsm, mine), not fitted>"
    assert repr(FeatureBuilder(["vsm"]).fit(collection)).endswith("1 column (vsm), fitted>")
    shown = repr(pipeline)
    assert shown.startswith("<ScoringPipeline: LambdaMART(")
    assert shown.endswith(f"on {pipeline.features!r}>")


def test_notebooks_see_the_columns_and_progress_is_shown_on_demand(
    collection, folds, capsys, monkeypatch
):
    quiet = FeatureBuilder(["vsm"]).folds(collection, folds)
    assert capsys.readouterr() == ("", "")
    loud = FeatureBuilder(["vsm"], progress=True)
    shown = loud.folds(collection, folds)
    np.testing.assert_array_equal(shown[0][2].X, quiet[0][2].X)
    out, err = capsys.readouterr()
    assert (out, "folds" in err) == ("", True)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("ltr_features.feature_builder.find_spec", lambda name: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rich's, without ipywidgets
        FeatureBuilder(["vsm"]).folds(collection, folds)
    assert "folds" in capsys.readouterr().err
    page = FeatureBuilder(["vsm"], MODELS[:1])._repr_html_()
    assert "<table" in page
    assert "cosine" in page
    assert "<td>ssi</td>" in page


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0], [1], [1]), "judgements.query must be an int64 array, got list"),
        ((np.zeros(1), np.zeros(1), np.zeros(1)), "must be an int64 array, got float64"),
        ((np.zeros(2, int), np.zeros(1, int), np.zeros(1, int)), r"shape \(1,\), must be \(2,\)"),
    ],
)
def test_judgements_are_arrays_of_whole_numbers(parts, message):
    with pytest.raises(InputError, match=message):
        Judgements(*parts)


def test_ids_are_text():
    with pytest.raises(InputError, match="document ids must be text, got 7"):
        two_documents(7, 8)


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_a_wrong_number_of_threads_is_told_at_once(threads, tmp_path):
    for refuse in (
        lambda: FeatureBuilder(["vsm"], threads=threads),
        lambda: read_letor(tmp_path / "absent.txt", threads=threads),
    ):
        with pytest.raises(ValueError, match=f"threads must be 1 or more, got {threads}"):
            refuse()
