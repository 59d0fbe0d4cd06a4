"""Recipes of trained columns: what they say of themselves, and what they refuse."""

import json
import re

import numpy as np
import pytest
from toys import context_of, topics

from letor.errors import InputError
from ltr_features.columns.learned import LearnedColumn
from ssi_models.registry import get_model


def test_recipes_say_what_they_are():
    spec = LearnedColumn("ssi", "ssi", {"rank": 8}).spec
    assert spec.description.startswith("ssi: ")
    assert "Information Retrieval" in spec.reference
    assert LearnedColumn("wtm_mixed", "wtm", word_weight=0.5).spec.unit == "nats per query term"


def test_provenance_says_what_the_models_of_a_fold_share():
    ends = {
        "ssi": "the epoch at which they stop and their weight of word matching)",
        "opca": "share their weight of word matching)",
        "popularity": "did not see their queries' judgements",
    }
    for model, end in ends.items():
        assert LearnedColumn(model, model).provenance["trained on"].endswith(end)


def test_parameters_out_of_range_are_refused_with_the_recipe():
    with pytest.raises(InputError, match="column 'x': rank must be 1 or more, got 0"):
        LearnedColumn("x", "ssi", {"rank": 0})
    with pytest.raises(InputError, match="min_document_frequency: a model of counts takes all"):
        LearnedColumn("x", "plsa", min_document_frequency=3)
    with pytest.raises(InputError, match="column 'x': heaviest: a model of counts takes all terms"):
        LearnedColumn("x", "plsa", heaviest=3)
    with pytest.raises(InputError, match="column 'x': heaviest must be 1 or more, got 0"):
        LearnedColumn("x", "ssi", heaviest=0)
    stored = LearnedColumn("x", "plsa").to_json() | {"min_document_frequency": 3}
    assert LearnedColumn.from_json(stored).min_document_frequency == 1
    with pytest.raises(InputError, match="column 'x': list_share takes negatives from a query's"):
        LearnedColumn("x", "ssi", {"list_share": 0.5, "negatives": "given"})


def test_settings_are_numbers_of_any_library():
    for setting in ("heaviest", "min_document_frequency"):
        for wrong in (2.5, "20", True):
            said = f"column 'x': {setting} must be a whole number, got {wrong!r}"
            with pytest.raises(InputError, match=re.escape(said)):
                LearnedColumn("x", "ssi", **{setting: wrong})
        stored = json.dumps(LearnedColumn("x", "ssi", **{setting: np.int64(20)}).to_json())
        assert json.loads(stored)[setting] == 20
    with pytest.raises(InputError, match="column 'x': word_weight must be a number, got 'half'"):
        LearnedColumn("x", "ssi", word_weight="half")


def test_provenance_tells_which_share_of_candidates_was_learned_from():
    context, name = context_of(topics()), "list_share in use"
    default = get_model("ssi").default_params()["list_share"]
    for params, share in (({}, 0), ({"list_share": default}, default), ({"list_share": 0}, 0)):
        settings = LearnedColumn("x", "ssi", params).settings(context)
        assert settings[name] == share
        assert "list_share" not in settings
    assert name not in LearnedColumn("x", "lsi").settings(context)


def test_provenance_tells_that_a_column_without_judgements_learned_from_documents_alone():
    context = context_of(topics())
    for params in ({}, {"texts": "both"}, {"texts": "documents"}):
        settings = LearnedColumn("x", "lsa", params).settings(context)
        assert settings["texts in use"] == "documents"
        assert "texts" not in settings
    chosen = LearnedColumn("x", "lsa", {"word_weight": "auto"}).settings(context)
    assert chosen["texts"] == "both"


@pytest.mark.filterwarnings("error")
def test_former_names_of_parameters_are_told_once_and_replaced():
    with pytest.warns(FutureWarning, match="emphasis is now rank_weight"):
        column = LearnedColumn("x", "ssi", {"emphasis": "warp"})
    assert column.filled(seed=1).new_model().training.rank_weight == "warp"
    settings = column.settings(context_of(topics()))
    assert settings["rank_weight"] == "warp"
    assert "emphasis" not in settings
    with pytest.raises(InputError, match="column 'x': emphasis is now rank_weight, and both"):
        LearnedColumn("x", "ssi", {"emphasis": "warp", "rank_weight": "warp"})


@pytest.mark.parametrize(("model", "mixes"), [("unigram", False), ("lsa", True), ("plsa", True)])
def test_a_model_of_words_alone_is_not_said_to_be_mixed_with_them(model, mixes):
    described = LearnedColumn("x", model, word_weight=0.3).spec.description
    assert ("mixed with word matching (0.3)" in described) == mixes
