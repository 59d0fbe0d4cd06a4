"""Verdicts: sentences computed from the numbers of a study."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from ltr_base.names import counted, in_words
from ltr_features.studies.page.report import Report, Study, told_once
from ltr_features.studies.statistics.paired_tests import TIE
from ltr_features.studies.statistics.significance import deciding_p

LARGEST = 1.0
"""Largest possible difference, as measures lie within 0 and 1."""
FEW_GROUPS = 20
"""With fewer groups, or queries without groups, bootstrap intervals may be too narrow."""
TIED = 0.01
"""A larger difference between the best and the worst order of equal scores is worth a remark."""
WEAK = (
    "a gain over a weak ranker may not be one over a good one; judge more queries, or tune the "
    "rankers"
)
"""The end of a remark on a simple ranking that is better than those of a verdict."""


class Outcome(NamedTuple):
    """What a comparison found: ``style`` is its colour, ``mark`` tells it without colours."""

    verb: str
    words: str
    style: str
    mark: str

    def headline(self, system: str, against: str) -> str:
        """What it means for a pair, without a full stop."""
        if self is NEITHER:
            return f"{self.words} between {system} and {against}"
        return f"{system} did {self.words} than {against}"


HELPS = Outcome("helps", "significantly better", "gain", "▲")
HURTS = Outcome("hurts", "significantly worse", "loss", "▼")
NEITHER = Outcome("neither helps nor hurts", "no significant difference", "unsure", "")


@dataclass(frozen=True)
class Verdict:
    """Answer of one study to "is the system better than the baseline?" on the primary measure.

    Attributes:
        outcome: significant gain, significant loss, or neither, at the study's level after
            correction.
        headline: one short sentence.
        details: sentences on the numbers, the test, and the outcomes of the other measures.
        row: the comparison's row of ``Study.comparisons``.
    """

    outcome: Outcome
    headline: str
    details: str
    row: pd.Series


def outcome_of(row: Mapping[str, Any] | pd.Series, key: str = "difference") -> Outcome:
    """Outcome of a row by its corrected test of the number ``key``; no significant difference
    without one, as among many uncorrected tests some reach any level by chance."""
    if not row.get("significant", False):
        return NEITHER
    return HELPS if row[key] > 0 else HURTS


def verdict(study: Study, pair: tuple[str, str] | None = None) -> Verdict:
    """The verdict on a declared pair, by default the study's headline pair."""
    pair = pair or study.pairs[0]
    row = study.comparison(pair, study.measures[0])
    outcome = outcome_of(row)
    headline = f"{outcome.headline(*map(study.label_of, pair))}."
    details = f"{_numbers(study, row)} {_other_measures(study, pair, outcome)}".strip()
    return Verdict(outcome, _capital(headline, pair), details, row)


def verdict_sentence(report: Report) -> str:
    """The headline verdicts of all studies in one sentence, with the systems' labels."""
    return _sentence(report, [study.pairs[0] for study in report.studies])


def second_sentence(report: Report) -> str:
    """The verdicts on the studies' second pairs in one sentence; "" unless each study has one."""
    if any(study.second is None for study in report.studies):
        return ""
    return _sentence(report, [study.second for study in report.studies if study.second])


def _sentence(report: Report, pairs: Sequence[tuple[str, str]]) -> str:
    studies = report.studies
    labels = [[*map(s.label_of, pair)] for s, pair in zip(studies, pairs, strict=True)]
    found = [verdict(s, pair) for s, pair in zip(studies, pairs, strict=True)]
    if len(studies) == 1 or any(pair != labels[0] for pair in labels):
        return " ".join(v.headline for v in found)
    where: dict[Outcome, list[str]] = {}
    for study, v in zip(studies, found, strict=True):
        where.setdefault(v.outcome, []).append(f"on {_lower(study.name)}")
    (first, names), *others = where.items()
    parts = [f"{first.headline(*labels[0])}, {in_words(names)}"]
    parts += [f"{outcome.words} {in_words(places)}" for outcome, places in others]
    return f"{_capital('; '.join(parts), pairs[0])}."


def _capital(text: str, pair: tuple[str, str]) -> str:
    """The text with a capital first letter, unless it starts with the name of the pair's system."""
    return text if text.startswith(pair[0]) else capital(text)


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:] if name[1:2].islower() else name


