"""Studies of the kind "letor": rankers on the folds of a LETOR data set.

In each fold the parameters of every ranker are chosen on the validation queries, and the chosen
ranker scores the test queries once. A ranker may see all columns or some of them, so that a study
tells what columns are worth that others made (the family ``scores``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.column_names import names_path, read_rows
from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning, RankerWarning
from letor.evaluation import check_measurable, evaluate
from letor.files import save_array, write_json
from letor.fold_files import RowsDifferError, concatenate, read_fold, read_folds, read_tested
from letor.folds import Fold, has_relevant, k_fold, rows_of_parts
from letor.lint_labels import label_remarks
from letor.measures import parse_measure
from letor.rankers.registry import get_ranker
from letor.trec import check_trec_ids, run_of, write_run
from letor.tuning import GRIDS, tune
from ltr_base.names import counted
from ltr_base.quiet import ignored
from ltr_base.source_code import packages_of
from ltr_base.user_warning import warn_user
from ltr_features.remarks import family_remarks, given_remark, grouped_remarks
from ltr_features.row_columns import columns_of_rows
from ltr_features.sources.files import read_queries
from ltr_features.sources.query_files import read_query_groups, read_query_sources
from ltr_features.studies.config import slug
from ltr_features.studies.kinds.given_files import digest_of_rows, read_classes, same_text
from ltr_features.studies.kinds.letor_config import PLACE, RankerConfig, SchemeConfig, StudyConfig
from ltr_features.studies.kinds.letor_findings import by_ties, properties_of
from ltr_features.studies.kinds.letor_remarks import (
    drawn_queries,
    giveaways,
    groups_apart,
    not_finite,
    without_text,
)
from ltr_features.studies.kinds.letor_report import Results, document, summary
from ltr_features.studies.kinds.systems import SECONDS
from ltr_features.studies.stages import Planned
from ltr_features.studies.statistics.paired_tests import group_labels
from ltr_features.studies.study import Contents, Study

#: What columns were made from, by name.
Provenance: TypeAlias = Mapping[str, Mapping[str, Any]]
#: Code that computes the numbers of a ranker; changes to the layout of tables retrain nothing.
_CODE = ("letor", f"{__name__}:_train")


class LetorStudy(Study):
    """A study that writes ``tables.txt``, ``results.json``, ``means.csv``, ``errors.csv`` (standard
    errors), ``folds.csv``, ``comparisons.csv``, ``hard_queries.csv``, ``query_classes.csv``,
    ``importance.csv``, ``per_query.csv`` and ``times.csv`` with the page.
    The stages of ``rankers/`` keep each fold's ranker, its scores of the test rows and, of rows
    with document ids, its run of the test queries: a further measure trains no ranker again.
    Rankers train on one thread, those of a fold in parallel."""

    timed = ("times.csv",)
    described = StudyConfig
    config: StudyConfig
    _split: tuple[Fold, tuple[RankingData, RankingData, RankingData]] | None = None
    _reading = Lock()

    @cached_property
    def _given(self) -> tuple[RankingData, list[Fold], dict[str, tuple[Path, Provenance]]]:
        """The rows and the official folds. Where folds have columns of their own models, the rows
        are the test rows of all folds; the folder of each, and the provenance of its columns, are
        given by its name."""
        path, options = self.data / self.config.folder, self._options
        try:
            read = self._rows_of_file(path) if path.is_file() else read_folds(path, **options)
            return (*read, {})
        except RowsDifferError:
            if not all(scheme.official for scheme in self.config.schemes):
                raise
        apart = read_tested(path, **options)
        homes = {fold.name: (home, rows.provenance) for home, fold, rows in apart}
        return concatenate([rows for *_, rows in apart]), [fold for _, fold, _ in apart], homes

    @cached_property
    def _not_finite(self) -> list[str]:
        """A remark on values that were read as missing, if there are any."""
        return [*not_finite(self._given[0])] if self.config.non_finite == "nan" else []

    @cached_property
    def _rows(self) -> RankingData:
        """The rows with the further columns."""
        for remark in self._not_finite:  # before columns are made, which may take long
            path = self.data / self.config.folder
            warn_user(f"{path}: {remark}", LetorWarning)
        rows = self._given[0]
        if rows.document_ids is not None:  # runs of rankers are kept
            check_trec_ids(rows.query_ids, "query id")
            check_trec_ids(rows.document_ids, "document id")
        rows = self._with_columns(rows)
        for ranker in self.config.rankers:
            ranker.chosen(rows.column_names)
        return rows

    @cached_property
    def _groups(self) -> dict[str, str] | None:
        """The group of each query; None if there are no groups."""
        groups, ids = self.config.groups, self._rows.all_query_ids
        if groups is None:
            return same_text(self._texts, ids)
        return read_query_groups(self.data / groups, ids)

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Texts of the queries, as far as they are known."""
        queries = self.config.queries
        return {} if queries is None else read_queries(self.data / queries)

    @cached_property
    def _classes(self) -> pd.DataFrame | None:
        """Classes of queries from a file, if the study names one."""
        file = self.config.query_classes
        return None if file is None else read_classes(self.data / file, self._rows.query_ids)

    @cached_property
    def _sources(self) -> dict[str, str]:
        """The documents that queries were made from, as far as they are known."""
        sources = self.config.sources
        return {} if sources is None else read_query_sources(self.data / sources)

    def _rows_of_file(self, path: Path) -> tuple[RankingData, list[Fold]]:
        if any(scheme.official for scheme in self.config.schemes):
            raise InputError(
                f"{path} is a file, without folds of its own: name the folder of a data set, or "
                "deal its queries into folds by [[schemes]] with a name and k = 5, say"
            )
        return read_rows(path, **self._options), []

    @property
    def _options(self) -> dict[str, Any]:
        return {"n_columns": self.config.n_columns, "non_finite": self.config.non_finite}

    def _with_columns(self, rows: RankingData) -> RankingData:
        """The rows with the further columns."""
        if not self.config.columns:
            return rows
        families = [column.made(self.data, tell=True) for column in self.config.columns]
        names = {name for family in families for name in family.column_names}
        if known := {*rows.column_names} & names:
            raise InputError(f"columns: the rows have a column {min(known)!r} already: rename it")
        new = columns_of_rows(rows, families)
        return rows.with_columns(list(new.provenance), new.values, new.provenance)

    @cached_property
    def _content(self) -> dict[str, Any]:
        """Identities of the files that rows and further columns are made of."""
        found = self.identity(self.data / self.config.folder)
        if (beside := names_path(self.data / self.config.folder)).is_file():
            found["names"] = self.identity(beside)
        columns = [column.content(self.data, self.digests) for column in self.config.columns]
        return found | ({"columns": columns} if columns else {})

    @cached_property
    def files(self) -> dict[str, Any]:
        found = dict(self._content)
        for name in ("groups", "queries", "sources", "query_classes"):
            if (file := getattr(self.config, name)) is not None:
                found[name] = self.identity(self.data / file)
        return found

    @property
    def seeds(self) -> dict[str, int]:
        return {scheme.name: scheme.seed for scheme in self.config.schemes}

    @property
    def headline(self) -> str:
        n_rows, n_queries = len(self._rows), self._rows.n_queries
        return f"{self.config.title}\n{counted(n_rows, 'row')}, {counted(n_queries, 'query')}"

    def stages(self) -> list[Planned]:
        return [stage for *_, stage in self._trained]

    @cached_property
    def _trained(self) -> list[tuple[dict[str, Any], Fold, Planned]]:
        """Place (scheme, fold, ranker, fit), fold and stage of each trained ranker."""
        rows, (_, official, homes) = self._rows, self._given
        self._sources, self._classes  # noqa: B018  # files that cannot be read are told now
        # Of folds whose rows differ, the rows here are only those that are tested.
        digest = self._content if homes else digest_of_rows(rows)
        found = []
        for scheme, fit in product(self.config.schemes, range(self.config.repeats)):
            folds = _folds(scheme, rows, official, fit, self._groups)
            rankers = [r for r in self.config.rankers if not fit or _varies(scheme, r)]
            for (number, fold), ranker in product(enumerate(folds, start=1), rankers):
                place = {"scheme": scheme.name, "fold": number, "ranker": ranker.label, "fit": fit}
                found.append((place, fold, self._stage(place, digest, fold, ranker)))
        self._check_labels([fold for _, fold, _ in found])
        return found

    def _check_labels(self, folds: Sequence[Fold]) -> None:
        """Raise InputError if a measure or a ranker does not take the labels."""
        measures = {"test": self.config.measures.values(), "validation": [self.config.tune_measure]}
        for part, names in measures.items():
            check_measurable(map(parse_measure, names), rows_of_parts(self._rows, folds, part).y)
        # Where folds have columns of their own, only tested rows are here, perhaps none of these.
        if len(learned := rows_of_parts(self._rows, folds, "train", "validation")):
            for trial in (trial for ranker in self.config.rankers for trial in ranker.trials):
                trial.check_rows(learned)

    def _stage(
        self, place: dict[str, Any], digest: Any, fold: Fold, ranker: RankerConfig
    ) -> Planned:
        config, fit = self.config, place["fit"]
        ranker = ranker.model_copy(update={"params": ranker.refitted(fit)})
        columns = ranker.chosen(self._rows.column_names)
        grid = GRIDS[ranker.ranker] if ranker.grid is None else ranker.grid
        inputs = {
            "rows": digest,
            "fold": [list(fold.train), list(fold.validation), list(fold.test)],
            "ranker": ranker.ranker,
            "columns": columns,
            "params": ranker.params,
            "grid": grid,
            "order": list(grid),  # of equal trials, the first wins
            "tune_measure": config.tune_measure,
        }

        def make(folder: Path) -> None:
            train, valid, test = (part.select_columns(columns) for part in self._parts(fold))
            _train(config, ranker, (train, valid, test), folder)

        n_trials = len(ranker.trials)
        # If queries have as many rows as others on average:
        n_rows = len(self._rows) * len(fold.train) / max(1, self._rows.n_queries)
        again = f".refit-{fit}" if fit else ""
        name = f"{slug(place['scheme'])}{again}/fold{place['fold']}/{slug(ranker.label)}"
        return Planned(
            f"rankers/{name}", inputs, make, f"{ranker.ranker}, {counted(n_trials, 'trial')}",
            ranker.label,
            n_trials, title=name, together=f"rankers/{slug(place['scheme'])}{again}/{fold.name}",
            code=(*_CODE, *packages_of(get_ranker(ranker.ranker))),
            seconds=SECONDS.get(ranker.ranker, 0.0) * n_trials * n_rows * len(columns) / 1e6,
        )  # fmt: skip

    def _parts(self, fold: Fold) -> tuple[RankingData, RankingData, RankingData]:
        """Training, validation and test rows of a fold; those of the last fold used are cached."""
        with self._reading:
            if self._split is None or self._split[0] is not fold:
                self._split = fold, self._read_parts(fold)
            return self._split[1]

    def _done_together(self, stages: Sequence[Planned]) -> Iterator[Planned]:
        # The report tells the warnings of the chosen rankers; those on files are shown.
        with ignored(category=RankerWarning):
            yield from super()._done_together(stages)

    def _read_parts(self, fold: Fold) -> tuple[RankingData, RankingData, RankingData]:
        homes = self._given[2]
        if not homes:
            return fold.split(self._rows)
        train, validation, test = read_fold(homes[fold.name][0], **self._options)[1]
        with_columns = self._with_columns
        return with_columns(train), with_columns(validation), with_columns(test)

    def report(self) -> Contents:
        trained, values, importance = [], [], []
        bare = self._rows.select_columns([])
        for place, fold, stage in self._trained:
            done, test = self.done(stage), bare.select_queries(fold.test)
            scores = np.load(done.path / "scores.npy", allow_pickle=False)
            found = done.json("result.json") | done.json("times.json")
            trained.append(found | place | {"ties": by_ties(self.config, test, scores)})
            values.append(_placed(_values(self.config, test, scores), place))
            gains = pd.read_csv(
                done.path / "importance.csv", dtype={"column": str}, keep_default_na=False
            )
            importance.append(_placed(gains, place))
        rows, groups, (_, official, homes) = self._rows, self._groups, self._given
        dealt = official if any(scheme.official for scheme in self.config.schemes) else []
        of_folds = {name: provenance for name, (_, provenance) in homes.items()}
        in_folds = set().union(*of_folds.values())
        others = {name: n for name, n in rows.provenance.items() if name not in in_folds}
        used = {c for ranker in self.config.rankers for c in ranker.chosen(rows.column_names)}
        per_query = pd.concat(values, ignore_index=True)
        remarks = [
            *self._not_finite,
            *label_remarks(rows.y),
            *without_text(self.config.queries, self._texts, rows),
            *giveaways(rows, used),
            *groups_apart(dealt, groups),
            *drawn_queries(self._sources, per_query["qid"]),
            *given_remark(rows.provenance, used),
            *(f"Column {remark}" for remark in grouped_remarks(of_folds)),
            *(f"Column {remark}" for remark in family_remarks(others)),
        ]
        results = Results(
            self.config, trained, per_query[[*PLACE, "qid", *self.config.measures]],
            properties_of(rows, self._texts),
            pd.concat(importance, ignore_index=True),
            {c: str(of["family"]) for c, of in rows.provenance.items() if "family" in of},
            groups, self._texts, self._classes, remarks, rows.coverage,
        )  # fmt: skip
        return Contents(document(results), results.frames, {"results.json": summary(results)})


