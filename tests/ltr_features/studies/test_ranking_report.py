"""What the report of a ranking study says of its numbers, folds and fits, by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from small_experiment import load, texts, write_beir

from letor.folds import Fold
from ltr_features.studies.kinds.ranking_config import ExperimentConfig
from ltr_features.studies.kinds.ranking_models import model_facts
from ltr_features.studies.kinds.ranking_report import _time_rule, check_expected, first_verdict
from ltr_features.studies.kinds.sections import ModelConfig
from ltr_features.studies.page.report import Study, SystemResult
from ltr_features.studies.run import run_file
from ltr_features.studies.statistics.refits import fits_note
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.training.preferences import Preferences


def values(mean: float) -> pd.DataFrame:
    return pd.DataFrame({"MAP": [mean - 0.1, mean + 0.1]}, ["q", "p"])


def config(**changes: object) -> ExperimentConfig:
    found = {
        "title": "t",
        "collection": {"source": "beir", "folder": "x"},
        "columns": [{"family": "vsm"}, {"family": "letters"}],
        "rankers": [{"name": "trees", "ranker": "lambdamart"}],
        "splits": [{"name": "by-query", "title": "Queries", "folds": 4}],
        "systems": [
            {"name": "old", "columns": ["vsm"], "ranker": "trees"},
            {"name": "new", "columns": ["vsm", "letters"], "ranker": "trees"},
        ],
        "evaluation": {"measures": ["MAP"], "comparisons": [["new", "old"]]},
    }
    return ExperimentConfig.model_validate(found | changes)


@pytest.mark.parametrize(
    ("baseline", "value", "missed"),
    [
        (None, 0.55, None),
        (None, 0.56, "MAP of new (Queries) is 0.6000; the experiment file expects 0.5600 ± 0.03."),
        ("old", 0.2, None),
        (
            "old",
            0.1,
            "MAP of new minus old (Queries) is 0.2000; the experiment file expects 0.1000 ± 0.03.",
        ),
    ],
)
def test_numbers_that_are_not_as_expected_are_told(baseline, value, missed):
    """0.6 after 0.4; within the tolerance, which 0.05 is not."""
    systems = [SystemResult(name, "", values(mean)) for name, mean in (("old", 0.4), ("new", 0.6))]
    study = Study("Queries", "", "", systems, [("new", "old")], ["MAP"])
    one = {"split": "by-query", "measure": "MAP", "tolerance": 0.03}
    met = {**one, "system": "old", "value": 0.42}
    asked = {**one, "system": "new", "baseline": baseline, "value": value}
    if missed is None and baseline is None:
        asked["tolerance"] = 0.051
    told = check_expected(config(expected=[met, asked]), [study])
    expected = [] if missed is None else [f"Not as expected: {missed}"]
    assert told == expected + ["Other expectations met: 1."] * (missed is not None)


def test_folds_by_time_are_told_with_their_sizes_and_times():
    folds = [Fold("a", ["1", "2", "3"], ["4"], ["5", "6"]), Fold("b", ["1"], ["2", "3"], ["7"])]
    asked = {str(i): 10.0 * i for i in range(8)}
    rule = (
        "Rankers learn from earlier queries; later ones test; folds: 2 (3 training, 1 later "
        "validation and 2 still later test queries, of 50 to 60; 1 training, 2 later validation "
        "and 1 still later test queries, of 70)."
    )
    assert _time_rule(folds, asked, None) == rule
    groups = {str(i): "g" if i in (1, 5, 7) else str(i) for i in range(8)}
    again = "Of the test queries, 2 belong to a group that was also trained on."
    assert _time_rule(folds, asked, groups) == f"{rule} {again}"


def test_the_number_of_fits_is_that_of_most_systems():
    fits = {
        "a": [values(0.5)] * 3,
        "b": [values(0.5)] * 3,
        "c": [values(0.5)],
        "d": [values(0.5)] * 2,
    }
    told = fits_note(fits)
    assert told.startswith(
        "Systems that learn from judgements were fitted 3 times (“c”: once; “d”: 2 times), each "
        "time with different folds and different seeds"
    )
    assert "each time with the same folds" in fits_note(fits, same_folds=True)
    assert "Every system was fitted once" in fits_note({"c": fits["c"]})


def test_models_tell_their_start_and_the_epoch_that_was_kept():
    rng = np.random.default_rng(0)
    rows = rng.random((40, 12)).astype(np.float32)
    X = sp.csr_matrix(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    # The document of a query has the words of another one, by their places: to be learned.
    D = X[:, np.roll(np.arange(12), 1)]
    pairs = Preferences.from_pairs(np.arange(40), np.arange(40), n_queries=40, n_documents=40)
    fitted = [
        LowRankSSI(6, max_epochs=20, batch_size=8, n_negatives=4, threads=1, seed=seed).fit(
            X, D, pairs
        )
        for seed in (0, 1)
    ]
    name = ModelConfig(name="ssi", model="ssi")
    histories = [model.history_ for model in fitted]
    before = np.mean([history.epochs[0].validation for history in histories])
    best = [max(history.epochs, key=lambda epoch: epoch.validation) for history in histories]
    after = np.mean([epoch.validation for epoch in best])
    assert after > before
    facts = model_facts(name, fitted)
    progress = facts["ssi, MAP on held-out training queries"]
    assert progress.startswith(f"{before:.4f} before training (")
    assert progress.endswith(f"), {after:.4f} at the epoch kept (mean over folds: 2)")
    assert facts["ssi, epochs kept"] == ", ".join(str(epoch.number) for epoch in best)


@pytest.mark.parametrize(
    ("measures", "told"),
    [(["MAP"], "one fit"), (["MAP", "P@1"], "one fit; the report corrects p for 2 tests")],
)
def test_a_first_result_tells_how_many_tests_the_report_corrects_for(tmp_path, measures, told):
    """Of two measures only the first is tested at once, by itself."""
    means = {"old": 0.4, "new": 0.6}
    experiment = SimpleNamespace(
        config=config(evaluation={"measures": measures, "comparisons": [["new", "old"]]}),
        groups=None,
        test_qrels=lambda split: None,
        system_stage=lambda split, system: values(means[system.name]),
        done=lambda per_query: SimpleNamespace(path=tmp_path, per_query=lambda: per_query),
    )
    assert first_verdict(experiment).startswith(f"First result (Queries, {told}): ")


def test_means_that_equal_scores_leave_open_are_told(tmp_path):
    """A column with one value for all documents, under which any order of them is one of the
    ranking: the worst begins with all that are not relevant, the best with the two that are."""
    collection, _ = write_beir(tmp_path)
    documents = texts()["documents"]
    (tmp_path / "stars.csv").write_text("".join(["id,stars\n", *(f"{d},3\n" for d in documents)]))
    text = f"""
title = "Ties"
collection = {json.dumps(collection).replace('":', '" =')}
candidates = {{ judged = {{}}, bm25 = {{ depth = 8 }} }}
columns = [{{ family = "vsm" }}, {{ family = "numbers", options = {{ file = "stars.csv" }} }}]
splits = [{{ name = "by-query", title = "Queries", folds = 4 }}]
systems = [{{ name = "VSM", score = "vsm" }}, {{ name = "Stars", score = "stars" }}]

[evaluation]
measures = ["P@2"]
comparisons = [["VSM", "Stars"]]
"""
    load(tmp_path, text)
    run_file(tmp_path / "experiment.toml", data=tmp_path, out=tmp_path / "out")
    told = " ".join((tmp_path / "out" / "report" / "summary.txt").read_text().split())
    assert (
        "! Documents of different grades have equal scores, whose order moves the mean P@2 by more "
        "than the difference of the verdict: Stars between 0.0000 and 1.0000; here the smaller "
        "document id goes first"
    ) in told
