"""The names that ``ltr_features`` has, and had."""

from __future__ import annotations

import importlib

import pytest
from builders import two_documents

import ltr_features
from ltr_features import FeatureBuilder, LearnedColumn
from ltr_features.candidates import candidate_sources
from ltr_features.columns import ColumnSpec, registry
from ltr_features.studies.kinds.sections import ModelConfig
from ssi_models.ssi.low_rank import LowRankSSI


def test_the_names_of_the_package_are_there():
    for name in ltr_features.__all__:
        assert getattr(ltr_features, name) is not None
    assert dir(ltr_features) == sorted(ltr_features.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ltr_features.Nothing


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