def _placed(table: pd.DataFrame, place: Mapping[str, Any]) -> pd.DataFrame:
    """A table of a trained ranker, with the ranker's place before its columns."""
    for column, key in enumerate(PLACE):
        table.insert(column, key, place[key])
    return table


def _values(config: StudyConfig, test: RankingData, scores: NDArray[np.float32]) -> pd.DataFrame:
    """Values of each test query in all measures, with its id in the column ``qid``."""
    values = evaluate(test, scores, list(config.measures.values()))
    return values.set_axis(list(config.measures), axis=1).reset_index()


def _folds(
    scheme: SchemeConfig,
    rows: RankingData,
    official: list[Fold],
    fit: int,
    groups: Mapping[str, str] | None,
) -> list[Fold]:
    if scheme.official:
        return official
    queries = rows.all_query_ids
    try:
        return k_fold(
            queries, scheme.k, seed=scheme.seed + fit, strata=has_relevant(rows),
            groups=group_labels(queries, groups),
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"scheme {scheme.name!r}: {error}") from error


def _varies(scheme: SchemeConfig, ranker: RankerConfig) -> bool:
    """Whether further fits of a ranker differ from the first."""
    return not scheme.official or ranker.refitted(1) != ranker.params


def _train(
    config: StudyConfig,
    ranker: RankerConfig,
    parts: tuple[RankingData, RankingData, RankingData],
    folder: Path,
) -> None:
    train, valid, test = parts
    start = time.perf_counter()
    tuned = tune(
        ranker.ranker, train, valid, grid=ranker.grid, measure=config.tune_measure,
        fixed=ranker.params,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    scores = tuned.ranker.predict(test)
    save_array(folder / "scores.npy", scores)
    importance = tuned.ranker.feature_importance()[["column", "gain"]]
    importance.to_csv(folder / "importance.csv", index=False, lineterminator="\n")
    tuned.ranker.save(folder / "ranker")
    if test.document_ids is not None:
        write_run(run_of(test, scores), folder / "run.txt.gz", tag=slug(ranker.label))
    tuned.trials.to_csv(folder / "trials.csv", index=False, lineterminator="\n")
    result = {
        "chosen": tuned.parameters,
        "validation": float(tuned.trials["value"].max()),
        "trials": len(tuned.trials),
        "remarks": list(tuned.ranker.remarks),
    }
    times = {"seconds_per_trial": seconds / len(tuned.trials)}
    for file, found in (("result.json", result), ("times.json", times)):
        write_json(folder / file, found)
