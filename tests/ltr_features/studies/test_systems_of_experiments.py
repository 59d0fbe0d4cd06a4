"""Systems of an experiment file: their rankers, names and comparisons."""

from __future__ import annotations

import pytest
from small_experiment import load

from letor.errors import InputError

GRID = """
title = "t"
collection = { source = "wikipedia-sections" }
columns = [{ family = "letor46" }, { family = "vsm" }]
rankers = [{ name = "a", ranker = "lambdamart" }, { name = "b", ranker = "adarank" }]
splits = [{ name = "s", title = "S" }]

[[systems]]
name = "words"
columns = ["letor46"]
rankers = ["a", "b"]

[[systems]]
name = "more"
columns = ["letor46", "vsm"]
rankers = ["b", "a"]

[[systems]]
name = "bm25"
score = "bm25_whole"

[evaluation]
measures = ["NDCG@10"]
comparisons = [["more", "words"], ["words", "bm25"]]
"""


def test_a_list_is_not_called_too_short_for_what_is_wrong_in_it(tmp_path):
    with pytest.raises(InputError) as error:
        load(tmp_path, GRID.replace('title = "S" }', 'title = "S", folds = 2 }'))
    assert "1 mistake:" in str(error.value)
    assert "splits.0.folds" in str(error.value)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[evaluation]", '[evaluation]\nheadline = ["more", "bm25"]', "headline .* comparisons$"),
        (
            "[evaluation]",
            '[evaluation]\nn_permutations = "9"',
            "evaluation.n_permutations: write 9, not '9'$",
        ),
        ('title = "t"', 'title = "t"\nrepeats = true', "repeats: write 1, not true$"),
        (
            '"lambdamart" }',
            '"lambdamart", params = { n_estimators = -3 } }',
            "rankers, 'a': n_estimators=-3: must be a whole number from 1 to .*$",
        ),
        ('["letor46", "vsm"]', '["letor46", "vsm", "vsm"]', "columns names vsm twice"),
        ('name = "s", title = "S"', "name = 3", "splits.0.name: must be text, got 3$"),
        ('score = "bm25_whole"', 'score = "bm25_whole"\nranker = ""', "ranker: must not be empty"),
        (
            '["a", "b"]\n\n[[systems]]\nname = "more"\ncolumns = ["letor46", "vsm"]\n',
            '["a"]\n\n[[systems]]\nname = "more"\ncolumns = ["vsm"]\nrankers = ["b"] # ',
            "'more' and 'words' have no ranker in common$",
        ),
        (
            "\n[[systems]]",
            '\n[[models]]\nname = "bm25_whole"\nmodel = "lsa"\n\n[[systems]]',
            "models, 'bm25_whole': a family or its column is called so: rename the model$",
        ),
        ('"adarank" }', '"adarank" }, { name = "c", ranker = "listnet" }', "'c': no system has it"),
        ("[evaluation]", "[evaluation]\nhard_thresholds = [0.3]", "need a hard_baseline$"),
        ("[evaluation]", "[evaluation]\nhard_quantiles = [0.5]", "need a hard_baseline$"),
        ("[evaluation]", '[evaluation]\nhard_measure = "MAP"', "need a hard_baseline$"),
    ],
)
def test_a_mistake_is_told_before_anything_runs_and_told_once(tmp_path, before, after, message):
    with pytest.raises(InputError, match=rf"1 mistake:\n  .*{message}"):
        load(tmp_path, GRID.replace(before, after, 1))


