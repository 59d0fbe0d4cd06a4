"""Files of clickthrough experiments are checked as a whole."""

from __future__ import annotations

import re

import pytest
from small_studies import CLICKTHROUGH, write_clickthrough

from letor.errors import InputError
from ltr_features.studies.config import read_config
from ltr_features.studies.kinds.clickthrough_config import ClickthroughConfig
from ltr_features.studies.run import run_file


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('model = "lsa"', 'model = "bert"', "row 'LSA . VSM': there is no model 'bert'"),
        ("n_topics = 2", "topics = 2", "BLTMPR has no parameter 'topics'; did you mean 'n_topics'"),
        ('["UM", "~", "PR"]', '["UM", "~", "XY"]', "no row 'XY'"),
        ('["UM", "~", "PR"]', '["UM", "~", "UM"]', "'UM' is compared with itself"),
        (
            '["UM", "~", "PR"]',
            '["UM", "<=", "PR mixed"]',
            "expectations: 'UM' <= 'PR mixed' is there twice; leave one out",
        ),
        ('train = "train"', 'train = "train"\nseed = -1', "tasks.small.seed: must be 0 or more"),
        ('evaluations = ["PR"]', 'evaluations = ["UM"]', "'unigram' of row 'UM' has no projection"),
        ("[0.3, 0.4]", "[0.3]", "paper has 1 numbers for"),
        ('task = "small"', 'task = "big"', "no task 'big'; there are small"),
        ("cutoffs = [1, 3]", "cutoffs = [3, 1]", "cutoffs must be positive and ascending"),
        (
            'model = "unigram"',
            'model = "unigram"\nparams = { smoothing = "dirichlet" }',
            "row 'UM': smoothing: the experiment mixes",
        ),
        ('train = "train"', 'train = "test"', "tasks.small: train and test are the same"),
        ('train = "train"', 'train = "train"\nfield = "titel"', "no field 'titel'; did you mean"),
        (
            'train = "train"',
            'train = "train"\ntrain_share = 0.3',
            "train_share: only without train",
        ),
        ("rank = 2 }\nmixed = true", "rank = 2 }", "weights: no table has a mixed row with an"),
        ("iterations = 3 }\nmixed = true", "iterations = 3 }", "lambda2: no table has a mixed row"),
    ],
)
def test_bad_files_are_refused(tmp_path, old, new, message):
    path = tmp_path / "bad.toml"
    path.write_text(CLICKTHROUGH.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_config(path, ClickthroughConfig)


def test_a_level_of_significance_without_expectations_is_refused(tmp_path):
    path = tmp_path / "bad.toml"
    text = re.sub("expectations = .*\n", "", f"alpha = 0.1\n{CLICKTHROUGH}")
    path.write_text(text)
    with pytest.raises(InputError, match="alpha: no table has expectations"):
        read_config(path, ClickthroughConfig)


def test_a_folder_that_is_not_there_is_told_with_the_option_that_names_it(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(CLICKTHROUGH)
    with pytest.raises(InputError, match=r"corpus\.jsonl: no such folder .*--data or .*LTR_DATA"):
        run_file(path, data=tmp_path / "none", out=tmp_path / "out")


@pytest.mark.parametrize("key", ["groups", "sources"])
def test_a_file_of_queries_that_is_not_there_is_told_with_its_key(tmp_path, key):
    path = tmp_path / "study.toml"
    text = write_clickthrough(tmp_path)
    path.write_text(text.replace('train = "train"', f'train = "train"\n{key} = "none.tsv"'))
    with pytest.raises(
        InputError,
        match=rf"{key}: there is no file .*none\.tsv; check the name; .*--data or .*LTR_DATA",
    ):
        run_file(path, data=tmp_path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
