"""The paper's 34 columns as one family."""

import numpy as np
import pytest
from knowledge import word_knowledge
from toys import all_pairs, context_of, toy

from letor.errors import InputError
from ltr_features.columns.registry import get_family

SMALL = {"dimension": 8, "epochs": 2, "min_count": 1}


def test_the_paper_s_counts_and_the_parts_values():
    options = {**SMALL, "knowledge": word_knowledge()}
    whole = get_family("ensan2017", **options)
    names = whole.column_names
    assert len(names) == len(set(names)) == 34
    texts = [f"law tax word{i % 3} court {'hat ' * i}" for i in range(6)]
    fields = {"body": texts, "title": [text.split()[0] for text in texts]}
    here = context_of(toy(fields, ["tax hat"]), threads=1)
    pairs = all_pairs(here.collection)
    values, start = whole.compute(here, pairs), 0
    for name, count in (
        ("w2v-word", 8), ("w2v-entity", 8), ("d2v-word", 4), ("d2v-entity", 8), ("d2v-chunk", 6),
    ):  # fmt: skip
        own = {k: v for k, v in options.items() if k != "knowledge" or "entity" in name}
        part = get_family(name, **own)
        assert len(part.columns) == count
        np.testing.assert_array_equal(values[:, start : start + count], part.compute(here, pairs))
        start += count
    assert np.abs(values).max() > 0
    assert "w2v_word_avg_keywords" in whole.absent(here)


def test_its_parts_tell_what_their_sources_lack(tmp_path):
    (tmp_path / "other.vec").write_text("court 1 0\nof 0 1\n")
    options = {**SMALL, "knowledge": word_knowledge(), "vectors": str(tmp_path / "other.vec")}
    whole = get_family("ensan2017", **options)
    here = context_of(toy({"body": ["law tax word1", "court"]}, ["tax"]), threads=1)
    missing = dict(
        zip(whole.column_names, whole.n_missing(here, all_pairs(here.collection)), strict=True)
    )
    assert {name for name, n in missing.items() if n} == {
        name for name in whole.column_names if not name.startswith(("d2v_word", "d2v_chunk"))
    }
    said = whole.missing_remark("w2v_word_avg_body", 2, 2)
    part = get_family("w2v-word", vectors=options["vectors"])
    assert said == part.missing_remark("w2v_word_avg_body", 2, 2)
    assert whole.remarks_on(here) == part.remarks_on(here)
    assert "other.vec lacks 75 % of the words" in whole.remarks_on(here)[0]


def test_parameters_that_no_part_has_are_refused():
    with pytest.raises(InputError, match="has no option 'dimensions'; "):
        get_family("ensan2017", dimensions=3)


def test_settings_of_training_are_refused_where_nothing_is_trained_with_them(tmp_path):
    (tmp_path / "a.vec").write_text("court 1 0\n")
    (tmp_path / "a.model").write_text("")
    vectors, model = {"vectors": str(tmp_path / "a.vec")}, {"model": str(tmp_path / "a.model")}
    for given, unused in (
        ({**vectors, **model, "dimension": 8, "seed": 2}, "dimension, seed"),
        ({**vectors, "dimension": 8, "window": 3}, "window"),  # of words alone
    ):
        with pytest.raises(InputError, match=f"^{unused}: for training what vectors or model name"):
            get_family("ensan2017", **given)
        used = get_family("ensan2017").without_unused(given)
        assert get_family("ensan2017", **used).options == used  # as those of before are loaded
    assert get_family("ensan2017", **model, window=3).options["window"] == 3
