"""Words computed from numbers: each outcome, agreement of measures, hard queries, formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from letor.errors import InputError
from reports.hard_queries import hard_query_table
from reports.report import Report, Study, SystemResult
from reports.significance import TestSettings
from reports.verdicts import (
    hard_query_verdict,
    outcome_of,
    p_equals,
    p_value,
    percent,
    signed,
    verdict,
)


def study(gains: Sequence[float], n: int = 60, **changes: object) -> Study:
    """A baseline and a system whose mean gain in each measure is about the one given."""
    rng = np.random.default_rng(0)
    ids = [f"q{i}" for i in range(n)]
    measures = ["NDCG@10", "MAP", "P@10"][: len(gains)]
    base = 0.3 + 0.4 * rng.random((n, len(gains)))
    other = base + np.array(gains) + rng.normal(0, 0.05, base.shape)
    systems = [
        SystemResult("old", "baseline", pd.DataFrame(base, ids, measures)),
        SystemResult("new", "system", pd.DataFrame(np.clip(other, 0, 1), ids, measures)),
    ]
    settings: dict[str, object] = {"test": TestSettings(n_permutations=999, n_resamples=200)}
    return Study("S", "d", "r", systems, [("new", "old")], measures, **(settings | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gain", "outcome", "headline"),
    [
        (0.1, "helps", "new is significantly better than old."),
        (-0.1, "hurts", "new is significantly worse than old."),
        (0.0, "no significant difference", "No significant difference between new and old."),
    ],
)
def test_outcomes(gain: float, outcome: str, headline: str) -> None:
    found = verdict(study([gain]))
    assert (found.outcome, found.headline) == (outcome, headline)
    row = found.row
    for number in (signed(row["difference"]), percent(row["relative"]), signed(row["low"])):
        assert number in found.details
    assert f"{row['won']} of 60 queries won" in found.details
    assert ("four times in five" in found.details) == (gain == 0)


def test_other_measures_are_reported_whichever_way_they_go() -> None:
    assert "Significant on MAP, P@10 too." in verdict(study([0.1, 0.1, 0.1])).details
    assert "Not significant on MAP." in verdict(study([0.1, 0.0])).details
    assert "other way round, significantly, on MAP" in verdict(study([0.1, -0.1])).details
    assert "Other measures differ: it helps on MAP" in verdict(study([0.0, 0.1])).details
    assert "The same on MAP." in verdict(study([0.0, 0.0])).details


def test_says_so_when_nothing_could_have_been_significant() -> None:
    few = verdict(study([0.1], n=4)).details
    assert "No difference could have been significant: the smallest p that 4 differing" in few
    assert "allow is 0.12" in few  # 2 of the 16 sign patterns
    rough = study([0.1, 0.1], test=TestSettings(n_permutations=9, n_resamples=100))
    assert "9 permutations" in verdict(rough).details
    assert "could have been" not in verdict(study([0.0])).details


def test_outcome_needs_significance() -> None:
    assert outcome_of(pd.Series({"significant": False, "difference": 0.5})) != "helps"


def test_hard_query_verdict_names_every_way_to_choose(
    make_report: Callable[..., Report],
) -> None:
    example = make_report().studies[0]
    text = hard_query_verdict(example)
    table = example.hard_queries
    assert table is not None
    own, both = table.iloc[0], table.iloc[1]
    for number in (own["gain"], own["control_gain"], own["net_gain"], both["gain"], both["low"]):
        assert signed(number) in text
    assert "Net of Word counts with a third seed" in text
    assert "too much" not in text  # the control varies as much as the system
    weak = replace(example, hard_queries=table.assign(control_spread=0.01))
    assert "That is too much" in hard_query_verdict(weak)
    assert "that BM25 itself" in hard_query_verdict(replace(example, hard_baseline="BM25"))
    assert hard_query_verdict(replace(example, hard_queries=None)) == ""


def test_hard_query_verdict_without_control() -> None:
    example = study([0.0])
    values = example.systems[0].per_query["NDCG@10"]
    table = hard_query_table(
        values,
        {"new": values},
        quantiles=(),
        settings=TestSettings(n_permutations=99, n_resamples=50),
    )
    text = hard_query_verdict(replace(example, hard_queries=table))
    assert "gains 0.0000 (0.0 %)" in text
    assert "Net of" not in text


def test_formats() -> None:
    assert [signed(x) for x in (0.01234, -0.01234, -0.00001)] == ["+0.0123", "−0.0123", "0.0000"]
    assert [percent(x) for x in (0.1234, -0.5, float("nan"), 0.0001)] == [
        "+12.3 %", "−50.0 %", "n/a", "0.0 %",
    ]  # fmt: skip
    assert [p_value(p) for p in (0.5, 0.04321, 0.00054, 0.00001, float("nan"))] == [
        "0.50", "0.043", "0.0005", "< 0.0001", "n/a",
    ]  # fmt: skip
    assert p_equals(1e-6) == "p < 0.0001"
    assert p_equals(0.5) == "p = 0.50"


def test_bad_studies() -> None:
    good = study([0.0])
    with pytest.raises(InputError, match="systems share a name"):
        replace(good, systems=[good.systems[0]] * 2)
    with pytest.raises(InputError, match="system 'old': per-query values of NDCG@10, Recall@5"):
        replace(good, measures=["NDCG@10", "Recall@5"])
    over = replace(good.systems[1], per_query=good.systems[1].per_query + 5)
    with pytest.raises(InputError, match=r"lie in \[0, 1\]"):
        replace(good, systems=[good.systems[0], over])
    with pytest.raises(InputError, match="at least one study"):
        Report("t", "i", [])
