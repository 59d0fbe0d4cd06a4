"""Families and models that are given as objects."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from builders import MODELS, frame_of

from letor import plugins
from letor.errors import InputError
from ltr_features import FeatureBuilder, LearnedColumn
from ltr_features.columns import ColumnFamily, ColumnSpec, VectorSpace
from ssi_models.ssi.low_rank import LowRankSSI


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
