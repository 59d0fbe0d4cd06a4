"""The answer of a comparison of rankers in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ltr_base.names import counted, listed
from ltr_features.studies.page.report import Study
from ltr_features.studies.page.verdicts import signed
from ltr_features.studies.statistics.significance import TestSettings

_NAMED = 3
"""Number of rankers that the verdict names of those that are better, or worse."""


def answer(studies: Sequence[Study]) -> str:
    """Which rankers differ significantly from the baseline, by the first tested measure; if none
    does, whether one could; what other measures add to it or find the other way round; and which
    rankers differ on hard queries."""
    sentences = []
    for study in studies:
        baseline, (measure, *others) = study.baselines[0], study.measures
        scheme, tested = study.name, study.comparisons
        certain = tested[tested["significant"].astype(bool)]
        mine = certain[certain["measure"] == measure]
        found = _significant(mine, baseline) or (
            f"nothing differs significantly from {baseline}{_whether(tested, study.test)}"
        )
        sentences.append(f"{scheme.capitalize()}, {measure}: {found}.")
        same = set(zip(mine["system"], mine["difference"] > 0, strict=True))
        for other in others:
            rows = certain[certain["measure"] == other]
            told = [x in same for x in zip(rows["system"], rows["difference"] > 0, strict=True)]
            if further := _significant(rows[~np.array(told, dtype=bool)], baseline):
                sentences.append(f"{other}: {further}.")
        sentences += _on_hard_queries(study)
    return " ".join(sentences)


def _significant(rows: pd.DataFrame, baseline: str) -> str:
    """The significant comparisons in words; "" if there are none."""
    parts = [
        f"{_with_differences(part)} significantly {word}"
        for word, part in (
            ("better", rows[rows["difference"] > 0]),
            ("worse", rows[rows["difference"] < 0]),
        )
        if len(part)
    ]
    return f"{' and '.join(parts)} than {baseline}" if parts else ""


def _whether(tested: pd.DataFrame, test: TestSettings) -> str:
    """A clause, if no comparison of a scheme could have been significant."""
    if (test.corrected(tested["smallest_p"]) < test.alpha).any():
        return ""
    alone = (tested["n_groups"] == tested["n_queries"]).all()
    differing = counted(int(tested["differing"].max()), "query" if alone else "group")
    return f", and none could, as they differ in {differing}"


def _with_differences(rows: pd.DataFrame) -> str:
    """The systems of some comparisons, each with its difference."""
    pairs = zip(rows["system"], rows["difference"], strict=True)
    return listed([f"{name} ({signed(difference)})" for name, difference in pairs], _NAMED)


def _on_hard_queries(study: Study) -> Iterator[str]:
    found = [row for row in study.hard_rows() if row["n_queries"]]
    if not found:
        return
    rows = pd.DataFrame(found).rename(columns={"gain": "difference"})
    certain, baseline = rows[rows["significant"].astype(bool)], study.hard_baseline
    told = _significant(certain, baseline) or f"nothing differs significantly from {baseline}"
    partly = "; part of it may come from the choice of queries" if certain["related"].any() else ""
    n, chooser = found[0]["n_queries"], found[0]["chosen_by"]
    yield (
        f"On the {counted(n, 'query')} hard for {chooser} ({study.hard_measure}, "
        f"{found[0]['rule']}): {told}{partly}."
    )
