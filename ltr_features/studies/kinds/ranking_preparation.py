"""Stages that do not depend on a split (collection, index, columns), and their outputs."""

from __future__ import annotations

import inspect
from collections.abc import Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import check_measurable
from letor.files import write_json
from letor.folds import Fold, by_time, k_fold, with_fewer_queries
from letor.measures import run_measure
from letor.parquet import read_parquet
from letor.writing import check_ids
from ltr_base.source_code import packages_of
from ltr_features.blocks import MEMORY, write_columns
from ltr_features.candidates import choose_candidates, source_kind
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.context import ColumnContext, is_workspace, open_workspace
from ltr_features.columns.registry import family_class
from ltr_features.entities.of_dump import EXCERPT_NAME
from ltr_features.feature_table import table_pairs
from ltr_features.remarks import nothing_to_rank
from ltr_features.sources.files import title_in
from ltr_features.sources.query_files import SAME_ID, with_groups_and_times, with_sources
from ltr_features.sources.registry import get_source, read_collection
from ltr_features.studies.identity import bytes_of, files_within, size_text
from ltr_features.studies.kinds.given_files import read_classes
from ltr_features.studies.kinds.ranking_config import ExperimentConfig, SplitConfig
from ltr_features.studies.kinds.ranking_times import StageSeconds
from ltr_features.studies.kinds.sections import FamilyConfig, with_content, with_paths
from ltr_features.studies.stages import Planned
from ltr_features.studies.statistics.paired_tests import group_labels
from ltr_features.studies.study import Study
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.candidates import candidate_recall
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.collection_files import load_collection, save_collection
from ltr_features.text.id_rows import ids_of, rows_of
from ltr_features.text.index import TermIndex

_CODE = ("letor", "ltr_features")


