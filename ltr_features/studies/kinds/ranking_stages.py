"""Stages of the splits of an experiment: models, their scores, a fold as LETOR text, systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from letor.column_names import write_rows
from letor.dataset import RankingData
from letor.files import atomic_path, read_json, save_array, write_json
from letor.folds import Fold, rows_of_parts
from letor.mapped import empty_array
from letor.rankers.registry import get_ranker
from ltr_base.names import counted
from ltr_base.source_code import packages_of
from ltr_features.columns.fold_fits import fit_folds
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.out_of_fold import train_parts
from ltr_features.columns.trained import TrainedColumn
from ltr_features.feature_table import FoldTable, learned_columns
from ltr_features.studies.config import refitted, slug
from ltr_features.studies.kinds.ranking_config import SplitConfig, SystemConfig
from ltr_features.studies.kinds.ranking_preparation import Preparation
from ltr_features.studies.kinds.sections import ModelConfig
from ltr_features.studies.kinds.systems import SECONDS, write_system
from ltr_features.studies.stages import STUDIES, Planned, StageResult

#: File name of each part of a fold, and name of the part in the fold's table.
_PARTS = {"train": "train", "vali": "validation", "test": "test"}
#: Folder of models that are the same in all splits; no split can be called so.
ALL_SPLITS = "all.splits"
_TRAINING = ("ssi_models", "letor", "ltr_features")
_RANKING = ("letor", "ltr_features", f"{STUDIES}.kinds.systems")


@dataclass(frozen=True, eq=False)
class SplitOutputs:
    """Outputs of the stages of one split.

    Attributes:
        split: its configuration. folds: its folds.
        fits: stage with the run, values and rankers of every fit of each system, by system name.
        smaller: for each share of the learning curve, the folds of the first fit, and the fits of
            the systems in it.
    """

    split: SplitConfig
    folds: list[Fold]
    fits: dict[str, list[StageResult]]
    smaller: list[tuple[list[Fold], dict[str, list[StageResult]]]]

    def first(self, system: str) -> Path:
        """The folder of the first fit of a system."""
        return self.fits[system][0].path


class RankingStages(Preparation):
    """The stages of a ranking study and their outputs."""

    _parts: tuple[str, dict[tuple[str, str], RankingData]] = ("", {})
    _reading = Lock()

    def stages(self) -> list[Planned]:
        planned = [self.collection_stage, self.index_stage, self.columns_stage, *self.first_stages]
        for split in self.config.splits:
            planned += self._split_plan(split)
        plan = {stage.name: stage for stage in planned}
        compared = self.first_stages[-1].name
        plan[compared] = replace(plan[compared], first_result=True)
        return list(plan.values())

    @cached_property
    def first_stages(self) -> list[Planned]:
        """Stages of the first split's first fit that the first comparison needs; systems last."""
        split, pair = self.config.splits[0], self.config.pairs[0]
        systems = [system for system in self.systems_of(split) if system.name in pair]
        stages = (self.system_stage(split, system) for system in systems)
        return [*self._model_stages(split), *stages]

    def _split_plan(self, split: SplitConfig) -> list[Planned]:
        """The stages of all fits of a split."""
        planned: list[Planned] = []
        for fit in self._every_fit(split):
            planned += self._model_stages(fit)
            planned += [self.letor_stage(fit)] if fit.share == 1 else []
            planned += [self.system_stage(fit, system) for system in self.systems_of(fit)]
        return planned

    def _model_stages(self, fit: SplitConfig) -> list[Planned]:
        """The stages of the models of a fit."""
        planned = []
        for model in self.models_of(fit):
            if not model.recipe.looks_at_labels:
                planned.append(self.document_model_stage(model))
            planned.append(self.scores_stage(fit, model))
        return planned

    def fits(self, split: SplitConfig) -> list[SplitConfig]:
        """The split itself, and its refits for every further fit of a system."""
        most = max(self.config.fits_of(system) for system in self.config.all_systems)
        return [split.refit(number) for number in range(max(most, 1))]

    def _every_fit(self, split: SplitConfig) -> list[SplitConfig]:
        """The fits of a split, and then those of each share of its training queries."""
        fits, shares = self.fits(split), self.config.evaluation.learning_curve
        return [*fits, *(fit.of_share(share) for share in shares for fit in fits)]

    def systems_of(self, split: SplitConfig) -> list[SystemConfig]:
        """The systems of a fit: all in the first one, only the repeated ones in further fits; with
        fewer training queries, those of the learning curve."""
        systems, fits_of = self.config.all_systems, self.config.fits_of
        if split.share < 1:
            shown = {name for pair in self.config.headline_pairs for name in pair}
            return [s for s in systems if s.name in shown and split.fit < fits_of(s)]
        return [s for s in systems if split.fit == 0 or split.fit < fits_of(s)]

    def models_of(self, split: SplitConfig) -> list[ModelConfig]:
        """The models of a fit: all in the first one, in others only those that a system uses."""
        seen = {name for system in self.systems_of(split) for name in _seen(system)}
        every = split.fit == 0 and split.share == 1
        return [m for m in self.config.models if every or m.name in seen]

    def check_texts(self) -> None:
        """Raise InputError, before columns are computed, if the texts lack what a model reads, see
        :meth:`LearnedColumn.check_texts`."""
        for model in self.config.models:
            model.recipe.check_texts(self.context)

    def check_folds(self) -> None:
        """Raise InputError if there are no folds to train and test on, or labels to train on."""
        fits = [fit for split in self.config.splits for fit in self._every_fit(split)]
        folds = [fold for fit in fits for fold in self.folds(fit)]
        learned = rows_of_parts(self.base, folds, "train", "validation")
        for part in self.config.rankers:
            get_ranker(part.ranker)(**part.params).check_rows(learned)

    @cached_property
    def outputs(self) -> list[SplitOutputs]:
        """Outputs of the stages of each split."""
        return [self._outputs(split) for split in self.config.splits]

    def _outputs(self, split: SplitConfig) -> SplitOutputs:
        fits = self.fits(split)
        smaller = []
        for share in sorted(self.config.evaluation.learning_curve):
            found = self._results([fit.of_share(share) for fit in fits])
            smaller.append((self.folds(split.of_share(share)), found))
        return SplitOutputs(split, self.folds(split), self._results(fits), smaller)

    def _results(self, fits: Sequence[SplitConfig]) -> dict[str, list[StageResult]]:
        """The results of some fits, by name of the system."""
        found: dict[str, list[StageResult]] = {}
        for fit in fits:
            for system in self.systems_of(fit):
                found.setdefault(system.name, []).append(self.done(self.system_stage(fit, system)))
        return found

    def part(self, split: SplitConfig, fold: str, part: str) -> RankingData:
        """A part ("train", "vali", "test") of a fold; parts of the last split used are cached."""
        with self._reading:
            name, kept = self._parts
            if name != split.name:
                kept = {}
                self._parts = split.name, kept
            if (fold, part) not in kept:
                kept[fold, part] = self.fold_table(split, fold).part(_PARTS[part])
            return kept[fold, part]

    def test_rows(self, output: SplitOutputs) -> dict[str, RankingData]:
        """The test rows of each fold."""
        return {fold.name: self.part(output.split, fold.name, "test") for fold in output.folds}

    def fold_table(self, split: SplitConfig, name: str) -> FoldTable:
        """A fold of all judged queries, with the columns of the split's models."""
        fold = next(fold for fold in self.whole_folds(split) if fold.name == name)
        models, provenance = self.models_of(split), {}
        values = empty_array((len(self.base), len(models)), memory=self.memory)
        for position, model in enumerate(models):
            folder = self.done(self.scores_stage(split, model)).path
            values[:, position] = np.load(folder / f"{name}.npy")
            # An earlier run with another name for the column may have made the scores.
            origin = self.learned_column(split, model).provenance_in(self.context, name)
            provenance[model.name] = {**read_json(folder / f"{name}.json"), **origin}
        return FoldTable(self.base, fold, values, provenance)

    def learned_column(self, split: SplitConfig, model: ModelConfig) -> LearnedColumn:
        """The recipe of a model's column in a split. Models that learn from documents alone are the
        same in every fit."""
        recipe = model.recipe.filled(seed=self.config.seed, threads=self.threads)
        return replace(recipe, params=refitted(recipe.kind, recipe.params, split.fit))

    def trained_column(self, split: SplitConfig, model: ModelConfig, folder: Path) -> TrainedColumn:
        """The models of a column and a split, saved in the folder."""
        return TrainedColumn(
            self.context,
            self.learned_column(split, model),
            folder,
            hold_out_groups=split.by == "group",
            candidates=self.pairs,
            on_progress=self.reporter.epoch,
        )

    def rule(self, split: SplitConfig) -> dict[str, Any]:
        """Everything that the parts of a split depend on, except seeds."""
        rule = split.model_dump(exclude={"name", "title", "description"})
        if split.share < 1:
            rule["share"] = split.share
        name = {"group": "groups", "time": "times"}.get(split.by, "")
        if name in self.query_files:
            rule[name] = self.identity(self.query_files[name])
        return rule

    def document_model_stage(self, model: ModelConfig) -> Planned:
        """The one model of all splits and fits, if it learns from no judgement."""
        split = self.config.splits[0]

        def make(path: Path) -> None:
            self.trained_column(split, model, path).model(np.zeros(0, np.int64))

        inputs = {
            "index": self.index_stage.key,
            "model": model.model_dump(mode="json", exclude={"name"}),
            "seed": self.config.seed,
        }
        return Planned(
            f"models/{ALL_SPLITS}/{slug(model.name)}", inputs, make, "1 model of the documents",
            f"models {model.name}", resumable=True, code=_TRAINING,
            after=[self.columns_stage.name], seconds=self.usual.models(split, model.recipe),
        )  # fmt: skip

    def scores_stage(self, split: SplitConfig, model: ModelConfig) -> Planned:
        """The scores of a model in each fold. Models that learn from judgements are fitted here."""
        fitted_here = model.recipe.looks_at_labels

        def make(path: Path) -> None:
            self._fit_and_score(path, split, model, self.folds(split))

        def make_part(path: Path, number: int) -> None:
            self._fit_and_score(path, split, model, [self.folds(split)[number]])

        inputs = {
            **self.row_inputs,  # not the columns: a further family fits no model again
            "split": self.rule(split),
            "seed": self.config.seed + split.fit,
        }
        seconds, n = self.usual.scores(split), split.n_folds
        kind, size = f"scores {model.name}", counted(n, "fold")
        if fitted_here:
            n *= 1 + (split.inner_parts or split.folds - 2)
            kind, size = f"models {model.name}", f"at most {n} models"
            inputs["model"] = model.model_dump(mode="json", exclude={"name"})
            seconds += self.usual.models(split, model.recipe)
        else:
            inputs["model"] = self.document_model_stage(model).key
        return Planned(
            f"models/{split.name}/{slug(model.name)}", inputs, make, size, kind, n,
            resumable=True, code=_TRAINING, after=[self.columns_stage.name],
            n_parts=split.n_folds, make_part=make_part, seconds=seconds,
        )  # fmt: skip

    def _fit_and_score(
        self, path: Path, split: SplitConfig, model: ModelConfig, some: Sequence[Fold]
    ) -> None:
        """Write the scores of some folds and the facts on them, unless they are there. A fold's
        model is kept; the models of its parts, together the largest files of an experiment, are
        removed as soon as they have scored their rows."""
        folder = path if model.recipe.looks_at_labels else self.models_folder(split, model)
        column, folds = self.trained_column(split, model, folder), self.folds(split)
        models = {
            fold.name: column.fold_paths(
                train_parts(self.collection, folds, fold, split.inner_parts)
            )
            for fold in some
        }
        outputs = {name: (path / f"{name}.npy", path / f"{name}.json") for name in models}
        wanted = [
            fold
            for fold in some
            if not all(p.exists() for p in (models[fold.name][0], *outputs[fold.name]))
        ]
        for fold in wanted:  # Facts are written last, and say that no model of a part is left.
            outputs[fold.name][1].unlink(missing_ok=True)
        made = learned_columns(
            self.context,
            self.base,
            [column.recipe],
            folds,
            only=wanted,
            pairs=self.pairs,
            folder=folder,
            by_group=split.by == "group",
            n_parts=split.inner_parts,
            memory=self.memory,
            on_progress=self.reporter.epoch,
            fit=partial(
                fit_folds, threads=self.threads, memory=self.memory, on_fit=self.reporter.part
            ),
        )
        for scored in made:
            name = scored.fold.name
            scores, facts = outputs[name]
            with atomic_path(scores) as half:
                save_array(half, scored.values[:, 0])
            for spent in models[name][1:]:
                spent.unlink()
            with atomic_path(facts) as half:
                write_json(half, scored.provenance[model.name])

    def models_folder(self, split: SplitConfig, model: ModelConfig) -> Path:
        """The folder with the model of each fold, or with the one of the documents."""
        if model.recipe.looks_at_labels:
            return self.done(self.scores_stage(split, model)).path
        return self.done(self.document_model_stage(model)).path

    def letor_stage(self, split: SplitConfig) -> Planned:
        models = self.models_of(split)

        def make(path: Path) -> None:
            example = self.whole_folds(split)[0].name
            parts = self.fold_table(split, example).parts()
            for name, part in zip(("train", "vali", "test"), parts, strict=True):
                write_rows(part, path / example / f"{name}.txt.zst", threads=self.threads_each)

        inputs = {
            "columns": self.columns_stage.key,
            "scores": {m.name: self.scores_stage(split, m).key for m in models},
            "order": [m.name for m in models],
            "split": self.rule(split),
            "seed": self.config.seed + split.fit,
        }
        size = f"one fold of {split.n_folds}, {counted(len(models), 'trained column')} added"
        name = f"letor/{split.name}"
        return Planned(
            name, inputs, make, size, "letor", code=_TRAINING, together=split.name,
            seconds=self.usual.letor,
        )  # fmt: skip

    def system_stage(self, split: SplitConfig, system: SystemConfig) -> Planned:
        config = self.config
        ranker, seed = config.ranker_of(system), config.seed + split.fit

        def make(path: Path) -> None:
            write_system(
                path,
                system.model_copy(update={"seed": system.seed + seed}),
                self.folds(split),
                lambda fold, part: self.part(split, fold, part),
                ranker,
                self.test_qrels(split),
                config.evaluation.all_measures,
                slug(system.name),
                self.threads,
                core=self.one_core,
                on_fold=lambda done: self.part_done(done, split.n_folds),
            )

        seen = _seen(system)
        described = system.model_dump(
            mode="json", exclude={"label", "description", "ranker", "rankers", "repeats"}
        )
        families = self.families_of(seen)
        models = [model for model in config.models if model.name in seen]
        inputs = {
            **self.row_inputs,
            "columns": self.family_inputs(families),
            "scores": {m.name: self.scores_stage(split, m).key for m in models},
            "order": [m.name for m in models],  # of equally good columns, rankers take the first
            "split": self.rule(split),
            "system": described,
            "ranker": {} if ranker is None else ranker.model_dump(mode="json", exclude={"name"}),
            "seed": seed,
        }
        what = "no ranker" if ranker is None else counted(split.n_folds, f"{ranker.ranker} ranker")
        name = f"systems/{split.name}/{slug(system.name)}"
        kind = f"systems {'' if ranker is None else ranker.name}"
        code = (*_RANKING, *self.family_packages(families))
        if ranker is not None:
            code += packages_of(get_ranker(ranker.ranker))
        return Planned(
            name, inputs, make, what, kind, split.n_folds, code=code, together=split.name,
            seconds=self.usual.rankers(
                split, 0.0 if ranker is None else SECONDS.get(ranker.ranker, 0.0)
            ),
            # A fold's rows are read with all columns.
            after=[
                self.columns_stage.name,
                *(self.scores_stage(split, model).name for model in self.models_of(split)),
            ],
        )  # fmt: skip


def _seen(system: SystemConfig) -> set[str]:
    """Names of the columns, models and families that a system uses."""
    return {*system.columns} if system.score is None else {system.score}
