"""Experiment files of the kind "matching" are checked as a whole."""

import re
from pathlib import Path

import pytest
from small_studies import MATCHING

from letor.errors import InputError
from ltr_features.studies.config import read_config
from ltr_features.studies.kinds.matching_config import MatchingConfig, RowConfig, TaskConfig


def written(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_settings_reach_only_models_that_have_them_and_every_choice_is_a_trial(tmp_path):
    config = read_config(written(tmp_path, MATCHING), MatchingConfig)
    tfidf, ssi, _ = config.tables[0].rows
    assert config.trials(tfidf) == [{"seed": 0}]
    common = {"seed": 0, "rank": 4, "max_epochs": 2, "hold_out": "pairs"}
    rates = [{"learning_rate": rate} for rate in (0.03, 0.3)]
    assert config.trials(ssi) == [common | rate for rate in rates]
    text = MATCHING.replace("[choose]", "[choose]\nmargin = [0.1, 0.2]")
    margins = [{"margin": margin} for margin in (0.1, 0.2)]
    assert read_config(written(tmp_path, text), MatchingConfig).trials(ssi) == [
        common | margin | rate for margin in margins for rate in rates
    ]


def test_a_rows_own_choice_replaces_that_of_the_experiment(tmp_path):
    config = read_config(written(tmp_path, MATCHING), MatchingConfig)
    lsi = RowConfig(label="LSI", model="lsi", choose={"rank": [2, 3]})
    assert config.trials(lsi) == [{"seed": 0, "rank": 2}, {"seed": 0, "rank": 3}]
    ssi = RowConfig(label="x", model="ssi", choose={}, params={"rank": 5})
    assert config.trials(ssi) == [{"seed": 0, "rank": 5, "max_epochs": 2, "hold_out": "pairs"}]
    assert config.trials(RowConfig(label="only in the paper")) == []


def test_all_problems_are_named_at_once(tmp_path):
    text = MATCHING.replace('task = "mates"', 'task = "absent"').replace('"vsm"', '"tf"')
    text = text.replace("[0.03, 0.3]", "[0.3]\nmargin = [-1.0]")
    text = text.replace('task = "links"\nmodel = "ssi"', 'task = "links"\nmodel = "vsm"')
    text = text.replace('table = "one"', 'table = "three"')
    with pytest.raises(InputError) as error:
        read_config(written(tmp_path, text), MatchingConfig)
    lines = str(error.value).splitlines()
    for part in ("absent", "no model 'tf'", "margin must be", "not trained", "table 'three'"):
        assert sum(part in line for line in lines) >= 1
    assert len(lines) == 1 + 7  # 'tf' and the margin stand in two tables


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('label = "SSI"', 'label = "TFIDF"', "two rows have the label TFIDF"),
        ('name = "one"', 'name = "two"', "two tables share the name two"),
        (
            "[tasks.links]",
            '[tasks."a b"]\nsource = "links"\nfolder = "a"\n'
            '[tasks.a_b]\nsource = "links"\nfolder = "a"\n[tasks.links]',
            r"two tasks share the name \(as a folder\) a_b",
        ),
        ('["TFIDF", "SSI"]', '["TFIDF", "PSI"]', "no row 'PSI'"),
        (
            "shares = [0.5, 1.0]",
            "shares = [0.5, 2.0]",
            "curves.shares.1: must be 1 or less, got 2.0",
        ),
        ("ranks = [2]", "ranks = [0]", "curves.ranks.0: must be 1 or more, got 0"),
        ("[0.03, 0.3]", "[]", r"choose.learning_rate: must have 1 or more entries, got \[\]"),
        ('folder = "articles"', 'folder = "a"\nqueries_per_article = 2', "needs query_words"),
        ('folder = "articles"', 'folder = "a"\nshare = 2', "share"),
        ('model = "ssi"\nnote', "params = {rank = 2}\nnote", "parameters without a model"),
        (
            'model = "ssi"\nnote',
            'model = "ssi"\nparams = { learning_rate = 0.1 }\nnote',
            "'SSI': learning_rate is in params and in choose: leave it out of one",
        ),
        ("ranks = [2]", "ranks = [2]\nparams = { rank = 3 }", "curves: params have a rank"),
        ("max_epochs = 2", "max_epoch = 2", "no trained model has a parameter 'max_epoch'"),
        (
            "max_epochs = 2",
            "max_epochs = 2\nlist_share = 0.5",
            "'SSI': list_share has no effect here",
        ),
        (
            'folder = "sentences"',
            'folder = "s"\nsplit = "documents"',
            "tasks.mates: split: has no meaning for the source 'pairs'",
        ),
        (
            'folder = "articles"',
            'folder = "a"\nfields = ["titel"]',
            "no field 'titel'; did you mean 'title'",
        ),
        (
            '{ vocabularies = "separate", rank = 5 }',
            "{ rank = 5 }",
            "'cl-lsa' takes queries and documents to have the same words, .* set vocabularies = ",
        ),
        (
            'label = "TFIDF of links"\nmodel = "vsm"\ntask = "links"',
            'label = "x"\nmodel = "vsm"',
            "'vsm' takes queries .* give the model 'cross-language'",
        ),
        (
            'label = "SSI"\nmodel = "ssi"',
            'label = "SSI"\nmodel = "unigram"',
            "'unigram' learns from counts of words",
        ),
        ('["TFIDF", "SSI"]', '["TFIDF", "In the paper only"]', "has no model, so there is nothing"),
        ('["TFIDF", "SSI"]', '["TFIDF", "TFIDF"]', "order: 'TFIDF' is compared with itself"),
        ('["TFIDF", "SSI"]', '["TFIDF"]', "claims nothing; name two rows or more"),
        (
            '["TFIDF", "SSI"]',
            '["TFIDF", "SSI"], ["TFIDF", "SSI"]',
            "order: 'TFIDF' below 'SSI' is there twice; leave one out",
        ),
        (
            'task = "links"\n[[tables.rows]]',
            'task = ""\n[[tables.rows]]',
            "task: must not be empty",
        ),
        ("n_triples = 300", "n_triples = 300\nseed = -1", "tasks.links.seed: must be 0 or more"),
        ("shares = [0.5, 1.0]", "shares = [0.5, 0.5]", "curves: shares has 0.5 twice"),
        (
            'table = "one"\nmodel = "SSI"\nagainst = ["TFIDF"]',
            'table = "two"\nmodel = "CL-LSI"\nagainst = ["TFIDF of links"]',
            "scatter: the rows are of tasks with other test queries",
        ),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path, old, new, message):
    with pytest.raises(InputError, match=message):
        read_config(written(tmp_path, MATCHING.replace(old, new)), MatchingConfig)


def test_values_that_no_row_chooses_from_are_refused(tmp_path):
    rows, curves = MATCHING.split("[curves]")
    text = re.sub('model = "(ssi|cross-language)"\n', r"\g<0>choose = {}\n", rows)
    with pytest.raises(InputError, match="1 mistake:\n  choose: every trained model has a choose"):
        read_config(written(tmp_path, f"{text}[curves]{curves}"), MatchingConfig)
    misspelled = re.sub('model = "(ssi|cross-language)"', 'model = "sssi"', rows)
    with pytest.raises(InputError, match="'sssi'") as error:
        read_config(written(tmp_path, misspelled), MatchingConfig)
    assert "every trained model has a choose" not in str(error.value)


def test_other_draws_of_words_are_other_queries():
    task = TaskConfig(source="links", folder="articles", query_words=3)
    assert task.asks_as(task.model_copy(update={"n_triples": 7}))
    assert not task.asks_as(task.model_copy(update={"queries_per_article": 2}))
    rarer = {"min_documents": task.min_documents + 1}
    assert not task.asks_as(task.model_copy(update=rarer))  # draws from fewer words
    whole = task.model_copy(update={"query_words": None})
    assert whole.asks_as(whole.model_copy(update=rarer))
