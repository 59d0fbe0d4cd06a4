"""What the numbers say, in words computed from them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from reports.hard_queries import BOTH
from reports.report import Study

Outcome = Literal["helps", "hurts", "no significant difference"]


@dataclass(frozen=True)
class Verdict:
    """Answer of one study to "is the system better than the baseline?" on the primary measure.

    Attributes:
        outcome: significant gain, significant loss, or neither, at the study's level after
            correction.
        headline: one short sentence.
        details: numbers, test, and what the other measures say.
        row: the comparison's row of ``Study.comparisons``.
    """

    outcome: Outcome
    headline: str
    details: str
    row: pd.Series


def outcome_of(row: pd.Series) -> Outcome:
    """Outcome of one row of ``Study.comparisons``."""
    if not row["significant"]:
        return "no significant difference"
    return "helps" if row["difference"] > 0 else "hurts"


def verdict(study: Study, pair: tuple[str, str] | None = None) -> Verdict:
    """The verdict on a declared pair, by default the study's headline pair."""
    pair = pair or study.pairs[0]
    row = study.comparison(pair, study.measures[0])
    outcome = outcome_of(row)
    headlines = {
        "helps": f"{pair[0]} is significantly better than {pair[1]}.",
        "hurts": f"{pair[0]} is significantly worse than {pair[1]}.",
        "no significant difference": f"No significant difference between {pair[0]} and {pair[1]}.",
    }
    details = f"{_numbers(study, row)} {_other_measures(study, pair, outcome)}".strip()
    return Verdict(outcome, headlines[outcome], details, row)


def _numbers(study: Study, row: pd.Series) -> str:
    change = "gain" if row["difference"] > 0 else "loss" if row["difference"] < 0 else "change"
    text = (
        f"{row['measure']} {value(row['system_mean'])} against {value(row['baseline_mean'])}: a "
        f"mean {change} of {signed(row['difference'])} ({percent(row['relative'])}), "
        f"{study.test.confidence:.0%} interval {signed(row['low'])} to {signed(row['high'])}; "
        f"{p_equals(row['p_corrected'])} ({study.test.correction_name} over "
        f"{len(study.comparisons)} tests), "
        f"{p_value(row['p'])} uncorrected. "
        f"{row['won']:,} of {row['n_queries']:,} queries won, {row['tied']:,} tied, "
        f"{row['lost']:,} lost."
    )
    if row["significant"]:
        return text
    if row["detectable"] > 0:
        text += (
            f" With this many queries, a difference of {value(row['detectable'])} would be found "
            "four times in five (before correction); a smaller one may exist unseen."
        )
    return f"{text} {_out_of_reach(study, row)}".strip()


def _out_of_reach(study: Study, row: pd.Series) -> str:
    """A warning if the test could not have found any difference significant, else ""."""
    test, differing = study.test, row["won"] + row["lost"]
    smallest = max(2.0 ** (1 - differing), 1 / (test.n_permutations + 1)) if differing else 1.0
    tests = len(study.comparisons) if test.correction in ("holm", "bonferroni") else 1
    if smallest * tests < test.alpha:
        return ""
    return (
        f"No difference could have been significant: the smallest p that {differing:,} differing "
        f"queries and {test.n_permutations:,} permutations allow is {p_value(smallest)}, before "
        f"correction over {tests} tests."
    )


def _other_measures(study: Study, pair: tuple[str, str], outcome: Outcome) -> str:
    """How many of the other measures agree, and which contradict."""
    others = {m: outcome_of(study.comparison(pair, m)) for m in study.measures[1:]}
    if not others:
        return ""
    contrary = {"helps": "hurts", "hurts": "helps"}.get(outcome)
    against = [m for m, o in others.items() if o == contrary]
    if against:
        return f"But the other way round, significantly, on {', '.join(against)}."
    if outcome == "no significant difference":
        found = [f"{o} on {m}" for m, o in others.items() if o != outcome]
        return (
            f"Other measures differ: it {', '.join(found)}."
            if found
            else (f"The same on {', '.join(others)}.")
        )
    same = [m for m, o in others.items() if o == outcome]
    unsure = [m for m, o in others.items() if o != outcome]
    text = f"Significant on {', '.join(same)} too." if same else ""
    return f"{text} Not significant on {', '.join(unsure)}.".strip() if unsure else text


def hard_query_verdict(study: Study) -> str:
    """What the hard-query table says about the headline system, or "" if there is no table."""
    if study.hard_queries is None or study.hard_queries.empty:
        return ""
    system = study.pairs[0][0]
    table = study.hard_queries
    table = table[(table["system"] == system) & (table["rule"] == table["rule"].iloc[0])]
    if table.empty or table["n_queries"].iloc[0] == 0:
        return ""
    own = table.iloc[0]
    baseline = study.hard_baseline or study.pairs[0][1]
    parts = [
        f"On the {own['n_queries']:,} queries that {baseline} itself ranked badly "
        f"({study.hard_measure}, {own['rule']}), {system} gains {signed(own['gain'])} "
        f"({percent(own['relative_gain'])}); part of that is the choice of queries."
    ]
    for row in table[table["chosen_by"] == BOTH].to_dict("records"):
        if row["n_queries"]:
            parts.append(
                f"On the {row['n_queries']:,} that both ranked badly on average, a choice that "
                f"favours neither, it gains {signed(row['gain'])} ({_interval(study, row)})."
            )
    if pd.notna(own["net_gain"]):
        parts.append(
            f"Net of {study.hard_control}, which gains {signed(own['control_gain'])} on the "
            f"baseline's own choice, it gains {signed(own['net_gain'])} "
            f"({_interval(study, own.to_dict())})."
        )
        if own["control_spread"] < 0.7 * own["system_spread"]:
            parts.append(
                "That is too much: query by query the control differs less from the baseline "
                f"(spread {value(own['control_spread'])}) than the system does "
                f"({value(own['system_spread'])}), so it shows only part of the effect of the "
                "choice."
            )
    return " ".join(parts)


def column_verdicts(study: Study) -> list[str]:
    """What must be heard of columns before a verdict on systems that use them is believed, a
    sentence each."""
    return [f"{remark}." for remark in study.remarks]


def _interval(study: Study, row: Mapping[Hashable, Any]) -> str:
    return (
        f"{study.test.confidence:.0%} interval {signed(row['low'])} to {signed(row['high'])}, "
        f"{p_equals(row['p'])}"
    )


def value(x: float) -> str:
    """Four decimals: "0.4123"."""
    return f"{x:.4f}"


def signed(x: float) -> str:
    """Four decimals with a sign; a typographic minus: "+0.0123", "−0.0123"."""
    text = f"{x:+.4f}"
    return "0.0000" if float(text) == 0 else text.replace("-", "−")


def percent(x: float) -> str:
    """A share as signed per cent, one decimal: "+12.3 %"; "n/a" for NaN."""
    if pd.isna(x):
        return "n/a"
    text = f"{100 * x:+.1f}"
    return ("0.0" if float(text) == 0 else text.replace("-", "−")) + " %"


def p_value(p: float) -> str:
    """Two significant digits; below 0.0001 as a bound; "n/a" for NaN."""
    if pd.isna(p):
        return "n/a"
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.4f}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_equals(p: float) -> str:
    """ "p = 0.012" or "p < 0.0001"."""
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
