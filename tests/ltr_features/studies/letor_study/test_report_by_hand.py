"""The answer and the tables of a study of rankers, made of results that are written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from ltr_features.studies.kinds.letor_config import StudyConfig
from ltr_features.studies.kinds.letor_findings import answer
from ltr_features.studies.kinds.letor_remarks import drawn_queries
from ltr_features.studies.kinds.letor_report import Results, document
from ltr_features.studies.page.report import Study, SystemResult

#: Of each fit, the MAP of each test query of both folds, and the chosen number of rounds; "fixed"
#: is always the same.
FITS = {
    "boosted": [([[0.2, 0.4, 0.6], [0.8]], [5, 7]), ([[0.4, 0.6, 0.8], [1.0]], [9, 9])],
    "fixed": [([[0.7, 0.7, 0.7], [0.5]], [None, None])],
}


@pytest.fixture(scope="module")
def results() -> Results:
    config = StudyConfig.model_validate(
        {
            "kind": "letor",
            "title": "By hand",
            "folder": "x",
            "repeats": 2,
            "schemes": [{"name": "official", "official": True}],
            "rankers": [
                {"label": "boosted", "ranker": "rankboost", "grid": {"n_rounds": [5, 7, 9]}},
                {"label": "fixed", "ranker": "coordinate-ascent", "grid": {}},
            ],
            "measures": {"MAP": "map"},
            "references": [{"scheme": "official", "label": "Paper", "values": {"MAP": 0.45}}],
            "expected": [
                {"scheme": "official", "ranker": ranker, "measure": "MAP", **number}
                for ranker, number in (
                    ("boosted", {"value": 0.71, "tolerance": 0.02}),
                    ("fixed", {"value": 0.5, "tolerance": 0.02}),
                )
            ],
        }
    )
    trained, values, gains = [], [], []
    for ranker, fits in FITS.items():
        for fit, (folds, rounds) in enumerate(fits):
            for fold, (found, chosen) in enumerate(zip(folds, rounds, strict=True), start=1):
                place = {"scheme": "official", "fit": fit, "fold": fold, "ranker": ranker}
                further = {"seconds_per_trial": 1.0, "remarks": [], "ties": (0.5, 0.5)}
                picked = {} if chosen is None else {"n_rounds": chosen}
                trained.append(place | {"chosen": picked, "validation": 0.1 * fold} | further)
                values += [
                    place | {"qid": f"{fold}-{i}", "MAP": value} for i, value in enumerate(found)
                ]
                gains.append(place | {"column": "1", "gain": 1.0})
    queries = sorted({value["qid"] for value in values})[:3]
    properties = pd.DataFrame({"relevant documents": [1, 1, 2]}, index=queries)
    frames = (pd.DataFrame(values), properties, pd.DataFrame(gains))
    return Results(config, trained, *frames, family={})


def test_means_are_those_over_folds_of_all_fits(results: Results) -> None:
    """In the first fit 0.4 and 0.8, in the second 0.6 and 1.0; not 0.6, the mean over queries."""
    section = document(results).sections[0]
    means = section.tables[0]
    assert [head.title for head in means.headings] == ["System", "MAP", "Validation"]
    errors = results.errors.set_index("ranker")["MAP"]
    rows = [[cell.text for cell in row] for row in means.cells]
    assert rows == [
        ["boosted", f"0.7000 ± {errors['boosted']:.4f}", "0.1500"],
        ["fixed", f"0.6000 ± {errors['fixed']:.4f}", "0.1500"],
        ["Paper (published)", "0.4500", "–"],
    ]
    assert [row[1].strong for row in means.cells] == [True, False, False]
    assert "Mean over 2 folds of the mean over the test queries (4 in all, 1 without" in (
        means.caption
    )


def test_chosen_parameters_are_those_of_the_first_fit(results: Results) -> None:
    folded = document(results).sections[0].folded
    assert folded == {
        "Chosen parameters, by fold count, first fit": [
            "boosted: 1 x n_rounds=5", "boosted: 1 x n_rounds=7", "fixed: 2 x no grid",
        ]
    }  # fmt: skip


def test_expectations_are_compared_with_the_means(results: Results) -> None:
    assert results.checks == [
        (True, "boosted, MAP, official: 0.7000, expected 0.7100 ± 0.0200"),
        (False, "fixed, MAP, official: 0.6000, expected 0.5000 ± 0.0200"),
    ]
    assert document(results).verdict.endswith("Expectations met: 1 of 2.")


def study(gains: Mapping[str, Sequence[float]], n_differing: int) -> Study:
    """Twelve queries, on the first of which each system gains as much as given over "base", in
    NDCG@10 and MAP."""
    ids = [f"q{i}" for i in range(12)]
    differing = np.arange(12)[:, None] < n_differing
    systems = [
        SystemResult(name, "", pd.DataFrame(0.5 + differing * of, ids, ["NDCG@10", "MAP"]))
        for name, of in {"base": np.zeros(2), **{n: np.array(g) for n, g in gains.items()}}.items()
    ]
    return Study(
        "official", "", "", systems, [(name, "base") for name in gains], ["NDCG@10", "MAP"]
    )


def test_the_answer_names_what_is_better_and_worse_by_each_measure() -> None:
    """Of a further measure only what the first one has not said."""
    both = study({"a": [0.2, 0.1], "b": [-0.1, 0.05], "c": [-0.3, -0.2], "d": [0.0, 0.25]}, 12)
    assert answer([both]) == (
        "Official, NDCG@10: a (+0.2000) significantly better and b (−0.1000), c (−0.3000) "
        "significantly worse than base. MAP: b (+0.0500), d (+0.2500) significantly better than "
        "base."
    )


def test_the_answer_tells_that_nothing_could_have_differed() -> None:
    """Of 6 queries p is 2 of 64 patterns at best, which do not do for 4 tests."""
    systems = {"a": [0.2, 0.1], "b": [-0.1, 0.05]}
    nothing = "Official, NDCG@10: nothing differs significantly from base"
    assert answer([study(systems, 6)]) == (
        f"{nothing}, and none could, as they differ in 6 queries."
    )
    one = study({"a": [0.0, 0.0]}, 12)
    assert answer([one]) == f"{nothing}, and none could, as they differ in 0 queries."


def test_the_remark_on_drawn_queries_counts_each_once() -> None:
    asked = ["q1", "q1", "q2", "q3"]  # by two rankers, one of which lacks some
    [told] = drawn_queries({"q1": "d1", "another": "d2"}, asked)
    assert told.startswith("1 of 3 test queries were drawn from documents")
    assert [*drawn_queries({"another": "d2"}, asked)] == []