def _numbers(study: Study, row: pd.Series) -> str:
    text = (
        f"{row['measure']} {value(row['system_mean'])} against {value(row['baseline_mean'])}: "
        f"{row['system']} {changes(row['difference'])} ({percent(row['relative'])}), "
        f"{interval(study, row)}; "
        f"{p_equals(row['p_corrected'])} ({study.test.correction_name} over "
        f"{counted(len(study.comparisons), 'test')}), "
        f"{p_value(row['p'])} uncorrected. {_training(row)}"
        f"{row['won']:,} of {row['n_queries']:,} queries won, {row['tied']:,} tied, "
        f"{row['lost']:,} lost."
    )
    if row["significant"]:
        return text
    if told := out_of_reach(study, row):
        return f"{text} {told}."
    if row["detectable"] > LARGEST:
        text += (
            f" With this many {_observations(row)}, no difference that {row['measure']} can take "
            "is detected with a power of 80 %."
        )
    elif row["detectable"] > 0:
        text += (
            f" With this many {_observations(row)}, a difference of {value(row['detectable'])} is "
            "detected with a power of 80 % (before correction); a smaller one may be missed."
        )
    return text


def interval(study: Study, row: Mapping[str, Any] | pd.Series) -> str:
    """The interval of a difference in words; a single query or group has none."""
    if pd.isna(row["low"]):
        return "no interval"
    ends = f"{signed(row['low'])} to {signed(row['high'])}"
    return f"{study.test.confidence_text} interval {ends}"


def _observations(row: pd.Series) -> str:
    return "queries" if row["n_groups"] == row["n_queries"] else "groups of queries"


def _training(row: pd.Series) -> str:
    """A sentence on the spread of the difference over fits and the p-value that includes it."""
    if row["n_fits"] < 2:
        return ""
    return (
        f"Over {row['n_fits']} fits with different seeds (and folds, if random), the difference "
        f"has a standard deviation of {value(row['spread'])}, which the interval includes; a test "
        f"including it gives {p_equals(row['p_refits'])} (uncorrected), and the larger p-value is "
        "corrected. "
    )


def out_of_reach(study: Study, row: pd.Series) -> str:
    """A warning, without a full stop, if the test could not have found any difference significant,
    else ""."""
    test, table = study.test, study.comparisons
    this = (table.index == row.name).nonzero()[0]
    p = deciding_p(table).to_numpy(copy=True)
    p[this] = row["smallest_p"]
    if test.corrected(p)[this] < test.alpha:
        return ""
    return (
        f"No difference could have been significant: the smallest possible p-value is "
        f"{p_value(row['smallest_p'])} ({_observations(row)} that differ: {row['differing']:,}; "
        f"{test.patterns(int(row['n_groups']))}), before correction over {counted(len(p), 'test')}"
    )


def nothing_in_reach(report: Report) -> list[tuple[str, str]]:
    """:func:`out_of_reach` of the first comparison of each study, once, after the names of those
    that it concerns ("" if all)."""

    def told(study: Study) -> list[str]:
        row = study.comparison(study.pairs[0], study.measures[0])
        return [] if row["significant"] else list(filter(None, [out_of_reach(study, row)]))

    return told_once(report.studies, told)


def group_verdict(study: Study) -> str:
    """Sentences on the groups of queries, the design effect, and too few queries or groups; "" if
    there is nothing to say."""
    table = study.comparisons
    n, n_groups = len(study.queries), int(table["n_groups"].iloc[0])
    few = " With so few of them, the intervals may be too narrow." if n_groups < FEW_GROUPS else ""
    if table["low"].isna().all():
        few = " There are no intervals."
    if n_groups == n:
        return f"Tested on {counted(n, 'query')}.{few}" if few else ""
    text = (
        f"The {n:,} queries belong to {counted(n_groups, 'group')} and are tested by group, as "
        "queries of the same group are not independent"
    )
    effects = table["design_effect"].dropna()
    if len(effects):
        low, high = effects.min(), effects.max()
        span = f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"
        own = study.comparison(study.pairs[0], study.measures[0])["design_effect"]
        text += f". Design effect: {span}"
        if n_groups < FEW_GROUPS:
            text += ", an unreliable estimate from so few groups"
        elif own > 1:
            text += (
                f"; for the headline {own:.1f}, which makes it as informative as a comparison on "
                f"{n / own:,.0f} independent queries"
            )
    return f"{text}.{few}"


