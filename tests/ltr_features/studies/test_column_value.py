"""What groups of columns are worth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from letor.dataset import RankingData
from letor.evaluation import evaluate
from letor.rankers.base import Ranker
from letor.trec import qrels_of, run_of
from ltr_features.studies.statistics.column_value import _shuffled, retrained_value, shuffled_value
from ltr_features.studies.statistics.significance import TestSettings


@pytest.fixture
def rows() -> RankingData:
    """30 queries of 6 rows; the first column is the label, the others are noise."""
    rng = np.random.default_rng(0)
    y = np.tile([2, 1, 1, 0, 0, 0], 30).astype(np.float32)
    return RankingData(
        X=np.column_stack([y, rng.random((180, 2))]).astype(np.float32),
        y=y,
        query_ids=[f"q{i}" for i in range(30)],
        query_index=np.repeat(np.arange(30), 6),
        column_names=["label", "noise", "other"],
        document_ids=np.array([f"d{i:03d}" for i in rng.permutation(180)], dtype=object),
    )


class Reads(Ranker):
    """Scores by the first column."""

    name = "reads"

    def __init__(self) -> None:
        self.feature_names_ = ["label", "noise", "other"]

    def predict(self, data: RankingData) -> np.ndarray:
        return data.column("label")

    def _importance(self): ...
    def _fit(self, train, valid): ...
    def _predict(self, data): ...
    def _save(self, folder): ...
    def _load(self, folder, fitted): ...


def test_shuffling_a_column_costs_what_it_was_worth(rows):
    losses = shuffled_value(
        [Reads()],
        [rows],
        {"label": lambda c: c == "label", "noise": lambda c: c != "label"},
        qrels_of(rows),
        "NDCG@5",
        seed=1,
        repeats=20,
    )
    assert losses["noise"] == 0
    rng = np.random.default_rng(5)
    chance = [
        evaluate(qrels_of(rows), run_of(rows, rng.random(180)), ["NDCG@5"])["NDCG@5"].mean()
        for _ in range(40)
    ]
    assert losses["label"] == pytest.approx(1 - np.mean(chance), abs=0.04)


def test_every_repetition_shuffles_anew(rows):
    of_label = {"label": lambda c: c == "label"}
    losses = [
        shuffled_value([Reads()], [rows], of_label, qrels_of(rows), "NDCG@5", seed=1, repeats=n)
        for n in (1, 2)
    ]
    assert losses[0] != losses[1]


def test_shuffled_rows_keep_their_query_s_values_and_other_columns(rows):
    changed = _shuffled(lambda c: c != "noise", np.random.default_rng(0))(rows)
    assert np.array_equal(changed.X[:, 1], rows.X[:, 1])
    assert not np.array_equal(changed.X[:, [0, 2]], rows.X[:, [0, 2]])
    for query in range(30):
        mine = rows.query_index == query
        # The columns of a group move together.
        before, after = (sorted(map(tuple, r.X[mine][:, [0, 2]])) for r in (rows, changed))
        assert before == after


def test_retrained_values_are_paired_differences():
    queries = [f"q{i}" for i in range(40)]
    rng = np.random.default_rng(0)
    base = rng.random(40) * 0.5
    frames = {
        name: pd.DataFrame({"MAP": base + shift}, index=queries)
        for name, shift in (("whole", 0.2 * rng.random(40)), ("less", 0.0))
    }
    table = retrained_value(
        frames, [("whole", "less")], ["g"], ["left out"], "MAP", TestSettings(n_permutations=500)
    )
    row = table.iloc[0]
    assert (row["group"], row["kind"]) == ("g", "left out")
    assert row["value"] == pytest.approx(row["with"] - row["without"])
    assert row["value"] == pytest.approx((frames["whole"]["MAP"] - base).mean())
    assert row["p_corrected"] < 0.05


def test_the_p_value_of_a_retrained_value_is_the_one_that_is_corrected():
    """Over queries the gain is certain; over two fits that disagree, it is not."""
    queries = [f"q{i}" for i in range(40)]
    gain = pd.DataFrame({"MAP": np.random.default_rng(0).random(40) * 0.1}, index=queries)
    fits = {"whole": [0.5 + gain + 0.3, 0.5 + gain - 0.3], "less": [0.5 + 0 * gain] * 2}
    per_query = {"whole": 0.5 + gain, "less": 0.5 + 0 * gain}
    settings = TestSettings(n_permutations=500, n_resamples=100)
    arguments = (per_query, [("whole", "less")], ["g"], ["left out"], "MAP", settings)
    assert retrained_value(*arguments)["p"].item() < 0.05
    row = retrained_value(*arguments, fits=fits).iloc[0]
    assert row["p"] == row["p_corrected"] > 0.5
