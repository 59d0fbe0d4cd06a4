"""Rankings made elsewhere, as they were read, and how they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from letor.errors import InputError
from letor.evaluation import evaluate
from letor.judged_runs import other_spellings, score_remarks, unjudged_queries
from letor.measures import run_measure, tie_bounds
from ltr_base.names import counted, listed, written_alike, written_otherwise
from ltr_features.studies.kinds.given_files import same_text
from ltr_features.studies.page.verdicts import tie_remark
from ltr_features.studies.statistics.precision_recall import coverage_remarks
from ltr_features.text.id_rows import examples
from ltr_features.text.query_texts import same_text_remark


@dataclass(eq=False)
class Given:
    """The content of the input files.

    Attributes:
        rankings: run of each system, columns ``qid``, ``docno``, ``score``.
        qrels: columns ``qid``, ``docno``, ``label``.
        texts: of queries. titles: of documents.
        groups: of queries; by default, those of queries with the same text. None if there are none.
        classes: of queries, a column per property; None if there are none.
        notes: further facts, by label.
    """

    rankings: dict[str, pd.DataFrame]
    qrels: pd.DataFrame
    texts: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] | None = None
    classes: pd.DataFrame | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.groups is None:
            self.groups = self.same_text

    @property
    def same_text(self) -> dict[str, str] | None:
        """The first judged query with the same text, by query; None if all texts differ."""
        return same_text(self.texts, self.qrels["qid"].astype(str).unique())


def check_comparable(given: Given, pairs: Sequence[tuple[str, str]]) -> None:
    """Raise InputError if no document is judged relevant, or the two runs of a pair have no judged
    query in common."""
    if not (given.qrels["label"] >= 1).any():
        raise InputError(
            f"none of the {counted(len(given.qrels), 'judgement')} has a grade of 1 or more, so "
            "every value would be 0: give judgements of relevant documents"
        )
    judged = set(given.qrels["qid"].astype(str))
    queries = {
        name: [q for q in run["qid"].astype(str).unique() if q in judged]
        for name, run in given.rankings.items()
    }
    for one, other in pairs:
        if set(queries[one]).isdisjoint(queries[other]):
            raise InputError(
                f"{one} and {other} have no judged query in common ({examples(queries[one])}; "
                f"{examples(queries[other])}): compare runs on the same queries"
            )


def same_values(values: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """A remark for the report, without a full stop, on each set of systems whose values (a row per
    query, a column per measure) are all the same, as those of one run under several names."""
    same: dict[bytes, list[str]] = {}
    for name, frame in values.items():
        same.setdefault(frame.to_numpy().tobytes(), []).append(name)
    for names in same.values():
        if len(names) > 1:
            yield (
                f"{listed(names, 3)} have the same values for every query: they rank alike, or are "
                "one run under several names"
            )


def run_remarks(given: Given, judged: pd.Index, measures: Sequence[str]) -> list[str]:
    """Remarks for the report, sentences without a full stop, the gravest first: on queries that
    runs lack, ids written otherwise, documents without a judgement, equal scores, runs of different
    depth, queries without a judgement, odd scores, and queries of the same text.

    Args:
        judged: ids of the judged queries.
        measures: names of the measures that are compared, the primary one first.
    """
    runs = given.rankings.items()
    return [
        *_lacking_queries(given, judged),
        *(f"{name}: {x}" for name, run in runs for x in other_spellings(given.qrels, run)),
        *coverage_remarks(given.qrels, given.rankings),
        *(f"{name}: {x}" for name, run in runs for x in _ties(given, run, measures[0])),
        *_differing_depths(given, measures),
        *_unjudged(given),
        *(f"{name}: {x}" for name, run in runs for x in score_remarks(run)),
        *_same_texts(given),
    ]


def _ties(given: Given, run: pd.DataFrame, measure: str) -> Iterator[str]:
    if not run.duplicated(["qid", "score"]).any():
        return
    worst, best = evaluate(given.qrels, run, tie_bounds(run_measure(measure))).mean()
    order = "here the smaller document id goes first"
    if "rank" in run and not run.duplicated(["qid", "rank"]).any():
        order += (
            ", as measures do not read the ranks of a run; if these are the order that was shown, "
            "leave out the scores: lines of query, document and rank"
        )
    yield from tie_remark(measure, worst, best, order)


def _lacking_queries(given: Given, judged: pd.Index) -> Iterator[str]:
    """Remarks on each run that lacks some of the judged queries, those that lack half or more
    first."""
    lacking = {
        name: judged.difference(pd.Index(run["qid"].unique()))
        for name, run in given.rankings.items()
    }
    for name, lost in sorted(lacking.items(), key=lambda item: 2 * len(item[1]) < len(judged)):
        if not len(lost):
            continue
        told = f"{name} lacks {len(lost):,} of {len(judged):,} judged queries, which count 0"
        alike = written_alike(unjudged_queries(given.qrels, given.rankings[name]), lost)
        if alike:
            other, query = next(iter(alike.items()))
            told += (
                f"; it has {len(alike):,} of them under another id, {other!r} for {query!r}: "
                "write ids alike in all files"
            )
        elif 2 * len(lost) >= len(judged):
            told += (
                ": the verdict says more about these than about rankings; to compare rankings, "
                "leave these out of the judgements"
            )
        yield told


def _unjudged(given: Given) -> Iterator[str]:
    """A remark on queries of runs alone."""
    unjudged: dict[str, str] = {}  # query -> the first run that has it
    for name, run in given.rankings.items():
        for query in unjudged_queries(given.qrels, run):
            unjudged.setdefault(query, name)
    if unjudged:
        query, name = next(iter(unjudged.items()))
        near = written_otherwise(query, given.qrels["qid"].astype(str).unique())
        yield (
            f"{counted(len(unjudged), 'query')} of the runs without judgement left out; the first "
            f"is {query!r} in {name}{f'; {near}' if near else ' (check its spelling)'}"
        )


def _differing_depths(given: Given, measures: Sequence[str]) -> Iterator[str]:
    """A remark if some runs have less than half the depth of the deepest one (the median number of
    documents per query), and a measure looks below it."""
    depths = {name: int(run.groupby("qid").size().median()) for name, run in given.rankings.items()}
    deepest = max(depths, key=lambda name: depths[name])
    shallow = {name: depth for name, depth in depths.items() if 2 * depth < depths[deepest]}
    if not shallow:
        return
    cutoffs = {measure: run_measure(measure).cutoff for measure in measures}
    least = min(shallow.values())
    affected = [m for m, cutoff in cutoffs.items() if cutoff is None or cutoff > least]
    if affected:
        ranked = ", ".join(f"{name} {depth:,}" for name, depth in shallow.items())
        yield (
            f"runs of different depth are compared: {ranked} documents per query (median), "
            f"{deepest} {depths[deepest]:,}. In {', '.join(affected)}, what a run does not rank "
            f"counts as not found, which favours deeper runs; compare runs of one depth, or up to "
            f"rank {least:,}"
        )


def _same_texts(given: Given) -> Iterator[str]:
    """A remark on queries of the same text, and how they are tested."""
    same = given.same_text
    if same is not None:
        tested = "they are tested as one" if given.groups == same else "groups are given for them"
        yield f"{same_text_remark(list(same.values()))}: {tested}"
