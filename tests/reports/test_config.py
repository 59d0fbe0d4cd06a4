"""Experiment files are checked as a whole."""

from __future__ import annotations

from importlib import resources

import pytest

from letor.errors import InputError
from reports.config import demo_config, load_config

DEMO = (resources.files("reports") / "experiments" / "demo.toml").read_text(encoding="utf-8")


def load(tmp_path, text: str):
    path = tmp_path / "experiment.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def test_the_demo_is_valid_and_compares_with_and_without_the_model():
    config = demo_config()
    by_name = {system.name: system for system in config.systems}
    system, baseline = config.evaluation.comparisons[0]
    assert set(by_name[system].columns) - set(by_name[baseline].columns) == {"vsm", "ssi"}
    # A control that knows the tf-idf cosine too: the gain of SSI's learned part alone.
    assert ("words+TF-IDF+SSI", "words+TF-IDF") in config.evaluation.comparisons


def test_all_mistakes_are_listed_at_once(tmp_path):
    text = DEMO.replace("words_per_query = 10", "words_per_qery = 10").replace(
        "candidate_depth = 100", "candidate_depth = 0"
    )
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    message = str(error.value)
    assert "experiment.toml" in message
    assert "collection.words_per_qery" in message
    assert "candidate_depth" in message


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('hard_control = "words, refit 1"', 'hard_control = "nobody"', "unknown systems: nobody"),
        ('columns = ["letor46"]', 'columns = ["letor47"]', "unknown column families letor47"),
        ('score = "bm25_whole"', "", "give either score or columns"),
        ('"NDCG@20", "MAP"', '"NDCG@20", "MAPP"', "unknown measure 'MAPP'"),
        ("seed = 0\ncandidate", "seed = 0 0\ncandidate", "not TOML"),
        ('name = "SSI"', 'name = "BM25"', r"two systems share the name \(as a folder\) BM25"),
        ('name = "words+TF-IDF"', 'name = "words TF-IDF"\n', "unknown systems: words.TF-IDF"),
        ('name = "by-article"', 'name = "by-query"', "two splits share the name"),
        ('name = "by-article"', 'name = "../x"', "splits.1.name"),
        ("rank = 50", "rnak = 50", "ssi: unknown parameters rnak"),
        ("num_leaves = 15", "leaves = 15", "ranker: unknown parameters leaves"),
        ('score = "vsm"', 'score = "vsn"', "there is no column 'vsn'"),
        ("turn = 2", "turn = 4", "turn is 4.*use 0 to 3"),
        ('hard_control = "words, refit 1"', 'hard_control = "words"', "hard_control must be"),
        ('["BM25", "words, refit 2"]', '["words"]', "hard_selectors must not have the baseline"),
    ],
)
def test_mistakes_are_named(tmp_path, before, after, message):
    assert before in DEMO
    with pytest.raises(InputError, match=message):
        load(tmp_path, DEMO.replace(before, after, 1))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.toml: cannot be read"):
        load_config(tmp_path / "nothing.toml")
