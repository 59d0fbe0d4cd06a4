"""The rows of folds, and the models that columns of training rows come from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import MODELS, N_QUERIES
from toys import context_of

from letor.errors import InputError
from letor.folds import k_fold
from ltr_features import FeatureBuilder, LearnedColumn
from ltr_features.columns import VectorSpace
from ltr_features.columns.out_of_fold import train_parts
from ltr_features.columns.trained import TrainedColumn


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