def _other_measures(study: Study, pair: tuple[str, str], outcome: Outcome) -> str:
    """A sentence on which of the other measures agree with the outcome or contradict it."""
    others = {m: outcome_of(study.comparison(pair, m)) for m in study.measures[1:]}
    if not others:
        return ""
    against = [m for m, o in others.items() if {o, outcome} == {HELPS, HURTS}]
    if against:
        return f"However, the opposite is significant on {', '.join(against)}."
    if outcome is NEITHER:
        found = [f"{o.verb} on {m}" for m, o in others.items() if o is not NEITHER]
        if found:
            return f"Other measures disagree: it {', '.join(found)}."
        return f"Also no significant difference on {', '.join(others)}."
    same = [m for m, o in others.items() if o == outcome]
    unsure = [m for m, o in others.items() if o != outcome]
    text = f"Also significant on {', '.join(same)}." if same else ""
    return f"{text} Not significant on {', '.join(unsure)}.".strip() if unsure else text


def tie_remark(measure: str, worst: float, best: float, order: str) -> Iterator[str]:
    """A remark, without a full stop, if equal scores leave the mean of a measure open.

    Args:
        worst, best: the mean if equal scores are ordered by ascending, and by descending grade.
        order: how they are ordered in the report, a sentence.
    """
    if best - worst > TIED:
        yield (
            f"gives equal scores to documents of different grades; its {measure} is between "
            f"{value(worst)} and {value(best)}, depending on their order; {order}"
        )


def value(x: float) -> str:
    """A number with four decimals: "0.4123"."""
    return f"{x:.4f}"


def hundredths(x: float) -> str:
    """A number with two decimals and a typographic minus: "−0.21"; "n/a" for NaN."""
    return "n/a" if pd.isna(x) else minus(f"{x:z.2f}")


def detected(x: float) -> str:
    """A detectable difference; "none" if no difference of a measure is that large."""
    return "none" if x > LARGEST else value(x)


def changes(x: float) -> str:
    """A mean difference as a verb: "gains 0.0123", "loses 0.0123"."""
    if abs(x) <= TIE:
        return "neither gains nor loses"
    return f"{'gains' if x > 0 else 'loses'} {abs(x):.{_decimals(x, 4)}f}"


def signed(x: float) -> str:
    """Four decimals (for tiny numbers more) with a sign and typographic minus: "+0.0123",
    "−0.000012"; "n/a" for NaN."""
    if pd.isna(x):
        return "n/a"
    return "0.0000" if abs(x) <= TIE else minus(f"{x:+.{_decimals(x, 4)}f}")


def _decimals(x: float, usual: int) -> int:
    """The usual number of decimals, or as many as show two significant digits of a number that
    would be rounded to 0."""
    return usual if round(x, usual) else 1 - math.floor(math.log10(abs(x)))


def minus(number: str) -> str:
    """The number with a typographic minus."""
    return number.replace("-", "−")


def percent(x: float) -> str:
    """A share as a signed percentage with one decimal (tiny shares with more): "+12.3 %"; "n/a"
    for NaN."""
    if pd.isna(x):
        return "n/a"
    return ("0.0" if abs(x) <= TIE else minus(f"{100 * x:+.{_decimals(100 * x, 1)}f}")) + " %"


def p_value(p: float) -> str:
    """A p-value with about two significant digits, or so many that it does not look like the usual
    level .05; "< 0.0001" for small ones; "n/a" for NaN."""
    if pd.isna(p):
        return "n/a"
    if p < 0.0001:
        return "< 0.0001"
    usual = 4 if p < 0.001 else 3 if p < 0.1 else 2
    decimals = (d for d in range(usual, 8) if p == 0.05 or round(p, d) != 0.05)
    return f"{p:.{next(decimals, usual)}f}"


def p_equals(p: float) -> str:
    """ "p = 0.012" or "p < 0.0001"."""
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
