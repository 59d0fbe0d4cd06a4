"""The stages of an experiment: collection, index, columns, models, LETOR folds, systems."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.files import atomic_path
from letor.folds import Fold, k_fold
from letor.svmlight import read_letor
from letor.writing import write_letor
from ltr_features.build import build_columns, candidate_pairs, fold_scores
from ltr_features.collection import Collection, Pairs
from ltr_features.collection_files import load_collection, save_collection
from ltr_features.columns.registry import ColumnContext, get_family
from ltr_features.columns.trained import ModelColumn, TrainedColumn
from ltr_features.index import TermIndex
from ltr_features.pools import pool_recall
from ltr_features.sources.wikipedia import excerpt_path
from ltr_features.sources.wikipedia_sections import section_collection
from ltr_features.text import Analyzer
from reports.config import ExperimentConfig, SplitConfig, SystemConfig, slug
from reports.progress import Reporter
from reports.stages import StageResult, Stages
from reports.systems import ReadPart, write_system

SSI_COLUMN = "ssi"
_SSI_PROVENANCE = {
    "family": SSI_COLUMN,
    "description": "score of SSI U'V + I: (Uq) . (Vd) + q . d of tf-idf vectors",
    "reference": "Bai et al., Information Retrieval 13(3), 2010, eq. (5), (8)",
    "trained on": "judgements of the fold's training queries; rows of training queries are scored "
    "out of fold, by models that did not see their queries",
}


@dataclass(frozen=True, eq=False)
class SplitOutputs:
    """What the stages of one split left behind.

    Attributes:
        split: its description. folds: its folds.
        letor: folder of ``Fold1/{train,vali,test}.txt.zst``. models: folder of fitted models.
        systems: folder of each system's runs, values and rankers, by system name.
    """

    split: SplitConfig
    folds: list[Fold]
    letor: StageResult
    models: StageResult
    systems: dict[str, StageResult]


class Experiment:
    """One run of a configuration into a folder; finished stages of earlier runs are reused.

    Args:
        config: what to run.
        out: the output folder.
        reporter: where progress goes; silent by default.
        threads: worker threads; None for one per core. Results do not depend on it.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        out: str | os.PathLike[str],
        *,
        reporter: Reporter | None = None,
        threads: int | None = None,
    ) -> None:
        self.config = config
        self.stages = Stages(out)
        self.reporter = reporter or Reporter()
        self.threads = threads

    @property
    def n_steps(self) -> int:
        """Steps that the stages report to the progress bar, the report's own included."""
        splits = self.config.splits
        n_folds = sum(split.folds for split in splits)
        return 4 + 4 * n_folds + len(self.config.systems) * len(splits)

    def run_splits(self) -> list[SplitOutputs]:
        """Run all stages up to the systems' runs and values.

        Raises:
            InputError: an input cannot be used, or the folder cannot be written.
        """
        self.stages.check(self._stage_names())
        return [self._run_split(split) for split in self.config.splits]

    def _stage_names(self) -> list[str]:
        names = ["collection", "index", "letor/base", "report"]
        for split in self.config.splits:
            names += [f"models/{split.name}", f"letor/{split.name}"]
            names += [f"systems/{split.name}/{slug(s.name)}" for s in self.config.systems]
        return names

    @cached_property
    def dump(self) -> Path:
        """The dump that the collection is made from."""
        given = self.config.collection.dump
        return excerpt_path() if given is None else Path(given)

    @cached_property
    def _collection_stage(self) -> StageResult:
        settings = self.config.collection

        def make(path: Path) -> None:
            collection = section_collection(
                self.dump,
                words_per_query=settings.words_per_query,
                min_words=settings.min_words,
                min_document_frequency=settings.min_document_frequency,
                seed=self.config.seed,
                on_progress=lambda done, total: self.reporter.step(
                    f"collection: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB read"
                ),
            )
            path.mkdir()
            save_collection(collection, path)

        inputs = {
            "collection": settings.model_dump(mode="json", exclude={"dump"}),
            "seed": self.config.seed,
            "dump": _file_identity(self.dump),
        }
        return self.stage("collection", inputs, make, advance=1)

    @cached_property
    def collection(self) -> Collection:
        """The collection, read back from its stage."""
        return load_collection(self._collection_stage.path)

    @cached_property
    def _index_stage(self) -> StageResult:
        text = self.config.text.model_dump(mode="json")

        def make(path: Path) -> None:
            TermIndex.build(self.collection, Analyzer(**text), threads=self.threads).save(path)

        inputs = {"collection": self._collection_stage.key, "text": text}
        return self.stage("index", inputs, make, advance=1)

    @cached_property
    def context(self) -> ColumnContext:
        """Collection, index and analysed queries."""
        index = TermIndex.open(self._index_stage.path)
        return ColumnContext.of(self.collection, index, threads=self.threads)

    @cached_property
    def _columns_stage(self) -> StageResult:
        tfidf = {"min_document_frequency": self.config.tfidf_min_document_frequency}
        families = [
            get_family(name, **(tfidf if name == "vsm" else {})) for name in self.config.families
        ]

        def make(path: Path) -> None:
            pairs = candidate_pairs(self.context, self.config.candidate_depth)
            data = build_columns(self.context, pairs, families)
            path.mkdir()
            write_letor(data, path / "base.txt.zst", threads=self.threads)
            _write_columns(data, path)

        inputs = {
            "index": self._index_stage.key,
            "families": list(self.config.families),
            "tfidf_min_document_frequency": self.config.tfidf_min_document_frequency,
            "candidate_depth": self.config.candidate_depth,
        }
        return self.stage("letor/base", inputs, make, advance=1)

    @cached_property
    def base(self) -> RankingData:
        """The candidates' rows with the columns that need no training, read back."""
        return self.read_rows(self._columns_stage.path, "base.txt.zst")

    @cached_property
    def pairs(self) -> Pairs:
        """The (query, document) rows of ``base``."""
        collection, data = self.collection, self.base
        query_row = {q: row for row, q in enumerate(collection.query_ids)}
        document_row = {d: row for row, d in enumerate(collection.document_ids)}
        queries = np.array([query_row[q] for q in data.query_ids], dtype=np.int64)
        ids = () if data.document_ids is None else data.document_ids
        documents = np.fromiter((document_row[d] for d in ids), dtype=np.int64, count=len(data))
        return Pairs(queries[data.query_index], documents)

    def read_rows(self, folder: Path, name: str) -> RankingData:
        """Rows of a LETOR file of ours with the column names of the ``columns.json`` beside."""
        columns = json.loads((folder / "columns.json").read_text(encoding="utf-8"))
        data = read_letor(folder / name, n_columns=len(columns), threads=self.threads)
        provenance = {c["name"]: {k: v for k, v in c.items() if k != "name"} for c in columns}
        return replace(data, column_names=list(provenance), provenance=provenance)

    def trained_scores(self, split: SplitConfig, folder: Path) -> TrainedColumn:
        """The models of a split, kept in the folder."""
        params = {**self.config.ssi, "seed": self.config.seed, "threads": self.threads}
        least = self.config.tfidf_min_document_frequency
        return TrainedColumn(
            self.context,
            ModelColumn(SSI_COLUMN, "ssi", params, min_document_frequency=least),
            folder,
            hold_out_groups=split.by == "group",
            on_progress=lambda key, epoch: self.reporter.step(
                f"{split.name}: {key}, epoch {epoch.number}, MAP {epoch.validation:.4f}"
            ),
        )

    def train_parts(self, folds: list[Fold], fold: Fold) -> list[NDArray[np.int64]]:
        """Query rows of each part that the fold trains on."""
        row = {q: i for i, q in enumerate(self.collection.query_ids)}
        train = set(fold.train)
        parts = [part.test for part in folds if part.test[0] in train]
        return [np.array(sorted(row[q] for q in part), dtype=np.int64) for part in parts]

    def _run_split(self, split: SplitConfig) -> SplitOutputs:
        folds = k_fold(
            self.collection.query_ids,
            split.folds,
            seed=self.config.seed,
            groups=self.collection.query_groups if split.by == "group" else None,
        )
        models = self._models_stage(split, folds)
        letor = self._letor_stage(split, folds, models)

        @cache  # every system reads the same parts
        def read(fold: str, part: str) -> RankingData:
            return self.read_rows(letor.path / fold, f"{part}.txt.zst")

        systems = {
            system.name: self._system_stage(split, folds, system, letor.key, read)
            for system in self.config.systems
        }
        return SplitOutputs(split, folds, letor, models, systems)

    @cached_property
    def qrels(self) -> pd.DataFrame:
        """All judgements: qid, docno, label."""
        judged = self.collection.judgements
        query_ids = np.array(self.collection.query_ids, dtype=object)
        document_ids = np.array(self.collection.document_ids, dtype=object)
        return pd.DataFrame(
            {
                "qid": query_ids[judged.query],
                "docno": document_ids[judged.document],
                "label": judged.grade,
            }
        )

    @cached_property
    def recall(self) -> float:
        """Mean recall of the candidate pool."""
        return pool_recall(self.pairs, self.collection.judgements, self.collection.n_queries).mean

    def _models_stage(self, split: SplitConfig, folds: list[Fold]) -> StageResult:
        def make(path: Path) -> None:
            models = self.trained_scores(split, path)
            for fold in folds:
                parts = self.train_parts(folds, fold)
                train = np.sort(np.concatenate(parts))
                for seen in [train, *(np.setdiff1d(train, part) for part in parts)]:
                    models.model(seen)
                self.reporter.advance(3)

        inputs = {
            "index": self._index_stage.key,
            "ssi": self.config.ssi,
            "tfidf_min_document_frequency": self.config.tfidf_min_document_frequency,
            "split": split.model_dump(mode="json", include={"by", "folds"}),
            "seed": self.config.seed,
        }
        name = f"models/{split.name}"
        return self.stage(name, inputs, make, advance=3 * len(folds), resumable=True)

    def _letor_stage(
        self, split: SplitConfig, folds: list[Fold], models: StageResult
    ) -> StageResult:
        def make(path: Path) -> None:
            scores_from = self.trained_scores(split, models.path)
            path.mkdir()
            for fold in folds:
                scores = fold_scores(scores_from, self.pairs, self.train_parts(folds, fold))
                provenance = {SSI_COLUMN: {**_SSI_PROVENANCE, "fold": fold.name}}
                data = self.base.with_columns([SSI_COLUMN], scores, provenance)
                (path / fold.name).mkdir()
                for name, part in zip(("train", "vali", "test"), fold.split(data), strict=True):
                    target = path / fold.name / f"{name}.txt.zst"
                    write_letor(part, target, threads=self.threads)
                _write_columns(data, path / fold.name)
                self.reporter.advance()

        inputs = {"columns": self._columns_stage.key, "models": models.key}
        return self.stage(f"letor/{split.name}", inputs, make, advance=len(folds))

    def _system_stage(
        self,
        split: SplitConfig,
        folds: list[Fold],
        system: SystemConfig,
        letor_key: str,
        read: ReadPart,
    ) -> StageResult:
        evaluation = self.config.evaluation
        measures = list(dict.fromkeys([*evaluation.measures, evaluation.hard_measure]))
        inputs = {
            "letor": letor_key,
            "system": system.model_dump(mode="json", exclude={"description"}),
            "ranker": self.config.ranker if system.columns else {},
            "measures": measures,
        }

        def make(path: Path) -> None:
            write_system(
                path,
                system,
                folds,
                read,
                self.config.ranker,
                self.qrels,
                measures,
                slug(system.name),
                self.threads,
            )

        name = f"systems/{split.name}/{slug(system.name)}"
        result = self.stage(name, inputs, make)
        self.reporter.advance()
        return result

    def stage(
        self,
        name: str,
        inputs: Mapping[str, Any],
        make: Callable[[Path], None],
        *,
        advance: int = 0,
        resumable: bool = False,
    ) -> StageResult:
        """Run a stage and report it; ``advance`` steps are counted if it is reused."""
        with self.reporter.stage(name) as outcome:
            result = self.stages.run(name, inputs, make, resumable=resumable)
            outcome.append("reused" if result.reused else result.reason)
        if result.reused:
            self.reporter.advance(advance)
        return result


def _write_columns(data: RankingData, folder: Path) -> None:
    """Names and provenance of the columns, in the order of the LETOR file's feature ids."""
    columns = [{"name": name, **data.provenance.get(name, {})} for name in data.column_names]
    with atomic_path(folder / "columns.json") as partial:
        partial.write_text(json.dumps(columns, indent=1, ensure_ascii=False), encoding="utf-8")


def _file_identity(path: Path) -> dict[str, Any]:
    """Name, size and digest of a file; of a file above 64 MB the time of change, not the digest."""
    if not path.is_file():
        return {"name": path.name}
    status = path.stat()
    identity: dict[str, Any] = {"name": path.name, "size": status.st_size}
    if status.st_size > 1 << 26:
        return {**identity, "changed": status.st_mtime_ns}
    return {**identity, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
