"""What experiments on LETOR files tell of their rows, folds and queries, beside the verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.folds import Fold, queries_of_trained_groups
from letor.lint_labels import ordered_as_labels
from ltr_base.names import counted, listed
from ltr_base.slices import slices
from ltr_features.studies.kinds.given_files import not_found
from ltr_features.studies.kinds.letor_config import StudyConfig
from ltr_features.studies.page.verdicts import WEAK, value
from ltr_features.text.source_remarks import drawn_remark


def not_finite(rows: RankingData) -> Iterator[str]:
    """A remark on values of LETOR text that were read as missing, if there are any."""
    blocks = slices(len(rows), 2**16)
    n = np.sum([np.isnan(rows.X[block]).sum(axis=0) for block in blocks], axis=0)
    names = np.array(rows.column_names)[n > 0].tolist()
    if names:
        yield (
            f"values that are nan, infinite or beyond float32 count as missing: {int(n.sum()):,}, "
            f"in columns {listed(names, 3)}"
        )


def without_text(path: str | None, texts: Mapping[str, str], rows: RankingData) -> Iterator[str]:
    """A remark if the file with the texts of queries lacks some."""
    if path is not None and (n := not_found(Path(path), "queries", texts, rows.all_query_ids)):
        yield f"{counted(n, 'query')} without a text in {path}, shown by their ids"


def giveaways(rows: RankingData, used: Collection[str]) -> Iterator[str]:
    """A remark on columns that may have been made from the labels, if any of those used may."""
    found = np.array(rows.column_names)[ordered_as_labels(rows)].tolist()
    if names := [name for name in found if name in used]:
        yield (
            f"columns ({listed(names, 3)}) order the rows of every query exactly as the labels do: "
            "if they were made from the labels, a gain is worth nothing; leave them out"
        )


def groups_apart(folds: Sequence[Fold], groups: Mapping[str, str] | None) -> Iterator[str]:
    """A remark if folds of the data set test queries whose group they train on."""
    again = 0 if groups is None else queries_of_trained_groups(folds, groups)
    if again:
        of = sum(len(fold.test) for fold in folds)
        yield (
            f"official folds: {again:,} of {of:,} test queries belong to a group that was also "
            "trained on; unless they follow time, take random folds (k = 5 in [[schemes]]), which "
            "keep groups together"
        )


def drawn_queries(sources: Mapping[str, str], tested: Iterable[str]) -> Iterator[str]:
    """A remark if tested queries were made from documents, their ``sources``."""
    queries = set(tested)
    if drawn := len(queries & sources.keys()):
        yield drawn_remark(drawn, len(queries), "test queries", known="")


def weak_rankers(means: pd.DataFrame, config: StudyConfig) -> Iterator[str]:
    """A remark on each scheme in which the ranker that chooses hard queries beats all others, by
    the means that the tables show."""
    if config.hard_by is None:
        return
    measure = config.compare_measures[0]
    for scheme, rows in means.groupby("scheme", sort=False):
        of = dict(zip(rows["ranker"], rows[measure], strict=True))
        simple = of.pop(config.hard_by)
        if simple > max(of.values()):
            yield (
                f"{scheme}: {config.hard_by} has a higher mean {measure} ({value(simple)}) than "
                f"every other row: {WEAK}"
            )