class Preparation(Study):
    """The stages of a ranking study that do not depend on a split."""

    has_table = True
    config: ExperimentConfig

    @cached_property
    def collection_stage(self) -> Planned:
        name, given = self.config.collection.source, self.config.collection.options
        source, data = get_source(name), self.data
        known = inspect.signature(source).parameters
        if name == "wikipedia-sections":
            given.setdefault("dump", EXCERPT_NAME)
        if "seed" in known:
            given.setdefault("seed", self.config.seed)
        made_from = self.query_files.get("sources", self.config.sources)

        def make(path: Path) -> None:
            options = with_paths(source, given, data)
            progress = {"on_progress": self._read} if "on_progress" in known else {}
            collection = read_collection(name, **options, **progress)
            if made_from is not None:
                collection = with_sources(collection, made_from)
            check_ids(collection.query_ids, "query id")
            check_ids(collection.document_ids, "document id")
            save_collection(collection, path)

        options = with_content(source, given, data, self.digests)
        files = [file for _, file in files_within(options)]
        n_bytes = sum(map(bytes_of, files))
        size = f"{size_text(n_bytes)} to read" if files else "no file named: changes go unnoticed"
        inputs: dict[str, Any] = {"source": name, "options": options}
        if made_from is not None:
            given_by = self.identity(made_from) if isinstance(made_from, Path) else made_from
            inputs["sources"] = given_by
        code = (*_CODE, *packages_of(source))
        return Planned(
            "collection", inputs, make, size, "collection", n_bytes, code=code,
            seconds=self.usual.collection,
        )  # fmt: skip

    @cached_property
    def usual(self) -> StageSeconds:
        """How long stages roughly take: known of the collection of a workspace."""
        given, context = self.config.collection, None
        if given.source == "collection":
            options = with_paths(get_source(given.source), given.options, self.data)
            workspace = Path(options["folder"]).parent
            context = open_workspace(workspace) if is_workspace(workspace) else None
        n_columns = len(self.config.models)
        if context is not None:  # families may read what they are made from
            n_columns += sum(len(family.columns) for family in self.column_families())
        return StageSeconds(context, self.config.candidate_settings, n_columns)

    def _read(self, done: float, total: float) -> None:
        self.reporter.step("MB read")
        self.reporter.part(done / 1e6, total / 1e6)

    def input_files(self) -> dict[str, dict[str, Any]]:
        """Name, size and digest of every input file, by the option that names it."""
        columns = {k: v for part in self.columns_stage.inputs["columns"] for k, v in part.items()}
        collection = self.collection_stage.inputs["options"]
        given = {"collection": collection, "candidates": self.candidate_inputs, **columns}
        return dict(files_within(given))

    @cached_property
    def collection(self) -> Collection:
        """The collection, read back from its stage, with groups and times of queries from files if
        the experiment names any.

        Raises:
            InputError: a judged query has no group or no time.
        """
        collection = load_collection(self.done(self.collection_stage).path)
        ids, files = collection.query_ids, self.query_files
        judged = [ids[row] for row in np.unique(collection.judgements.query)]
        return with_groups_and_times(collection, files.get("groups"), files.get("times"), judged)

    @property
    def query_files(self) -> dict[str, Path]:
        """The files with groups, times, sources and classes of queries by these names, as far as
        the experiment names them."""
        names = ("groups", "times", "sources", "query_classes")
        given = {name: getattr(self.config, name) for name in names}
        return {
            name: self.data / file
            for name, file in given.items()
            if file is not None and file != SAME_ID
        }

    @cached_property
    def given_classes(self) -> pd.DataFrame | None:
        """Classes of queries from a file, if the experiment names one, see :func:`read_classes`."""
        if (file := self.query_files.get("query_classes")) is None:
            return None
        return read_classes(file, self.collection.query_ids)

    @property
    def groups(self) -> dict[str, str] | None:
        """The group of each query, by default that of queries with the same text; None if there are
        no groups."""
        collection = self.collection
        if collection.query_groups is None:
            return self._together(by_group=False)
        return dict(zip(collection.query_ids, collection.query_groups, strict=True))

    def _together(self, *, by_group: bool) -> dict[str, str] | None:
        """Labels of queries that folds keep together, see ``Collection.kept_together``."""
        labels = self.collection.kept_together(by_group=by_group)
        if labels is None:
            return None
        return dict(zip(self.collection.query_ids, map(str, labels.tolist()), strict=True))

    @cached_property
    def index_stage(self) -> Planned:
        text = self.config.text.model_dump(mode="json")

        def make(path: Path) -> None:
            TermIndex.build(self.collection, Analyzer(**text)).save(path)

        inputs = {"collection": self.collection_stage.key, "text": text}
        return Planned(
            "index", inputs, make, "all documents", "index", code=_CODE, seconds=self.usual.index
        )

    @cached_property
    def context(self) -> ColumnContext:
        """Collection, index and analysed queries."""
        index = TermIndex.open(self.done(self.index_stage).path)
        return ColumnContext(self.collection, index, threads=self.threads)

    def column_families(self) -> list[ColumnFamily]:
        """The column families; vectors that they train are saved in the folder ``vectors``."""
        vectors = self.folder / "vectors"
        return [part.made(self.data, folder=vectors) for part in self.config.columns]

    @cached_property
    def candidate_inputs(self) -> dict[str, dict[str, Any]]:
        """Everything that the candidates depend on: settings, with the identities of the files."""
        digests = self.digests
        return {
            name: with_content(source_kind(name, options), options, self.data, digests)
            for name, options in self.config.candidate_settings.items()
        }

    @cached_property
    def row_inputs(self) -> dict[str, Any]:
        """Everything that the rows of the table depend on, without its columns."""
        return {
            "index": self.index_stage.key,
            "candidates": self.candidate_inputs,
            "sources": list(self.candidate_inputs),  # whose order is that of a query's rows
        }

    def families_of(self, names: Set[str]) -> Sequence[FamilyConfig]:
        """The families that the names of a system stand for, so that a further family trains only
        the rankers that have it; all, if a name is that of a single column."""
        families = self.config.columns
        known = {part.family for part in families} | {model.name for model in self.config.models}
        return [part for part in families if part.family in names or names - known]

    def family_inputs(self, families: Sequence[FamilyConfig]) -> list[dict[str, Any]]:
        """Everything but code that the columns of some families depend on, in their order."""
        return [part.content(self.data, self.digests) for part in families]

    @staticmethod
    def family_packages(families: Sequence[FamilyConfig]) -> tuple[str, ...]:
        """The packages of others whose code makes the columns of some families."""
        return packages_of(*(family_class(part.family) for part in families))

    @cached_property
    def columns_stage(self) -> Planned:
        config = self.config

        def make(path: Path) -> None:
            found = choose_candidates(self.context, settings)
            write_columns(
                self.context,
                found,
                self.column_families(),
                path / "table.parquet",
                memory=self.memory or MEMORY,
                on_family=self._built,
            )
            recalls = found.recalls(self.collection.judgements, self.collection.n_queries)
            facts = {
                "recall": {name: recall.mean for name, recall in recalls.items()},
                "remarks": found.remarks(self.collection),
            }
            write_json(path / "candidates.json", facts)

        settings = {
            name: with_paths(source_kind(name, options), options, self.data)
            for name, options in config.candidate_settings.items()
        }
        inputs = {**self.row_inputs, "columns": self.family_inputs(config.columns)}
        size = f"{len(config.columns)} families, candidates of {', '.join(settings)}"
        code = (*_CODE, *self.family_packages(config.columns))
        return Planned(
            "letor/base", inputs, make, size, "columns", code=code, seconds=self.usual.columns
        )

    def _built(self, family: str, n_queries: float) -> None:
        self.reporter.step(family)
        self.reporter.part(n_queries, self.collection.n_queries)

    @cached_property
    def base(self) -> RankingData:
        """Rows of the candidates, with the columns that need no training."""
        path = self.done(self.columns_stage).path / "table.parquet"
        return read_parquet(path, memory=self.memory)

    @cached_property
    def pairs(self) -> Pairs:
        """The (query, document) rows of ``base``."""
        return table_pairs(self.collection, self.base)

    @cached_property
    def judged(self) -> list[str]:
        """Ids of the queries with at least one judgement; other queries are in no fold."""
        rows = set(self.collection.judgements.query.tolist())
        return [q for row, q in enumerate(self.collection.query_ids) if row in rows]

    def check_grades(self) -> None:
        """Raise InputError, before columns are computed, if a measure does not take a grade of the
        tested queries."""
        measures = [run_measure(name) for name in self.config.evaluation.all_measures]
        for split in self.config.splits:
            check_measurable(measures, self.test_qrels(split)["label"])

    def folds(self, split: SplitConfig) -> list[Fold]:
        """The folds of :meth:`whole_folds`, without queries that have no candidates.

        Raises:
            InputError: also if a ranker could not be trained or stopped by the queries of a fold.
        """
        folds = [fold.only(self.base.query_ids) for fold in self.whole_folds(split)]
        learns = any(system.columns for system in self.config.systems)
        if learns and (told := nothing_to_rank(self.base, folds)):
            name = split.name.partition(".")[0]  # without the number of the fit
            raise InputError(f"split {name!r}, {told[0]}")
        return folds

    def whole_folds(self, split: SplitConfig) -> list[Fold]:
        """The folds of a split with all judged queries; dealt once, as every stage asks for them.

        Raises:
            InputError: the split is by group or by time and the collection has no groups or times,
                or there are too few queries.
        """
        if split.name not in self._dealt:
            self._dealt[split.name] = self._deal(split)
        return self._dealt[split.name]

    @cached_property
    def _dealt(self) -> dict[str, list[Fold]]:
        """The folds dealt so far, by name of the split, of which each fit has its own."""
        return {}

    def _deal(self, split: SplitConfig) -> list[Fold]:
        """The folds of :meth:`whole_folds`, dealt anew."""
        seed = self.config.seed + split.fit
        if split.by == "group" and self.collection.query_groups is None:
            raise InputError(
                f"split {split.name!r}: collection {self.collection.name!r} has no groups of "
                "queries; split by query, or name a file of groups by groups = FILE"
            )
        together = self._together(by_group=split.by == "group")
        labels = group_labels(self.judged, together)
        times = self.times(split) if split.by == "time" else None
        try:
            if times is not None:
                folds = by_time(self.judged, times, split.folds)
            else:
                folds = k_fold(self.judged, split.folds, seed=seed, groups=labels)
        except InputError as error:
            raise InputError(f"split {split.name.partition('.')[0]!r}: {error}") from error
        if split.share == 1:
            return folds
        return with_fewer_queries(folds, split.share, seed=seed, groups=together)

    def times(self, split: SplitConfig) -> NDArray[np.float64]:
        """float64 [judged queries]: when each was asked, for a split by time.

        Raises:
            InputError: the collection has no times.
        """
        times, collection = self.collection.query_times, self.collection
        if times is None:
            raise InputError(
                f"split {split.name!r}: collection {collection.name!r} has no times of queries; "
                "split by query, name a file of times by times = FILE, or give the source 'clicks' "
                "cuts"
            )
        return times[rows_of(self.judged, collection.query_ids)]

    def test_qrels(self, split: SplitConfig) -> pd.DataFrame:
        """The judgements of all queries that a fold of the split tests: all judged queries, except
        in splits by time."""
        tested = {query for fold in self.whole_folds(split) for query in fold.test}
        return self.qrels[self.qrels["qid"].isin(tested)]

    @cached_property
    def qrels(self) -> pd.DataFrame:
        """All judgements: qid, docno, label."""
        judged = self.collection.judgements
        return pd.DataFrame(
            {
                "qid": ids_of(judged.query, self.collection.query_ids),
                "docno": ids_of(judged.document, self.collection.document_ids),
                "label": judged.grade,
            }
        )

    def title(self, document: str) -> str:
        """A document's title, or else the beginning of its text, or else its id."""
        return title_in(self.collection.fields, self._document_rows[document]) or document

    @cached_property
    def _document_rows(self) -> dict[str, int]:
        return {document: row for row, document in enumerate(self.collection.document_ids)}

    @cached_property
    def candidate_facts(self) -> dict[str, Any]:
        """Facts on the candidates: ``recall``, the mean recall of each source, and ``remarks``."""
        return self.done(self.columns_stage).json("candidates.json")

    @cached_property
    def recall(self) -> float:
        """Mean recall of the candidate pool."""
        return candidate_recall(
            self.pairs, self.collection.judgements, self.collection.n_queries
        ).mean
