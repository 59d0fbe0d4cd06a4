"""Verdicts on hard queries: sentences computed from the numbers of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ltr_base.names import counted
from ltr_features.studies.page.report import Study
from ltr_features.studies.page.verdicts import (
    changes,
    hundredths,
    interval,
    p_equals,
    percent,
    signed,
)
from ltr_features.studies.statistics.paired_tests import smallest_p


def hard_query_verdict(study: Study) -> str:
    """A sentence with the estimate for the headline system (or the first one in the table, if the
    headline's is missing), or the reason why there is none; "" if there is no table."""
    if study.hard_queries is None or study.hard_queries.empty:
        return ""
    rows = study.hard_rows()
    if not rows:
        return (
            "There is no estimate on hard queries, as no third ranking selects them. Name one "
            "that is neither the baseline nor a compared system: with hard_selectors or hard_by "
            "in an experiment file, or with --hard-by of compare."
        )
    row = next((row for row in rows if row["system"] == study.pairs[0][0]), rows[0])
    if not row["n_queries"]:
        return f"No query is hard for {row['chosen_by']} ({study.hard_measure}, {row['rule']})."
    baseline = study.hard_baseline
    alone = row["n_groups"] == row["n_queries"]
    groups = "" if alone else f" in {counted(int(row['n_groups']), 'group')}"
    family = f" ({study.test.correction_name} over {len(rows)} systems)" if len(rows) > 1 else ""
    others = len(study.queries) - row["n_queries"]
    rest = f"; on the {counted(others, 'other')} it {changes(row['other_gain'])}" if others else ""
    text = (
        f"On hard queries (the {row['n_queries']:,}{groups} on which a third ranking, "
        f"{row['chosen_by']}, does poorly: {study.hard_measure}, {row['rule']}), {row['system']} "
        f"{changes(row['gain'])} against {baseline} ({percent(row['relative_gain'])}), "
        f"{_evidence(study, row, row['p_corrected'], family)}{rest}."
    )
    if row["n_zero"]:
        text += (
            f" On {row['n_zero']:,} of them all three have 0, as where nothing relevant is to be "
            "found; these dilute the gain."
        )
    if not row["related"]:
        return text
    both = study.hard_for_both(row)
    return (
        f"{text} The difference depends on the values of {row['chosen_by']} (their correlation "
        f"with those of {baseline} is {hundredths(row['baseline_correlation'])}, of "
        f"{row['system']} {hundredths(row['system_correlation'])}), so part of this may come from "
        f"the choice of queries. {_on_both(study, row, both, baseline)}"
    )


def _on_both(study: Study, row: Mapping[str, Any], both: Mapping[str, Any], baseline: str) -> str:
    chosen = f"by the mean of {baseline} and {row['system']}, which favours neither"
    if not both["n_queries"]:
        return f"No query is hard {chosen}."
    return (
        f"On the {both['n_queries']:,} that are hard {chosen}, {row['system']} "
        f"{changes(both['gain'])}, {_evidence(study, both, both['p'], ' (uncorrected)')}."
    )


def hard_in_short(study: Study) -> str:
    """A sentence, in lower case, with the estimate on hard queries for the headline system; "" if
    there is none."""
    rows = [r for r in study.estimates_on_hard if r["system"] == study.pairs[0][0]]
    if not rows:
        return ""
    corrected = ", corrected" if len(study.hard_rows()) > 1 else ""
    parts = [_in_short(study, rows[0], rows[0]["chosen_by"], rows[0]["p_corrected"], corrected)]
    if rows[0]["related"]:
        both = study.hard_for_both(rows[0])
        parts.append(_in_short(study, both, "both systems on average", both["p"], ", uncorrected"))
    return f"{'; '.join(parts)}."


def _in_short(study: Study, row: Mapping[str, Any], by: str, p: float, family: str) -> str:
    if not row["n_queries"]:
        return f"no query is hard for {by}"
    return (
        f"on the {counted(row['n_queries'], 'query')} hard for {by}: {signed(row['gain'])} "
        f"{study.hard_measure} ({_evidence(study, row, p, family)})"
    )


def _evidence(study: Study, row: Mapping[str, Any], p: float, family: str = "") -> str:
    """Interval and p-value of a gain on hard queries, or that these are too few for a test to find
    anything."""
    n = int(row["n_groups"])
    if smallest_p(n, n, study.test.n_permutations) >= study.test.alpha:
        return "too few queries for a test"
    return f"{interval(study, row)}, {p_equals(p)}{family}"
