"""Files of experiments on LETOR data that are refused, before any ranker is trained."""

import re
from dataclasses import replace

import numpy as np
import pytest

from letor.column_names import write_rows
from letor.errors import InputError
from letor.fold_files import read_folds
from ltr_features.studies.run import run_file


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('ranker = "adarank"', 'ranker = "ada"', "no ranker 'ada'; did you mean 'adarank'"),
        ("n_rounds = 10", "rounds = 10", "no parameter 'rounds'"),
        ("n_rounds = 10", "n_rounds = 0", "n_rounds=0: must be a whole number from 1"),
        ("[2, 20]", "[20, 'few']", "n_thresholds='few': must be a whole number"),
        ("[2, 20]", "[]", "grid.n_thresholds has no values"),
        ("[2, 20]", "[2, 20, 2]", "grid.n_thresholds has 2 more than once: leave one out"),
        ("n_rounds = 10", "n_thresholds = 5", "n_thresholds is in params and in grid"),
        ('"letor4:map"', '"letor5:map"', "measures: measure 'letor5:map' is unknown"),
        ("[measures]", 'tune_measure = "mapp"\n[measures]', "tune_measure: measure 'mapp' is"),
        ("k = 3", "k = 300", "^scheme 'three': .* cannot be dealt into 300 parts"),
        ("[measures]", "measures = 3\n[old]", "measures: must be one table, .measures.\n  old: "),
        ('["MAP"]', '["MAP", "MAP"]', "compare_measures: two of them are the same measure"),
        ('"NDCG@5" = ', 'fold = "map"\n"NDCG@5" = ', "measures: fold is another column of the"),
        ('["MAP"]', '["P@5"]', "no measure 'P@5'; there are"),
        ('baseline = "Boosted steps"', 'baseline = "BM25"', "baseline: no ranker 'BM25'"),
        ('label = "AdaRank"', 'label = "Boosted>steps"', "two rankers share the name .*boosted_st"),
        ('name = "three"', 'name = "official"', r"two schemes share the name \(as a folder\) offi"),
        ('label = "AdaRank"', f'label = "{"a" * 201}"', "a name of 201 bytes; give 200 at most"),
        ("k = 3", "k = 2", "schemes.1.k"),
        (
            "[measures]",
            'repeats = 2\n[[rankers]]\nlabel = "Net"\nranker = "ranknet"\n'
            "params = { seed = 2_147_483_647 }\n[measures]",
            "rankers, .Net.: the seeds of the ranker and of its last fit add up to 2,147,483,648",
        ),
        (
            "[measures]",
            'repeats = 2\n[[rankers]]\nlabel = "Net"\nranker = "ranknet"\n'
            "grid = { seed = [1, 2] }\n[measures]",
            "rankers, .Net.: seed is in grid, and each of several fits has a seed of its own",
        ),
        ("official = true", "official = true\nk = 3", "k and seed are for random folds"),
        ("MAP = 0.123", "MRR = 0.123", "references.0: no measure 'MRR'"),
        ('measure = "MAP"', 'measure = "ERR"', "expected.0: no measure 'ERR'"),
    ],
)
def test_bad_files_are_refused(toy, tmp_path, old, new, message):
    toy.write_text(toy.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"NDCG@5" = ', 'ERR = "err"\n"NDCG@5" = ', "^measure ERR: label 31 is above 4"),
        ('"map" }', '"err@5" }', "^measure ERR@5: label 31 is above 4"),
        ("[measures]", 'tune_measure = "err@3"\n[measures]', "^measure ERR@3: label 31 is above 4"),
        ('"adarank"\ngrid = {}', '"lambdamart"', "^label 31 is too large for the exponential gain"),
        (
            '"adarank"\ngrid = {}',
            '"lambdamart"\ngrid = { gain = ["linear", "exponential"] }',
            "^label 31 is too large for the exponential gain",
        ),
    ],
)
def test_labels_that_measures_or_rankers_refuse_are_told_before_any_is_trained(
    toy, tmp_path, old, new, message
):
    for part in (tmp_path / "data" / "toy").iterdir():
        part.write_text(re.sub("(?m)^2 ", "31 ", part.read_text()))
    toy.write_text(toy.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("ranker", "measure", "labels"), [("rankboost", "err", (5, 2)), ("lambdamart", "map", (2, 31))]
)
def test_labels_are_refused_only_where_they_are_used(toy, tmp_path, ranker, measure, labels):
    """Rankers learn from training and validation rows, and measures are of the others."""
    data, params = tmp_path / "data", {"rankboost": "n_rounds", "lambdamart": "n_estimators"}
    rows, folds = read_folds(data / "toy")
    for name, part in zip(("train", "vali", "test"), folds[0].split(rows), strict=True):
        y = np.where(part.y == 2, np.float32(labels[name == "test"]), part.y)
        write_rows(replace(part, y=y), data / "one" / f"{name}.txt")
    toy.write_text(
        f'kind = "letor"\ntitle = "One fold"\nfolder = "one"\nmeasures = {{ M = "{measure}" }}\n'
        f'[[rankers]]\nlabel = "one"\nranker = "{ranker}"\nparams = {{ {params[ranker]} = 1 }}\n'
        "grid = {}\n"
    )
    assert (run_file(toy, data=data, out=tmp_path / "out") / "report.html").is_file()
