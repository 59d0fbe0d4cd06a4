"""Building columns and scoring one query at a time: the numbers of the batch path, to the bit."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import shutil
import warnings
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from toys import context_of, toy

import ltr_features
from letor import plugins
from letor.digests import write_digests
from letor.errors import InputError, LetorWarning
from letor.folds import k_fold
from letor.rankers.base import NotFittedError
from letor.rankers.lambdamart import LambdaMART
from letor.svmlight import read_letor
from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline, read_collection
from ltr_features.candidates import candidate_sources
from ltr_features.columns import ColumnFamily, ColumnSpec, Letor46, VectorSpace, registry
from ltr_features.columns.out_of_fold import train_parts
from ltr_features.columns.trained import TrainedColumn
from ltr_features.studies.kinds.sections import ModelConfig
from ltr_features.text.collection import Judgements, Pairs
from ssi_models.ssi.low_rank import LowRankSSI

N_TOPICS, N_DOCUMENTS, N_QUERIES = 8, 96, 48


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(4)
    documents = [
        " ".join([*(f"t{d % N_TOPICS}w{w}" for w in rng.integers(5, size=6)),
                  *(f"common{w}" for w in rng.integers(9, size=7))])
        for d in range(N_DOCUMENTS)
    ]  # fmt: skip
    texts = [f"t{q % N_TOPICS}w{q % 5} common{q % 9} common{(q + 2) % 9}" for q in range(N_QUERIES)]
    texts[-1] = "wordless"
    query, document = np.nonzero(
        np.arange(N_QUERIES)[:, None] % N_TOPICS == np.arange(N_DOCUMENTS) % N_TOPICS
    )
    fields = {"body": documents, "title": [text.split()[0] for text in documents]}
    judged = Judgements(query, document, np.ones(len(query), np.int64))
    return toy(fields, texts, judged, name="topics")


@pytest.mark.parametrize("by", ["group", "query"])
def test_models_hold_out_whole_groups_where_the_folds_keep_them(collection, tmp_path, by):
    """And are then those of ``columns build --by-group`` and of experiments by group."""
    groups = [f"article{q // 4}" for q in range(N_QUERIES)]
    grouped = replace(collection, query_groups=groups)
    folds = k_fold(grouped.query_ids, 4, seed=0, groups=groups if by == "group" else None)
    builder = FeatureBuilder([], [MODELS[0]], depth=20, models_folder=tmp_path / "kept")
    builder.folds(grouped, folds)
    context = context_of(grouped)
    column = TrainedColumn(context, MODELS[0], tmp_path / "kept", hold_out_groups=by == "group")
    parts = [train_parts(grouped, folds, fold) for fold in folds]
    expected = {
        column.path(np.concatenate(of_fold), of_fold, number)
        for of_fold in parts
        for number in range(1 + len(of_fold))
    }
    assert set((tmp_path / "kept").glob("*.safetensors")) == expected
    written = {path: path.stat().st_mtime_ns for path in expected}
    builder.fit(grouped, folds[1].train, folds=folds)  # loads the fold's own model
    assert {path: path.stat().st_mtime_ns for path in expected} == written
    assert set((tmp_path / "kept").glob("*.safetensors")) == expected


MODELS = (
    LearnedColumn("ssi", "ssi", {"rank": 4, "max_epochs": 2, "batch_size": 16, "seed": 1}),
    LearnedColumn("wtm", "wtm", {}, field="title", word_weight=0.5),
)


@pytest.fixture(scope="module")
def folds(collection):
    return k_fold(collection.query_ids, 4, seed=0)


@pytest.fixture(scope="module")
def builder(collection, folds, tmp_path_factory):
    made = FeatureBuilder(
        {"letor46": {"mu": 500.0}, "vsm": {}},
        MODELS,
        depth=20,
        models_folder=tmp_path_factory.mktemp("models"),
    )
    return made.fit(collection, folds[0].train, folds=folds)


@pytest.fixture(scope="module")
def parts(builder, collection, folds):
    return builder.folds(collection, folds)[0]


@pytest.fixture(scope="module")
def pipeline(builder, parts):
    ranker = LambdaMART(n_estimators=20, min_data_in_leaf=5).fit(parts[0], parts[1])
    return ScoringPipeline(builder, ranker)


def assert_same_folds(made, expected):
    for fold, others in zip(made, expected, strict=True):
        for part, other in zip(fold, others, strict=True):
            np.testing.assert_array_equal(part.X, other.X)
            assert part.provenance == other.provenance


def models_in(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def test_workers_fit_the_same_models(builder, collection, folds, tmp_path, workers):
    scheduler = workers.scheduler_address
    spread = FeatureBuilder(
        builder.families, MODELS, depth=20, models_folder=tmp_path, scheduler=scheduler
    )
    assert_same_folds(spread.folds(collection, folds), builder.folds(collection, folds))
    assert models_in(tmp_path) == models_in(builder.models_folder)
    with pytest.raises(InputError, match=r"scheduler: .*models_folder: name one that all of them"):
        FeatureBuilder(scheduler="local:2")


def test_workers_give_models_by_a_url_and_go_on(
    builder, collection, folds, tmp_path, workers, monkeypatch
):
    place = tmp_path / "parts"
    place.mkdir()

    def spread():
        return FeatureBuilder(
            builder.families,
            MODELS,
            depth=20,
            models_folder=tmp_path / "models",
            scheduler=workers.scheduler_address,
            parts=f"file://{place}",
        )

    with monkeypatch.context() as patch:  # this process is cut off when it takes the first model
        patch.setattr("ltr_features.part_store.PartUrl.reading", cut_off)
        with pytest.raises(KeyboardInterrupt):
            spread().folds(collection, folds)
    assert not list((tmp_path / "models").glob("*.safetensors"))
    kept = {path: path.stat().st_mtime_ns for path in place.glob("*.safetensors")}
    assert kept
    removed = []
    monkeypatch.setattr(
        "ltr_features.part_store.PartUrl.remove",
        lambda self: removed.append({path: path.stat().st_mtime_ns for path in kept}),
    )
    assert_same_folds(spread().folds(collection, folds), builder.folds(collection, folds))
    assert removed == [kept]
    monkeypatch.undo()
    assert models_in(tmp_path / "models") == models_in(builder.models_folder)
    spread().folds(collection, folds)  # there is nothing to fit
    assert not list(place.iterdir())
    with pytest.raises(InputError, match="parts: only workers make parts: give scheduler too"):
        FeatureBuilder(parts="s3://bucket")


def cut_off(store, name):
    raise KeyboardInterrupt


def frame_of(collection, data):
    text = dict(zip(collection.query_ids, collection.query_texts, strict=True))
    qids = [data.query_ids[i] for i in data.query_index]
    return pd.DataFrame(
        {"docno": list(data.document_ids), "query": [text[q] for q in qids], "qid": qids}
    )


def test_folds_have_all_columns_and_no_query_twice(builder, parts):
    names = [set(part.query_ids) for part in parts]
    assert not names[0] & names[2]
    assert not names[0] & names[1]
    assert len(builder.column_names) == 49
    assert all(part.column_names == builder.column_names for part in parts)
    # The query that no document shares a word with has no rows.
    assert "q47" not in set().union(*names)


def test_folds_that_separate_queries_of_one_text_are_told(collection):
    texts = [*collection.query_texts[:-1], collection.query_texts[0].upper()]
    alike = replace(collection, query_texts=texts)
    builder = FeatureBuilder([VectorSpace()])
    last, first = alike.query_ids[-1], alike.query_ids[0]
    for seed in range(9):
        folds = k_fold(alike.query_ids, 4, seed=seed)
        if not any({first, last} <= set(fold.test) for fold in folds):
            break
    with pytest.warns(UserWarning, match=r"1 test query has the same text as a training"):
        builder.folds(alike, folds)
    folds = k_fold(alike.query_ids, 4, seed=seed, groups=alike.kept_together())
    assert any({first, last} <= set(fold.test) for fold in folds)
    with pytest.warns(UserWarning, match="same text as another one") as told:
        builder.folds(alike, folds)
    assert not any("the same text as a training" in str(one.message) for one in told)


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


def test_families_are_checked_before_models_are_trained(collection, tmp_path):
    (tmp_path / "other.run").write_text("strange Q0 document 1 1.0 engine\n")
    scores = {"scores": {"files": {"engine": str(tmp_path / "other.run")}}}
    made = FeatureBuilder(scores, MODELS, models_folder=tmp_path / "models")
    with pytest.raises(InputError, match=r"other\.run: none of its 1 query ids \('strange'\)"):
        made.fit(collection)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_pipelines_need_fitted_rankers(builder):
    with pytest.raises(NotFittedError, match="LambdaMART is not fitted: call fit first"):
        ScoringPipeline(builder, LambdaMART())


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


def test_one_query_is_scored_as_in_the_batch(pipeline, collection, parts):
    test = parts[2]
    expected = pipeline.ranker.predict(test)
    for row, query in enumerate(test.query_ids[:4]):
        mine = np.flatnonzero(test.query_index == row)
        text = collection.query_texts[collection.query_ids.index(query)]
        docnos = [test.document_ids[i] for i in mine]
        np.testing.assert_array_equal(pipeline.score(text, docnos), expected[mine])


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
    builder, pipeline, collection, parts, tmp_path, monkeypatch
):
    """Neither put together by hand, nor where one replaces the other while it is loaded."""
    other = ScoringPipeline(builder, LambdaMART(n_estimators=3).fit(parts[0]))
    for name, made in (("p", pipeline), ("q", other)):
        made.save(tmp_path / name)
    shutil.rmtree(tmp_path / "q" / "ranker")
    shutil.copytree(tmp_path / "p" / "ranker", tmp_path / "q" / "ranker")
    with pytest.raises(InputError, match=r"q/ranker/digests\.json is damaged: it is not the file"):
        ScoringPipeline.load(tmp_path / "q")

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
    with warnings.catch_warnings():
        warnings.simplefilter("error", LetorWarning)
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
    with pytest.warns(LetorWarning, match=r"BM25's best 100 documents, not the .* of judged, on"):
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


class Twin(VectorSpace):
    name = "twin"
    suffix = ""

    @property
    def columns(self):
        return [replace(column, name=f"twin{self.suffix}") for column in super().columns]


def test_families_of_one_name_are_refused(collection, tmp_path):
    class Other(Twin):
        suffix = "2"

    with pytest.raises(InputError, match="two classes of column families have the name 'twin'"):
        FeatureBuilder([Twin(), Other()])
    second = Twin()
    second.suffix = "2"
    builder = FeatureBuilder([Twin(), second]).fit(collection)
    with pytest.raises(InputError, match="two families are called 'twin' and cannot be told apart"):
        builder.save(tmp_path / "b")


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


def test_the_names_of_the_package_are_there():
    for name in ltr_features.__all__:
        assert getattr(ltr_features, name) is not None
    assert dir(ltr_features) == sorted(ltr_features.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ltr_features.Nothing


def test_two_columns_of_one_name_and_no_depth_are_refused():
    with pytest.raises(InputError, match="two columns are called vsm; rename one"):
        FeatureBuilder(["vsm"], [LearnedColumn("vsm", "tfidf")])
    for depth in (0, True, 1.5, "1"):
        with pytest.raises(InputError, match="depth must be a whole number, 1 or more, got"):
            FeatureBuilder(["vsm"], depth=depth)


def two_documents(*ids, texts=("red shoe", "blue hat")):
    judged = Judgements(*np.array([[0], [0], [1]]))
    return replace(toy({"body": list(texts)}, ["red"], judged), document_ids=list(ids))


def test_a_builder_that_is_fitted_again_knows_the_new_documents():
    made = FeatureBuilder(["vsm"]).fit(two_documents("a", "b"))
    rows = pd.DataFrame({"qid": "1", "query": "red", "docno": ["b", "a"]})
    first = made.transform(rows)["vsm"].tolist()
    second = made.fit(two_documents("b", "a")).transform(rows)["vsm"].tolist()
    assert second == first[::-1]
    with pytest.raises(InputError, match="no document 'b'"):
        made.fit(two_documents("a", "c")).transform(rows)


class Length(ColumnFamily):
    """A family that no registry knows."""

    name = "length"
    description = "words of the document"
    reference = "a test"
    columns = (ColumnSpec("length", "words", "words", ">= 0", "a test"),)

    def compute(self, context, pairs):
        context.check(pairs)
        return context.index.field("body").lengths[pairs.document][:, None].astype(np.float32)


class OwnSSI(LowRankSSI):
    """A model that no registry knows."""


def test_families_and_models_are_given_as_objects(collection, folds, tmp_path):
    model = OwnSSI(rank=4, max_epochs=2, batch_size=16, seed=1)
    column = LearnedColumn("ssi", model)
    builder = FeatureBuilder([Length(), VectorSpace()], [column], depth=20, threads=1)
    train, _, test = builder.folds(collection, folds)[0]
    named = FeatureBuilder(["vsm"], [MODELS[0]], depth=20, threads=1).folds(collection, folds)[0]
    for part, other in ((train, named[0]), (test, named[2])):
        assert list(part.column_names) == ["length", "vsm", "ssi"]
        np.testing.assert_array_equal(part.X[:, 1:], other.X)
    assert not hasattr(model, "U_")  # the one given is never fitted
    builder.fit(collection, folds[0].train, folds=folds).save(tmp_path / "b")
    with pytest.raises(InputError, match=r"family 'length' cannot be restored.*families=\["):
        FeatureBuilder.load(tmp_path / "b")
    with pytest.raises(InputError, match=r"the model of column 'ssi' is not registered"):
        FeatureBuilder.load(tmp_path / "b", families=[Length()])
    again = FeatureBuilder.load(tmp_path / "b", families=[Length()], models=[column], threads=1)
    frame = frame_of(collection, test)
    np.testing.assert_array_equal(again.matrix(frame), builder.matrix(frame))


def test_a_family_of_a_package_that_is_not_there_is_given_as_an_object(
    collection, tmp_path, monkeypatch
):
    point = EntryPoint("length", f"{__name__}:Length", "ltr_features.columns")
    with monkeypatch.context() as installed:
        installed.setattr(plugins, "entry_points", lambda group: [point])
        FeatureBuilder(["length"], threads=1).fit(collection).save(tmp_path / "b")
        assert FeatureBuilder.load(tmp_path / "b").column_names == ["length"]
    with pytest.raises(InputError, match=r"install the package that.*, or .* families=\["):
        FeatureBuilder.load(tmp_path / "b")
    again = FeatureBuilder.load(tmp_path / "b", families=[Length()])
    assert again.column_names == ["length"]


def test_a_registered_model_as_an_object_is_the_model_of_that_name():
    params = {"rank": 4, "max_epochs": 2, "batch_size": 16, "seed": 1}
    assert LearnedColumn("ssi", LowRankSSI(**params)) == LearnedColumn("ssi", "ssi", params)
    assert LearnedColumn("x", LowRankSSI) == LearnedColumn("x", "ssi")
    with pytest.raises(InputError, match="column 'x': give params to the model itself"):
        LearnedColumn("x", LowRankSSI(), {"rank": 3})


def test_old_names_are_there_for_one_release():
    with pytest.warns(FutureWarning, match="ModelColumn is called LearnedColumn"):
        assert ltr_features.ModelColumn is LearnedColumn
    with pytest.warns(FutureWarning, match=r"called ltr_features\.feature_builder now"):
        pipeline = importlib.import_module("ltr_features.pipeline")
    assert pipeline.FeatureBuilder is FeatureBuilder
    with pytest.warns(FutureWarning, match=r"ColumnSpec is in ltr_features\.columns\.base now"):
        assert registry.ColumnSpec is ColumnSpec
    context = FeatureBuilder(["vsm"]).fit(two_documents("a", "b")).context_
    with pytest.warns(FutureWarning, match="once is called cached"):
        assert context.once("key", lambda: 1) == context.cached("key", lambda: 2) == 1
    with pytest.warns(FutureWarning, match="stream is now field"):
        assert LearnedColumn("x", "lsa", stream="title") == LearnedColumn("x", "lsa", field="title")
    with pytest.warns(FutureWarning, match="model 'tfidf' is now 'vsm'") as told:
        described = ModelConfig(name="x", model="tfidf")
    assert (len(told), described.model) == (1, "vsm")
    assert described.recipe == LearnedColumn("x", "vsm")  # without a word
    with pytest.warns(FutureWarning, match="model 'tfidf' is now 'vsm'") as told:
        column = LearnedColumn("x", "tfidf")
    assert (len(told), column.model, column.kind.name) == (1, "vsm", "vsm")
    with pytest.warns(FutureWarning, match="Collection.streams is called fields now"):
        assert context.collection.streams is context.collection.fields
    with pytest.warns(FutureWarning, match="stream is now field"):
        sources = candidate_sources({"lsi": {"stream": "title"}})
    assert sources["lsi"].field == "title"
    with pytest.warns(FutureWarning, match="stream is now field"):
        assert ModelConfig(name="x", model="lsa", stream="title").field == "title"
    assert (
        LearnedColumn.from_json({"name": "x", "model": "lsa", "stream": "title"}).field == "title"
    )


@pytest.mark.parametrize(
    "use",
    [
        lambda: ltr_features.ModelColumn,
        lambda: LearnedColumn("x", "lsa", stream="title"),
        lambda: LearnedColumn("x", "tfidf"),
        lambda: LearnedColumn("x", "ssi", {"emphasis": "warp"}),
        lambda: LowRankSSI(emphasis="warp"),
        lambda: LowRankSSI().set_params(emphasis="warp"),
        lambda: FeatureBuilder(["vsm"], candidates={"lsi": {"stream": "title"}}),
    ],
)
def test_a_former_name_is_told_at_the_line_that_uses_it(use):
    with pytest.warns(FutureWarning) as told:
        use()
    (warning,) = told
    assert (warning.filename, warning.lineno) == (__file__, use.__code__.co_firstlineno)


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


@pytest.mark.parametrize("model", ["ssi", "lsa"])
def test_folds_that_train_on_one_part_are_refused_before_models_are_fitted(
    collection, model, tmp_path
):
    folds = k_fold(collection.query_ids, 3, seed=0)
    builder = FeatureBuilder([], [LearnedColumn("x", model)], models_folder=tmp_path)
    with pytest.raises(InputError, match="at least two parts of training queries: give 4 or more"):
        builder.folds(collection, folds)
    assert not list(tmp_path.iterdir())
    if model == "ssi":
        with pytest.raises(InputError, match="at least two parts of training queries"):
            builder.fit(collection, folds[0].train, folds=folds)


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
    monkeypatch.setattr("ltr_features.progress.find_spec", lambda name: None)
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