def test_a_name_of_a_system_is_not_that_of_a_family_and_of_a_column_of_another(tmp_path):
    """A system would have both, and only what the family is made of would count for its rankers."""
    (tmp_path / "n.csv").write_text("id,stars,vsm\nd0,1,2\n")
    numbers = f'{{ family = "numbers", options = {{ file = "{tmp_path}/n.csv" }} }}'
    text = GRID.replace('{ family = "vsm" }', numbers)
    assert load(tmp_path, text).systems[1].columns == ("letor46", "vsm")
    (tmp_path / "n.csv").write_text("id,stars,letor46\nd0,1,2\n")
    text = text.replace('"letor46", "vsm"', '"stars", "letor46"')
    message = "'letor46' is a family and a column of 'numbers': rename that$"
    with pytest.raises(InputError, match=rf"system 'more': {message}"):
        load(tmp_path, text)


def test_names_with_commas_are_told_apart(tmp_path):
    with pytest.raises(InputError, match="no system 'x'; there are 'words, a', 'words, b'"):
        load(tmp_path, GRID + 'hard_baseline = "x"\nhard_systems = ["bm25"]\n')


def test_a_system_with_several_rankers_is_one_for_each(tmp_path):
    config = load(tmp_path, GRID)
    assert [s.name for s in config.all_systems] == [
        "words, a",
        "words, b",
        "more, b",
        "more, a",
        "bm25",
    ]
    assert config.pairs == [
        ("more, b", "words, b"),
        ("more, a", "words, a"),
        ("words, a", "bm25"),
        ("words, b", "bm25"),
    ]
    assert config.ranker_of(config.all_systems[1]).ranker == "adarank"
    assert config.ranker_of(config.all_systems[-1]) is None


def test_labels_and_the_second_headline_are_those_of_each_ranker(tmp_path):
    text = GRID.replace('name = "words"', 'name = "words"\nlabel = "the words"')
    config = load(tmp_path, text + 'headline = ["words", "bm25"]\n')
    assert [s.label for s in config.all_systems] == [
        "the words", "the words, b", "more, b", "more", "",
    ]  # fmt: skip
    assert config.headline == ("words, a", "bm25")
    assert load(tmp_path, GRID).headline is None
    with pytest.raises(InputError, match="add it to the comparisons"):
        load(tmp_path, GRID + 'headline = ["more", "bm25"]\n')


def test_two_systems_are_compared_in_one_direction(tmp_path):
    """The other one is the same comparison, and would double the family of the correction."""
    both = '["more", "words"], ["bm25", "words"]'
    with pytest.raises(InputError, match="'words, a' and 'bm25' are compared in both directions"):
        load(tmp_path, GRID.replace('["more", "words"]', both))


def test_the_value_of_columns_trains_the_system_without_each_and_the_first_with_each(tmp_path):
    valued = GRID.replace("[evaluation]", '[evaluation]\ncolumn_value = "more, a"')
    config = load(tmp_path, valued)
    # Of two groups, what the second adds to the first is what the system loses without it.
    assert [(v.name, v.columns, v.ranker, kind) for v, _, kind in config.variants] == [
        ("more, a without letor46", ("vsm",), "a", "left out"),
        ("more, a without vsm", ("letor46",), "a", "left out"),
    ]
    assert len(config.all_systems) == 5 + 2
    three = valued.replace('"vsm" }]', '"vsm" }, { family = "letters" }]')
    config = load(tmp_path, three.replace('"letor46", "vsm"]', '"letor46", "vsm", "letters"]'))
    assert [(v.name, v.columns, kind) for v, _, kind in config.variants[2:]] == [
        ("more, a without letters", ("letor46", "vsm"), "left out"),
        ("letor46 alone", ("letor46",), "alone"),
        ("letor46 with vsm", ("letor46", "vsm"), "added"),
        ("letor46 with letters", ("letor46", "letters"), "added"),
    ]
    with pytest.raises(InputError, match="needs two column groups"):
        load(tmp_path, GRID.replace("[evaluation]", '[evaluation]\ncolumn_value = "words, a"'))
    part = valued.replace('"letor46", "vsm"]', '"letor46", "vsm", "bm25_whole"]')
    with pytest.raises(InputError, match="letor46 and bm25_whole of system 'more, a' have columns"):
        load(tmp_path, part)
